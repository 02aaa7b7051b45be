package fsx

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// CreateUnnamed makes a file in a folder for writing, mode 0600, that is gone with the
// process unless NameUnnamed gives it a name. Not every file system can.
func CreateUnnamed(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_WRONLY|unix.O_TMPFILE, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(fdPath(f)); err != nil {
		_ = f.Close() // it could not be named
		return nil, err
	}
	return f, nil
}

// NameUnnamed gives a file of CreateUnnamed a name in the same file system. One that is
// taken is fs.ErrExist.
func NameUnnamed(f *os.File, path string) error {
	if err := unix.Linkat(unix.AT_FDCWD, fdPath(f), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW); err != nil {
		return &os.LinkError{Op: "link", Old: f.Name(), New: path, Err: err}
	}
	return nil
}

func fdPath(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }
