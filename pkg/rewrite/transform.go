package rewrite

import (
	"encoding/json"
	"slices"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
)

// Counts is how much of each kind there is. Lists are whole lists, not elements.
type Counts struct {
	Entries int64
	Usage   int64
	Values  int64
	Lists   int64
}

// transformer turns the records of the old store into those of the new one, and
// counts what it does.
type transformer struct {
	editor
	dropUsage bool

	kept, dropped Counts
	reparented    int
	lists         map[store.Address]bool
}

func newTransformer(rules *Rules, c *cut, dropUsage bool) *transformer {
	return &transformer{editor: editor{rules: rules, cut: c}, dropUsage: dropUsage, lists: make(map[store.Address]bool)}
}

// record returns what stands for a record, false when nothing does. What the
// record points to is shared and stays as it is.
func (t *transformer) record(r store.Record) (store.Record, bool) {
	switch r.Kind {
	case store.KindEntry:
		return t.entry(r)
	case store.KindUsage:
		return t.usage(r)
	case store.KindValue:
		return t.stored(r)
	}
	t.where = r.Address.String()
	if !t.lists[r.Address] {
		t.lists[r.Address] = true
		t.kept.Lists++
		t.address(r.Address)
	}
	r.Value = t.edit(r.Value, shapeOfValue(r.Address))
	return r, true
}

// header edits what a header says beside ids: where the session worked, what it
// was made from, and fields that nobody knows.
func (t *transformer) header(h store.Header) store.Header {
	t.where = "header"
	t.fixedText("id", h.ID)
	t.fixedText("parentSessionId", h.ParentSessionID)
	t.fixedText("legacySessionId", h.LegacySessionID)
	h.CWD = t.plain(h.CWD)
	h.LegacyParentSessionPath = t.plain(h.LegacyParentSessionPath)
	h.Spawn = t.edit(h.Spawn, headerSpawn)
	h.Source = t.edit(h.Source, headerSource)
	h.Extra = slices.Clone(h.Extra)
	for i, f := range h.Extra {
		t.fixed(f.Key, "")
		h.Extra[i].Value = t.edit(f.Value, free)
	}
	return h
}

// plain edits a text that is no JSON.
func (t *transformer) plain(text string) string {
	if t.rules.Empty() {
		return text
	}
	next, n, err := t.rules.apply([]byte(text))
	if err != nil {
		t.fail(err)
		return text
	}
	t.redactions += n
	return string(next)
}

func (t *transformer) address(a store.Address) {
	t.fixedText("namespace", a.Namespace)
	t.fixedText("key", a.Key)
}

func (t *transformer) entry(r store.Record) (store.Record, bool) {
	e := *r.Entry
	t.where = "entry " + e.ID
	if t.cut != nil {
		i := t.cut.index[e.ID]
		if t.cut.drop[i] {
			t.dropped.Entries++
			return r, false
		}
		if e.ParentID != "" && t.cut.dropped(e.ParentID) {
			t.reparented++
		}
		if t.cut.derived[i] && t.cut.kept != nil {
			payload, err := t.cut.withoutDerived(&e)
			if err != nil {
				t.fail(err)
			}
			e.Payload = payload
		}
		e.ID, e.ParentID = t.cut.idOf(i), t.cut.standIn(e.ParentID)
	}
	t.kept.Entries++
	t.fixedText("id", e.ID)
	t.fixedText("customType", e.CustomType)
	e.Payload = t.edit(e.Payload, shapeOfEntry(e.Type))
	r.Entry = &e
	return r, true
}

// usage keeps the numbers and the attribution of a row whose entry goes (D55).
func (t *transformer) usage(r store.Record) (store.Record, bool) {
	u := *r.Usage
	t.where = "usage row " + u.ID
	if t.cut != nil && u.EntryID != "" {
		if t.cut.dropped(u.EntryID) {
			if t.dropUsage {
				t.dropped.Usage++
				return r, false
			}
			u.EntryID, u.Details = "", attributionOf(u.Details)
		} else {
			u.EntryID = t.cut.standIn(u.EntryID)
		}
	}
	t.kept.Usage++
	t.fixedText("id", u.ID)
	u.Usage = t.edit(u.Usage, usage)
	u.Details = t.edit(u.Details, usageDetails)
	r.Usage = &u
	return r, true
}

// attributionOf are a row's details without what is free in them.
func attributionOf(details json.RawMessage) json.RawMessage {
	attribution, ok := rawjson.Get(details, "attribution")
	if !ok {
		return nil
	}
	return slices.Concat([]byte(`{"attribution":`), attribution, []byte{'}'})
}

func (t *transformer) stored(r store.Record) (store.Record, bool) {
	t.where = r.Address.String()
	labels := r.Address.Namespace == "pi.entry.label"
	if labels && t.cut != nil {
		if t.cut.dropped(r.Address.Key) {
			t.dropped.Values++
			return r, false
		}
		r.Address.Key = t.cut.standIn(r.Address.Key)
	}
	t.address(r.Address)
	r.Value = t.edit(r.Value, shapeOfValue(r.Address))
	if (labels || r.Address.Namespace == "pi.session.name") && string(r.Value) == `""` {
		t.dropped.Values++ // a text that is empty is none
		return r, false
	}
	t.kept.Values++
	return r, true
}
