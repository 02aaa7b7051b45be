package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-run/drover/internal/fsx"
)

// folder is what a repository's folder held at one moment, and a way to look at it
// again.
type folder struct {
	dir   string
	open  *fsx.Folder // nil when it is not there, and so empty
	files []os.DirEntry
	logs  map[string]bool // the names among them that are logs
}

// folder reads the repository's folder; one that is not there is empty. The caller
// closes it.
func (r *Repo) folder() (*folder, error) {
	f := &folder{dir: r.o.Dir, logs: make(map[string]bool)}
	if r.o.Dir == "" {
		return f, nil
	}
	open, err := fsx.OpenFolder(r.o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		f.open = open
		f.files, err = open.ReadDir()
	}
	if err != nil {
		f.close()
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	for _, file := range f.files {
		if strings.HasSuffix(file.Name(), logSuffix) {
			f.logs[file.Name()] = true
		}
	}
	return f, nil
}

func (f *folder) close() {
	if f.open != nil {
		_ = f.open.Close() // it was only read
	}
}

func (f *folder) storesOf(ctx context.Context, d Driver) ([]string, error) {
	if c, ok := d.(Chooser); ok {
		return c.Choose(f.dir, f.files), nil
	}
	return d.List(ctx, f.dir)
}

// eachOnce leaves out links to what is among the stores already: they are second
// names of a session, no second sessions. Only links cost a look.
func (f *folder) eachOnce(stores []Ref) []Ref {
	links := make(map[string]string) // where they lead, by path
	for _, file := range f.files {
		if file.Type()&fs.ModeSymlink == 0 {
			continue
		}
		path := filepath.Join(f.dir, file.Name())
		if real, err := filepath.EvalSymlinks(path); err == nil {
			links[path] = real
		}
	}
	if len(links) == 0 {
		return stores
	}
	dir, err := filepath.EvalSymlinks(f.dir)
	if err != nil {
		return stores
	}
	seen := make(map[string]bool)
	for _, s := range stores {
		if _, linked := links[s.Path]; !linked {
			seen[filepath.Join(dir, filepath.Base(s.Path))] = true
		}
	}
	return slices.DeleteFunc(stores, func(s Ref) bool {
		real, linked := links[s.Path]
		second := linked && seen[real]
		seen[real] = true
		return second
	})
}

// stamp is stampOf for one of the files. It looks for a log only where there was
// one: to look for each that is not there would cost a list as much as the sessions
// themselves.
func (f *folder) stamp(name string) (stamp, bool) {
	if f.open == nil {
		return stamp{}, false
	}
	fi, err := f.open.Lstat(name)
	if err != nil || !fi.Regular {
		return stamp{}, false
	}
	s := stamp{main: fileStamp{fi.Inode, fi.Size, fi.ModTime}}
	if len(f.logs) > 0 && f.logs[name+logSuffix] {
		if fi, err := f.open.Lstat(name + logSuffix); err == nil && fi.Size > 0 {
			s.log = fileStamp{fi.Inode, fi.Size, fi.ModTime}
		}
	}
	return s, true
}

func (f *folder) backups() []string {
	var paths []string
	for _, file := range f.files {
		if strings.HasSuffix(file.Name(), ".bak") && file.Type().IsRegular() {
			paths = append(paths, filepath.Join(f.dir, file.Name()))
		}
	}
	return paths
}
