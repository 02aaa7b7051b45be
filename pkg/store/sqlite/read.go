package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"math"
	"sync/atomic"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// reads answers the queries of owners and readers alike. near serves bounded
// lookups, far the scans, so that a long one does not hold up commits.
type reads struct {
	header atomic.Pointer[store.Header]
	near   *slot
	far    *slot
	// open connects far when it is first used; nil where far is near.
	open func() (*handle, error)
}

// Header describes the session as its row states it.
func (r *reads) Header() store.Header { return *r.header.Load() }

// lookup runs f on the near connection.
func (r *reads) lookup(ctx context.Context, f func(*handle) error) error {
	h, err := r.near.take(ctx)
	if err != nil {
		return err
	}
	defer r.near.give(h)
	return f(h)
}

// scan runs f on the far connection.
func (r *reads) scan(ctx context.Context, f func(*handle) error) error {
	h, err := r.far.take(ctx)
	if err != nil {
		return err
	}
	defer func() { r.far.give(h) }()
	if h == nil {
		if h, err = r.open(); err != nil {
			return err
		}
	}
	return f(h)
}

// The columns of an entry, structural fields first.
const (
	structureColumns = `e.id, ifnull(e.parent_id, ''), e.seq, e.timestamp, e.type, ifnull(e.custom_type, '')`
	entryColumns     = structureColumns + `, e.payload`
)

// fields are the destinations of structureColumns.
func fields(s *store.Structure) []any {
	return []any{&s.ID, &s.ParentID, &s.Seq, &s.Timestamp, (*string)(&s.Type), &s.CustomType}
}

const sqlEntry = `SELECT ` + entryColumns + ` FROM entries e WHERE e.id = ?`

// Entries looks each id up by the primary key.
func (r *reads) Entries(ctx context.Context, ids []string) (map[string]store.Entry, error) {
	out := make(map[string]store.Entry, len(ids))
	err := r.lookup(ctx, func(h *handle) error {
		for _, id := range ids {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			var e store.Entry
			ok, err := h.row(sqlEntry, []any{id}, append(fields(&e.Structure), (*[]byte)(&e.Payload))...)
			if err != nil {
				return err
			}
			if ok {
				out[id] = e
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

const sqlValue = `SELECT seq, value FROM scalar_values WHERE namespace = ? AND key = ?`

// Value reads one value by its primary key.
func (r *reads) Value(ctx context.Context, addr store.Address) (store.StoredValue, bool, error) {
	v := store.StoredValue{Address: addr}
	var found bool
	err := r.lookup(ctx, func(h *handle) (err error) {
		found, err = h.row(sqlValue, []any{addr.Namespace, addr.Key}, &v.Seq, (*[]byte)(&v.Value))
		return err
	})
	if err != nil || !found {
		return store.StoredValue{}, false, err
	}
	return v, true, nil
}

const sqlScanValues = `SELECT key, seq, value FROM scalar_values
	WHERE namespace = ?1 AND key >= ?2 AND key < ?3 ORDER BY key`

// ScanValues reads a range of the primary key.
func (r *reads) ScanValues(ctx context.Context, prefix store.Address) ([]store.StoredValue, error) {
	var out []store.StoredValue
	err := r.lookup(ctx, func(h *handle) error {
		args := []any{prefix.Namespace, prefix.Key, afterPrefix(prefix.Key)}
		return h.each(ctx, sqlScanValues, args, func(rows *sql.Rows) (bool, error) {
			v := store.StoredValue{Address: store.Address{Namespace: prefix.Namespace}}
			err := rows.Scan(&v.Key, &v.Seq, (*[]byte)(&v.Value))
			out = append(out, v)
			return true, err
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// afterPrefix is what sorts directly after every text with the prefix. Where no
// text does, it is a blob: SQLite sorts every blob after every text.
func afterPrefix(prefix string) any {
	b := []byte(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != 0xff {
			b[i]++
			return string(b[:i+1])
		}
	}
	return []byte{0}
}

const (
	sqlListAsc = `SELECT seq, value FROM list_values
	WHERE namespace = ? AND key = ? AND seq > ? ORDER BY seq LIMIT ?`
	sqlListDesc = `SELECT seq, value FROM list_values
	WHERE namespace = ? AND key = ? AND seq < ? ORDER BY seq DESC LIMIT ?`
)

// ReadList reads one page in the order of the primary key.
func (r *reads) ReadList(ctx context.Context, addr store.Address, q store.ListQuery) ([]store.ListElement, error) {
	limit, err := q.PageSize()
	if err != nil {
		return nil, err
	}
	text, cursor := sqlListAsc, q.Cursor
	if q.Descending {
		text = sqlListDesc
		if cursor == 0 {
			cursor = math.MaxInt64
		}
	}
	var out []store.ListElement
	err = r.lookup(ctx, func(h *handle) error {
		return h.each(ctx, text, []any{addr.Namespace, addr.Key, cursor, limit}, func(rows *sql.Rows) (bool, error) {
			var el store.ListElement
			err := rows.Scan(&el.Seq, (*[]byte)(&el.Value))
			out = append(out, el)
			return true, err
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

const sqlStats = `SELECT message_count, usage_payload FROM session`

// Stats reads the maintained projection.
func (r *reads) Stats(ctx context.Context) (store.Stats, error) {
	var s store.Stats
	err := r.lookup(ctx, func(h *handle) (err error) {
		s, err = h.stats()
		return err
	})
	return s, err
}

func (h *handle) stats() (store.Stats, error) {
	var s store.Stats
	var usage json.RawMessage
	if ok, err := h.row(sqlStats, nil, &s.MessageCount, (*[]byte)(&usage)); err != nil {
		return store.Stats{}, err
	} else if !ok {
		return store.Stats{}, corrupt(h.path, "session row is missing")
	}
	u, err := message.ParseUsage(usage)
	if err != nil {
		return store.Stats{}, corrupt(h.path, "session row: usage: %v", err)
	}
	s.Usage = u
	return s, nil
}
