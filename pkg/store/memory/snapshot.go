package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/drover-run/drover/pkg/store"
)

// The payloads of a snapshot are read this many records, or bytes, at a time.
const (
	batchRecords = 256
	batchBytes   = 1 << 20
)

// Snapshot returns the surviving records as they are now, in sequence order;
// later commits do not show in it. It holds no resource: Close does nothing.
func (s *State) Snapshot(ctx context.Context) (*store.Snapshot, error) {
	var m moment
	snap := &store.Snapshot{Close: func() error { return nil }}
	err := s.read(ctx, func() {
		m = moment{history: s.history, current: s.current()}
		snap.Header, snap.NextSeq = s.header, s.next
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(m.current, func(a, b located) int { return cmp.Compare(a.seq, b.seq) })
	bare := m
	bare.outline = true
	snap.Records = func(yield func(store.Record, error) bool) { m.yield(ctx, yield) }
	snap.Outline = func(yield func(store.Record, error) bool) { bare.yield(ctx, yield) }
	if m.verdicts != nil {
		judged := m
		judged.judged = true
		snap.Judged = func(yield func(store.Record, error) bool) { judged.yield(ctx, yield) }
		snap.Place = s.place // nothing changes any more
	}
	return snap, nil
}

// located is a current value or list element with its address.
type located struct {
	cell
	kind store.WriteKind
	op   store.WriteOp
	addr store.Address
}

func (s *State) current() []located {
	var out []located
	for ns, keys := range s.values {
		for key, c := range keys {
			out = append(out, located{*c, store.KindValue, store.OpSet, store.Address{Namespace: ns, Key: key}})
		}
	}
	for ns, keys := range s.lists {
		for key, l := range keys {
			for i := range l.elements.n {
				out = append(out, located{l.cell(i), store.KindList, store.OpAppend, store.Address{Namespace: ns, Key: key}})
			}
		}
	}
	return out
}

// cell is an element in the form of a value.
func (l *list) cell(i int) cell {
	e := l.elements.at(i)
	if e.value.off < 0 {
		return cell{seq: e.seq, raw: l.inline[^e.value.off]}
	}
	return cell{seq: e.seq, span: Span{e.value.off, e.value.size}}
}

// moment is the frozen content of a snapshot.
type moment struct {
	history
	current []located
	outline bool // without the payloads of entries and usage rows
	judged  bool // without those that verdicts vouch for
}

// cursor is how far a moment has been read.
type cursor struct{ entry, usage, current int }

func (m moment) yield(ctx context.Context, yield func(store.Record, error) bool) {
	var at cursor
	batch := make([]store.Record, 0, batchRecords) // which never moves: payloads are read into it
	made := rooms{size: room}
	if m.judged {
		made.size = batchRecords
	}
	for {
		if err := ctx.Err(); err != nil {
			yield(store.Record{}, err)
			return
		}
		if m.judged { // which are good until the next
			batch = batch[:0]
			made.again()
		} else {
			batch = make([]store.Record, 0, batchRecords)
		}
		var err error
		if batch, err = m.batch(&at, batch, &made); err != nil {
			yield(store.Record{}, fmt.Errorf("read snapshot: %w", err))
			return
		}
		for i := range batch {
			if !yield(batch[i], nil) {
				return
			}
		}
		if len(batch) == 0 {
			return
		}
	}
}

// rooms are where the entries and usage rows of a batch lie: some together, which
// costs less than each on its own.
type rooms struct {
	size    int // how many lie together
	entries []store.Entry
	rows    []store.UsageRow

	allEntries []store.Entry // the newest that lie together, given out or not
	allRows    []store.UsageRow
}

// room is how many lie together where they are kept.
const room = 32

// again takes back what was given out of the newest.
func (m *rooms) again() { m.entries, m.rows = m.allEntries, m.allRows }

func (m *rooms) entry() *store.Entry {
	if len(m.entries) == 0 {
		m.allEntries = make([]store.Entry, m.size)
		m.entries = m.allEntries
	}
	e := &m.entries[0]
	m.entries = m.entries[1:]
	*e = store.Entry{}
	return e
}

func (m *rooms) row() *store.UsageRow {
	if len(m.rows) == 0 {
		m.allRows = make([]store.UsageRow, m.size)
		m.rows = m.allRows
	}
	u := &m.rows[0]
	m.rows = m.rows[1:]
	*u = store.UsageRow{}
	return u
}

// batch takes the next records in sequence order and reads their payloads.
func (m moment) batch(at *cursor, out []store.Record, made *rooms) ([]store.Record, error) {
	var payloads, values deferred
	for size := int64(0); len(out) < batchRecords && size < batchBytes; {
		out = append(out, store.Record{})
		n, ok := m.next(at, &out[len(out)-1], made, &payloads, &values)
		if !ok {
			out = out[:len(out)-1]
			break
		}
		size += n
	}
	if err := payloads.fetch(m.source, Source.Payloads); err != nil {
		return nil, err
	}
	return out, values.fetch(m.source, Source.Values)
}

// next moves to the record with the lowest sequence number and returns how many
// bytes its payloads have.
func (m moment) next(at *cursor, r *store.Record, made *rooms, payloads, values *deferred) (int64, bool) {
	const none = int64(1<<63 - 1)
	entry, usage, current := none, none, none
	if at.entry < m.entries.n {
		entry = m.entries.at(at.entry).seq
	}
	if at.usage < m.usage.n {
		usage = m.usage.at(at.usage).seq
	}
	if at.current < len(m.current) {
		current = m.current[at.current].seq
	}
	switch r.Seq = min(entry, usage, current); r.Seq {
	case none:
		return 0, false
	case entry:
		at.entry++
		return m.entryRecord(int32(at.entry-1), r, made.entry(), payloads), true
	case usage:
		at.usage++
		return m.usageRecord(at.usage-1, r, made.row(), values), true
	}
	at.current++
	c := &m.current[at.current-1]
	r.Kind, r.Op, r.Address = c.kind, c.op, c.addr
	c.resolve(&r.Value, values)
	return int64(len(c.raw)) + c.span.Len, true
}

func (m moment) entryRecord(i int32, r *store.Record, e *store.Entry, payloads *deferred) int64 {
	r.Kind, r.Entry = store.KindEntry, e
	e.Structure = m.structure(i)
	if m.outline {
		return 0
	}
	if m.judged {
		if r.Verdict = m.verdicts.entry(int(i)); r.Verdict != nil {
			return 0
		}
	}
	p := m.entries.at(int(i)).payload
	m.payload(&r.Entry.Payload, p, payloads)
	return p.size
}

func (m moment) usageRecord(i int, r *store.Record, row *store.UsageRow, values *deferred) int64 {
	r.Kind, r.Usage = store.KindUsage, row
	u := m.usage.at(i)
	if m.judged {
		r.Verdict = m.verdicts.row(i)
	}
	if m.outline || r.Verdict != nil {
		*row = store.UsageRow{ID: u.id, Seq: u.seq, EntryID: u.entryID, Adjustment: u.adjustment}
		return 0
	}
	m.row(r.Usage, int32(i), values)
	return u.usage.size + u.details.size
}
