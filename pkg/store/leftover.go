package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/drover-run/drover/internal/fsx"
)

// abandoned is how long nobody may have touched a temporary file until its writer
// counts as dead. A writer that was only slow fails at its rename and harms
// nothing.
const abandoned = time.Hour

// Leftovers returns the paths of the temporary files of sessions that never came
// into being, in byte order: who made them died before the session had its name.
// The next creation removes them. What lies beside a session that exists is a
// finding of Verify instead, and its owner's to remove.
func (r *Repo) Leftovers(ctx context.Context) ([]string, error) {
	if r.o.Dir == "" {
		return nil, ctx.Err()
	}
	names, err := readNames(r.o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("list leftovers: %w", err)
	}
	var paths []string
	for _, name := range names {
		if path := filepath.Join(r.o.Dir, name); r.unclaimed(name) && r.stale(path) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths, ctx.Err()
}

// SweepDead removes what killed processes have left of sessions that they were making
// or replacing, however short a time ago: once it is certain that no living one is
// making a session here now, and, beside a session that exists, that nobody owns it.
// What it cannot be certain about stays, for the session's next owner.
func (r *Repo) SweepDead(ctx context.Context) error {
	names, err := readNames(r.o.Dir)
	if err != nil {
		return nil // there is no folder, or one that the next step will tell about
	}
	alone, release := fsx.LockFolder(r.o.Dir, true)
	defer release()
	if !alone {
		return ctx.Err()
	}
	beside := make(map[string][]string) // by the name of a session's file
	for _, name := range names {
		target, ok := fsx.TempTarget(name, logSuffix, "-shm", "-journal")
		switch path := filepath.Join(r.o.Dir, name); {
		case !ok:
		case r.unclaimed(name):
			_ = os.Remove(path)
		default:
			beside[target] = append(beside[target], path)
		}
	}
	for target, paths := range beside {
		r.sweepBeside(ctx, filepath.Join(r.o.Dir, target), paths)
	}
	return ctx.Err()
}

// sweepBeside removes temporary files of a session's, unless somebody owns it.
func (r *Repo) sweepBeside(ctx context.Context, session string, paths []string) {
	for _, d := range r.o.Drivers {
		if filepath.Ext(session) != d.Ext() {
			continue
		}
		c, err := d.Claim(ctx, session, r.o.Open)
		if err != nil {
			return
		}
		for _, path := range paths {
			_ = os.Remove(path)
		}
		_ = c.Close() // nothing was done with the session
	}
}

// making tells other processes, until done is called, that this one is writing
// temporary files of sessions that nobody owns yet.
func (r *Repo) making() (done func()) {
	_, done = fsx.LockFolder(r.o.Dir, false)
	return done
}

// readNames is quicker than a listing with types, and looks at no file.
func readNames(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// unclaimed reports the name of a temporary file of the catalog, or of a session
// that is not there and so has no owner who would sweep.
func (r *Repo) unclaimed(name string) bool {
	target, ok := fsx.TempTarget(name, logSuffix, "-shm", "-journal")
	if !ok || target == catalogName {
		return ok
	}
	if !slices.ContainsFunc(r.o.Drivers, func(d Driver) bool { return filepath.Ext(target) == d.Ext() }) {
		return false
	}
	_, err := os.Lstat(filepath.Join(r.o.Dir, target))
	return errors.Is(err, fs.ErrNotExist)
}

func (r *Repo) stale(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && fi.Mode().IsRegular() && r.o.Now()-fi.ModTime().UnixMilli() > abandoned.Milliseconds()
}

// sweep removes the leftovers, once for every Repo: a batch of imports does not
// list its folder for each. One that stays keeps no session from being made, and
// is told by Leftovers.
func (r *Repo) sweep(ctx context.Context) {
	r.swept.Do(func() {
		paths, _ := r.Leftovers(ctx)
		for _, path := range paths {
			_ = os.Remove(path)
		}
	})
}
