package jsonl

import (
	"encoding/json"
	"slices"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/memory"
)

// slow decodes an object with its members in any order and spelling. Of several
// members of one name the first counts; unknown ones mean nothing, except that
// an entry's are its payload.
func (d *decoder) slow(line []byte, i int) (end int, bad *fault) {
	end, serr := rawjson.Skip(line, i)
	if serr != nil {
		return 0, &fault{serr.Offset, serr.Msg}
	}
	r := recordReader{at: i, members: make(map[string]rawjson.Member)}
	err := rawjson.MembersFunc(line[i:end], func(m rawjson.Member) bool {
		name, _ := rawjson.Unquote(m.Key) // the object has been scanned
		if _, twice := r.members[name]; !twice {
			r.members[name] = m
		}
		return true
	})
	if err != nil {
		return 0, faultf(i, "%v", err)
	}
	d.clear()
	d.record.Seq = r.integer("seq")
	switch kind := r.text("kind"); kind {
	case "entry":
		d.slowEntry(&r, line[i:end])
	case "usage":
		d.slowUsage(&r)
	case "value":
		d.record.Kind = store.KindValue
		d.slowAddressed(&r, "set", store.OpSet)
	case "list":
		d.record.Kind = store.KindList
		d.slowAddressed(&r, "append", store.OpAppend)
	default:
		r.failf("record has the unknown kind %q", kind)
	}
	return end, r.bad
}

func (d *decoder) slowEntry(r *recordReader, obj []byte) {
	e := d.entry
	*e = store.Entry{}
	d.record.Kind = store.KindEntry
	e.Seq = d.record.Seq
	e.Timestamp = r.integer("timestamp")
	e.ID = r.nonEmpty("id")
	if string(r.raw("parentId")) != "null" {
		e.ParentID = r.nonEmpty("parentId")
	}
	e.Type = store.EntryType(r.nonEmpty("type"))
	if _, ok := r.members["customType"]; ok && e.Type == store.TypeCustom {
		e.CustomType = r.text("customType")
	}
	if r.bad == nil {
		e.Payload = entryPayload(obj, e.Type)
	}
}

// entryPayload is the object of every member that is not structural. In the
// file it may lie in pieces, so it is kept in memory.
func entryPayload(obj []byte, typ store.EntryType) json.RawMessage {
	structural := []string{"kind", "seq", "timestamp", "id", "parentId", "type"}
	if typ == store.TypeCustom {
		structural = append(structural, "customType")
	}
	payload := json.RawMessage{'{'}
	for m := range rawjson.Members(obj) {
		name, _ := rawjson.Unquote(m.Key)
		if i := slices.Index(structural, name); i >= 0 {
			structural = slices.Delete(structural, i, i+1) // a second one is payload
			continue
		}
		if len(payload) > 1 {
			payload = append(payload, ',')
		}
		payload = append(append(append(payload, m.Key...), ':'), m.Value...)
	}
	return append(payload, '}')
}

func (d *decoder) slowUsage(r *recordReader) {
	u := d.usage
	*u = store.UsageRow{}
	d.record.Kind = store.KindUsage
	u.Seq = d.record.Seq
	u.ID = r.nonEmpty("id")
	if raw := r.members["entryId"].Value; raw != nil && string(raw) != "null" {
		u.EntryID = r.text("entryId")
	}
	switch string(r.raw("adjustment")) {
	case "true":
		u.Adjustment = true
	case "false":
	default:
		r.failf("adjustment is neither true nor false")
	}
	u.Usage, d.place.Payload = r.located("usage")
	if r.bad == nil && u.Usage[0] != '{' {
		r.failf("usage is no object")
	}
	if _, ok := r.members["details"]; ok {
		u.Details, d.place.Details = r.located("details")
	}
}

// slowAddressed decodes a value or list record, whose adding operation is op.
func (d *decoder) slowAddressed(r *recordReader, op string, add store.WriteOp) {
	rec := d.record
	switch got := r.text("op"); got {
	case op:
		rec.Op = add
	case "delete":
		rec.Op = store.OpDelete
	default:
		r.failf("record has the unknown operation %q", got)
	}
	rec.Address = store.Address{Namespace: r.nonEmpty("namespace"), Key: r.text("key")}
	if rec.Op != store.OpDelete {
		rec.Value, d.place.Payload = r.located("value")
	}
}

// recordReader takes members out of one record and keeps the first fault.
type recordReader struct {
	at      int // where the record starts in its line
	members map[string]rawjson.Member
	bad     *fault
}

func (r *recordReader) failf(format string, args ...any) {
	if r.bad == nil {
		r.bad = faultf(r.at, format, args...)
	}
}

// raw returns a member that must be there.
func (r *recordReader) raw(name string) []byte {
	m, ok := r.members[name]
	if !ok {
		r.failf("record has no %s", name)
	}
	return m.Value
}

// located returns such a member and where in the line it lies.
func (r *recordReader) located(name string) (json.RawMessage, memory.Span) {
	raw := r.raw(name)
	end := r.at + r.members[name].End
	return raw, spanOf(end-len(raw), end)
}

func (r *recordReader) integer(name string) int64 {
	n, ok := rawjson.ParseInt(r.raw(name))
	if !ok {
		r.failf("%s is no integer", name)
	}
	return n
}

// text refuses what is not UTF-8: written again, it would be another text.
func (r *recordReader) text(name string) string {
	raw := r.raw(name)
	s, err := rawjson.Unquote(raw)
	if err != nil {
		r.failf("%s is no string", name)
	} else if rawjson.ValidUTF8(raw) >= 0 {
		r.failf("%s is not UTF-8", name)
	}
	return s
}

func (r *recordReader) nonEmpty(name string) string {
	s := r.text(name)
	if s == "" {
		r.failf("%s is empty", name)
	}
	return s
}
