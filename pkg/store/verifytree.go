package store

import (
	"crypto/sha256"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
)

// idKey stands for an id: a UUID's own bytes, another id's digest. It holds no
// pointer, so that a million of them cost the collector nothing.
type idKey [16]byte

func keyOf(id string) idKey {
	if len(id) == 36 {
		if u, err := uuid.Parse(id); err == nil && u.String() == id {
			return idKey(u)
		}
	}
	sum := sha256.Sum256([]byte(id))
	return idKey(sum[:16])
}

// known is what the pass remembers of an id.
type known struct {
	kind  IDKind
	calls *callChain // entries below an assistant message with tool calls
}

// callChain is the results on the path back to the assistant message that made
// the calls.
type callChain struct {
	up     *callChain // nil for the assistant message
	result string     // the call that a result answers
	made   []string   // the calls that the assistant message made
}

// orphan is a reference to an id that had not come yet.
type orphan struct {
	usage  bool
	id     string // of the entry or usage row
	target string
}

func (v *verifier) take(id, where string, k known) {
	key := keyOf(id)
	if _, taken := v.ids[key]; taken {
		v.fail("duplicate_id", where, "the id is taken by an earlier entry or usage row")
		return
	}
	v.ids[key] = k
}

func (v *verifier) entry(e *Entry) {
	where := "entry " + e.ID
	var calls *callChain
	if e.ParentID != "" {
		parent, ok := v.ids[keyOf(e.ParentID)]
		if !ok || parent.kind != IDEntry {
			v.orphan = append(v.orphan, orphan{id: e.ID, target: e.ParentID})
		}
		calls = parent.calls
	}
	if (e.Type == TypeCustom) != (e.CustomType != "") {
		v.fail("custom_type", where, "a %s entry has custom type %q", e.Type, e.CustomType)
	}
	if err := validObject(e.Payload); err != nil {
		v.fail("invalid_payload", where, "%v", err)
	} else {
		calls = v.payload(e, where, calls)
	}
	v.take(e.ID, where, known{IDEntry, calls})
}

func validObject(raw []byte) error {
	if err := rawjson.Valid(raw); err != nil {
		return errors.New("payload is not JSON: " + err.Error())
	}
	if rawjson.KindOf(raw) != rawjson.Object {
		return errors.New("payload is no JSON object")
	}
	return nil
}

// payload checks the typed fields of an entry (spec §2.1).
func (v *verifier) payload(e *Entry, where string, calls *callChain) *callChain {
	var required map[string]rawjson.Kind
	switch e.Type {
	case TypeMessage:
		return v.message(e.Message(), where, calls)
	case TypeCompaction:
		required = map[string]rawjson.Kind{"summary": rawjson.String, "retainedTail": rawjson.Array, "tokensBefore": rawjson.Number, "fromHook": rawjson.Bool}
	case TypeBranchSummary:
		required = map[string]rawjson.Kind{"summary": rawjson.String, "fromHook": rawjson.Bool}
	case TypeCustom:
	default:
		v.fail("unknown_type", where, "entry type %q is unknown", e.Type)
	}
	for _, field := range []string{"summary", "retainedTail", "tokensBefore", "fromHook"} {
		kind, wanted := required[field]
		if !wanted {
			continue
		}
		raw, ok := rawjson.Get(e.Payload, field)
		if !ok || rawjson.KindOf(raw) != kind {
			v.fail("invalid_payload", where, "%s entry has no proper %s", e.Type, field)
		}
	}
	return calls
}

// message checks a message. What acceptance would refuse may still be in an
// imported session: only what cannot be taken for a message is an error.
func (v *verifier) message(m message.Message, where string, calls *callChain) *callChain {
	if err := message.Validate(m); err != nil {
		var field *message.FieldError
		switch {
		case len(m) == 0:
			v.fail("invalid_message", where, "message entry has no message")
			return calls
		case rawStopReason(m) == string(message.StopPending):
			v.fail("pending_assistant", where, "assistant message is still pending")
		case !errors.As(err, &field) || field.Field == "" || field.Field == "role":
			v.fail("invalid_message", where, "%v", err)
		default:
			v.warn("message_shape", where, "%v", err)
		}
	}
	switch m.Role() {
	case message.RoleAssistant:
		if made := callsOf(m); len(made) > 0 {
			return &callChain{made: made}
		}
	case message.RoleToolResult:
		return v.result(m, where, calls)
	}
	return calls
}

func rawStopReason(m message.Message) string {
	if m.Role() != message.RoleAssistant {
		return ""
	}
	return string(m.StopReason())
}

func callsOf(m message.Message) []string {
	var ids []string
	for _, call := range m.ToolCalls() {
		ids = append(ids, call.ID)
	}
	return ids
}

// result checks that a tool result answers a call on its own branch, and is the
// only one that does (spec §3.8).
func (v *verifier) result(m message.Message, where string, calls *callChain) *callChain {
	id, _ := rawjson.GetString(m, "toolCallId")
	var made []string
	second := false
	for c := calls; c != nil; c = c.up {
		second = second || c.up != nil && c.result == id
		made = c.made
	}
	switch {
	case !slices.Contains(made, id):
		v.warn("result_without_call", where, "no assistant message before it made the tool call %q", id)
		return calls
	case second:
		v.warn("second_result", where, "tool call %q has a result already", id)
	}
	return &callChain{up: calls, result: id}
}

func (v *verifier) usage(u *UsageRow) {
	where := "usage " + u.ID
	if err := validObject(u.Usage); err != nil {
		v.fail("invalid_usage", where, "usage %v", err)
	} else if _, err := message.ParseUsage(u.Usage); err != nil {
		v.fail("invalid_usage", where, "%v", err)
	}
	if u.Details != nil {
		if err := rawjson.Valid(u.Details); err != nil {
			v.fail("invalid_usage", where, "details are not JSON: %v", err)
		}
	}
	if u.EntryID != "" && v.ids[keyOf(u.EntryID)].kind != IDEntry {
		v.orphan = append(v.orphan, orphan{usage: true, id: u.ID, target: u.EntryID})
	}
	v.take(u.ID, where, known{kind: IDUsage})
}

// references judges what pointed to something that had not come yet.
func (v *verifier) references() {
	for _, o := range v.orphan {
		kind := v.ids[keyOf(o.target)].kind
		switch {
		case o.usage && kind != IDEntry:
			v.warn("usage_entry", "usage "+o.id, "the usage row belongs to entry %s, which does not exist", o.target)
		case o.usage:
		case kind == IDEntry:
			v.fail("parent_order", "entry "+o.id, "parent %s comes after its child", o.target)
		case kind == IDUsage:
			v.fail("missing_parent", "entry "+o.id, "parent %s is a usage row", o.target)
		default:
			v.fail("missing_parent", "entry "+o.id, "parent %s does not exist", o.target)
		}
	}
}
