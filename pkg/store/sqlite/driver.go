package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	lib "modernc.org/sqlite/lib"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/store"
)

// Driver keeps sessions as SQLite databases. The zero value is ready.
type Driver struct {
	// Scratch, if set, makes Build faster for many small sessions. Whoever sets it
	// closes it.
	Scratch *Scratch
	// system replaces the file system in tests that make it fail.
	system fsx.FS
}

func (d Driver) fs() fsx.FS {
	if d.system == nil {
		return fsx.OS{}
	}
	return d.system
}

// SQLiteVersion is that of the SQLite that is linked.
func SQLiteVersion() string { return lib.SQLITE_VERSION }

// Name is "sqlite".
func (Driver) Name() string { return "sqlite" }

// Ext is ".db".
func (Driver) Ext() string { return ".db" }

// Open takes ownership of the session at path (spec §1.7).
func (d Driver) Open(ctx context.Context, path string, o store.OpenOptions) (store.Backend, error) {
	b, err := openOwner(ctx, path, o)
	if err != nil {
		return nil, err
	}
	b.driver = d
	return b, nil
}

// View reads the session without owning or changing it; it sees the moment of
// its opening until it is closed (D9, D10).
func (Driver) View(_ context.Context, path string) (store.Reader, error) {
	r, err := openReader(path)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Header reads only the session row.
func (Driver) Header(_ context.Context, path string) (store.Header, error) {
	h, s, err := openView(path)
	if err != nil {
		return store.Header{}, err
	}
	return s.header, h.close()
}

// HeaderIsView is true: a header is a row of the database.
func (Driver) HeaderIsView() bool { return true }

// Lease reads the lease row; nil is a session that nobody has claimed. A claim
// whose owner ended without giving it up is there, but not live (D22, D23).
func (Driver) Lease(_ context.Context, path string) (*store.Lease, error) {
	h, _, err := openView(path)
	if err != nil {
		return nil, err
	}
	l, err := h.lease()
	if err := errors.Join(err, h.close()); err != nil {
		return nil, err
	}
	return l, nil
}

// foldWAL moves the WAL's content into the database. Readers may keep it from
// doing all of it.
func (h *handle) foldWAL() error {
	var busy, frames, moved int
	_, err := h.row("PRAGMA wal_checkpoint(TRUNCATE)", nil, &busy, &frames, &moved)
	return err
}

// List returns the files directly in dir that have the extension. Links to regular
// files count; folders and pipes do not.
func (d Driver) List(_ context.Context, dir string) ([]string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	return d.Choose(dir, files), nil
}

// Choose returns which of dir's files List would return.
func (d Driver) Choose(dir string, files []os.DirEntry) []string {
	var paths []string
	for _, f := range files {
		if filepath.Ext(f.Name()) != d.Ext() || f.Name() == d.Ext() {
			continue
		}
		if path := filepath.Join(dir, f.Name()); fsx.LeadsToFile(path, f) {
			paths = append(paths, path)
		}
	}
	return paths
}
