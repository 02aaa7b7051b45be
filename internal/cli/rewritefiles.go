package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/drover-run/drover/internal/fsx"
)

// footprint are the files of one session, beside and around it.
type footprint struct {
	path    string   // the session itself, links followed
	sides   []string // what an encoding keeps beside it, there or not, and what interrupted work left
	backups []string
	links   uint64 // names that the file has
	size    int64  // of the session and its log
}

// footprintOf looks at the files of a session.
func footprintOf(path string) (footprint, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return footprint{}, err
	}
	f := footprint{path: real, links: 1}
	info, err := os.Stat(real)
	if err != nil {
		return f, err
	}
	f.size = info.Size()
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		f.links = uint64(sys.Nlink)
	}
	if log, err := os.Stat(real + "-wal"); err == nil {
		f.size += log.Size()
	}
	temps, err := fsx.Temps(real, "-wal", "-shm", "-journal")
	if err != nil {
		return f, err
	}
	f.sides = append(temps, sideNames(real)...)
	if f.backups, err = backupsOf(real); err != nil {
		return f, err
	}
	named, err := placeOf(path)
	if err == nil && named != real {
		var beside []string // of the time when it was no link yet
		beside, err = backupsOf(named)
		f.backups = slices.Compact(slices.Sorted(slices.Values(append(f.backups, beside...))))
	}
	return f, err
}

// sideNames are the paths that an encoding may use beside a session.
func sideNames(path string) []string {
	return []string{path + "-wal", path + "-shm", path + "-journal", path + ".lock"}
}

// backupsOf are the files that other commands kept of a session.
func backupsOf(path string) ([]string, error) {
	var found []string
	for _, backup := range backupNames(path) {
		_, err := os.Lstat(backup)
		if err == nil {
			found = append(found, backup)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return found, nil
}

// backupNames are the paths under which a session's backups lie: NAME.bak for every
// name that it may have had.
func backupNames(path string) []string {
	dir, base := filepath.Split(path)
	stem := strings.TrimSuffix(base, filepath.Ext(base))
	names := []string{base + ".bak", base + ".v3.bak", stem + ".bak", stem + ".db.bak", stem + ".jsonl.bak", stem + ".jsonl.v3.bak"}
	slices.Sort(names)
	names = slices.Compact(names)
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
	}
	return names
}

// all are the session's file and those beside it.
func (f footprint) all() []string { return append([]string{f.path}, f.sides...) }

// present counts those that are there.
func (f footprint) present() int {
	n := 0
	for _, path := range f.all() {
		if _, err := os.Stat(path); err == nil {
			n++
		}
	}
	return n
}

// check refuses a session of which a copy would stay.
func (f footprint) check(removeBackups bool) error {
	if f.links > 1 {
		e := &failure{code: exitRefused, tag: "hard_links", message: fmt.Sprintf("%s has %d names, and what is erased would stay under the others", escapeLine(f.path), f.links)}
		return e.withHint("remove the other names; `find -samefile` finds them")
	}
	if len(f.backups) > 0 && !removeBackups {
		e := &failure{code: exitRefused, tag: "backups", message: fmt.Sprintf("%s is a backup of the session, and would keep what is erased", escapeLine(f.backups[0]))}
		e.details = func(d *object) { d.strs("backups", f.backups) }
		return e.withHint("remove it, or give --remove-backups")
	}
	return nil
}

// checkTargets refuses files that cannot be made: after the swap it is too late.
func (o *rewriteOptions) checkTargets() error {
	for _, t := range []struct{ flag, path string }{{"--report", o.report}, {"--keep-original", o.keepOriginal}} {
		if t.path == "" {
			continue
		}
		if err := freeTarget(t.flag, t.path, o.dryRun); err != nil {
			return err
		}
	}
	if o.report != "" && filepath.Clean(o.report) == filepath.Clean(o.keepOriginal) {
		return usagef("--report and --keep-original name one file: %s", escapeLine(o.report))
	}
	switch filepath.Ext(o.keepOriginal) {
	case ".db", ".jsonl":
		folder, err := os.Stat(filepath.Dir(o.keepOriginal))
		if err != nil {
			return err
		}
		if repo, err := os.Stat(o.repo.Dir()); err == nil && os.SameFile(folder, repo) {
			return usagef("--keep-original %s would be a session of the repository: name a file elsewhere", escapeLine(o.keepOriginal))
		}
	}
	return nil
}

// checkKept refuses to keep the original as one of the session's own files: the
// rewrite removes its backups, and side files are the storage's.
func (o *rewriteOptions) checkKept(path string) error {
	if o.keepOriginal == "" {
		return nil
	}
	kept, err := placeOf(o.keepOriginal)
	if err != nil {
		return err
	}
	named, err := placeOf(path)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(named)
	if err != nil {
		return err
	}
	switch {
	case slices.Contains(append(backupNames(real), backupNames(named)...), kept):
		return usagef("--keep-original %s would count as a backup of the session, which would keep what is erased and is removed: choose another name", escapeLine(o.keepOriginal))
	case slices.Contains(sideNames(real), kept):
		return usagef("--keep-original %s is a side file of the session: choose another name", escapeLine(o.keepOriginal))
	}
	return nil
}

// placeOf is a path with the links to its folder followed.
func placeOf(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	return filepath.Join(folder, filepath.Base(path)), err
}

// freeTarget refuses a file that exists, and one in a folder that takes none.
func freeTarget(flag, path string, dryRun bool) error {
	_, err := os.Lstat(path)
	if err == nil {
		return &failure{code: exitRefused, tag: "file_exists", message: fmt.Sprintf("%s %s exists already", flag, escapeLine(path))}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	folder := filepath.Dir(path)
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return notFoundf("file_not_found", "%s: there is no folder %s", flag, escapeLine(folder))
	}
	if dryRun {
		return nil
	}
	probe, err := os.CreateTemp(folder, ".drover-*")
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// keepCopy copies a file to a new one, both durable before it returns.
func keepCopy(ctx context.Context, from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	err = fsx.Replace(fsx.OS{}, to, fsx.ReplaceOptions{}, func(w io.Writer) error {
		_, err := io.Copy(w, contextReader{ctx, src})
		return err
	})
	if err != nil {
		return fmt.Errorf("keep the original: %w", err)
	}
	return nil
}

// contextReader ends with its context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(b []byte) (int, error) {
	if err := context.Cause(c.ctx); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}
