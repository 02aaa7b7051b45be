package fsx

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// LockFolder takes an OS lock on a folder itself, which needs no file for it: a shared
// one, which waits for an exclusive one to end, or an exclusive one, at once or not at
// all. The system drops it when the process dies. locked is false when it is not to be
// had, also where the file system knows no locks; release may be called all the same.
func LockFolder(dir string, exclusive bool) (locked bool, release func()) {
	f, err := os.Open(dir)
	if err != nil {
		return false, func() {}
	}
	how := unix.LOCK_SH
	if exclusive {
		how = unix.LOCK_EX | unix.LOCK_NB
	}
	for {
		if err = unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return err == nil, func() { _ = f.Close() } // which drops the lock
}
