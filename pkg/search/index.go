package search

import (
	"context"
	"crypto/sha256"
	_ "embed" // the schema
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/store"
)

//go:embed schema.sql
var schema string

// version is the user_version of the schema. A file of any other is made anew.
const version = 1

// Index is the open search index of one repository. Several processes may have it
// open; the methods of one Index are for one goroutine at a time.
//
// Any method may fail with *store.Corrupt, which is about the index and never about
// a session: Discard it then, and Sync a new one.
type Index struct {
	conn      *conn
	discarded error
}

// Path is where the index of the repository in repoDir lies within cacheDir: one
// file per repository, by whatever path it is reached (D57).
func Path(cacheDir, repoDir string) (string, error) {
	dir, err := filepath.Abs(repoDir)
	if err != nil {
		return "", fmt.Errorf("locate repository: %w", err)
	}
	switch real, err := filepath.EvalSymlinks(dir); {
	case err == nil:
		dir = real
	case !errors.Is(err, fs.ErrNotExist): // which has no sessions either
		return "", fmt.Errorf("locate repository: %w", err)
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(cacheDir, "search-"+hex.EncodeToString(sum[:16])+".db"), nil
}

// Open opens the index at path, and makes it, in a folder of mode 0700, when there
// is none. One that cannot be trusted, or that another version made, is discarded
// first; Discarded tells. Waiting for another process ends with ctx.
func Open(ctx context.Context, path string) (*Index, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make cache folder: %w", err)
	}
	if fi, err := os.Stat(dir); err == nil && fi.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return nil, fmt.Errorf("close cache folder to others: %w", err)
		}
	}
	return open(ctx, path)
}

// OpenExisting is Open for an index that is there; otherwise the error wraps
// fs.ErrNotExist.
func OpenExisting(ctx context.Context, path string) (*Index, error) {
	if _, err := os.Lstat(path); err != nil {
		return nil, fmt.Errorf("look for search index: %w", err)
	}
	return open(ctx, path)
}

func open(ctx context.Context, path string) (x *Index, err error) {
	err = exclusively(ctx, path, func() error {
		c, err := openOrMake(path)
		damage, bad := errors.AsType[*store.Corrupt](err)
		if bad {
			if err = remove(path); err == nil {
				c, err = openOrMake(path)
			}
		}
		x = &Index{conn: c}
		if bad {
			x.discarded = damage
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return x, nil
}

// openOrMake connects and reads once, which opens the log beside the file as well:
// from then on the connection has what it needs, whoever removes the names.
func openOrMake(path string) (*conn, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open search index: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("open search index: %w", err)
	}
	c, err := connect(path)
	if err != nil {
		return nil, err
	}
	if err := c.prepare(); err != nil {
		// Whether it closes adds nothing to why it was not opened.
		_ = c.close()
		return nil, err
	}
	return c, nil
}

// prepare checks the schema's version, and makes the schema of an empty file.
func (c *conn) prepare() error {
	var found, tables int64
	if _, err := c.row("PRAGMA user_version", nil, &found); err != nil {
		return err
	}
	if _, err := c.row("SELECT count(*) FROM sqlite_schema", nil, &tables); err != nil {
		return err
	}
	switch {
	case found == version:
		return nil
	case found != 0 || tables != 0:
		return corrupt(c.path, fmt.Errorf("it has version %d, not %d", found, version))
	}
	if err := c.script("PRAGMA page_size = 8192; PRAGMA journal_mode = WAL"); err != nil {
		return err
	}
	return c.write(context.Background(), func() error { return c.script(schema) })
}

// Discarded is why Open found no index that it could use, nil when it did or when
// there was none.
func (x *Index) Discarded() error { return x.discarded }

// Path returns the path of the index.
func (x *Index) Path() string { return x.conn.path }

// Close ends the use of the index. The last one to close it removes its log, by name:
// which must not be that of an index made anew in between.
func (x *Index) Close() error {
	closed := false
	err := exclusively(context.Background(), x.conn.path, func() error {
		closed = true
		return x.conn.close()
	})
	if !closed { // the folder is gone, and the index with it
		return x.conn.close()
	}
	return err
}

// Discard removes the index at path, whatever it is; an absent one is no error.
// Processes that have it open go on with what they have, and lose it.
func Discard(ctx context.Context, path string) error {
	return exclusively(ctx, path, func() error { return remove(path) })
}

// remove unlinks the index. Its log must not outlive it beside a new one.
func remove(path string) error {
	var errs []error
	for _, p := range files(path) {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// files are the index and what SQLite keeps beside it, itself last.
func files(path string) []string { return []string{path + "-wal", path + "-shm", path} }

// lockPause is how long to wait before a lock is tried again.
const lockPause = 2 * time.Millisecond

// exclusively runs f while no other process opens, makes or removes the index.
func exclusively(ctx context.Context, path string, f func() error) (err error) {
	for end := time.Now().Add(patience); ; {
		lock, err := fsx.TryLock(path + ".lock")
		if err != nil {
			return err
		}
		if lock != nil {
			return errors.Join(f(), lock.Unlock())
		}
		if time.Now().After(end) {
			return fmt.Errorf("search index %s: another process is making it: %w", path, syscall.EBUSY)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lockPause):
		}
	}
}
