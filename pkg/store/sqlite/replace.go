package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	lib "modernc.org/sqlite/lib"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/store"
)

// A database is replaced by its owner only, and the lease goes on in the new
// file (D51):
//
//  1. The old WAL is folded into the old database and is empty from then on: the
//     write lock is held until the end. So the lease need not be renewed, however
//     long the next step takes; nobody can take it over.
//  2. The new database is filled beside the old one, gets the lease row, goes
//     into WAL mode and to disk.
//  3. The old side files are removed and the folder is synced: an old WAL beside
//     a new database would be replayed into it. The old session is complete
//     without them.
//  4. The new database takes the name, and the owner connects to it.
//
// A crash leaves the old session or the new one, perhaps with a temporary file.

// replace puts the database that fill writes to temp, an empty file beside, in
// the place of the session's. It returns the connection to go on with. The
// caller has the session alone. A failure before step 3 leaves the owner as it
// was, a later one ends its writing.
func (b *backend) replace(h *handle, temp string, fill func() error) (*handle, error) {
	if err := h.foldWAL(); err != nil {
		return h, err
	}
	begun, renamed := false, false
	err := b.owned(h, func() (err error) {
		if err := b.id.present(b.path); err != nil {
			return err
		}
		if err := noWAL(b.path); err != nil {
			return err
		}
		if err := fill(); err != nil {
			return err
		}
		if err := b.endow(temp); err != nil {
			return err
		}
		begun = true
		renamed, err = b.driver.exchange(temp, b.path)
		return err
	})
	if !begun {
		return h, err
	}
	if renamed {
		next, openErr := b.reconnect()
		if err = errors.Join(err, openErr); openErr == nil {
			err = errors.Join(err, h.close())
			h = next
		}
	}
	if err != nil {
		b.broken = err
	}
	b.renewed = time.Now()
	return h, err
}

// noWAL reports, as a busy database, a WAL that is not empty after a checkpoint.
func noWAL(path string) error {
	holds, err := walHolds(path)
	if err == nil && holds {
		err = &IOError{Code: lib.SQLITE_BUSY, Path: path, Err: errors.New("readers hold its WAL")}
	}
	return err
}

// endow gives a filled database what makes it the session's: the claim of its
// owner, WAL mode, the mode and the owner of the old file, a place on disk.
func (b *backend) endow(temp string) error {
	h, err := openHandle(temp, dsnBuild)
	if err != nil {
		return err
	}
	old, err := h.claim()
	if err == nil {
		next := b.claim
		next.expires = b.now() + next.ttl.Milliseconds()
		_, err = h.succeed(old, next)
	}
	if err := h.finish(err); err != nil {
		return err
	}
	like, err := os.Stat(b.path)
	if err != nil {
		return err
	}
	return b.driver.settle(temp, like)
}

// reconnect opens the file that has taken the session's name.
func (b *backend) reconnect() (*handle, error) {
	path, id, err := locate(b.path)
	if err != nil {
		return nil, err
	}
	h, err := connect(path, b.powerSafe)
	if err != nil {
		return nil, err
	}
	ok, err := h.owns(b.claim)
	if err == nil && !ok {
		err = &store.Lost{Path: path, Reason: "fenced"}
	}
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	b.id = id
	return h, nil
}

// exchange is steps 3 and 4; it tells whether the name was given away.
func (d Driver) exchange(temp, path string) (renamed bool, err error) {
	if err := removeSides(d.fs(), path); err != nil {
		return false, err
	}
	dir := filepath.Dir(path)
	if err := d.fs().SyncDir(dir); err != nil {
		return false, err
	}
	if err := d.fs().Rename(temp, path); err != nil {
		return false, err
	}
	return true, d.fs().SyncDir(dir)
}

// swap puts the database that fill writes in the place of one that nobody owns.
func (d Driver) swap(ctx context.Context, path string, fill func(temp string) error) error {
	b, err := openOwner(ctx, path, store.OpenOptions{Owner: store.OwnerInfo{Command: "replace"}})
	var damaged *store.Corrupt
	if errors.As(err, &damaged) {
		return d.swapDamaged(path, fill)
	}
	if err != nil {
		return err
	}
	b.driver = d
	err = b.alone(ctx, func(h *handle) (*handle, error) {
		if err := d.sweep(b.path); err != nil {
			return h, err
		}
		temp, err := d.createTemp(b.path)
		if err != nil {
			return h, err
		}
		h, err = b.replace(h, temp, func() error { return fill(temp) })
		return h, errors.Join(err, removeFiles(d.fs(), temp))
	})
	return errors.Join(err, b.Close())
}

// swapDamaged replaces a database that nobody can own, since it cannot be read.
func (d Driver) swapDamaged(path string, fill func(temp string) error) error {
	like, err := os.Stat(path)
	if err != nil {
		return err
	}
	temp, err := d.createTemp(path)
	if err != nil {
		return err
	}
	if err = fill(temp); err == nil {
		err = d.settle(temp, like)
	}
	if err == nil {
		_, err = d.exchange(temp, path)
	}
	return errors.Join(err, removeFiles(d.fs(), temp))
}

// createTemp makes an empty private file beside path; SQLite takes its mode
// over.
func (d Driver) createTemp(path string) (string, error) {
	f, temp, err := fsx.CreateTemp(d.fs(), path)
	if err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", errors.Join(err, remove(d.fs(), temp))
	}
	return temp, nil
}

// leftovers are the files that interrupted replacements of the session at path
// left beside it, and those of replacements that run now.
func leftovers(path string) ([]string, error) {
	return fsx.Temps(path, "-wal", "-shm", "-journal")
}

// sweep removes what is left over beside an owned session. Only its owner writes
// such files there.
func (d Driver) sweep(path string) error {
	names, err := leftovers(path)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, remove(d.fs(), name))
	}
	return errors.Join(errs...)
}

// finish puts a filled database into WAL mode and closes it, so that nothing is
// left beside it. The error is that of the filling.
func (h *handle) finish(err error) error {
	if err == nil {
		err = h.useWAL()
	}
	if err := errors.Join(err, h.close()); err != nil {
		return err
	}
	for _, side := range []string{walPath(h.path), shmPath(h.path)} {
		if _, err := os.Lstat(side); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(fmt.Errorf("%s is left", side), err)
		}
	}
	return nil
}

// settle makes the content of a closed database survive power loss, with the
// mode and owner of the file that it will replace, if it does.
func (d Driver) settle(path string, like fs.FileInfo) error {
	f, err := d.fs().OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = fsx.KeepAttributes(f, like)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// removeFiles removes a database and what lies beside it, a journal too that a full
// disk has left. The database goes last: until then its WAL belongs to it.
func removeFiles(fsys fsx.FS, path string) error {
	return errors.Join(removeSides(fsys, path), remove(fsys, path+"-journal"), remove(fsys, path))
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
