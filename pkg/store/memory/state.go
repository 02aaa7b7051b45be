package memory

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/drover-run/drover/pkg/message"
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
	kind   func(id string) (store.IDKind, error) // idKind, bound once
	last   int64                                 // the newest sequence number seen
	next   int64                                 // the next one to give
	newest int64                                 // the newest time given or seen, Unix ms
	stats  store.Stats
	ids    index
	history
	values map[string]map[string]*cell // by namespace, then key
	lists  map[string]map[string]*list

	kindIndex map[kind]uint32
}

// history is everything that is only ever appended to: a copy of the struct is
// a snapshot that needs no lock.
type history struct {
	entries table[entry]
	usage   table[usageRow]
	kinds   []kind            // the distinct pairs of type and custom type
	inline  []json.RawMessage // payloads without a place
	source  Source            // of the payloads that have one

	verdicts *Verdicts // nil: nobody judged the payloads
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

// cell is a current value.
type cell struct {
	seq  int64
	raw  json.RawMessage // nil: at span
	span Span
}

// list keeps its inline payloads to itself: they go when it is deleted.
type list struct {
	elements table[element]
	inline   []json.RawMessage
}

type element struct {
	seq   int64
	value ref
}

// NewState is an empty session; source may be nil when no record has a place.
func NewState(h store.Header, source Source) *State {
	s := &State{
		header:    h,
		history:   history{source: source},
		next:      max(h.NextSeq, 1),
		ids:       newIndex(),
		values:    make(map[string]map[string]*cell),
		lists:     make(map[string]map[string]*list),
		kindIndex: make(map[kind]uint32),
	}
	s.kind = s.idKind
	return s
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
	return store.Base{NextSeq: s.next, Newest: s.newest, Now: now, Lookup: s.kind}
}

func (s *State) idKind(id string) (store.IDKind, error) {
	name, _, _ := s.ids.find(&s.history, id)
	switch {
	case name > 0:
		return store.IDEntry, nil
	case name < 0:
		return store.IDUsage, nil
	}
	return store.IDFree, nil
}

// Intern returns the id of an entry or usage row as the State holds it.
func (s *State) Intern(id []byte) (string, bool) {
	if n := s.entries.n; n > 0 {
		// A chain of entries names the one before.
		if last := s.entries.at(n - 1).id; last == string(id) {
			return last, true
		}
	}
	name, _, _ := s.ids.find(&s.history, string(id))
	if name == 0 {
		return "", false
	}
	return s.named(name), true
}

// Reserve makes room for about as many ids of entries and usage rows in all, which
// saves time while they are replayed and changes nothing else.
func (s *State) Reserve(ids int) { s.ids.reserve(ids) }

// entry returns the index of the entry with the given id.
func (s *State) entry(id string) (int32, bool) {
	if n := s.entries.n; n > 0 && s.entries.at(n-1).id == id {
		return int32(n - 1), true
	}
	name, _, _ := s.ids.find(&s.history, id)
	return name - 1, name > 0
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
		_ = s.apply(&records[i], at)
		s.count(&records[i])
	}
	s.newest = max(s.newest, stamp)
	return s.stats
}

// Replay adds one record of an earlier transaction, and refuses one that cannot
// follow those before it (spec §1.7, D8). It is for a State that nobody reads
// yet, and after an error the State is of no use.
func (s *State) Replay(r *store.Record, at Place) error {
	if err := s.rises(r.Seq); err != nil {
		return err
	}
	if e := r.Entry; e != nil && e.ParentID != "" {
		if _, ok := s.entry(e.ParentID); !ok {
			return fmt.Errorf("entry %s: parent %s is no earlier entry", e.ID, e.ParentID)
		}
	}
	if err := s.apply(r, at); err != nil {
		return err
	}
	s.count(r)
	return nil
}

// count adds a record to the projection.
func (s *State) count(r *store.Record) {
	switch {
	case r.Usage != nil:
		s.stats = s.stats.Add(*r)
	case r.Entry != nil && r.Entry.Type == store.TypeMessage: // as Add does, which takes a copy of the record
		s.stats.MessageCount++
	}
}

// ReplayUsage is Replay for a usage row whose numbers the caller has read.
func (s *State) ReplayUsage(r *store.Record, at Place, u message.Usage) error {
	if err := s.rises(r.Seq); err != nil {
		return err
	}
	if err := s.apply(r, at); err != nil {
		return err
	}
	s.stats.Usage = s.stats.Usage.Add(u)
	return nil
}

// rises refuses a number that is not above the last, or that no other can follow.
func (s *State) rises(seq int64) error {
	if seq <= s.last {
		return fmt.Errorf("sequence number %d follows %d", seq, s.last)
	}
	if seq == math.MaxInt64 {
		return fmt.Errorf("no sequence number can follow %d", seq)
	}
	return nil
}

// apply adds one record, but does not count it. Its only error, an id that is taken, cannot happen to
// one that Prepare admitted.
func (s *State) apply(r *store.Record, at Place) error {
	s.last = r.Seq
	s.next = max(s.next, r.Seq+1)
	switch r.Kind {
	case store.KindEntry:
		if !s.addEntry(r.Entry, at.Payload) {
			return fmt.Errorf("id %s is used twice", r.Entry.ID)
		}
	case store.KindUsage:
		if !s.addUsage(r.Usage, at) {
			return fmt.Errorf("id %s is used twice", r.Usage.ID)
		}
	case store.KindValue:
		s.setValue(r, at.Payload)
	case store.KindList:
		s.changeList(r, at.Payload)
	}
	return nil
}

func (s *State) addEntry(e *store.Entry, at Span) bool {
	n := entry{id: e.ID, seq: e.Seq, stamp: e.Timestamp, parent: noParent, kind: s.kindOf(kind{e.Type, e.CustomType})}
	if e.ParentID != "" {
		n.parent, _ = s.entry(e.ParentID)
	}
	if at.Len > 0 || len(e.Payload) > len("{}") {
		n.payload = keep(&s.inline, e.Payload, at)
	}
	if !s.ids.add(&s.history, e.ID, entryName(s.entries.n)) {
		return false
	}
	s.entries.add(n)
	s.newest = max(s.newest, e.Timestamp)
	return true
}

func (s *State) addUsage(u *store.UsageRow, at Place) bool {
	row := usageRow{id: u.ID, entryID: u.EntryID, seq: u.Seq, adjustment: u.Adjustment, usage: keep(&s.inline, u.Usage, at.Payload)}
	if u.Details != nil {
		row.details = keep(&s.inline, u.Details, at.Details)
	}
	if !s.ids.add(&s.history, u.ID, usageName(s.usage.n)) {
		return false
	}
	s.usage.add(row)
	return true
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

// keep refers to a payload by its span, or inline when it has none.
func keep(inline *[]json.RawMessage, raw json.RawMessage, at Span) ref {
	if at.Len > 0 {
		return ref{at.Off, at.Len}
	}
	*inline = append(*inline, raw)
	return ref{^int64(len(*inline) - 1), int64(len(raw))}
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
	*c = cell{seq: r.Seq, span: at}
	if at.Len == 0 {
		c.raw = r.Value
	}
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
	l.elements.add(element{r.Seq, keep(&l.inline, r.Value, at)})
}

// Adopt makes the State hold what next does, in one step: the same content with
// its payloads in another place. Queries and snapshots that began before go on
// with the source they began with. It is for the one writer; next is of no use
// afterwards.
func (s *State) Adopt(next *State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.header, s.stats, s.ids, s.history = next.header, next.stats, next.ids, next.history
	s.values, s.lists, s.kindIndex = next.values, next.lists, next.kindIndex
	s.last, s.next = max(s.last, next.last), max(s.next, next.next)
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
	c.ids, c.kindIndex = s.ids.clone(), maps.Clone(s.kindIndex)
	c.history = history{s.entries.clone(), s.usage.clone(), slices.Clip(s.kinds), slices.Clip(s.inline), s.source, nil}
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
			copied[key] = &list{l.elements.clone(), slices.Clip(l.inline)}
		}
		c.lists[ns] = copied
	}
	return c
}
