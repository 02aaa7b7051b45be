package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"io"
	"math"

	"github.com/drover-run/drover/pkg/store"
)

// A scan of a whole session takes its rows from the driver as they are:
// database/sql converts every column, which costs more than SQLite's own work. A
// row whose columns are not of the kinds that are written here is not plain, and
// is left to database/sql, which knows what to make of it.

// plainRow is what the driver makes of a row.
type plainRow []driver.Value

// columns reads the columns from the first on, false unless each is of the kind
// that its destination holds.
func (r plainRow) columns(dest ...any) bool {
	for i, d := range dest {
		var ok bool
		switch d := d.(type) {
		case *string:
			*d, ok = r[i].(string)
		case *int64:
			*d, ok = r[i].(int64)
		case *[]byte:
			*d, ok = r[i].([]byte)
			ok = ok && len(*d) > 0 // an empty text is no NULL
		}
		if !ok {
			return false
		}
	}
	return true
}

// plain reports whether blobs hold the bytes of a text as they are read.
func (h *handle) plain() (bool, error) {
	var encoding string
	_, err := h.row("PRAGMA encoding", nil, &encoding)
	return encoding == "UTF-8", err
}

// plainQuery is a query whose rows the driver hands out.
type plainQuery struct {
	stmt driver.Stmt
	rows driver.Rows
	row  plainRow // its values are only good until the next one
}

func openPlain(conn any, text string, args []any) (*plainQuery, error) {
	values := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		values[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
	}
	stmt, err := conn.(driver.ConnPrepareContext).PrepareContext(context.Background(), text)
	if err != nil {
		return nil, err
	}
	rows, err := stmt.(driver.StmtQueryContext).QueryContext(context.Background(), values)
	if err != nil {
		return nil, errors.Join(err, stmt.Close())
	}
	return &plainQuery{stmt: stmt, rows: rows, row: make(plainRow, len(rows.Columns()))}, nil
}

func (q *plainQuery) close() error { return errors.Join(q.rows.Close(), q.stmt.Close()) }

// next steps to the next row, false at the end.
func (q *plainQuery) next() (bool, error) {
	err := q.rows.Next(q.row)
	if err == io.EOF {
		return false, nil
	}
	return err == nil, err
}

// raw gives f the driver's connection.
func (h *handle) raw(f func(conn any) error) error {
	if err := h.conn.Raw(f); err != nil {
		return classify(h.path, err)
	}
	return nil
}

// plainly reads the rows of a query until read returns false.
func (h *handle) plainly(ctx context.Context, text string, args []any, read func(plainRow) bool) error {
	var stopped error
	err := h.raw(func(conn any) (err error) {
		q, err := openPlain(conn, text, args)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, q.close()) }()
		for {
			if more, err := q.next(); err != nil || !more {
				return err
			}
			if stopped = context.Cause(ctx); stopped != nil || !read(q.row) {
				return nil
			}
		}
	})
	if err != nil {
		return err
	}
	return stopped
}

// noNumber is below every sequence number, even of damage: queries ask for more.
const noNumber = math.MinInt64

// queryPair is a query for sequence numbers and one for rows that should have them.
type queryPair struct{ numbers, rows *plainQuery }

func openPair(conn any, byNumber, byID string, after int64) (q queryPair, err error) {
	if q.numbers, err = openPlain(conn, byNumber, []any{after}); err != nil {
		return q, err
	}
	if q.rows, err = openPlain(conn, byID, []any{after}); err != nil {
		return q, errors.Join(err, q.numbers.close())
	}
	return q, nil
}

func (q queryPair) close() error { return errors.Join(q.rows.close(), q.numbers.close()) }

// next steps to the next number and its row; there is a row unless the two queries
// do not agree.
func (q queryPair) next() (seq int64, there bool, err error) {
	if listed, err := q.numbers.next(); err != nil || !listed {
		return noNumber, err == nil, err
	}
	seq, numbered := q.numbers.row[0].(int64)
	there, err = q.rows.next()
	return seq, there && numbered, err
}

// abreast reads the rows that byID finds as long as their numbers are those that
// byNumber lists, and until read wants no more. It reports whether they were: then the
// rows are those that follow a number, in their order.
func (h *handle) abreast(ctx context.Context, byNumber, byID string, after int64, read func(row plainRow, seq int64) (same, more bool)) (same bool, err error) {
	var stopped error
	err = h.raw(func(conn any) error {
		q, err := openPair(conn, byNumber, byID, after)
		if err != nil {
			return err
		}
		for more := true; more && err == nil && stopped == nil; stopped = context.Cause(ctx) {
			var seq int64
			if seq, same, err = q.next(); err != nil || !same || seq == noNumber {
				break
			}
			same, more = read(q.rows.row, seq)
			more = more && same
		}
		return errors.Join(err, q.close())
	})
	if err = errors.Join(err, stopped); err != nil {
		return false, err
	}
	return same, nil
}

// sequence is how a table is read in the order of sequence numbers. Its rows are
// clustered by their ids, which rise with the numbers unless clocks went back or
// somebody else chose them: then going through the table is a good deal faster than
// looking up each row.
type sequence struct {
	after          string // the rows that follow a number
	byNumber, byID string // the numbers that follow one, and the rows from the first of these on
	at             string // counts the rows of a number
	loose          string // the rows that follow a number, whatever their columns hold
}

// plainRecord makes a record of a row, unless that is not plain.
type plainRecord = func(plainRow) (r store.Record, size int, plain bool)

// The payloads come as blobs, so that the driver copies them once.
const (
	plainEntryColumns = structureColumns + `, CAST(e.payload AS BLOB)`
	plainUsageColumns = usageIDColumns + `, CAST(usage AS BLOB), details`

	entriesAfter  = ` FROM entries e WHERE e.seq > ?1 ORDER BY e.seq`
	entriesFromID = ` FROM entries e WHERE e.id >= (SELECT id FROM entries WHERE seq > ?1 ORDER BY seq LIMIT 1) ORDER BY e.id`
	usageAfter    = ` FROM usage_ledger WHERE seq > ?1 ORDER BY seq`
	usageFromID   = ` FROM usage_ledger WHERE id >= (SELECT id FROM usage_ledger WHERE seq > ?1 ORDER BY seq LIMIT 1) ORDER BY id`

	sqlEntryNumbers = `SELECT e.seq` + entriesAfter
	sqlUsageNumbers = `SELECT seq` + usageAfter
)

func entrySequence(columns, loose string) sequence {
	return sequence{
		after:    `SELECT ` + columns + entriesAfter,
		byNumber: sqlEntryNumbers, byID: `SELECT ` + columns + entriesFromID,
		at: sqlEntriesAt, loose: loose,
	}
}

func usageSequence(columns, loose string) sequence {
	return sequence{
		after:    `SELECT ` + columns + usageAfter,
		byNumber: sqlUsageNumbers, byID: `SELECT ` + columns + usageFromID,
		at: sqlUsageAt, loose: loose,
	}
}

// plainPage reads one page of plain records. Where it is empty and not whole, the
// next row is not plain.
func (m moment) plainPage(rows sequence, after int64, record plainRecord) (p page, whole bool, err error) {
	p.after = after
	err = m.use(func(h *handle) error {
		if whole, err = h.plain(); err != nil || !whole {
			return err
		}
		add := func(row plainRow, seq int64) (same, more bool) {
			r, size, plain := record(row)
			if whole = plain; !plain || seq != noNumber && r.Seq != seq {
				return false, false
			}
			more = p.add(h, r, recordBytes+size)
			return p.err == nil, more
		}
		if after != noNumber { // a session that is small is read at once
			same, err := h.abreast(m.ctx, rows.byNumber, rows.byID, after, add)
			if err != nil || same || !whole || p.err != nil {
				return err
			}
			if err := p.alone(h, rows.at); err != nil && len(p.records) > 0 {
				return err
			}
		}
		return h.plainly(m.ctx, rows.after, []any{p.after}, func(row plainRow) bool {
			_, more := add(row, noNumber)
			return more
		})
	})
	p.end = whole && !p.full()
	return p, whole, err
}

func (m moment) plainEntries() (sequence, plainRecord) {
	var s store.Structure
	var payload []byte
	rows, columns := entrySequence(plainEntryColumns, sqlEntriesAfter), append(fields(&s), &payload)
	if m.outline {
		rows, columns = entrySequence(structureColumns, sqlStructuresAfter), columns[:len(columns)-1]
	}
	return rows, func(row plainRow) (store.Record, int, bool) {
		if !row.columns(columns...) {
			return store.Record{}, 0, false
		}
		return store.Record{Kind: store.KindEntry, Seq: s.Seq, Entry: &store.Entry{Structure: s, Payload: payload}}, len(payload), true
	}
}

func (m moment) plainUsage() (sequence, plainRecord) {
	var u store.UsageRow
	var adjustment int64
	rows, columns := usageSequence(plainUsageColumns, sqlUsageAfter), []any{&u.ID, &u.Seq, &u.EntryID, &adjustment, (*[]byte)(&u.Usage)}
	if m.outline {
		rows, columns = usageSequence(usageIDColumns, sqlUsageIDsAfter), columns[:len(columns)-1]
	}
	return rows, func(row plainRow) (store.Record, int, bool) {
		if !row.columns(columns...) || adjustment&^1 != 0 {
			return store.Record{}, 0, false
		}
		details, plain := detailsOf(row[len(columns):])
		found := store.UsageRow{ID: u.ID, Seq: u.Seq, EntryID: u.EntryID, Adjustment: adjustment == 1, Usage: u.Usage, Details: details}
		return store.Record{Kind: store.KindUsage, Seq: u.Seq, Usage: &found}, len(found.Usage) + len(details), plain
	}
}

// detailsOf reads the column of details, if there is one.
func detailsOf(rest plainRow) (details json.RawMessage, plain bool) {
	if len(rest) == 0 || rest[0] == nil {
		return nil, true
	}
	text, plain := rest[0].(string)
	return json.RawMessage(text), plain
}
