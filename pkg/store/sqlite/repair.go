package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/drover-run/drover/pkg/store"
)

const (
	sqlCountMessages = `SELECT count(*) FROM entries WHERE type = ?1`
	sqlLedger        = `SELECT usage FROM usage_ledger ORDER BY seq`
	sqlSetStats      = `UPDATE session SET message_count = ?1, usage_payload = CAST(?2 AS TEXT)`
)

// RepairIndex makes the branch index and the stats anew, in one transaction.
// Nothing else is changed, and nothing at all when the entries do not form a
// tree (spec §2.6, D61).
func (b *backend) RepairIndex(ctx context.Context) error {
	return b.alone(ctx, func(h *handle) (*handle, error) {
		if b.broken != nil {
			return h, b.broken
		}
		var stats store.Stats
		var usage json.RawMessage
		err := b.owned(h, func() (err error) {
			if err := h.reindex(ctx); err != nil {
				return err
			}
			if stats, err = h.recount(ctx); err != nil {
				return err
			}
			if usage, err = stats.Usage.AppendJSON(nil); err != nil {
				return err
			}
			_, err = h.exec(sqlSetStats, stats.MessageCount, []byte(usage))
			return err
		})
		if err == nil {
			b.stats, b.usage = stats, usage
		}
		return h, err
	})
}

// recount sums entries and ledger as commits do.
func (h *handle) recount(ctx context.Context) (store.Stats, error) {
	var s store.Stats
	if _, err := h.row(sqlCountMessages, []any{string(store.TypeMessage)}, &s.MessageCount); err != nil {
		return s, err
	}
	err := h.each(ctx, sqlLedger, nil, func(rows *sql.Rows) (bool, error) {
		var u store.UsageRow
		err := rows.Scan((*[]byte)(&u.Usage))
		s = s.Add(store.Record{Usage: &u})
		return true, err
	})
	return s, err
}
