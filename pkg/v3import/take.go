package v3import

import (
	"bytes"
	"strings"

	"github.com/drover-run/drover/pkg/message"
)

// untyped stands for the type of a record that has none.
const untyped = "untyped"

// base are the members that every record has and no payload keeps.
var base = set(keyType, keyID, keyParent, keyTime)

func (x *index) count(typ string) {
	at, ok := x.kindAt[typ]
	if !ok {
		at = len(x.kinds)
		x.kindAt[strings.Clone(typ)] = at
		x.kinds = append(x.kinds, KindCount{Type: typ})
	}
	x.kinds[at].Count++
}

// record indexes one record behind the header.
func (x *index) record(o *object, p place, typ string) error {
	if typ == "" {
		typ = untyped
	}
	x.count(typ)
	r := record{off: p.off, line: p.line, size: int32(p.size), kind: kindOf(typ), ref: none}
	if p.mended {
		r.flags |= flagBadUTF8
	}
	ln := x.linksOf(o, p)
	if dropped, err := x.repeated(o, p, &r, ln.id); dropped || err != nil {
		return err
	}
	if !known(typ) {
		x.unknownType(typ, p)
	}
	if r.kind.kept() && r.kind != kindWhole && o.seen&set(keyKind, keySeq) != 0 {
		x.warn(p.line, p.off, "renamed_field", "fields kind and seq are stored as pi.v3.kind and pi.v3.seq")
	}
	x.time(o, p, &r)
	switch r.kind {
	case kindMessage:
		x.message(o, p, &r)
	case kindCustomMessage:
		r.flags |= flagTail
		x.wantContent(o.raw(keyContent), p)
	case kindCompaction:
		x.compaction(o, p, &r, &ln)
	case kindSummary:
		x.summary(o, p, &r, &ln)
	case kindCustom:
		if s, _ := textOf(o.raw(keyCustomType)); s == "" {
			r.kind = kindWhole
			x.warn(p.line, p.off, "custom_type", "custom entry without a customType kept as pi.v3.custom")
		}
	case kindEdit, kindLeaf:
		x.target(o, &ln)
	case kindLabel:
		x.target(o, &ln)
		x.label(o, p)
	case kindName:
		x.sessionName(o, p)
	case kindUsage:
		x.spend(o.raw(keyUsage), p)
	}
	x.push(r, ln)
	return nil
}

// linksOf reads the record's own name and its parent's.
func (x *index) linksOf(o *object, p place) links {
	id, oddID := name(o.raw(keyID))
	parent, oddParent := name(o.raw(keyParent))
	ln := links{id: id, parent: parent}
	// The parent is nearly always the record in front: share its text.
	if n := len(x.links); n > 0 && x.links[n-1].id == parent {
		ln.parent = x.links[n-1].id
	}
	switch {
	case parent != "":
		ln.how |= parentGiven
	case o.seen.has(keyParent):
		ln.how |= parentEmpty
		if o.raw(keyParent)[0] == '"' {
			ln.how |= parentBlank
		}
	}
	if oddID || oddParent {
		x.warn(p.line, p.off, "odd_id", "id or parentId is no string and taken by its JSON text")
	}
	if o.twice.has(keyID) || o.twice.has(keyParent) {
		x.warn(p.line, p.off, "duplicate_key", "id or parentId occurs twice in the record; the last one counts")
	}
	if id == "" {
		x.odd++
	}
	return ln
}

// repeated looks for an earlier record of the same id. An identical copy is
// dropped here, so that nothing of it counts twice.
func (x *index) repeated(o *object, p place, r *record, id string) (dropped bool, err error) {
	if id == "" {
		return false, nil
	}
	first, taken := x.byID[id]
	if !taken {
		return false, nil
	}
	same, err := x.sameText(first, o, p)
	if err != nil {
		return false, err
	}
	if !same {
		if x.twins == nil {
			x.twins = make(map[string][]int32)
		}
		x.twins[id] = append(x.twins[id], int32(len(x.records)))
		return false, nil
	}
	x.warn(p.line, p.off, "duplicate_record", "identical copy of the record in line %d left out", x.records[first].line)
	r.kind, r.ts, r.ref = kindCopy, x.lastTS, first
	x.push(*r, links{})
	return true, nil
}

// sameText compares a record with an earlier one, byte by byte.
func (x *index) sameText(first int32, o *object, p place) (bool, error) {
	f := &x.records[first]
	if int(f.size) != p.size || p.mended {
		return false, nil
	}
	earlier, err := x.back.bytes(f.off, int64(f.size))
	return bytes.Equal(earlier, o.bytes()), err
}

// unknownType warns once per type.
func (x *index) unknownType(typ string, p place) {
	t := x.unknown[typ]
	if t == nil {
		t = &tally{first: Warning{Line: p.line, Offset: p.off}}
		x.unknown[strings.Clone(typ)] = t
	}
	t.seen++
}

// time finds the record's time: its own, else its message's, else the time of
// the record in front.
func (x *index) time(o *object, p place, r *record) {
	raw := o.raw(keyTime)
	if s, ok := textOf(raw); ok {
		if r.ts, ok = parseTime(s); ok {
			x.lastTS = r.ts
			return
		}
	} else if ms, ok := parseMillis(raw); ok {
		r.ts, x.lastTS = ms, ms
		x.warn(p.line, p.off, "bad_timestamp", "timestamp is a number, read as Unix milliseconds")
		return
	}
	if ms, ok := parseMillis(o.msg(keyTime)); ok {
		r.ts, x.lastTS = ms, ms
		x.warn(p.line, p.off, "bad_timestamp", "no usable timestamp; the message's is used")
		return
	}
	x.warn(p.line, p.off, "bad_timestamp", "no usable timestamp; that of the record in front is used")
	if r.ts = x.lastTS; r.ts == noTime {
		r.flags |= flagNoTime
	}
}

func (x *index) message(o *object, p place, r *record) {
	m := o.raw(keyMessage)
	if len(m) == 0 || m[0] != '{' {
		r.kind = kindWhole
		x.warn(p.line, p.off, "message_missing", "message record without a message kept as a custom entry pi.v3.message")
		return
	}
	role, _ := textOf(o.msg(keyRole))
	if stop, _ := textOf(o.msg(keyStopReason)); role == "assistant" && stop == "pending" {
		r.kind = kindWhole
		x.warn(p.line, p.off, "message_pending", "unfinished answer kept as a custom entry pi.v3.message")
		return
	}
	r.flags |= flagTail
	r.body, r.length = int32(o.members[keyMessage].lo-o.lo), int32(len(m))
	if !p.mended && o.seen&^(base|set(keyMessage)) == 0 {
		r.flags |= flagPlain
	}
	switch message.Role(role) {
	case message.RoleUser, message.RoleCustom:
		x.wantContent(o.msg(keyContent), p)
	case message.RoleAssistant, message.RoleToolResult:
		x.wantContent(o.msg(keyContent), p)
		x.spend(o.msg(keyUsage), p)
	case message.RoleSystem:
		r.flags |= flagSystem
	case message.RoleBashExecution, message.RoleBranchSummary, message.RoleCompactionSummary:
	case "hookMessage":
		if x.version < 3 {
			r.flags |= flagRename
			break
		}
		fallthrough
	default:
		x.warn(p.line, p.off, "unknown_role", "message of unknown role %q kept as it is", role)
	}
}

func (x *index) wantContent(raw []byte, p place) {
	if len(raw) == 0 || raw[0] == 'n' {
		x.warn(p.line, p.off, "content_missing", "message without content kept as it is")
	}
}

func (x *index) compaction(o *object, p place, r *record, ln *links) {
	x.wantSummary(o, p)
	x.spend(o.raw(keyUsage), p)
	if tail := o.raw(keyTail); len(tail) > 0 && tail[0] != 'n' {
		if messageList(tail) {
			r.flags |= flagOwnTail
			return
		}
		x.warn(p.line, p.off, "retained_tail", "retainedTail is no list of messages and left out")
	}
	id, _ := name(o.raw(keyFirstKept))
	switch {
	case id != "":
		ln.ref, ln.how = id, ln.how|refGiven
	case x.version < 2 && o.seen.has(keyFirstIndex):
		ln.ref, ln.how = string(o.raw(keyFirstIndex)), ln.how|refIndex
	default:
		ln.how |= refNull
	}
}

func (x *index) summary(o *object, p place, r *record, ln *links) {
	if s := o.raw(keySummary); len(s) > 2 && s[0] == '"' {
		r.flags |= flagTail
	}
	x.wantSummary(o, p)
	x.spend(o.raw(keyUsage), p)
	if id, _ := name(o.raw(keyFromID)); id != "" {
		ln.ref, ln.how = id, ln.how|refGiven
	}
}

func (x *index) wantSummary(o *object, p place) {
	if _, ok := textOf(o.raw(keySummary)); !ok {
		x.warn(p.line, p.off, "summary_missing", "record without a summary; an empty one is stored")
	}
}

// target reads the name of the record that an edit, a label or a leaf is about.
func (x *index) target(o *object, ln *links) {
	raw := o.raw(keyTarget)
	if id, _ := name(raw); id != "" {
		ln.ref, ln.how = id, ln.how|refGiven
	} else if len(raw) > 0 && raw[0] == 'n' {
		ln.how |= refNull
	}
}

func (x *index) label(o *object, p place) {
	raw := o.raw(keyLabel)
	s, _ := textOf(raw)
	l := label{at: int32(len(x.records)), text: s, clear: s == ""}
	switch {
	case len(raw) > 0 && raw[0] != '"' && raw[0] != 'n':
		x.warn(p.line, p.off, "label_text", "label is no text and ignored")
		return
	case s != "" && blank(s):
		l.clear = true
		x.warn(p.line, p.off, "label_blank", "a label of blanks clears the label")
	}
	x.labels = append(x.labels, l)
}

func (x *index) sessionName(o *object, p place) {
	raw := o.raw(keyName)
	s, ok := textOf(raw)
	switch {
	case len(raw) > 0 && raw[0] != 'n' && !ok:
		x.warn(p.line, p.off, "name_text", "name is no text and ignored")
		return
	case s != "" && blank(s):
		x.warn(p.line, p.off, "name_blank", "a name of blanks clears the name")
	}
	x.title = strings.TrimFunc(s, isBlank)
}

// spend adds one usage object to the sum.
func (x *index) spend(raw []byte, p place) {
	if len(raw) == 0 || raw[0] == 'n' {
		return
	}
	u, err := message.ParseUsage(raw)
	if err != nil {
		x.warn(p.line, p.off, "bad_usage", "usage not counted: %v", err)
		return
	}
	x.usage = x.usage.Add(u)
}
