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
