package export

import (
	"bytes"
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
)

// The custom types under which the import keeps what format 4 has no type for.
const (
	contextEdit = "pi.context_edit"
	foreign     = "pi.v3."
)

// entry writes one entry as the record that it was, or would have been.
func (p *piWriter) entry(i int32, e *store.Entry) error {
	p.report.Entries++
	if p.marks[i]&onPath != 0 {
		p.lastTS = max(p.lastTS, e.Timestamp)
	}
	p.pathEnd = i == p.leaf
	p.tails.note(i, e)
	switch e.Type {
	case store.TypeMessage:
		p.message(i, e)
	case store.TypeCompaction:
		return p.compaction(i, e)
	case store.TypeBranchSummary:
		p.summary(i, e)
	case store.TypeCustom:
		p.custom(i, e)
	default:
		p.begin(plainName(string(e.Type)), p.codes.of[i], p.parent(i), e.Timestamp)
		p.rest(e.Payload)
	}
	return nil
}

// plainName is a type that can stand between quotes as it is.
func plainName(s string) string {
	q := rawjson.Quote(s)
	return string(q[1 : len(q)-1])
}

// rest ends a line with the members of a payload.
func (p *piWriter) rest(payload []byte) {
	if len(payload) > 2 {
		p.buf = append(append(p.buf, ','), payload[1:len(payload)-1]...)
	}
	p.buf = append(p.buf, "}\n"...)
}

// without is rest for a payload of which some members are written otherwise.
func (p *piWriter) without(payload []byte, names ...string) {
	// The payload was valid when it was stored.
	_ = rawjson.MembersFunc(payload, func(m rawjson.Member) bool {
		for _, name := range names {
			if rawjson.KeyIs(m.Key, name) {
				return true
			}
		}
		p.buf = append(append(append(append(p.buf, ','), m.Key...), ':'), m.Value...)
		return true
	})
	p.buf = append(p.buf, "}\n"...)
}

var (
	wrapped     = []byte(`{"message":`)
	customFirst = []byte(`{"role":"custom",`)
)

func (p *piWriter) message(i int32, e *store.Entry) {
	if m := e.Payload[min(len(wrapped), len(e.Payload)):]; bytes.HasPrefix(m, customFirst) {
		if m := e.Message(); len(m)+len(wrapped)+1 == len(e.Payload) && isCustomMessage(m) {
			p.customMessage(p.codes.of[i], p.parent(i), e.Timestamp, m)
			return
		}
	}
	p.begin("message", p.codes.of[i], p.parent(i), e.Timestamp)
	p.rest(e.Payload)
}

// isCustomMessage tells whether a message of role custom has nothing that a
// custom_message record has no place for.
func isCustomMessage(m []byte) bool {
	if !bytes.HasPrefix(m, customFirst) {
		return false
	}
	var kind, content bool
	known := true
	_ = rawjson.MembersFunc(m, func(m rawjson.Member) bool {
		switch string(m.Key) {
		case `"customType"`:
			kind = rawjson.KindOf(m.Value) == rawjson.String
		case `"content"`:
			content = true
		case `"role"`, `"display"`, `"details"`, `"timestamp"`:
		default:
			known = false
		}
		return known
	})
	return known && kind && content
}

func (p *piWriter) customMessage(code uint32, parent string, ts int64, m []byte) {
	p.begin("custom_message", code, parent, ts)
	p.without(m, "role", "timestamp")
}

// summary writes a branch summary. What it was made from may not go out: then
// the nearest entry above it that does stands for it.
func (p *piWriter) summary(i int32, e *store.Entry) {
	from := `"root"`
	if id, ok := rawjson.GetString(e.Payload, "fromId"); ok {
		if at, known := p.ids.find(id); known {
			for at != none && !p.wanted(at) {
				at = p.parents[at]
			}
			if at != none {
				from = p.reference(at)
			}
		}
	}
	p.begin("branch_summary", p.codes.of[i], p.parent(i), e.Timestamp)
	p.member("fromId", from)
	p.without(e.Payload, "fromId")
}

func (p *piWriter) custom(i int32, e *store.Entry) {
	data, _ := rawjson.Get(e.Payload, "data")
	if rawjson.KindOf(data) == rawjson.Object {
		typ, known := strings.CutPrefix(e.CustomType, foreign)
		switch {
		case e.CustomType == contextEdit:
			p.edit(i, e, data)
			return
		case known && foreignRecord(typ, data):
			p.begin(plainName(typ), p.codes.of[i], p.parent(i), e.Timestamp)
			p.without(data, "type", "id", "parentId", "timestamp")
			return
		}
	}
	p.begin("custom", p.codes.of[i], p.parent(i), e.Timestamp)
	p.text("customType", e.CustomType)
	p.without(e.Payload, "customType")
}

// edit writes a context edit with the name that its target has in this file.
func (p *piWriter) edit(i int32, e *store.Entry, data []byte) {
	target := "null"
	if at, ok := p.target(data); ok {
		target = p.reference(at)
	}
	p.begin("context_edit", p.codes.of[i], p.parent(i), e.Timestamp)
	p.member("targetId", target)
	p.without(data, "targetId")
}

// target is the entry that an edit is about, when it goes out.
func (p *piWriter) target(data []byte) (int32, bool) {
	id, _ := rawjson.GetString(data, "targetId")
	at, ok := p.ids.find(id)
	return at, ok && p.wanted(at)
}

// foreignRecord tells whether data is a record of a type that the import did not
// know, kept whole.
func foreignRecord(typ string, data []byte) bool {
	switch typ {
	case "session", "message", "custom", "custom_message", "compaction", "branch_summary", "label", "session_info",
		"model_change", "thinking_level_change", "active_tools_change", "usage", "context_edit", "leaf":
		return false // kept because the agent could not use it as such
	}
	s, _ := rawjson.GetString(data, "type")
	return s == typ && typ != ""
}
