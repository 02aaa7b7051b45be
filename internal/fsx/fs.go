package fsx

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// FS is the part of a file system that must be allowed to fail: what creates,
// changes, renames and removes files. Reading a folder or a file's attributes
// goes to package os directly.
type FS interface {
	// OpenFile is os.OpenFile.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// Rename replaces newName, if it exists, in one step.
	Rename(oldName, newName string) error
	// RenameNew renames in one step, and fails with an error that wraps
	// fs.ErrExist when newName exists.
	RenameNew(oldName, newName string) error
	// Link gives a file a second name, and fails with an error that wraps
	// fs.ErrExist when that is taken.
	Link(oldName, newName string) error
	// Remove removes a file.
	Remove(name string) error
	// SyncDir makes the names in a folder survive power loss.
	SyncDir(name string) error
}

// File is an open file; *os.File is one.
type File interface {
	io.ReaderAt
	io.Writer
	io.WriterAt
	io.Closer
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	Sync() error
	Chmod(mode fs.FileMode) error
	Chown(uid, gid int) error
}

// OS is the real file system.
type OS struct{}

// OpenFile opens with os.OpenFile.
func (OS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err // not a nil *os.File in a non-nil File
	}
	return f, nil
}

// Rename is os.Rename.
func (OS) Rename(oldName, newName string) error { return os.Rename(oldName, newName) }

// RenameNew renames without replacing.
func (OS) RenameNew(oldName, newName string) error { return renameNew(oldName, newName) }

// Link is os.Link.
func (OS) Link(oldName, newName string) error { return os.Link(oldName, newName) }

// Remove is os.Remove.
func (OS) Remove(name string) error { return os.Remove(name) }

// SyncDir fsyncs a folder. File systems that cannot do so are not blamed. For a
// folder that may be searched but not listed, which cannot be opened, everything
// is synced.
func (OS) SyncDir(name string) error {
	d, err := os.Open(name)
	if errors.Is(err, fs.ErrPermission) {
		syscall.Sync()
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// linkNew is renameNew where the system has no such call: the second name
// appears in one step, the first one goes after it.
func linkNew(oldName, newName string) error {
	if err := os.Link(oldName, newName); err != nil {
		return err
	}
	return os.Remove(oldName)
}
