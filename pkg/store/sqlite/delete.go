package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drover-run/drover/pkg/store"
)

// Claim takes the database's lease to remove it. A damaged one has no lease that
// could be trusted; whoever still has it open finds it deleted.
func (d Driver) Claim(ctx context.Context, path string, o store.OpenOptions) (store.Claim, error) {
	c, err := d.claim(ctx, path, o)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (d Driver) claim(ctx context.Context, path string, o store.OpenOptions) (*claimed, error) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return nil, err
	}
	c := &claimed{driver: d, name: path, path: real}
	c.owner, err = takeOver(ctx, path, o, func(*backend, context.Context, *handle) error { return nil })
	if _, damaged := errors.AsType[*store.Corrupt](err); damaged {
		if fi, statErr := os.Stat(real); statErr == nil && fi.Mode().IsRegular() {
			c.damage = err
			return c, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// claimed is a database that is to be removed.
type claimed struct {
	driver Driver
	name   string   // as it was given, perhaps a symbolic link
	path   string   // of the file itself
	owner  *backend // nil when the database is damaged
	damage error
}

// Remove removes the database, its side files and what interrupted replacements
// left. The database goes last: a contender that opened it before finds it
// deleted.
func (c *claimed) Remove(ctx context.Context) error {
	if c.owner == nil {
		return c.remove()
	}
	return c.owner.lookup(ctx, func(h *handle) error {
		if err := h.foldWAL(); err != nil {
			return err
		}
		return c.remove()
	})
}

func (c *claimed) remove() error {
	fsys := c.driver.fs()
	if err := c.driver.removeResidue(c.path); err != nil {
		return err
	}
	if err := remove(fsys, c.path); err != nil {
		return err
	}
	if c.name != c.path {
		if err := remove(fsys, c.name); err != nil {
			return err
		}
	}
	return fsys.SyncDir(filepath.Dir(c.path))
}

// Close gives the lease up.
func (c *claimed) Close() error {
	if c.owner == nil {
		return nil
	}
	return c.owner.Close()
}

// Delete removes the database and all that lies beside it as its owner. Unlike
// Claim it refuses a damaged one: nobody has asked for that file in particular.
func (d Driver) Delete(ctx context.Context, path string, o store.OpenOptions) error {
	c, err := d.claim(ctx, path, o)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, d.removeResidue(path))
	}
	if err == nil {
		err = c.damage
	}
	if err != nil {
		return err
	}
	return store.DeleteClaimed(ctx, c)
}

// removeResidue removes what lies beside a database.
func (d Driver) removeResidue(path string) error {
	if err := d.sweep(path); err != nil {
		return err
	}
	return errors.Join(removeSides(d.fs(), path), remove(d.fs(), path+"-journal"))
}
