package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	lib "modernc.org/sqlite/lib"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/store"
)

//go:embed schema.sql
var sqlTables string

//go:embed index.sql
var sqlIndexes string

// Build writes a complete database beside the target and gives it the target's
// name in one step (spec §1.7, D13).
func (d Driver) Build(ctx context.Context, path string, snap *store.Snapshot, o store.BuildOptions) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	exists, err := occupied(path)
	if err == nil && exists && !o.Replace {
		err = store.ErrExists
	}
	if err == nil && !exists {
		err = noForeignWAL(path)
	}
	if err == nil {
		err = d.build(ctx, path, exists, snap, o)
	}
	if err != nil {
		return fmt.Errorf("build %s: %w", path, err)
	}
	return nil
}

func (d Driver) build(ctx context.Context, path string, exists bool, snap *store.Snapshot, o store.BuildOptions) error {
	temp, err := createTemp(path)
	if err != nil {
		return err
	}
	err = fill(ctx, temp, snap)
	if err == nil && !o.NoSync {
		err = d.sync(temp)
	}
	if err == nil {
		err = d.publish(ctx, temp, path, exists, o)
	}
	if err != nil {
		return errors.Join(err, removeFiles(d.fs(), temp))
	}
	return nil
}

// publish gives the finished database its name.
func (d Driver) publish(ctx context.Context, temp, path string, exists bool, o store.BuildOptions) error {
	if exists {
		return d.swap(ctx, temp, path)
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

// swap puts the new database in the place of an old one that nobody owns, as
// its owner (D51).
func (d Driver) swap(ctx context.Context, temp, path string) error {
	b, err := openOwner(ctx, path, store.OpenOptions{Owner: store.OwnerInfo{Command: "replace"}})
	var damaged *store.Corrupt
	if errors.As(err, &damaged) {
		// Nobody can own what cannot be read.
		return d.exchange(temp, path)
	}
	if err != nil {
		return err
	}
	err = b.lookup(ctx, func(h *handle) error {
		if err := h.foldWAL(); err != nil {
			return err
		}
		if holds, err := walHolds(path); err != nil || holds {
			return errors.Join(err, &IOError{Code: lib.SQLITE_BUSY, Path: path, Err: errors.New("readers hold its WAL")})
		}
		return d.exchange(temp, path)
	})
	return errors.Join(err, b.Close())
}

// exchange removes what lies beside the old database before the new one takes
// its name: an old WAL beside a new database would be replayed into it. A crash
// in between leaves the old session complete.
func (d Driver) exchange(temp, path string) error {
	if err := removeSides(d.fs(), path); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := d.fs().SyncDir(dir); err != nil {
		return err
	}
	if err := d.fs().Rename(temp, path); err != nil {
		return err
	}
	return d.fs().SyncDir(dir)
}

func occupied(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
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

// createTemp makes an empty private file beside path; SQLite takes its mode
// over.
func createTemp(path string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), tempPrefix(path)+"*")
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// tempPrefix begins the names of temporary files; fsx.IsTemp knows them.
func tempPrefix(path string) string { return "." + filepath.Base(path) + ".tmp-" }

// sync makes the content of a closed database survive power loss.
func (d Driver) sync(path string) error {
	f, err := d.fs().OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// removeFiles removes a database and what lies beside it. The database goes
// last: until then its WAL belongs to it.
func removeFiles(fsys fsx.FS, path string) error {
	return errors.Join(removeSides(fsys, path), remove(fsys, path))
}

func removeSides(fsys fsx.FS, path string) error {
	return errors.Join(remove(fsys, walPath(path)), remove(fsys, shmPath(path)))
}

func remove(fsys fsx.FS, name string) error {
	if err := fsys.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// fill writes a snapshot into an empty file and leaves it closed, in WAL mode,
// with nothing beside it.
func fill(ctx context.Context, path string, snap *store.Snapshot) error {
	h, err := openHandle(path, dsnBuild)
	if err != nil {
		return err
	}
	err = h.write(func() error { return h.fill(ctx, snap) })
	if err == nil {
		err = h.useWAL()
	}
	if err := errors.Join(err, h.close()); err != nil {
		return err
	}
	for _, side := range []string{walPath(path), shmPath(path)} {
		if _, err := os.Lstat(side); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(fmt.Errorf("%s is left", side), err)
		}
	}
	return nil
}

func (h *handle) fill(ctx context.Context, snap *store.Snapshot) error {
	if err := h.run(sqlTables); err != nil {
		return err
	}
	s := sessionRow{header: snap.Header, nextSeq: max(snap.NextSeq, 1)}
	s.header.NextSeq = 0 // the session row holds it
	var stats store.Stats
	for r, err := range snap.Records {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		if err := h.put(&r); err != nil {
			return err
		}
		stats = stats.Add(r)
		s.nextSeq = max(s.nextSeq, r.Seq+1)
		if r.Entry != nil {
			s.newest = max(s.newest, r.Entry.Timestamp)
		}
	}
	if err := h.insertSession(s, stats); err != nil {
		return err
	}
	if err := h.run(sqlIndexes); err != nil {
		return err
	}
	return h.indexLeaves(ctx)
}

const (
	sqlInsertSession = `INSERT INTO session(created_at, parent_session_id, storage_version, metadata,
	message_count, usage_payload, next_seq, newest_timestamp)
	VALUES(?1, nullif(?2, ''), ?3, CAST(?4 AS TEXT), ?5, CAST(?6 AS TEXT), ?7, ?8)`
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
		metadata, stats.MessageCount, usage, s.nextSeq, s.newest); err != nil {
		return err
	}
	_, err = h.exec(sqlInsertLease)
	return err
}

const sqlLeaves = `SELECT e.id, e.seq FROM entries e
	WHERE NOT EXISTS (SELECT 1 FROM entries c WHERE c.parent_id = e.id) ORDER BY e.seq`

// indexLeaves gives every leaf its segment, and so covers every entry.
func (h *handle) indexLeaves(ctx context.Context) error {
	type leaf struct {
		id  string
		seq int64
	}
	var leaves []leaf
	err := h.each(ctx, sqlLeaves, nil, func(rows *sql.Rows) (bool, error) {
		var l leaf
		err := rows.Scan(&l.id, &l.seq)
		leaves = append(leaves, l)
		return true, err
	})
	if err != nil {
		return err
	}
	for _, l := range leaves {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := h.rebuild(l.id, l.seq); err != nil {
			return err
		}
	}
	return nil
}
