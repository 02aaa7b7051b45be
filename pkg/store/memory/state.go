package memory

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/drover-run/drover/pkg/store"
)

// Span is a range of bytes in the file of whoever owns a State.
type Span struct{ Off, Len int64 }

// Place says where the payloads of one record lie. A zero span means that the
// State keeps the record's own bytes, which must then never change.
type Place struct {
	Payload Span // an entry's payload, a value, a list element, a row's usage
	Details Span // of a usage row
}

// Source reads payloads back from the spans that a State was given. The results
// are in the order of the spans and belong to the caller.
type Source interface {
	// Payloads reads entry payloads: JSON objects.
	Payloads(spans []Span) ([]json.RawMessage, error)
	// Values reads everything else.
	Values(spans []Span) ([]json.RawMessage, error)
}

// State is the live content of one session: what its commits amount to (spec
// §1.7). It implements store.Queries, safely for concurrent use beside one
// writer, who serializes Base, Apply and Replay.
type State struct {
	mu     sync.RWMutex
	closed bool

	header store.Header
	source Source
	last   int64 // the newest sequence number seen
	next   int64 // the next one to give
	newest int64 // the newest time given or seen, Unix ms
	stats  store.Stats
	ids    map[string]int32 // to an index of entries, or ^index of usage
	history
	values map[string]map[string]*cell // by namespace, then key
	lists  map[string]map[string]*list

	kindIndex map[kind]uint32
}

// history is everything that is only ever appended to: a copy of the struct is
// a snapshot that needs no lock.
type history struct {
	entries []entry
	usage   []usageRow
	kinds   []kind            // the distinct pairs of type and custom type
	inline  []json.RawMessage // payloads without a place
}

type kind struct {
	typ    store.EntryType
	custom string
}

// ref locates bytes that are never given up: a span when off is not negative,
// inline payload ^off otherwise.
type ref struct{ off, size int64 }

const noParent = -1

type entry struct {
	id      string
	seq     int64
	stamp   int64
	payload ref   // size 0: an empty object
	parent  int32 // index, or noParent
	kind    uint32
}

type usageRow struct {
	id, entryID string
	seq         int64
	usage       ref
	details     ref // size 0: absent
	adjustment  bool
}

// cell is a current value or a list element.
type cell struct {
	seq  int64
	raw  json.RawMessage // nil: at span
	span Span
}

type list struct{ elements []cell }

// NewState is an empty session; source may be nil when no record has a place.
func NewState(h store.Header, source Source) *State {
	return &State{
		header:    h,
		source:    source,
		next:      max(h.NextSeq, 1),
		ids:       make(map[string]int32),
		values:    make(map[string]map[string]*cell),
		lists:     make(map[string]map[string]*list),
		kindIndex: make(map[kind]uint32),
	}
}

// FromSnapshot reads a whole snapshot into a new State; the caller closes it.
func FromSnapshot(snap *store.Snapshot) (*State, error) {
	h := snap.Header
	h.NextSeq = snap.NextSeq
	s := NewState(h, nil)
	for r, err := range snap.Records {
		if err == nil {
			err = s.Replay(&r, Place{})
		}
		if err != nil {
			return nil, fmt.Errorf("read snapshot: %w", err)
		}
	}
	return s, nil
}

// Base is what admits the next transaction.
func (s *State) Base(now int64) store.Base {
	return store.Base{NextSeq: s.next, Newest: s.newest, Now: now, Lookup: s.lookup}
}

func (s *State) lookup(id string) (store.IDKind, error) {
	i, ok := s.ids[id]
	switch {
	case !ok:
		return store.IDFree, nil
	case i < 0:
		return store.IDUsage, nil
	}
	return store.IDEntry, nil
}

// Intern returns the id of an entry or usage row as the State holds it.
func (s *State) Intern(id []byte) (string, bool) {
	i, ok := s.ids[string(id)]
	switch {
	case !ok:
		return "", false
	case i < 0:
		return s.usage[^i].id, true
	}
	return s.entries[i].id, true
}

// Apply adds one admitted transaction, whose records Prepare numbered, and
// returns the projection after it. places is nil or parallel to records.
func (s *State) Apply(records []store.Record, places []Place, stamp int64) store.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range records {
		var at Place
		if places != nil {
			at = places[i]
		}
		s.apply(&records[i], at)
	}
	s.newest = max(s.newest, stamp)
	return s.stats
}

// Replay adds one record of an earlier transaction, and refuses one that cannot
// follow those before it (spec §1.7, D8). It is for a State that nobody reads
// yet.
func (s *State) Replay(r *store.Record, at Place) error {
	if r.Seq <= s.last {
		return fmt.Errorf("sequence number %d follows %d", r.Seq, s.last)
	}
	switch r.Kind {
	case store.KindEntry:
		if err := s.free(r.Entry.ID); err != nil {
			return err
		}
		if p := r.Entry.ParentID; p != "" {
			if i, ok := s.ids[p]; !ok || i < 0 {
				return fmt.Errorf("entry %s: parent %s is no earlier entry", r.Entry.ID, p)
			}
		}
	case store.KindUsage:
		if err := s.free(r.Usage.ID); err != nil {
			return err
		}
	}
	s.apply(r, at)
	return nil
}

func (s *State) free(id string) error {
	if _, taken := s.ids[id]; taken {
		return fmt.Errorf("id %s is used twice", id)
	}
	return nil
}

func (s *State) apply(r *store.Record, at Place) {
	s.last = r.Seq
	s.next = max(s.next, r.Seq+1)
	switch r.Kind {
	case store.KindEntry:
		s.addEntry(r.Entry, at.Payload)
	case store.KindUsage:
		s.addUsage(r.Usage, at)
	case store.KindValue:
		s.setValue(r, at.Payload)
	case store.KindList:
		s.changeList(r, at.Payload)
	}
	s.stats = s.stats.Add(*r)
}

func (s *State) addEntry(e *store.Entry, at Span) {
	parent := int32(noParent)
	if e.ParentID != "" {
		parent = s.ids[e.ParentID]
	}
	s.ids[e.ID] = int32(len(s.entries))
	n := entry{id: e.ID, seq: e.Seq, stamp: e.Timestamp, parent: parent, kind: s.kindOf(kind{e.Type, e.CustomType})}
	if at.Len > 0 || len(e.Payload) > len("{}") {
		n.payload = s.keep(e.Payload, at)
	}
	s.entries = append(s.entries, n)
	s.newest = max(s.newest, e.Timestamp)
}

func (s *State) addUsage(u *store.UsageRow, at Place) {
	s.ids[u.ID] = ^int32(len(s.usage))
	row := usageRow{id: u.ID, entryID: u.EntryID, seq: u.Seq, adjustment: u.Adjustment, usage: s.keep(u.Usage, at.Payload)}
	if u.Details != nil {
		row.details = s.keep(u.Details, at.Details)
	}
	s.usage = append(s.usage, row)
}

func (s *State) kindOf(k kind) uint32 {
	i, ok := s.kindIndex[k]
	if !ok {
		i = uint32(len(s.kinds))
		s.kinds = append(s.kinds, k)
		s.kindIndex[k] = i
	}
	return i
}

func (s *State) keep(raw json.RawMessage, at Span) ref {
	if at.Len > 0 {
		return ref{at.Off, at.Len}
	}
	s.inline = append(s.inline, raw)
	return ref{^int64(len(s.inline) - 1), int64(len(raw))}
}

func (s *State) setValue(r *store.Record, at Span) {
	keys := s.values[r.Address.Namespace]
	if r.Op == store.OpDelete {
		delete(keys, r.Address.Key)
		return
	}
	if keys == nil {
		keys = make(map[string]*cell)
		s.values[r.Address.Namespace] = keys
	}
	c := keys[r.Address.Key]
	if c == nil {
		c = new(cell)
		keys[r.Address.Key] = c
	}
	*c = newCell(r, at)
}

func (s *State) changeList(r *store.Record, at Span) {
	keys := s.lists[r.Address.Namespace]
	if r.Op == store.OpDelete {
		delete(keys, r.Address.Key)
		return
	}
	if keys == nil {
		keys = make(map[string]*list)
		s.lists[r.Address.Namespace] = keys
	}
	l := keys[r.Address.Key]
	if l == nil {
		l = new(list)
		keys[r.Address.Key] = l
	}
	l.elements = append(l.elements, newCell(r, at))
}

func newCell(r *store.Record, at Span) cell {
	if at.Len > 0 {
		return cell{seq: r.Seq, span: at}
	}
	return cell{seq: r.Seq, raw: r.Value}
}

// Close makes every later query fail with ErrClosed.
func (s *State) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// clone is an open State with the same content and a life of its own.
func (s *State) clone() *State {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := NewState(s.header, s.source)
	c.last, c.next, c.newest, c.stats = s.last, s.next, s.newest, s.stats
	c.ids, c.kindIndex = maps.Clone(s.ids), maps.Clone(s.kindIndex)
	c.history = history{slices.Clip(s.entries), slices.Clip(s.usage), slices.Clip(s.kinds), slices.Clip(s.inline)}
	for ns, keys := range s.values {
		copied := make(map[string]*cell, len(keys))
		for key, v := range keys {
			copied[key] = &cell{v.seq, v.raw, v.span}
		}
		c.values[ns] = copied
	}
	for ns, keys := range s.lists {
		copied := make(map[string]*list, len(keys))
		for key, l := range keys {
			copied[key] = &list{slices.Clip(l.elements)}
		}
		c.lists[ns] = copied
	}
	return c
}
