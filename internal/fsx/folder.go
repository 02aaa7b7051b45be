package fsx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Folder is an open folder, for somebody who looks at many of its files: by their
// names alone, which spares a walk along the path for each. It is safe for
// concurrent use.
type Folder struct {
	f  *os.File
	fd int
}

// FileStat is what Folder tells of a file.
type FileStat struct {
	Inode   uint64
	Size    int64 // bytes
	ModTime int64 // ns since 1970
	Regular bool
}

// OpenFolder opens a folder. The caller closes it.
func OpenFolder(dir string) (*Folder, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return &Folder{f: f, fd: int(f.Fd())}, nil
}

// ReadDir returns the folder's files in the order of their names, once.
func (d *Folder) ReadDir() ([]os.DirEntry, error) {
	entries, err := d.f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// Lstat looks at a file, and does not follow it when it is a link. The error wraps
// that of the system.
func (d *Folder) Lstat(name string) (FileStat, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		switch {
		case err == nil:
			return FileStat{
				Inode: st.Ino, Size: st.Size, ModTime: st.Mtim.Nano(),
				Regular: st.Mode&unix.S_IFMT == unix.S_IFREG,
			}, nil
		case !errors.Is(err, unix.EINTR):
			return FileStat{}, fmt.Errorf("look at %s: %w", name, err)
		}
	}
}

// Close closes the folder.
func (d *Folder) Close() error { return d.f.Close() }

// LeadsToFile reports that what a folder has at path is a regular file, or a link to
// one. A link that cannot be followed for another reason than a missing target
// counts, so that opening it tells why.
func LeadsToFile(path string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.Type().IsRegular()
	}
	info, err := os.Stat(path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return info.Mode().IsRegular()
}
