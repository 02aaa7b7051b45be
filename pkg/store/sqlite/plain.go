package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"io"

	"github.com/drover-run/drover/pkg/store"
)

// A scan of a whole session takes its rows from the driver as they are:
// database/sql converts every column, which costs more than SQLite's own work. A
// row whose columns are not of the kinds that are written here is not plain, and
// is left to database/sql, which knows what to make of it.

// The payloads come as blobs, so that the driver copies them once.
const (
	sqlPlainEntriesAfter = `SELECT ` + structureColumns + `, CAST(e.payload AS BLOB) FROM entries e WHERE e.seq > ? ORDER BY e.seq`
	sqlPlainUsageAfter   = `SELECT id, seq, ifnull(entry_id, ''), adjustment, CAST(usage AS BLOB), details FROM usage_ledger
	WHERE seq > ? ORDER BY seq`
)

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

// plainly reads the rows of a query until read returns false. The values of a row
// are only good until the next one.
func (h *handle) plainly(ctx context.Context, text string, args []any, read func(plainRow) bool) error {
	values := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		values[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
	}
	var stopped error
	err := h.conn.Raw(func(conn any) (err error) {
		stmt, err := conn.(driver.ConnPrepareContext).PrepareContext(context.Background(), text)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stmt.Close()) }()
		rows, err := stmt.(driver.StmtQueryContext).QueryContext(context.Background(), values)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		row := make(plainRow, len(rows.Columns()))
		for {
			switch err := rows.Next(row); {
			case err == io.EOF:
				return nil
			case err != nil:
				return err
			}
			if stopped = context.Cause(ctx); stopped != nil || !read(row) {
				return nil
			}
		}
	})
	if err != nil {
		return classify(h.path, err)
	}
	return stopped
}

// plainPage reads one page of plain records. Where it is empty and not whole, the
// next row is not plain.
func (m moment) plainPage(text string, after int64, record func(plainRow) (r store.Record, size int, plain bool)) (p page, whole bool, err error) {
	err = m.use(func(h *handle) error {
		if whole, err = h.plain(); err != nil || !whole {
			return err
		}
		return h.plainly(m.ctx, text, []any{after}, func(row plainRow) bool {
			var r store.Record
			var size int
			if r, size, whole = record(row); !whole {
				return false
			}
			return p.add(r, recordBytes+size)
		})
	})
	return p, whole, err
}

func (m moment) plainEntries(after int64) (p page, whole bool, err error) {
	var s store.Structure
	var payload []byte
	text, columns := sqlPlainEntriesAfter, append(fields(&s), &payload)
	if m.outline {
		text, columns = sqlStructuresAfter, columns[:len(columns)-1]
	}
	return m.plainPage(text, after, func(row plainRow) (store.Record, int, bool) {
		if !row.columns(columns...) {
			return store.Record{}, 0, false
		}
		return store.Record{Kind: store.KindEntry, Seq: s.Seq, Entry: &store.Entry{Structure: s, Payload: payload}}, len(payload), true
	})
}

func (m moment) plainUsage(after int64) (p page, whole bool, err error) {
	var u store.UsageRow
	var adjustment int64
	text, columns := sqlPlainUsageAfter, []any{&u.ID, &u.Seq, &u.EntryID, &adjustment, (*[]byte)(&u.Usage)}
	if m.outline {
		text, columns = sqlUsageIDsAfter, columns[:len(columns)-1]
	}
	return m.plainPage(text, after, func(row plainRow) (store.Record, int, bool) {
		if !row.columns(columns...) || adjustment&^1 != 0 {
			return store.Record{}, 0, false
		}
		details, plain := detailsOf(row[len(columns):])
		found := store.UsageRow{ID: u.ID, Seq: u.Seq, EntryID: u.EntryID, Adjustment: adjustment == 1, Usage: u.Usage, Details: details}
		return store.Record{Kind: store.KindUsage, Seq: u.Seq, Usage: &found}, len(found.Usage) + len(details), plain
	})
}

// detailsOf reads the column of details, if there is one.
func detailsOf(rest plainRow) (details json.RawMessage, plain bool) {
	if len(rest) == 0 || rest[0] == nil {
		return nil, true
	}
	text, plain := rest[0].(string)
	return json.RawMessage(text), plain
}
