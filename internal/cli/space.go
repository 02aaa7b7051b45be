package cli

import (
	"io/fs"
	"syscall"
)

// freeSpace is how many bytes a user may still write to the disk of a folder.
func freeSpace(dir string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}

// tryToWrite asks whether files can be made in a folder, and makes none.
func tryToWrite(dir string) error {
	const writeAndEnter = 2 | 1
	return tryAccess(dir, writeAndEnter)
}

// tryToAppend reports why a file cannot be written to, without opening it.
func tryToAppend(path string) error {
	const write = 2
	return tryAccess(path, write)
}

func tryAccess(path string, mode uint32) error {
	if err := syscall.Access(path, mode); err != nil {
		return &fs.PathError{Op: "write to", Path: path, Err: err}
	}
	return nil
}
