package memory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/drover-run/drover/pkg/store"
)

// toRoot yields a path from the newest entry to its root.
func (h history) toRoot(i int32) func(func(store.Structure) bool) {
	return func(yield func(store.Structure) bool) {
		for ; i != noParent; i = h.entries.at(int(i)).parent {
			if !yield(h.structure(i)) {
				return
			}
		}
	}
}

// fromRoot yields the same path from the root down.
func (h history) fromRoot(i int32) func(func(store.Structure) bool) {
	return func(yield func(store.Structure) bool) {
		var path []int32
		for ; i != noParent; i = h.entries.at(int(i)).parent {
			path = append(path, i)
		}
		for _, i := range slices.Backward(path) {
			if !yield(h.structure(i)) {
				return
			}
		}
	}
}

func (h history) structure(i int32) store.Structure {
	e := h.entries.at(int(i))
	k := h.kinds[e.kind]
	st := store.Structure{ID: e.id, Seq: e.seq, Timestamp: e.stamp, Type: k.typ, CustomType: k.custom}
	if e.parent != noParent {
		st.ParentID = h.entries.at(int(e.parent)).id
	}
	return st
}

// load reads the entries at the given indices with their payloads.
func (h history) load(at []int32) ([]store.Entry, error) {
	out := make([]store.Entry, len(at))
	var later deferred
	for i, n := range at {
		out[i].Structure = h.structure(n)
		h.payload(&out[i].Payload, h.entries.at(int(n)).payload, &later)
	}
	if err := later.fetch(h.source, Source.Payloads); err != nil {
		return nil, fmt.Errorf("read entries: %w", err)
	}
	return out, nil
}

func (h history) loadUsage(at []int32) ([]store.UsageRow, error) {
	out := make([]store.UsageRow, len(at))
	var later deferred
	for i, n := range at {
		h.row(&out[i], n, &later)
	}
	if err := later.fetch(h.source, Source.Values); err != nil {
		return nil, fmt.Errorf("read usage: %w", err)
	}
	return out, nil
}

// payload is resolve for an entry's payload.
func (h history) payload(dst *json.RawMessage, r ref, later *deferred) {
	if r.size == 0 {
		*dst = json.RawMessage("{}")
		return
	}
	r.resolve(dst, h.inline, later)
}

// row fills in one usage row.
func (h history) row(dst *store.UsageRow, i int32, later *deferred) {
	u := h.usage.at(int(i))
	*dst = store.UsageRow{ID: u.id, Seq: u.seq, EntryID: u.entryID, Adjustment: u.adjustment}
	u.usage.resolve(&dst.Usage, h.inline, later)
	if u.details.size > 0 {
		u.details.resolve(&dst.Details, h.inline, later)
	}
}

// resolve puts the bytes of a ref into dst, now or when later is fetched.
func (r ref) resolve(dst *json.RawMessage, inline []json.RawMessage, later *deferred) {
	if r.off < 0 {
		*dst = bytes.Clone(inline[^r.off])
		return
	}
	later.add(dst, Span{r.off, r.size})
}

// resolve does the same for a value.
func (c cell) resolve(dst *json.RawMessage, later *deferred) {
	if c.raw != nil {
		*dst = bytes.Clone(c.raw)
		return
	}
	later.add(dst, c.span)
}

// deferred collects what is to be read from a source in one go.
type deferred struct {
	spans []Span
	into  []*json.RawMessage
}

func (d *deferred) add(dst *json.RawMessage, at Span) {
	d.spans = append(d.spans, at)
	d.into = append(d.into, dst)
}

func (d *deferred) fetch(s Source, read func(Source, []Span) ([]json.RawMessage, error)) error {
	if len(d.spans) == 0 {
		return nil
	}
	raws, err := read(s, d.spans)
	if err != nil {
		return err
	}
	for i, raw := range raws {
		*d.into[i] = raw
	}
	return nil
}

func elementSeq(e *element) int64 { return e.seq }
func entrySeq(e *entry) int64     { return e.seq }
func usageSeq(u *usageRow) int64  { return u.seq }

// seqIndex returns the index of the first item whose seq is at least min.
func seqIndex[T any](items table[T], min int64, seq func(*T) int64) int {
	return items.search(func(x *T) bool { return seq(x) < min })
}

// seqAfter returns the index of the first item whose seq is above max.
func seqAfter[T any](items table[T], max int64, seq func(*T) int64) int {
	return items.search(func(x *T) bool { return seq(x) <= max })
}

// seqRange is the part of items between two inclusive bounds, 0 for none.
func seqRange[T any](items table[T], from, to int64, seq func(*T) int64) (lo, hi int) {
	hi = items.n
	if to != 0 {
		hi = seqAfter(items, to, seq)
	}
	return min(seqIndex(items, from, seq), hi), hi
}

// scan calls fn with the indices between lo and hi until it returns false.
func scan(lo, hi int, descending bool, fn func(i int) bool) {
	for n := range hi - lo {
		i := lo + n
		if descending {
			i = hi - 1 - n
		}
		if !fn(i) {
			return
		}
	}
}
