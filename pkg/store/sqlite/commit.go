package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/drover-run/drover/pkg/store"
)

// The statement that every commit begins with: it reads what the commit counts
// on and yields no row to an owner that was replaced (D19).
const sqlBase = `SELECT s.next_seq, s.newest_timestamp FROM writer_lease l CROSS JOIN session s
	WHERE l.owner_id = ?1 AND l.fence = ?2`

const sqlAdvance = `UPDATE session SET next_seq = ?1, newest_timestamp = ?2, message_count = ?3,
	usage_payload = CAST(?4 AS TEXT)`

// Commit applies a transaction in one SQLite transaction (spec §1.7).
func (b *backend) Commit(ctx context.Context, tx store.Tx) (store.CommitResult, error) {
	h, err := b.near.take(ctx)
	if err != nil {
		return store.CommitResult{}, err
	}
	defer b.near.give(h)
	if b.broken != nil {
		return store.CommitResult{}, b.broken
	}
	var done applied
	renewed := b.renewed
	err = h.write(func() (err error) {
		if done, err = b.apply(h, tx); err != nil {
			return err
		}
		renewed, err = b.renew(h)
		return err
	})
	if err != nil {
		var invalid *store.InvalidWrite
		if !errors.As(err, &invalid) {
			b.broken = err
		}
		return store.CommitResult{}, err
	}
	b.stats, b.usage, b.renewed, b.wrote = done.result.Stats, done.usage, renewed, true
	for i := range done.records {
		b.ids.add(&done.records[i])
	}
	return done.result, nil
}

// applied is a transaction that has been written but not committed.
type applied struct {
	records []store.Record
	result  store.CommitResult
	usage   json.RawMessage // of the stats
}

// apply numbers and writes a transaction; h has the write lock.
func (b *backend) apply(h *handle, tx store.Tx) (applied, error) {
	base := store.Base{Now: b.now()}
	ok, err := h.row(sqlBase, []any{b.claim.owner, b.claim.fence}, &base.NextSeq, &base.Newest)
	if err != nil {
		return applied{}, err
	}
	if !ok {
		return applied{}, &store.Lost{Path: b.path, Reason: "fenced"}
	}
	base.Lookup = func(id string) (store.IDKind, error) {
		if kind, ok := b.ids.kind(id); ok {
			return kind, nil
		}
		return h.idKind(id)
	}
	a := applied{usage: b.usage}
	if a.records, a.result, err = store.Prepare(tx, base); err != nil {
		return applied{}, err
	}
	a.result.Stats = b.stats
	for i := range a.records {
		r := &a.records[i]
		if err := h.insert(r); err != nil {
			return applied{}, err
		}
		a.result.Stats = a.result.Stats.Add(*r)
		if r.Usage != nil {
			a.usage = nil
		}
	}
	if a.usage == nil {
		if a.usage, err = a.result.Stats.Usage.AppendJSON(nil); err != nil {
			return applied{}, err
		}
	}
	next := base.NextSeq + int64(len(a.records))
	_, err = h.exec(sqlAdvance, next, a.result.Timestamp, a.result.Stats.MessageCount, []byte(a.usage))
	return a, err
}

// renew extends the lease once a third of its life has passed; it returns when
// that was.
func (b *backend) renew(h *handle) (time.Time, error) {
	now := time.Now()
	if now.Sub(b.renewed) < b.claim.ttl/3 {
		return b.renewed, nil
	}
	n, err := h.exec(sqlRenew, b.now()+b.claim.ttl.Milliseconds(), b.claim.owner, b.claim.fence)
	if err == nil && n == 0 {
		err = &store.Lost{Path: b.path, Reason: "fenced"}
	}
	return now, err
}

const sqlIDKind = `SELECT 1 FROM entries WHERE id = ?1 UNION ALL SELECT 2 FROM usage_ledger WHERE id = ?1`

// idKind says what an id names; entries and ledger rows share one namespace
// (spec §1.4).
func (h *handle) idKind(id string) (store.IDKind, error) {
	var kind int
	ok, err := h.row(sqlIDKind, []any{id}, &kind)
	switch {
	case err != nil || !ok:
		return store.IDFree, err
	case kind == 1:
		return store.IDEntry, nil
	}
	return store.IDUsage, nil
}

// Payloads are bound as bytes and stored as text: CAST changes only their type,
// and no copy is made on the way.
const (
	sqlInsertEntry = `INSERT INTO entries(id, parent_id, seq, type, custom_type, timestamp, payload)
	VALUES(?, nullif(?, ''), ?, ?, nullif(?, ''), ?, CAST(? AS TEXT))`
	sqlInsertUsage = `INSERT INTO usage_ledger(id, seq, entry_id, adjustment, usage, details)
	VALUES(?, ?, nullif(?, ''), ?, CAST(? AS TEXT), CAST(? AS TEXT))`
	sqlSetValue = `INSERT INTO scalar_values(namespace, key, seq, value) VALUES(?, ?, ?, CAST(? AS TEXT))
	ON CONFLICT(namespace, key) DO UPDATE SET seq = excluded.seq, value = excluded.value`
	sqlDeleteValue = `DELETE FROM scalar_values WHERE namespace = ?1 AND key = ?2`
	sqlAppendList  = `INSERT INTO list_values(namespace, key, seq, value) VALUES(?, ?, ?, CAST(? AS TEXT))`
	sqlDeleteList  = `DELETE FROM list_values WHERE namespace = ?1 AND key = ?2`
)

// insert applies one record and indexes it.
func (h *handle) insert(r *store.Record) error {
	if err := h.put(r); err != nil || r.Entry == nil {
		return err
	}
	return h.grow(&r.Entry.Structure)
}

// put applies one record to its table.
func (h *handle) put(r *store.Record) error {
	var err error
	ns, key := r.Address.Namespace, r.Address.Key
	switch {
	case r.Entry != nil:
		e := r.Entry
		_, err = h.exec(sqlInsertEntry, e.ID, e.ParentID, e.Seq, string(e.Type), e.CustomType, e.Timestamp, []byte(e.Payload))
	case r.Usage != nil:
		u := r.Usage
		_, err = h.exec(sqlInsertUsage, u.ID, u.Seq, u.EntryID, u.Adjustment, []byte(u.Usage), []byte(u.Details))
	case r.Kind == store.KindValue && r.Op == store.OpSet:
		_, err = h.exec(sqlSetValue, ns, key, r.Seq, []byte(r.Value))
	case r.Kind == store.KindValue:
		_, err = h.exec(sqlDeleteValue, ns, key)
	case r.Op == store.OpAppend:
		_, err = h.exec(sqlAppendList, ns, key, r.Seq, []byte(r.Value))
	default:
		_, err = h.exec(sqlDeleteList, ns, key)
	}
	return err
}
