package sqlite

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/drover-run/drover/pkg/store"
)

// IOError is a failure of the system below SQLite: a full disk, a read-only
// file, an I/O error, a database that stays locked. It unwraps to the system's
// error number, such as syscall.ENOSPC.
type IOError struct {
	Code int // SQLite's extended result code
	Path string
	Err  error // SQLite's own words
}

func (e *IOError) Error() string {
	switch e.Code & 0xff {
	case lib.SQLITE_CANTOPEN, lib.SQLITE_READONLY, lib.SQLITE_PERM, lib.SQLITE_AUTH, lib.SQLITE_FULL, lib.SQLITE_IOERR:
		return fmt.Sprintf("%s: %v", e.Path, errnoOf(e.Code, e.Path)) // the system says more than SQLite
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return e.Path + ": another process keeps the database locked"
	}
	return fmt.Sprintf("%s: %v", e.Path, e.Err)
}

// Unwrap returns the system's error number and SQLite's error.
func (e *IOError) Unwrap() []error { return []error{errnoOf(e.Code, e.Path), e.Err} }

// resultCode is SQLite's extended result code, 0 for an error of another kind.
func resultCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// classify gives an error of SQLite the type its reader needs: *store.Corrupt
// for a file that cannot be trusted, *IOError for a system that failed.
func classify(path string, err error) error {
	code := resultCode(err)
	switch code & 0xff {
	case lib.SQLITE_OK:
		return err
	case lib.SQLITE_ERROR, lib.SQLITE_SCHEMA, lib.SQLITE_CONSTRAINT, lib.SQLITE_MISMATCH,
		lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_FORMAT:
		// Our statements are fixed: one that the database refuses means that
		// it does not have our schema or does not keep its invariants.
		return corrupt(path, "%s", inWords(code, err))
	}
	if code == lib.SQLITE_IOERR_SHORT_READ {
		return corrupt(path, "file is shorter than its header says")
	}
	return &IOError{Code: code, Path: path, Err: err}
}

func corrupt(path, format string, args ...any) *store.Corrupt {
	return &store.Corrupt{Path: path, Offset: -1, Msg: fmt.Sprintf(format, args...)}
}

// errnoOf names the system's error behind a result code. SQLite keeps the
// number to itself; where it only says that a file cannot be used, the system
// is asked again.
func errnoOf(code int, path string) syscall.Errno {
	switch code & 0xff {
	case lib.SQLITE_FULL:
		return syscall.ENOSPC
	case lib.SQLITE_NOMEM:
		return syscall.ENOMEM
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_PROTOCOL:
		return syscall.EBUSY
	case lib.SQLITE_NOLFS, lib.SQLITE_TOOBIG:
		return syscall.EFBIG
	case lib.SQLITE_INTERRUPT:
		return syscall.EINTR
	case lib.SQLITE_READONLY:
		return accessErrno(path, unix.W_OK, syscall.EROFS)
	case lib.SQLITE_PERM, lib.SQLITE_AUTH:
		return accessErrno(path, unix.W_OK, syscall.EACCES)
	case lib.SQLITE_CANTOPEN:
		return accessErrno(path, unix.R_OK, syscall.EACCES)
	}
	if code == lib.SQLITE_IOERR_NOMEM {
		return syscall.ENOMEM
	}
	return syscall.EIO
}

func accessErrno(path string, mode uint32, otherwise syscall.Errno) syscall.Errno {
	var errno syscall.Errno
	if err := unix.Access(path, mode); errors.As(err, &errno) {
		return errno
	}
	return otherwise
}
