package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/drover-run/drover/pkg/store"
)

const (
	sqlVacuumInto = `VACUUM INTO ?1`
	sqlPages      = `SELECT f.freelist_count, p.page_count, s.page_size
	FROM pragma_freelist_count f, pragma_page_count p, pragma_page_size s`
	sqlRecords = `SELECT (SELECT count(*) FROM entries) + (SELECT count(*) FROM usage_ledger)
	+ (SELECT count(*) FROM scalar_values) + (SELECT count(*) FROM list_values)`
)

// errNotSmaller is a copy that is dropped (D17).
var errNotSmaller = errors.New("the copy would not be smaller")

// Compact folds the WAL into the database and puts a copy without free pages in
// its place (spec §1.7, D51). Dead are free pages and the WAL, but not what the claim
// alone has put there. Where the copy is dropped, the WAL has been folded all the
// same.
func (b *backend) Compact(ctx context.Context, o store.CompactOptions) (store.Compaction, error) {
	var c store.Compaction
	err := b.alone(ctx, func(h *handle) (_ *handle, err error) {
		if b.broken != nil {
			return h, b.broken
		}
		c, h, err = b.compact(h, o)
		return h, err
	})
	if err != nil {
		return store.Compaction{}, fmt.Errorf("compact %s: %w", b.path, err)
	}
	return c, nil
}

func (b *backend) compact(h *handle, o store.CompactOptions) (store.Compaction, *handle, error) {
	if err := b.driver.sweep(b.path); err != nil {
		return store.Compaction{}, h, err
	}
	before, err := h.extent()
	if !b.wrote {
		before.wal = min(before.wal, b.foundWAL)
	}
	c := before.unchanged()
	if err != nil || before.dead() < o.MinDead {
		return c, h, err
	}
	temp, err := b.driver.createTemp(b.path)
	if err != nil {
		return c, h, err
	}
	h, err = b.replace(h, temp, func() error {
		after, err := vacuumInto(b.path, temp)
		if err == nil && after.records != before.records {
			err = corrupt(temp, "the copy has %d records, the session %d", after.records, before.records)
		}
		if err != nil {
			return err
		}
		if c = before.compacted(after); !c.Changed {
			return errNotSmaller
		}
		return nil
	})
	if errors.Is(err, errNotSmaller) {
		err = nil
	}
	if err == nil {
		b.wrote, b.foundWAL = false, 0
	}
	return c, h, errors.Join(err, removeFiles(b.driver.fs(), temp))
}

// PlanCompaction measures a copy, which it makes where temporary files go and
// removes: of the session's folder it changes nothing.
func (r *reader) PlanCompaction(ctx context.Context, o store.CompactOptions) (store.Compaction, error) {
	var path string
	var before extent
	err := r.lookup(ctx, func(h *handle) (err error) {
		path = h.path
		before, err = h.extent()
		return err
	})
	c := before.unchanged()
	if err == nil && before.dead() >= o.MinDead {
		var after extent
		if after, err = measureCopy(path); err == nil {
			c = before.compacted(after)
		}
	}
	if err != nil {
		return store.Compaction{}, fmt.Errorf("plan compaction of %s: %w", path, err)
	}
	return c, nil
}

// measureCopy copies a session for its size alone.
func measureCopy(path string) (after extent, err error) {
	dir, err := os.MkdirTemp("", "drover-compaction-")
	if err != nil {
		return extent{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if after, err = vacuumInto(path, filepath.Join(dir, "copy.db")); err != nil {
		return extent{}, fmt.Errorf("copy it to %s: %w", dir, err)
	}
	return after, nil
}

// vacuumInto copies a session through a reader of its own, because VACUUM runs in no
// transaction, and measures the copy.
func vacuumInto(path, temp string) (extent, error) {
	r, _, err := openView(path)
	if err != nil {
		return extent{}, err
	}
	if _, err = r.exec("ROLLBACK"); err == nil {
		_, err = r.exec(sqlVacuumInto, temp)
	}
	if err := errors.Join(err, r.close()); err != nil {
		return extent{}, err
	}
	h, err := openHandle(temp, dsnReader)
	if err != nil {
		return extent{}, err
	}
	e, err := h.extent()
	return e, errors.Join(err, h.close())
}

// extent is how much a session takes up.
type extent struct {
	file, wal int64 // bytes on disk
	pages     int64 // bytes of the database once the WAL is folded into it
	free      int64 // of those, free
	records   int64
}

func (e extent) bytes() int64 { return e.file + e.wal }

// unchanged is the outcome for a session that is left as it is.
func (e extent) unchanged() store.Compaction {
	return store.Compaction{
		BytesBefore: e.bytes(), BytesAfter: e.bytes(), RecordsBefore: e.records, RecordsAfter: e.records,
	}
}

// compacted is the outcome for a session of which there is a copy. Without an
// exchange the WAL is folded, and what that frees is no compaction.
func (e extent) compacted(after extent) store.Compaction {
	if after.pages >= e.pages {
		e.file, e.wal = e.pages, 0
		return e.unchanged()
	}
	c := e.unchanged()
	c.BytesAfter, c.Changed = after.pages, true
	return c
}

// dead is the part of the files that holds nothing of the session.
func (e extent) dead() float64 { return float64(e.free+e.wal) / float64(e.bytes()) }

func (h *handle) extent() (extent, error) {
	var e extent
	var size int64
	if _, err := h.row(sqlPages, nil, &e.free, &e.pages, &size); err != nil {
		return e, err
	}
	e.free, e.pages = e.free*size, e.pages*size
	if _, err := h.row(sqlRecords, nil, &e.records); err != nil {
		return e, err
	}
	info, err := os.Stat(h.path)
	if err != nil {
		return e, err
	}
	e.file = info.Size()
	e.wal, err = walSize(h.path)
	return e, err
}
