package jsonl

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/store"
)

// Ext is the extension of session files.
const Ext = ".jsonl"

// Driver creates, opens and finds session files.
type Driver struct {
	// FS is the file system to write through; nil means the real one.
	FS fsx.FS
}

func (d Driver) fs() fsx.FS {
	if d.FS == nil {
		return fsx.OS{}
	}
	return d.FS
}

// Name returns "jsonl".
func (Driver) Name() string { return "jsonl" }

// Ext returns ".jsonl".
func (Driver) Ext() string { return Ext }

// resolve follows symbolic links, so that a session has one lock by whatever
// name it is opened, and refuses what is no regular file before anything could
// block on it.
func resolve(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return "", err
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", &store.Corrupt{Path: path, Offset: -1, Msg: "not a regular file"}
	}
	return real, nil
}

// Open takes ownership of the session file at path.
func (d Driver) Open(ctx context.Context, path string, o store.OpenOptions) (store.Backend, error) {
	// A file that is no session gets no lock file beside it.
	if _, err := d.Header(ctx, path); err != nil {
		return nil, err
	}
	real, err := resolve(path)
	if err != nil {
		return nil, err
	}
	lock, err := acquire(ctx, real, o.Wait)
	if err != nil {
		return nil, err
	}
	b, err := d.open(ctx, real, lock, o)
	if err != nil {
		release := lock.Unlock
		if errors.Is(err, fs.ErrNotExist) {
			release = lock.Remove // it was deleted while this waited for it
		}
		return nil, errors.Join(err, release())
	}
	return b, nil
}

// open loads the file whose lock is held.
func (d Driver) open(ctx context.Context, path string, lock *fsx.Lock, o store.OpenOptions) (*backend, error) {
	now := o.Now
	if now == nil {
		now = store.SystemNow
	}
	f, err := d.fs().OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	l, err := introduce(f, path, lock, owner{since: now()}, o)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	b := &backend{
		State: l.state, fs: d.fs(), path: path, file: f, lock: lock, now: now, powerSafe: o.PowerSafe,
		turn: make(chan struct{}, 1), size: l.size, end: l.end, bare: l.bare, torn: l.next, tally: l.tally,
	}
	if b.Header().StorageVersion == store.StorageVersion {
		b.tidy(ctx) // the file of another is written anew by its migration
	}
	b.leave()
	return b, nil
}

// introduce writes the new owner into the lock file, then loads the session.
func introduce(f fsx.File, path string, lock *fsx.Lock, o owner, options store.OpenOptions) (*loaded, error) {
	if err := announce(path, lock, o, options); err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return load(f, path, info.Size())
}

// announce writes the new owner into the lock file.
func announce(path string, lock *fsx.Lock, o owner, options store.OpenOptions) error {
	previous, err := lock.Info()
	if err != nil {
		return err
	}
	o.id = store.NewIDs(store.SystemNow, nil).NewID()
	o.fence = parseOwner(previous).fence + 1
	o.process, o.info = fsx.Self(), options.Describe(path, o.fence)
	return lock.SetInfo(o.appendJSON(nil))
}

// Header reads the first line of the file at path.
func (d Driver) Header(_ context.Context, path string) (store.Header, error) {
	real, err := resolve(path)
	if err != nil {
		return store.Header{}, err
	}
	f, err := d.fs().OpenFile(real, os.O_RDONLY, 0)
	if err != nil {
		return store.Header{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return store.Header{}, err
	}
	h, _, _, err := readHeader(f, path, info.Size())
	return h, err
}

// Lease tells who owns the session now.
func (d Driver) Lease(ctx context.Context, path string) (*store.Lease, error) {
	real, err := resolve(path)
	if err != nil {
		return nil, err
	}
	return probe(ctx, real)
}

// List returns the session files directly in dir. Links to regular files count;
// folders, pipes, backups and temporary files do not.
func (d Driver) List(_ context.Context, dir string) ([]string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	return d.Choose(dir, files), nil
}

// Choose returns which of dir's files List would return.
func (Driver) Choose(dir string, files []os.DirEntry) []string {
	var out []string
	for _, e := range files {
		if !strings.HasSuffix(e.Name(), Ext) || fsx.IsTemp(e.Name()) {
			continue
		}
		if path := filepath.Join(dir, e.Name()); fsx.LeadsToFile(path, e) {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}
