package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/pkg/store"
)

// read runs a query's look at the maps under the lock.
func (s *State) read(ctx context.Context, look func()) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return store.ErrClosed
	}
	look()
	return nil
}

// Header returns the header.
func (s *State) Header() store.Header {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.header
}

// Stats returns the projection over entries and ledger.
func (s *State) Stats(ctx context.Context) (stats store.Stats, err error) {
	err = s.read(ctx, func() { stats = s.stats })
	return stats, err
}

// Entries returns the entries of the ids that exist.
func (s *State) Entries(ctx context.Context, ids []string) (map[string]store.Entry, error) {
	var h history
	at := make([]int32, 0, len(ids))
	err := s.read(ctx, func() {
		h = s.history
		for _, id := range ids {
			if i, ok := s.entry(id); ok {
				at = append(at, i)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	entries, err := h.load(at)
	if err != nil {
		return nil, err
	}
	out := make(map[string]store.Entry, len(entries))
	for _, e := range entries {
		out[e.ID] = e
	}
	return out, nil
}

// Value returns the current value at an address.
func (s *State) Value(ctx context.Context, addr store.Address) (store.StoredValue, bool, error) {
	var c cell
	var found bool
	var source Source
	err := s.read(ctx, func() {
		source = s.source
		if v := s.values[addr.Namespace][addr.Key]; v != nil {
			c, found = *v, true
		}
	})
	if err != nil || !found {
		return store.StoredValue{}, false, err
	}
	v := store.StoredValue{Address: addr, Seq: c.seq}
	if c.raw != nil {
		v.Value = bytes.Clone(c.raw)
		return v, true, nil
	}
	raws, err := source.Values([]Span{c.span})
	if err != nil {
		return store.StoredValue{}, false, fmt.Errorf("read %s: %w", addr, err)
	}
	v.Value = raws[0]
	return v, true, nil
}

// ValueSeq tells which write set the current value at an address.
func (s *State) ValueSeq(ctx context.Context, addr store.Address) (seq int64, found bool, err error) {
	err = s.read(ctx, func() {
		if v := s.values[addr.Namespace][addr.Key]; v != nil {
			seq, found = v.seq, true
		}
	})
	return seq, found, err
}

// ScanValues returns the values under a prefix in byte order of their keys.
func (s *State) ScanValues(ctx context.Context, prefix store.Address) ([]store.StoredValue, error) {
	var cells []cell
	var out []store.StoredValue
	var source Source
	err := s.read(ctx, func() {
		source = s.source
		keys := s.values[prefix.Namespace]
		for key, c := range keys {
			if strings.HasPrefix(key, prefix.Key) {
				out = append(out, store.StoredValue{Address: store.Address{Namespace: prefix.Namespace, Key: key}, Seq: c.seq})
			}
		}
		slices.SortFunc(out, func(a, b store.StoredValue) int { return cmp.Compare(a.Key, b.Key) })
		for _, v := range out {
			cells = append(cells, *keys[v.Key])
		}
	})
	if err != nil {
		return nil, err
	}
	var later deferred
	for i, c := range cells {
		c.resolve(&out[i].Value, &later)
	}
	if err := later.fetch(source, Source.Values); err != nil {
		return nil, fmt.Errorf("read values of %s: %w", prefix, err)
	}
	return out, nil
}

// ReadList returns one page of a list.
func (s *State) ReadList(ctx context.Context, addr store.Address, q store.ListQuery) ([]store.ListElement, error) {
	limit, err := q.PageSize()
	if err != nil {
		return nil, err
	}
	var all list
	var source Source
	err = s.read(ctx, func() {
		source = s.source
		if l := s.lists[addr.Namespace][addr.Key]; l != nil {
			all = *l
		}
	})
	if err != nil {
		return nil, err
	}
	lo, hi := all.page(q, limit)
	out := make([]store.ListElement, 0, hi-lo)
	var later deferred
	scan(lo, hi, q.Descending, func(i int) bool {
		e := all.elements.at(i)
		out = append(out, store.ListElement{Seq: e.seq})
		e.value.resolve(&out[len(out)-1].Value, all.inline, &later)
		return true
	})
	if err := later.fetch(source, Source.Values); err != nil {
		return nil, fmt.Errorf("read list %s: %w", addr, err)
	}
	return out, nil
}

// page is the range of elements that a query asks for.
func (l list) page(q store.ListQuery, limit int) (lo, hi int) {
	hi = l.elements.n
	if q.Descending {
		if q.Cursor != 0 {
			hi = seqIndex(l.elements, q.Cursor, elementSeq)
		}
		return max(0, hi-limit), hi
	}
	if q.Cursor != 0 {
		lo = seqAfter(l.elements, q.Cursor, elementSeq)
	}
	return lo, min(lo+limit, hi)
}

// ScanEntries reads the tree in sequence order.
func (s *State) ScanEntries(ctx context.Context, q store.EntryQuery) ([]store.Entry, error) {
	var h history
	if err := s.read(ctx, func() { h = s.history }); err != nil {
		return nil, err
	}
	var at []int32
	match := store.BranchQuery{Type: q.Type, CustomType: q.CustomType}
	wanted := make([]bool, len(h.kinds))
	for i, k := range h.kinds {
		wanted[i] = match.Matches(store.Structure{Type: k.typ, CustomType: k.custom})
	}
	lo, hi := seqRange(h.entries, q.FromSeq, q.ToSeq, entrySeq)
	scan(lo, hi, q.Descending, func(i int) bool {
		if wanted[h.entries.at(i).kind] {
			at = append(at, int32(i))
		}
		return q.Limit <= 0 || len(at) < q.Limit
	})
	return h.load(at)
}

// ScanUsage reads the ledger in sequence order.
func (s *State) ScanUsage(ctx context.Context, q store.UsageQuery) ([]store.UsageRow, error) {
	var h history
	if err := s.read(ctx, func() { h = s.history }); err != nil {
		return nil, err
	}
	var at []int32
	lo, hi := seqRange(h.usage, q.FromSeq, q.ToSeq, usageSeq)
	scan(lo, hi, q.Descending, func(i int) bool {
		at = append(at, int32(i))
		return q.Limit <= 0 || len(at) < q.Limit
	})
	return h.loadUsage(at)
}

// ScanBranch reads a path with payloads.
func (s *State) ScanBranch(ctx context.Context, q store.BranchQuery) ([]store.Entry, error) {
	h, rows, err := s.branch(ctx, q)
	if err != nil {
		return nil, err
	}
	at := make([]int32, len(rows))
	for i, r := range rows {
		at[i] = int32(seqIndex(h.entries, r.Seq, entrySeq))
	}
	return h.load(at)
}

// ScanBranchStructure reads a path without payloads.
func (s *State) ScanBranchStructure(ctx context.Context, q store.BranchQuery) ([]store.Structure, error) {
	_, rows, err := s.branch(ctx, q)
	return rows, err
}

func (s *State) branch(ctx context.Context, q store.BranchQuery) (history, []store.Structure, error) {
	var h history
	start, ok := int32(noParent), false
	err := s.read(ctx, func() {
		h = s.history
		start, ok = s.entry(q.Start)
	})
	if err != nil {
		return h, nil, err
	}
	if !ok {
		return h, nil, fmt.Errorf("entry %q: %w", q.Start, store.ErrNotFound)
	}
	if q.OldestFirst {
		return h, q.Select(h.fromRoot(start)), nil
	}
	return h, q.Select(h.toRoot(start)), nil
}
