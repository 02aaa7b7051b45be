package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"math"

	"github.com/drover-run/drover/pkg/store"
)

// The filters by type are written so that one statement serves with and without
// them; they narrow what the index range has found.
const (
	sqlScanEntries = `SELECT ` + entryColumns + ` FROM entries e
	WHERE e.seq >= ?1 AND e.seq <= ?2 AND (?3 = '' OR e.type = ?3) AND (?4 = '' OR e.custom_type = ?4)
	ORDER BY e.seq`
	sqlScanUsage = `SELECT id, seq, ifnull(entry_id, ''), adjustment, usage, details FROM usage_ledger
	WHERE seq >= ?1 AND seq <= ?2 ORDER BY seq`
)

// ScanEntries reads a range of ix_entry_seq.
func (r *reads) ScanEntries(ctx context.Context, q store.EntryQuery) ([]store.Entry, error) {
	var out []store.Entry
	err := r.scan(ctx, func(h *handle) error {
		args := []any{q.FromSeq, openEnd(q.ToSeq), string(q.Type), q.CustomType, rowLimit(q.Limit)}
		return h.each(ctx, ordered(sqlScanEntries, q.Descending)+` LIMIT ?5`, args, func(rows *sql.Rows) (bool, error) {
			e, err := scanEntry(rows)
			out = append(out, e)
			return true, err
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func scanEntry(rows *sql.Rows) (store.Entry, error) {
	var e store.Entry
	err := rows.Scan(append(fields(&e.Structure), (*[]byte)(&e.Payload))...)
	return e, err
}

// ScanUsage reads a range of ix_usage_seq.
func (r *reads) ScanUsage(ctx context.Context, q store.UsageQuery) ([]store.UsageRow, error) {
	var out []store.UsageRow
	err := r.scan(ctx, func(h *handle) error {
		args := []any{q.FromSeq, openEnd(q.ToSeq), rowLimit(q.Limit)}
		return h.each(ctx, ordered(sqlScanUsage, q.Descending)+` LIMIT ?3`, args, func(rows *sql.Rows) (bool, error) {
			u, err := scanUsage(rows)
			out = append(out, u)
			return true, err
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func scanUsage(rows *sql.Rows) (store.UsageRow, error) {
	var u store.UsageRow
	var details sql.NullString
	err := rows.Scan(&u.ID, &u.Seq, &u.EntryID, &u.Adjustment, (*[]byte)(&u.Usage), &details)
	if details.Valid {
		u.Details = json.RawMessage(details.String)
	}
	return u, err
}

func ordered(text string, descending bool) string {
	if descending {
		return text + ` DESC`
	}
	return text
}

// openEnd turns the open upper end of a sequence range into a number.
func openEnd(seq int64) int64 {
	if seq == 0 {
		return math.MaxInt64
	}
	return seq
}

// rowLimit turns "unlimited" into SQLite's spelling of it.
func rowLimit(limit int) int {
	if limit <= 0 {
		return -1
	}
	return limit
}
