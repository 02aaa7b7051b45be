package owner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"unicode"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/store"
)

// ErrGone says that there is no owner to talk to: it is dead, is another one than
// the lease names, or serves no socket. Whether an unanswered request was carried
// out is not known; repeating it, with the same ids, on the file is safe.
var ErrGone = errors.New("the session's owner cannot be reached")

// ErrClosing says that the owner is giving the session up and takes nothing more:
// wait for the lease and use the file (D25).
var ErrClosing = errors.New("the session's owner is closing it")

// Occupied is an owner that serves no engine, with what it is doing instead. It
// unwraps to *store.Held (D25).
type Occupied struct {
	Held    store.Held
	Command string
}

func (e *Occupied) Error() string {
	return fmt.Sprintf("the session's owner, pid %d on %s, is busy with %s", e.Held.Lease.PID, e.Held.Lease.Host, e.Command)
}

// Unwrap returns the lease as a refusal.
func (e *Occupied) Unwrap() error { return &e.Held }

// RemoteError is a refusal or failure in the owner that has no type of its own:
// usage, unsupported, invalid_request, slow_reader, io, fault or internal.
type RemoteError struct {
	Code    string
	Message string
	Details json.RawMessage // an object, nil when there is none
}

func (e *RemoteError) Error() string { return e.Message }

func malformed(format string, args ...any) error {
	return &RemoteError{Code: "invalid_request", Message: fmt.Sprintf(format, args...)}
}

func usage(format string, args ...any) error {
	return &RemoteError{Code: "usage", Message: fmt.Sprintf(format, args...)}
}

// tagged is an expected refusal of the engine (spec §5.1).
type tagged interface {
	error
	Tag() string
}

// encodeError is an error as the socket carries it.
func encodeError(err error) []byte {
	if errors.Is(err, context.Canceled) {
		err = store.ErrClosed // a closing owner broke it off; nobody else reads this
	}
	o := newObject()
	code, details := classify(err)
	o.str("code", code)
	o.str("message", err.Error())
	o.raw("details", details)
	return o.end()
}

func classify(err error) (code string, details []byte) {
	var refusal tagged
	var remote *RemoteError
	var lane *store.UnknownLane
	var target *store.UnknownTarget
	var large *store.TooLarge
	var kind *store.KindTaken
	var fault *store.Fault
	var lost *store.Lost
	var errno syscall.Errno
	var path *fs.PathError
	switch {
	case errors.As(err, &refusal):
		return snake(refusal.Tag()), refusalDetails(refusal)
	case errors.As(err, &remote):
		return remote.Code, remote.Details
	case errors.As(err, &lane):
		return "lane_not_found", one("lane", lane.Lane)
	case errors.As(err, &target):
		return "entry_not_found", one("entryId", target.ID)
	case errors.As(err, &kind):
		return "address_kind", kindDetails(kind)
	case errors.As(err, &large):
		return "invalid_message", one("reason", large.Error())
	case errors.Is(err, store.ErrClosed):
		return "closed", nil
	case errors.As(err, &lost), errors.As(err, &errno), errors.As(err, &path):
		return "io", nil
	case errors.As(err, &fault):
		return "fault", nil
	}
	return "internal", nil
}

func one(name, s string) []byte {
	o := newObject()
	o.str(name, s)
	return o.end()
}

func kindDetails(e *store.KindTaken) []byte {
	o := newObject()
	o.str("namespace", e.Address.Namespace)
	o.str("key", e.Address.Key)
	o.str("kind", e.KindName())
	return o.end()
}

// snake turns a tag into the spelling of scripts: LaneBusy becomes lane_busy.
func snake(tag string) string {
	var b strings.Builder
	for i, r := range tag {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// refusalDetails are the fields of a refusal that the other side needs to make
// the same one.
func refusalDetails(t tagged) []byte {
	o := newObject()
	switch e := t.(type) {
	case *engine.LaneBusy:
		o.str("lane", e.Lane)
		o.str("operationId", e.OperationID)
		o.str("operationKind", string(e.Kind))
	case *engine.OperationMismatch:
		o.str("lane", e.Lane)
		o.str("expectedOperationId", e.Expected)
		o.optional("currentOperationId", e.Current)
		o.optional("lastOperationId", e.Last)
	case *engine.NoActiveRun:
		o.str("lane", e.Lane)
	case *engine.InvalidMessage:
		o.optional("lane", e.Lane)
		o.str("reason", e.Reason)
	case *engine.LaneNotFound:
		o.str("lane", e.Lane)
		o.texts("lanes", e.Known)
	}
	return o.end()
}

// decodeError makes the error that the owner had.
func decodeError(raw json.RawMessage) error {
	f, err := parseFields(raw)
	if err != nil {
		return fmt.Errorf("the owner sent no error: %w", err)
	}
	e := &RemoteError{Details: f.raw("details")}
	if e.Code, err = f.text("code"); err != nil {
		return err
	}
	if e.Message, err = f.text("message"); err != nil {
		return err
	}
	d, err := parseFields(e.Details)
	if err != nil {
		d = fields{}
	}
	if typed := d.refusal(e.Code); typed != nil {
		return typed
	}
	return e
}

// refusal makes a typed refusal of its details; nil for a code without a type.
func (f fields) refusal(code string) error {
	text := func(name string) string {
		s, _ := f.text(name)
		return s
	}
	switch code {
	case "closed":
		return ErrClosing
	case "lane_busy":
		e := &engine.LaneBusy{Lane: text("lane"), OperationID: text("operationId")}
		setText(&e.Kind, text("operationKind"))
		return e
	case "operation_mismatch":
		return &engine.OperationMismatch{
			Lane: text("lane"), Expected: text("expectedOperationId"), Current: text("currentOperationId"), Last: text("lastOperationId"),
		}
	case "no_active_run":
		return &engine.NoActiveRun{Lane: text("lane")}
	case "invalid_message":
		return &engine.InvalidMessage{Lane: text("lane"), Reason: text("reason")}
	case "lane_not_found":
		known, _ := f.texts("lanes")
		return &engine.LaneNotFound{Lane: text("lane"), Known: known}
	case "address_kind":
		e := &store.KindTaken{Address: store.Address{Namespace: text("namespace"), Key: text("key")}, Kind: store.KindValue}
		if text("kind") == "list" {
			e.Kind = store.KindList
		}
		return e
	case "entry_not_found":
		return &store.UnknownTarget{ID: text("entryId")}
	}
	return nil
}

func setText[T ~string](dst *T, s string) { *dst = T(s) }
