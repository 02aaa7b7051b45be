package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/drover-run/drover/internal/rawjson"
)

// Address names one value or list: equal namespace and key name the same
// location (spec §1.3).
type Address struct {
	Namespace string
	Key       string
}

// String shows the address as NAMESPACE or NAMESPACE/KEY.
func (a Address) String() string {
	if a.Key == "" {
		return a.Namespace
	}
	return a.Namespace + "/" + a.Key
}

// Check reports what makes the address unusable: an empty namespace, a NUL in
// either part (spec §1.3), or bytes that JSON text cannot carry unchanged.
func (a Address) Check() error {
	switch {
	case a.Namespace == "":
		return errors.New("address has an empty namespace")
	case strings.IndexByte(a.Namespace, 0) >= 0 || strings.IndexByte(a.Key, 0) >= 0:
		return fmt.Errorf("address %q holds a NUL character", a.String())
	case !isText(a.Namespace) || !isText(a.Key):
		return fmt.Errorf("address %q is no text", a.String())
	}
	return nil
}

// isText reports whether a string is the same after it has been JSON: UTF-8, or
// with surrogates that have no partner.
func isText(s string) bool {
	if utf8.ValidString(s) {
		return true
	}
	back, err := rawjson.Unquote(rawjson.Quote(s))
	return err == nil && back == s
}

// Reserved reports whether the namespace belongs to drover: pi, pi.* and
// drover.* are not for applications (spec §1.3).
func (a Address) Reserved() bool {
	return a.Namespace == "pi" || strings.HasPrefix(a.Namespace, "pi.") || strings.HasPrefix(a.Namespace, "drover.")
}

// Value is the bound address of one replaceable value of type T (spec §1.3).
type Value[T any] struct {
	addr   Address
	decode func(json.RawMessage) (T, error)
}

// NewValue binds a value address. An unusable address is reported by the first
// read or commit that uses it.
func NewValue[T any](namespace, key string) Value[T] {
	return Value[T]{addr: Address{namespace, key}}
}

// DecodedBy returns the same address read through decode, for types whose JSON
// is a discriminated union.
func (v Value[T]) DecodedBy(decode func(json.RawMessage) (T, error)) Value[T] {
	v.decode = decode
	return v
}

// Address returns the namespace and key that the value is bound to.
func (v Value[T]) Address() Address { return v.addr }

// Set is the write that replaces the value.
func (v Value[T]) Set(next T) Write { return setWrite(KindValue, OpSet, v.addr, next) }

// Delete is the write that removes the value; removing an absent one is legal.
func (v Value[T]) Delete() Write { return Write{Kind: KindValue, Op: OpDelete, Address: v.addr} }

// List is the bound address of one append-only list of T (spec §1.3).
type List[T any] struct {
	addr   Address
	decode func(json.RawMessage) (T, error)
}

// NewList binds a list address.
func NewList[T any](namespace, key string) List[T] {
	return List[T]{addr: Address{namespace, key}}
}

// Address returns the namespace and key that the list is bound to.
func (l List[T]) Address() Address { return l.addr }

// Append is the write that adds one element.
func (l List[T]) Append(element T) Write { return setWrite(KindList, OpAppend, l.addr, element) }

// Delete is the write that removes the whole list.
func (l List[T]) Delete() Write { return Write{Kind: KindList, Op: OpDelete, Address: l.addr} }

// Prefix scans the values of one namespace whose keys share a beginning. It is
// no address: it cannot be read, set or deleted (spec §1.5).
type Prefix[T any] struct {
	addr   Address
	decode func(json.RawMessage) (T, error)
}

// NewPrefix binds a scan prefix.
func NewPrefix[T any](namespace, keyPrefix string) Prefix[T] {
	return Prefix[T]{addr: Address{namespace, keyPrefix}}
}

// Address returns the namespace and the key prefix of the scan.
func (p Prefix[T]) Address() Address { return p.addr }

func setWrite(kind WriteKind, op WriteOp, addr Address, x any) Write {
	raw, err := encode(x)
	if err != nil {
		err = fmt.Errorf("encode %s: %w", addr, err)
	}
	return Write{Kind: kind, Op: op, Address: addr, Value: raw, err: err}
}
