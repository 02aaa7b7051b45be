package store

import (
	"crypto/sha256"
	"errors"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
)

// IDKey stands for an id in a check that has to keep them all: a UUID's own bytes,
// another id's digest. It holds no pointer, so that a million of them cost the
// collector nothing.
type IDKey [16]byte

// KeyOf is the key of an id; other ids have others.
func KeyOf(id string) IDKey {
	if k, ok := uuidKey(id); ok {
		return k
	}
	sum := sha256.Sum256([]byte(id))
	return IDKey(sum[:16])
}

// uuidKey reads a UUID in the one spelling that ids have; another spelling is
// another id.
func uuidKey(id string) (k IDKey, ok bool) {
	if len(id) != 36 || id[8] != '-' || id[13] != '-' || id[18] != '-' || id[23] != '-' {
		return k, false
	}
	i := 0
	for n := range k {
		if n == 4 || n == 6 || n == 8 || n == 10 {
			i++ // the hyphen
		}
		high, low := hexDigit(id[i]), hexDigit(id[i+1])
		if high|low > 15 {
			return k, false
		}
		k[n] = high<<4 | low
		i += 2
	}
	return k, true
}

func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 0xff
}

// known is what the pass remembers of an id.
type known struct {
	kind  IDKind
	calls chainRef // of entries below an assistant message with tool calls
}

// chainRef is the place of a callChain in verifier.chains; 0 is none. It is no
// pointer, for the same reason as an IDKey.
type chainRef int32

// callChain is the results on the path back to the assistant message that made
// the calls.
type callChain struct {
	up     chainRef // none for the assistant message
	result string   // the call that a result answers
	made   []string // the calls that the assistant message made
}

func (v *verifier) chain(c callChain) chainRef {
	v.chains = append(v.chains, c)
	return chainRef(len(v.chains) - 1)
}

// orphan is a reference to an id that had not come yet.
type orphan struct {
	usage  bool
	id     string // of the entry or usage row
	target string
}

// take gives an id to an entry or a usage row, which what calls.
func (v *verifier) take(what, id string, k known) {
	if id == "" {
		v.fail("empty_id", what+`""`, "the id is empty")
	}
	switch {
	case v.place == nil:
		key := KeyOf(id)
		if _, taken := v.ids[key]; taken {
			v.fail("duplicate_id", what+id, "the id is taken by an earlier entry or usage row")
			return
		}
		v.ids[key] = k
	case k.kind == IDEntry:
		v.reached = append(v.reached, k.calls)
	}
	if k.kind == IDEntry {
		v.newest, v.newestID = k, id
	}
}

// named returns what is known of an id; most name what came just before.
func (v *verifier) named(id string) known {
	switch {
	case id == v.newestID:
		return v.newest
	case v.place == nil:
		return v.ids[KeyOf(id)]
	}
	n, kind := v.place(id)
	k := known{kind: kind}
	if kind == IDEntry && n < len(v.reached) {
		k.calls = v.reached[n]
	}
	return k
}

func (v *verifier) entry(e *Entry, verdict *Verdict) {
	var calls chainRef
	if verdict == nil {
		judged := JudgeEntry(e)
		verdict = &judged
	}
	if e.ParentID != "" {
		parent := v.named(e.ParentID)
		if parent.kind != IDEntry {
			v.orphan = append(v.orphan, orphan{id: e.ID, target: e.ParentID})
		}
		calls = parent.calls
	}
	if (e.Type == TypeCustom) != (e.CustomType != "") {
		v.fail("custom_type", "entry "+e.ID, "a %s entry has custom type %q", e.Type, e.CustomType)
	}
	if verdict.Sound {
		calls = v.follow(verdict, e.ID, calls)
	} else {
		calls = v.unsound(e, "entry "+e.ID, calls)
	}
	v.take("entry ", e.ID, known{IDEntry, calls})
}

// unsound finds out what is wrong with a payload, which may be nothing.
func (v *verifier) unsound(e *Entry, where string, calls chainRef) chainRef {
	v.utf8(e.Payload, where)
	if err := validObject(e.Payload); err != nil {
		v.fail("invalid_payload", where, "%v", err)
		return calls
	}
	return v.payload(e, where, calls)
}

// utf8 wants text that every reader reads alike. A surrogate without a partner is
// an escape, and legal.
func (v *verifier) utf8(raw []byte, where string) {
	if i := rawjson.ValidUTF8(raw); i >= 0 {
		v.fail("invalid_utf8", where, "byte %d of the payload is not UTF-8", i)
	}
}

// follow keeps track of tool calls and their results for a message that is known
// to be sound.
func (v *verifier) follow(verdict *Verdict, id string, calls chainRef) chainRef {
	switch {
	case len(verdict.Calls) > 0:
		return v.chain(callChain{made: verdict.Calls})
	case verdict.Answers:
		return v.result(verdict.CallID, "entry "+id, calls)
	}
	return calls
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
func (v *verifier) payload(e *Entry, where string, calls chainRef) chainRef {
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
func (v *verifier) message(m message.Message, where string, calls chainRef) chainRef {
	if err := message.Validate(m); err != nil {
		var field *message.FieldError
		switch {
		case len(m) == 0:
			v.fail("invalid_message", where, "message entry has no message")
			return calls
		case rawStopReason(m) == string(message.StopPending):
			v.fail("pending_assistant", where, "assistant message is still pending")
		case !errors.As(err, &field) || field.Field == "":
			v.fail("invalid_message", where, "%v", err)
		case field.Field == "role" && roleIsText(m):
			v.warn("unknown_role", where, "%v", err)
		case field.Field == "role":
			v.fail("invalid_message", where, "%v", err)
		default:
			v.warn("message_shape", where, "%v", err)
		}
	}
	switch m.Role() {
	case message.RoleAssistant:
		if made := callsOf(m); len(made) > 0 {
			return v.chain(callChain{made: made})
		}
	case message.RoleToolResult:
		id, _ := rawjson.GetString(m, "toolCallId")
		return v.result(id, where, calls)
	}
	return calls
}

// roleIsText tells a role that a later version may know from none.
func roleIsText(m message.Message) bool {
	role, ok := rawjson.GetString(m, "role")
	return ok && role != ""
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
// only one that does: one id may stand for several calls, each with its result (spec
// §3.8).
func (v *verifier) result(id, where string, calls chainRef) chainRef {
	var made []string
	results := 0
	for at := calls; at != 0; {
		c := &v.chains[at]
		if c.up != 0 && c.result == id {
			results++
		}
		made = c.made
		at = c.up
	}
	calling := 0
	for _, other := range made {
		if other == id {
			calling++
		}
	}
	switch {
	case calling == 0:
		v.warn("result_without_call", where, "no assistant message before it made the tool call %q", id)
		return calls
	case results >= calling:
		v.warn("second_result", where, "tool call %q has a result already", id)
	}
	return v.chain(callChain{up: calls, result: id})
}

func (v *verifier) usage(u *UsageRow, verdict *Verdict) {
	if verdict == nil {
		v.ledger(u, "usage "+u.ID)
	}
	if u.EntryID != "" && v.named(u.EntryID).kind != IDEntry {
		v.orphan = append(v.orphan, orphan{usage: true, id: u.ID, target: u.EntryID})
	}
	v.take("usage ", u.ID, known{kind: IDUsage})
}

// ledger adds up a row of the ledger.
func (v *verifier) ledger(u *UsageRow, where string) {
	v.utf8(u.Usage, where)
	v.utf8(u.Details, where)
	if sum, err := message.ParseUsage(u.Usage); err == nil {
		v.stats.Usage = v.stats.Usage.Add(sum)
	} else if invalid := validObject(u.Usage); invalid != nil {
		v.fail("invalid_usage", where, "usage %v", invalid)
	} else {
		v.fail("invalid_usage", where, "%v", err)
	}
	if u.Details != nil {
		if err := rawjson.Valid(u.Details); err != nil {
			v.fail("invalid_usage", where, "details are not JSON: %v", err)
		}
	}
}

// references judges what pointed to something that had not come yet.
func (v *verifier) references() {
	for _, o := range v.orphan {
		kind := v.named(o.target).kind
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
