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
	if err := syscall.Access(dir, writeAndEnter); err != nil {
		return &fs.PathError{Op: "write to", Path: dir, Err: err}
	}
	return nil
}
