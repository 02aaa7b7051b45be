package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/drover-run/drover/pkg/store"
)

// Migrate runs each step as one transaction with its version (spec §7.3, D52).
func (b *backend) Migrate(ctx context.Context, steps []store.Migration) error {
	err := b.alone(ctx, func(h *handle) (*handle, error) {
		if b.broken != nil {
			return h, b.broken
		}
		for _, step := range steps {
			if err := b.step(ctx, h, step); err != nil {
				return h, err
			}
		}
		return h, b.recall(h)
	})
	if err != nil {
		return fmt.Errorf("migrate %s: %w", b.path, err)
	}
	return nil
}

// step runs while nobody renews the lease, so that it does so itself.
func (b *backend) step(ctx context.Context, h *handle, step store.Migration) error {
	renewed := b.renewed
	err := b.owned(h, func() (err error) {
		if err = h.migrate(ctx, step); err == nil {
			renewed, err = b.renew(h)
		}
		return err
	})
	if err == nil {
		b.renewed = renewed
	}
	return err
}

func (h *handle) migrate(ctx context.Context, step store.Migration) error {
	if err := h.migrateSchema(step.To); err != nil {
		return err
	}
	for _, namespace := range slices.Sorted(maps.Keys(step.Convert)) {
		c := conversion{h: h, step: step, namespace: namespace}
		if err := c.values(ctx); err != nil {
			return err
		}
		if err := c.lists(ctx); err != nil {
			return err
		}
	}
	return h.setVersion(step.To)
}

const (
	sqlHasGeneration = `SELECT count(*) FROM pragma_table_info('session') WHERE name = 'generation'`
	sqlAddGeneration = `ALTER TABLE session ADD COLUMN generation INTEGER NOT NULL DEFAULT 0`
	sqlSetVersion    = `UPDATE session SET storage_version = ?1, metadata = CAST(?2 AS TEXT)`
	sqlSetGeneration = `UPDATE session SET generation = ?1`
)

// migrateSchema gives the tables what a version has beyond the one before. What is
// there already stays: a store that was built from an older session has it.
func (h *handle) migrateSchema(to int64) error {
	if to != generationVersion {
		return nil
	}
	var there int
	if _, err := h.row(sqlHasGeneration, nil, &there); err != nil || there > 0 {
		return err
	}
	s, err := h.session()
	if err != nil {
		return err
	}
	if err := h.run(sqlAddGeneration); err != nil {
		return err
	}
	_, err = h.exec(sqlSetGeneration, s.header.Generation)
	return err
}

func (h *handle) setVersion(to int64) error {
	s, err := h.session()
	if err != nil {
		return err
	}
	s.header.StorageVersion = to
	metadata, err := s.header.AppendJSON(nil)
	if err != nil {
		return err
	}
	_, err = h.exec(sqlSetVersion, to, metadata)
	return err
}

// conversion takes one namespace through a step, page by page.
type conversion struct {
	h         *handle
	step      store.Migration
	namespace string
}

// stored is a value or a list element of the namespace.
type stored struct {
	key   string
	seq   int64
	value json.RawMessage
}

const (
	sqlValuesFrom = `SELECT key, seq, value FROM scalar_values
	WHERE namespace = ? AND key >= ? ORDER BY key`
	sqlElementsAfter = `SELECT key, seq, value FROM list_values
	WHERE namespace = ? AND (key, seq) > (?, ?) ORDER BY key, seq`
	sqlConvertValue   = `UPDATE scalar_values SET value = CAST(?3 AS TEXT) WHERE namespace = ?1 AND key = ?2`
	sqlConvertElement = `UPDATE list_values SET value = CAST(?4 AS TEXT) WHERE namespace = ?1 AND key = ?2 AND seq = ?3`
	sqlDeleteElement  = `DELETE FROM list_values WHERE namespace = ?1 AND key = ?2 AND seq = ?3`
)

func (c conversion) values(ctx context.Context) error {
	from := ""
	for {
		page, err := c.page(ctx, sqlValuesFrom, c.namespace, from)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, v := range page {
			err := c.convert(v, func(next json.RawMessage) error {
				_, err := c.h.exec(sqlConvertValue, c.namespace, v.key, []byte(next))
				return err
			}, func() error {
				_, err := c.h.exec(sqlDeleteValue, c.namespace, v.key)
				return err
			})
			if err != nil {
				return err
			}
			from = v.key + "\x00" // what sorts directly after it
		}
	}
}

func (c conversion) lists(ctx context.Context) error {
	var last stored // numbers start at 1
	for {
		page, err := c.page(ctx, sqlElementsAfter, c.namespace, last.key, last.seq)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, e := range page {
			err := c.convert(e, func(next json.RawMessage) error {
				_, err := c.h.exec(sqlConvertElement, c.namespace, e.key, e.seq, []byte(next))
				return err
			}, func() error {
				_, err := c.h.exec(sqlDeleteElement, c.namespace, e.key, e.seq)
				return err
			})
			if err != nil {
				return err
			}
			last = e
		}
	}
}

// page reads on from where the last one ended, as much as a page of a snapshot
// holds.
func (c conversion) page(ctx context.Context, text string, args ...any) ([]stored, error) {
	var page []stored
	size := 0
	err := c.h.each(ctx, text, args, func(rows *sql.Rows) (bool, error) {
		var v stored
		err := rows.Scan(&v.key, &v.seq, (*[]byte)(&v.value))
		page = append(page, v)
		size += recordBytes + len(v.value)
		return size < pageBytes, err
	})
	return page, err
}

func (c conversion) convert(v stored, set func(json.RawMessage) error, remove func() error) error {
	next, err := c.step.Apply(store.Address{Namespace: c.namespace, Key: v.key}, v.value)
	switch {
	case err != nil:
		return err
	case next == nil:
		return remove()
	case string(next) == string(v.value):
		return nil
	}
	return set(next)
}
