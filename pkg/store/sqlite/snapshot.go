package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/drover-run/drover/pkg/store"
)

// pageBytes is how much of a table one page of a snapshot holds in memory,
// besides one record of any size.
const pageBytes = 1 << 20

// moment reads one coherent state of a session, page by page, through a
// connection that holds a read transaction. Between pages the connection is
// free for other reads of the same moment.
type moment struct {
	ctx  context.Context
	slot *slot
	// outline leaves out the payloads of entries and ledger rows.
	outline bool
}

// page is a run of one table's records in sequence order.
type page struct {
	records []store.Record
	bytes   int
	after   int64 // the number of the last record
	end     bool  // no row follows
	err     error // what is wrong with the row that would be next
}

// add keeps a record, and reports whether there is room for more. A row whose number
// is none, or that of the row before, is damage: whoever goes on behind a number would
// pass over it, or never get beyond it.
func (p *page) add(h *handle, r store.Record, size int) (more bool) {
	switch {
	case r.Seq < 1 || r.Seq == math.MaxInt64:
		p.err = corrupt(h.path, "%s: %d is no sequence number", r.Name(), r.Seq)
	case r.Seq <= p.after:
		p.err = corrupt(h.path, "%s: sequence number %d has been given before", r.Name(), r.Seq)
	default:
		p.records = append(p.records, r)
		p.bytes += size
		p.after = r.Seq
		return !p.full()
	}
	return false
}

func (p *page) full() bool { return p.bytes >= pageBytes }

// What makes a row part of the tree has to be of its kind. Any other column says what
// database/sql makes of it.
const (
	soundEntry = `, typeof(e.id) = 'text' AND typeof(e.seq) = 'integer' AND typeof(ifnull(e.parent_id, '')) = 'text'`
	soundUsage = `, typeof(id) = 'text' AND typeof(seq) = 'integer' AND typeof(ifnull(entry_id, '')) = 'text'`

	sqlEntriesAfter    = `SELECT ` + entryColumns + soundEntry + entriesAfter
	usageIDColumns     = `id, seq, ifnull(entry_id, ''), adjustment`
	sqlUsageAfter      = `SELECT ` + usageIDColumns + `, usage, details` + soundUsage + usageAfter
	sqlStructuresAfter = `SELECT ` + structureColumns + soundEntry + entriesAfter
	sqlUsageIDsAfter   = `SELECT ` + usageIDColumns + soundUsage + usageAfter
	sqlEntriesAt       = `SELECT count(*) FROM entries WHERE seq = ?1`
	sqlUsageAt         = `SELECT count(*) FROM usage_ledger WHERE seq = ?1`
	sqlValueKeys       = `SELECT seq, namespace, key FROM scalar_values ORDER BY seq`
	sqlListKeys        = `SELECT seq, namespace, key FROM list_values ORDER BY seq`
	sqlElement         = `SELECT value FROM list_values WHERE namespace = ? AND key = ? AND seq = ?`
)

// recordBytes is about what a record needs beside its payload.
const recordBytes = 256

func (m moment) entriesAfter(seq int64) (page, error) {
	rows, plain := m.plainEntries()
	return m.next(rows, seq, plain, m.entry)
}

func (m moment) entry(rows *sql.Rows) (r store.Record, size int, err error) {
	var e store.Entry
	var sound bool
	dest := fields(&e.Structure)
	if !m.outline {
		dest = append(dest, (*[]byte)(&e.Payload))
	}
	if err = rows.Scan(append(dest, &sound)...); err == nil && !sound {
		err = fmt.Errorf("entry %s: its id, number or parent is of a kind that none is", e.ID)
	}
	return store.Record{Kind: store.KindEntry, Seq: e.Seq, Entry: &e}, len(e.Payload), err
}

func (m moment) usageAfter(seq int64) (page, error) {
	rows, plain := m.plainUsage()
	return m.next(rows, seq, plain, m.usage)
}

func (m moment) usage(rows *sql.Rows) (r store.Record, size int, err error) {
	var u store.UsageRow
	var details sql.NullString
	var sound bool
	dest := []any{&u.ID, &u.Seq, &u.EntryID, &u.Adjustment}
	if !m.outline {
		dest = append(dest, (*[]byte)(&u.Usage), &details)
	}
	if err = rows.Scan(append(dest, &sound)...); err == nil && !sound {
		err = fmt.Errorf("usage %s: its id, number or entry is of a kind that none is", u.ID)
	}
	if details.Valid {
		u.Details = json.RawMessage(details.String)
	}
	return store.Record{Kind: store.KindUsage, Seq: u.Seq, Usage: &u}, len(u.Usage) + len(u.Details), err
}

// next reads a page of plain rows, or, where the next one is not, of any.
func (m moment) next(rows sequence, after int64, plain plainRecord, loose func(*sql.Rows) (store.Record, int, error)) (page, error) {
	p, whole, err := m.plainPage(rows, after, plain)
	if err == nil && !whole && len(p.records) == 0 {
		p, err = m.page(rows.loose, after, loose)
	}
	// Rows of one number that were read together have been told apart.
	if err = cmp.Or(err, p.err); err != nil || p.end || len(p.records) == 0 {
		return p, err
	}
	return p, m.use(func(h *handle) error { return p.alone(h, rows.at) })
}

// page reads rows that are not plain.
func (m moment) page(text string, after int64, record func(*sql.Rows) (store.Record, int, error)) (page, error) {
	p := page{after: after}
	err := m.use(func(h *handle) error {
		return h.each(m.ctx, text, []any{after}, func(rows *sql.Rows) (bool, error) {
			r, size, err := record(rows)
			return err == nil && p.add(h, r, recordBytes+size), err
		})
	})
	p.end = !p.full()
	return p, err
}

// alone refuses a second row with the last number: whoever goes on behind it would
// pass over that row.
func (p *page) alone(h *handle, sqlAt string) error {
	var rows int
	if _, err := h.row(sqlAt, []any{p.after}, &rows); err != nil || rows == 1 {
		return err
	}
	return corrupt(h.path, "%d rows have the sequence number %d", rows, p.after)
}

func (m moment) each(text string, args []any, read func(*sql.Rows) (bool, error)) error {
	return m.use(func(h *handle) error { return h.each(m.ctx, text, args, read) })
}

func (m moment) use(f func(*handle) error) error {
	h, err := m.slot.take(m.ctx)
	if err != nil {
		return err
	}
	defer m.slot.give(h)
	return f(h)
}

// spot is where a value or a list element lies. Values and elements have no
// index by sequence number, so their spots are sorted once and read one by one.
type spot struct {
	seq  int64
	addr store.Address
	list bool
}

func (m moment) spots() ([]spot, error) {
	var out []spot
	names := make(map[string]string) // one copy of a namespace or key that many elements share
	intern := func(s string) string {
		if t, ok := names[s]; ok {
			return t
		}
		names[s] = s
		return s
	}
	for _, text := range []string{sqlValueKeys, sqlListKeys} {
		err := m.each(text, nil, func(rows *sql.Rows) (bool, error) {
			p := spot{list: text == sqlListKeys}
			err := rows.Scan(&p.seq, &p.addr.Namespace, &p.addr.Key)
			p.addr = store.Address{Namespace: intern(p.addr.Namespace), Key: intern(p.addr.Key)}
			out = append(out, p)
			return true, err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b spot) int { return cmp.Compare(a.seq, b.seq) })
	return out, m.use(func(h *handle) error { return rising(h, out) })
}

// rising refuses values and elements with numbers that are none, or another's.
func rising(h *handle, all []spot) error {
	last := int64(0)
	for _, p := range all {
		if p.seq <= last || p.seq == math.MaxInt64 {
			return corrupt(h.path, "%s: %d is no sequence number, or another's", p.addr, p.seq)
		}
		last = p.seq
	}
	return nil
}

func (m moment) at(p spot) (store.Record, error) {
	r := store.Record{Kind: store.KindValue, Op: store.OpSet, Seq: p.seq, Address: p.addr}
	var value json.RawMessage
	err := m.use(func(h *handle) error {
		args := []any{p.addr.Namespace, p.addr.Key}
		var seq int64
		text, dest := sqlValue, []any{&seq, (*[]byte)(&value)}
		if p.list {
			r.Kind, r.Op = store.KindList, store.OpAppend
			text, args, dest = sqlElement, append(args, p.seq), dest[1:]
		}
		ok, err := h.row(text, args, dest...)
		if err == nil && !ok {
			err = corrupt(h.path, "%s: element %d is missing", p.addr, p.seq)
		}
		return err
	})
	r.Value = value
	return r, err
}

// records merges the four tables by sequence number.
func (m moment) records(all []spot) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		spots := all // a snapshot may be read again
		entries := cursor{more: m.entriesAfter, after: noNumber}
		usage := cursor{more: m.usageAfter, after: noNumber}
		for {
			e, err := entries.peek()
			if err != nil {
				yield(store.Record{}, err)
				return
			}
			u, err := usage.peek()
			if err != nil {
				yield(store.Record{}, err)
				return
			}
			var r store.Record
			switch next := firstOf(e, u, spots); {
			case next == nil && len(spots) == 0:
				return
			case next == nil:
				if r, err = m.at(spots[0]); err != nil {
					yield(store.Record{}, err)
					return
				}
				spots = spots[1:]
			case next == e:
				r = entries.take()
			default:
				r = usage.take()
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// firstOf is the earlier of an entry and a ledger row, or nil when the first
// spot comes before both.
func firstOf(e, u *store.Record, spots []spot) *store.Record {
	first := e
	if first == nil || (u != nil && u.Seq < first.Seq) {
		first = u
	}
	if first != nil && len(spots) > 0 && spots[0].seq < first.Seq {
		return nil
	}
	return first
}

// cursor walks one table in pages.
type cursor struct {
	more  func(after int64) (page, error)
	page  page
	after int64
}

// peek is the next record, nil at the end.
func (c *cursor) peek() (*store.Record, error) {
	if len(c.page.records) == 0 && !c.page.end {
		var err error
		if c.page, err = c.more(c.after); err != nil {
			return nil, err
		}
	}
	if len(c.page.records) == 0 {
		return nil, nil
	}
	return &c.page.records[0], nil
}

func (c *cursor) take() store.Record {
	r := c.page.records[0]
	c.page.records = c.page.records[1:]
	c.after = r.Seq
	return r
}
