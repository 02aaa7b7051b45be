package fsx

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/gofrs/flock"
)

// maxLockInfo bounds how much of a lock file is ever read.
const maxLockInfo = 64 << 10

// Lock is an exclusive OS lock on a file that exists for nothing else. The
// system drops it when the process dies, whatever the file says; its content is
// only information about the holder (D16).
type Lock struct {
	path string
	f    *flock.Flock
	file fs.FileInfo // of the locked file, which it stays as long as it is open
}

// TryLock takes the lock at path at once, creating its file when needed. It
// returns nil and no error while another descriptor, of this process or any
// other, holds the lock.
//
// A symbolic link to nothing is refused: the lock would come into being wherever
// the link points, out of sight of whoever removes the session.
func TryLock(path string) (*Lock, error) {
	for {
		if DanglingLink(path) {
			return nil, &fs.PathError{Op: "lock", Path: path, Err: errDangling}
		}
		f := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(FileMode))
		ok, err := f.TryLock()
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !ok {
			return nil, nil
		}
		l := &Lock{path: path, f: f}
		if l.file, err = f.Stat(); err != nil {
			return nil, errors.Join(fmt.Errorf("stat lock: %w", err), l.Unlock())
		}
		// The file may have been unlinked between open and lock: then the lock
		// protects nothing, and the next one is on the file that is there now.
		named, err := l.Named()
		if named {
			return l, nil
		}
		if err = errors.Join(err, l.Unlock()); err != nil {
			return nil, err
		}
	}
}

var errDangling = errors.New("the lock file is a symbolic link to nothing")

// DanglingLink reports a symbolic link whose target does not exist.
func DanglingLink(path string) bool {
	link, err := os.Lstat(path)
	if err != nil || link.Mode()&fs.ModeSymlink == 0 {
		return false
	}
	_, err = os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// Named reports whether the lock's path still names the locked file. Once it
// does not, another process may hold a lock of its own.
func (l *Lock) Named() (bool, error) {
	there, err := os.Stat(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("stat lock: %w", err)
	}
	return os.SameFile(l.file, there), nil
}

// Info returns what the lock file says; nothing about it is to be trusted.
func (l *Lock) Info() ([]byte, error) { return readInfo(l.path) }

// SetInfo replaces the content of the lock file. The new content is in place
// before the old rest is cut, so that a reader finds it whole, perhaps with a
// tail to ignore.
func (l *Lock) SetInfo(info []byte) error {
	f, err := os.OpenFile(l.path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("write lock: %w", err)
	}
	_, err = f.WriteAt(info, 0)
	if err == nil {
		err = f.Truncate(int64(len(info)))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write lock: %w", err)
	}
	return nil
}

// Unlock gives the lock up and leaves its file.
func (l *Lock) Unlock() error {
	if err := l.f.Unlock(); err != nil {
		return fmt.Errorf("unlock %s: %w", l.path, err)
	}
	return nil
}

// Remove unlinks the lock file while it is still held, then gives it up.
func (l *Lock) Remove() error {
	err := os.Remove(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.Unlock())
}

// Probe reports whether somebody holds the lock at path, and what its file
// says. It creates nothing. It takes a shared lock for an instant, so a
// contender must not believe one single refusal.
func Probe(path string) (held bool, info []byte, err error) {
	f := flock.New(path, flock.SetFlag(os.O_RDONLY))
	free, err := f.TryRLock()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil, nil
	}
	if err != nil {
		return false, nil, fmt.Errorf("probe lock %s: %w", path, err)
	}
	if free {
		return false, nil, f.Unlock()
	}
	info, err = readInfo(path)
	return true, info, err
}

func readInfo(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read lock: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxLockInfo))
	if err != nil {
		return nil, fmt.Errorf("read lock: %w", err)
	}
	return b, nil
}
