package fsx

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func renameNew(oldName, newName string) error {
	err := unix.Renameat2(unix.AT_FDCWD, oldName, unix.AT_FDCWD, newName, unix.RENAME_NOREPLACE)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, errors.ErrUnsupported):
		return linkNew(oldName, newName) // a file system without the flag
	}
	return &os.LinkError{Op: "rename", Old: oldName, New: newName, Err: err}
}
