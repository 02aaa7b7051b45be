package rawjson

import (
	"bytes"
	"math"
	"strconv"
)

// Get returns the raw value of the last member of the object b whose decoded
// name is key, aliasing b. ok is false when there is none and when b is not
// exactly one object.
func Get(b []byte, key string) (value []byte, ok bool) {
	_, msg := eachMember(b, func(m Member) bool {
		if KeyIs(m.Key, key) {
			value = m.Value
		}
		return true
	})
	if msg != "" {
		return nil, false
	}
	return value, value != nil
}

// GetString is Get for a string value, decoded as Unquote does.
func GetString(b []byte, key string) (string, bool) {
	v, ok := Get(b, key)
	if !ok || v[0] != '"' {
		return "", false
	}
	return text(v), true
}

// GetInt is Get for a number value that ParseInt accepts.
func GetInt(b []byte, key string) (int64, bool) {
	v, ok := Get(b, key)
	if !ok {
		return 0, false
	}
	return ParseInt(v)
}

// GetBool is Get for a true or false value.
func GetBool(b []byte, key string) (value, ok bool) {
	v, ok := Get(b, key)
	if !ok || (v[0] != 't' && v[0] != 'f') {
		return false, false
	}
	return v[0] == 't', true
}

// KeyIs tells whether rawKey, a valid string literal with its quotes, decodes
// to key.
func KeyIs(rawKey []byte, key string) bool {
	// An escape is always longer than what it stands for.
	if len(rawKey) < len(key)+2 {
		return false
	}
	inner := rawKey[1 : len(rawKey)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner) == key
	}
	var buf [64]byte
	return string(decode(buf[:0], rawKey)) == key
}

// ParseInt returns the value of a number literal that is an integer in the
// range of int64, written without fraction and exponent. -0 is 0.
func ParseInt(raw []byte) (int64, bool) {
	digits, limit := raw, uint64(math.MaxInt64)
	negative := len(raw) > 0 && raw[0] == '-'
	if negative {
		digits, limit = raw[1:], limit+1
	}
	// Nineteen digits always fit a uint64.
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	var n uint64
	for _, c := range digits {
		if c-'0' > 9 {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	switch {
	case n > limit:
		return 0, false
	case negative:
		return -int64(n), true
	}
	return int64(n), true
}

// AppendInt appends the number literal of n.
func AppendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }
