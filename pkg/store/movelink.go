package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drover-run/drover/internal/fsx"
)

// A session behind a symbolic link moves where its file lies, and the link goes on
// leading to it: under the name with the new ending, since the ending says what a
// session is encoded in.

// behind returns the session by the name of its file, and the link that has led to
// it; nil when there is none.
func behind(ref Ref) (file Ref, link *Ref, err error) {
	fi, err := os.Lstat(ref.Path)
	if err != nil || fi.Mode()&fs.ModeSymlink == 0 {
		return ref, nil, nil // opening it tells what is wrong
	}
	file = ref
	if file.Path, err = filepath.EvalSymlinks(ref.Path); err == nil {
		file.Path, err = filepath.Abs(file.Path)
	}
	return file, &ref, err
}

// linkTo is the name of the link once it leads to next. A name without an ending
// says nothing that would change unless the encoding does.
func (r *Repo) linkTo(link, next Ref) (string, error) {
	if link.Backend == next.Backend {
		return link.Path, nil
	}
	d, err := r.driver(next.Backend)
	if err != nil {
		return "", err
	}
	path := r.beside(link, d)
	if _, err := os.Lstat(path); err == nil && !leadsTo(path, next.Path) {
		return "", fmt.Errorf("%s: %w", path, ErrExists)
	}
	return path, nil
}

// relink has a link lead to the new file, which is the moment from which that
// counts, and only then takes away what leads to the old one.
func (r *Repo) relink(link *Ref, file, next Ref) error {
	if link == nil {
		return nil
	}
	path, err := r.linkTo(*link, next)
	if err == nil && !leadsTo(path, next.Path) {
		err = makeLink(link.Path, path, next.Path)
	}
	if err != nil {
		return err
	}
	names, olds := []string{link.Path}, []string{file.Path}
	for _, d := range r.o.Drivers {
		names, olds = append(names, r.beside(*link, d)), append(olds, r.beside(next, d))
	}
	for _, name := range names {
		for _, old := range olds {
			if name != path && old != next.Path && leadsTo(name, old) {
				err = errors.Join(err, os.Remove(name))
			}
		}
	}
	return errors.Join(err, fsx.OS{}.SyncDir(filepath.Dir(path)))
}

// makeLink makes a link to target at path, relative to its folder when the one at
// like is.
func makeLink(like, path, target string) error {
	text, err := os.Readlink(like)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(text) {
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err == nil {
			target, err = filepath.Rel(dir, target)
		}
		if err != nil {
			return err
		}
	}
	if err := os.Symlink(target, path); err != nil {
		return err
	}
	return fsx.OS{}.SyncDir(filepath.Dir(path))
}

// leadsTo reports a symbolic link to a file that is there and is no link itself.
func leadsTo(path, target string) bool {
	fi, err := os.Lstat(path)
	if err != nil || fi.Mode()&fs.ModeSymlink == 0 {
		return false
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(target))
	return err == nil && real == filepath.Join(dir, filepath.Base(target))
}
