package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/store"
)

// Claim takes the lock of the session file at path to remove it. What the file
// holds does not matter.
func (d Driver) Claim(ctx context.Context, path string, o store.OpenOptions) (store.Claim, error) {
	real, err := resolve(path)
	if err != nil {
		return nil, err
	}
	lock, err := acquire(ctx, real, o.Wait)
	if err != nil {
		return nil, err
	}
	c := &claimed{fs: d.fs(), name: path, path: real, lock: lock}
	if err := c.introduce(o); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// claimed is a session file that is to be removed, with its lock.
type claimed struct {
	fs   fsx.FS
	name string // as it was given, perhaps a symbolic link
	path string // of the file itself
	lock *fsx.Lock
	gone bool // the session file
}

// introduce writes the owner into the lock file, once the path still names a
// file: it may have been deleted while this waited for it.
func (c *claimed) introduce(o store.OpenOptions) error {
	if _, err := os.Stat(c.path); err != nil {
		c.gone = errors.Is(err, fs.ErrNotExist)
		return err
	}
	now := o.Now
	if now == nil {
		now = store.SystemNow
	}
	return announce(c.path, c.lock, owner{since: now()}, o)
}

// Remove removes what interrupted replacements left beside the session, its file,
// and a symbolic link that named it. What fails in between leaves a session that
// can be deleted again.
func (c *claimed) Remove(context.Context) error {
	err := sweep(c.fs, c.path)
	if err == nil {
		err = c.fs.Remove(c.path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete session: %w", err)
	}
	c.gone = true
	if c.name != c.path {
		if err := c.fs.Remove(c.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("delete session: %w", err)
		}
	}
	return c.fs.SyncDir(filepath.Dir(c.path))
}

// Close lets the lock go. The lock file of a session that is gone is removed
// while it is still held (D16).
func (c *claimed) Close() error {
	if !c.gone {
		return c.lock.Unlock()
	}
	return c.lock.Remove()
}

// Delete removes the session file and, last, its lock file.
func (d Driver) Delete(ctx context.Context, path string, o store.OpenOptions) error {
	c, err := d.Claim(ctx, path, o)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, d.removeResidue(path))
	}
	if err != nil {
		return err
	}
	return store.DeleteClaimed(ctx, c)
}

// removeResidue removes what lies beside a session file that is not there, unless
// somebody holds its lock.
func (d Driver) removeResidue(path string) error {
	if _, err := os.Lstat(lockPath(path)); err == nil {
		lock, err := fsx.TryLock(lockPath(path))
		if err != nil || lock == nil {
			return err
		}
		if _, err := os.Lstat(path); err == nil {
			return lock.Unlock() // it has come into being again
		}
		return errors.Join(sweep(d.fs(), path), lock.Remove())
	}
	return nil
}
