package sqlite

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drover-run/drover/pkg/store"
)

//go:embed schema.sql
var sqlTables string

//go:embed index.sql
var sqlIndexes string

//go:embed branch.sql
var sqlBranchTables string

//go:embed branchindex.sql
var sqlBranchIndexes string

// Build writes a complete database beside the target and gives it the target's
// name in one step (spec §1.7, D13).
func (d Driver) Build(ctx context.Context, path string, snap *store.Snapshot, o store.BuildOptions) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if err := d.build(ctx, path, snap, o); err != nil {
		return fmt.Errorf("build %s: %w", path, err)
	}
	return nil
}

func (d Driver) build(ctx context.Context, path string, snap *store.Snapshot, o store.BuildOptions) error {
	path, exists, err := place(path, o)
	if err != nil {
		return err
	}
	if o.Sweep {
		if err := d.sweep(path); err != nil {
			return err
		}
	}
	if exists {
		return d.swap(ctx, path, func(temp string) error { return d.fill(ctx, temp, snap, o) })
	}
	temp, err := d.createTemp(path)
	if err != nil {
		return err
	}
	err = d.fill(ctx, temp, snap, o)
	if err == nil {
		err = d.publish(temp, path, o)
	}
	if err != nil {
		return errors.Join(err, removeFiles(d.fs(), temp))
	}
	return nil
}

// fill writes the snapshot and has it judged.
func (d Driver) fill(ctx context.Context, temp string, snap *store.Snapshot, o store.BuildOptions) error {
	write := fill
	if d.Scratch.suits(snap) {
		write = d.compose
	}
	if err := write(ctx, temp, snap); err != nil || o.Judge == nil {
		return err
	}
	// What a reader leaves beside the file belongs to nobody.
	return errors.Join(o.Judge(ctx, temp), removeSides(d.fs(), temp))
}

// publish gives the finished database its name, unless that is taken.
func (d Driver) publish(temp, path string, o store.BuildOptions) error {
	if !o.NoSync {
		if err := d.settle(temp, o.Like); err != nil {
			return err
		}
	}
	if err := d.fs().RenameNew(temp, path); errors.Is(err, fs.ErrExist) {
		return store.ErrExists
	} else if err != nil || o.NoSync {
		return err
	}
	err := d.fs().SyncDir(filepath.Dir(path))
	if err != nil {
		// A session whose creation is not believed must not be found later.
		err = errors.Join(err, removeFiles(d.fs(), path))
	}
	return err
}

// place finds where the new database goes and whether one is there. A symbolic
// link keeps pointing where it does.
func place(path string, o store.BuildOptions) (real string, exists bool, err error) {
	_, err = os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path, false, noForeignWAL(path)
	case err != nil:
		return "", false, err
	case !o.Replace:
		return "", false, store.ErrExists
	}
	real, err = filepath.EvalSymlinks(path)
	return real, true, err
}

// noForeignWAL refuses a free name beside which a WAL lies: SQLite would replay
// it into the new database.
func noForeignWAL(path string) error {
	holds, err := walHolds(path)
	if err == nil && holds {
		err = corrupt(walPath(path), "holds commits of a database that is gone; they would be mixed into a new one")
	}
	return err
}

// fill writes a snapshot into an empty file and leaves it closed, in WAL mode,
// with nothing beside it.
func fill(ctx context.Context, path string, snap *store.Snapshot) error {
	h, err := openHandle(path, dsnBuild)
	if err != nil {
		return err
	}
	return h.finish(h.write(func() error { return h.fill(ctx, snap) }))
}

func (h *handle) fill(ctx context.Context, snap *store.Snapshot) error {
	if err := h.run(sqlTables); err != nil {
		return err
	}
	tree, err := h.load(ctx, snap)
	if err != nil {
		return err
	}
	if err := h.run(sqlIndexes); err != nil {
		return err
	}
	return h.index(ctx, tree.newestFirst())
}

// load fills the tables of the session.
func (h *handle) load(ctx context.Context, snap *store.Snapshot) (tree treeNodes, err error) {
	s := sessionRow{header: snap.Header, nextSeq: max(snap.NextSeq, 1)}
	s.header.NextSeq = 0 // the session row holds it
	var stats store.Stats
	for r, err := range snap.Records {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err == nil {
			err = h.put(&r)
		}
		if err != nil {
			return tree, err
		}
		stats = stats.Add(r)
		s.nextSeq = max(s.nextSeq, r.Seq+1)
		if r.Entry != nil {
			s.newest = max(s.newest, r.Entry.Timestamp)
			tree.add(&r.Entry.Structure)
		}
	}
	return tree, h.insertSession(s, stats)
}

const (
	sqlInsertSession = `INSERT INTO session(created_at, parent_session_id, storage_version, metadata,
	message_count, usage_payload, next_seq, newest_timestamp, generation)
	VALUES(?1, nullif(?2, ''), ?3, CAST(?4 AS TEXT), ?5, CAST(?6 AS TEXT), ?7, ?8, ?9)`
	sqlInsertLease = `INSERT INTO writer_lease(fence) VALUES(0)`
)

func (h *handle) insertSession(s sessionRow, stats store.Stats) error {
	metadata, err := s.header.AppendJSON(nil)
	if err != nil {
		return err
	}
	usage, err := stats.Usage.AppendJSON(nil)
	if err != nil {
		return err
	}
	if _, err := h.exec(sqlInsertSession, s.header.CreatedAt, s.header.ParentSessionID, s.header.StorageVersion,
		metadata, stats.MessageCount, usage, s.nextSeq, s.newest, s.header.Generation); err != nil {
		return err
	}
	_, err = h.exec(sqlInsertLease)
	return err
}
