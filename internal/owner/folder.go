package owner

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// maxSocketPath is the longest path that every system accepts for a socket, in
// bytes.
const maxSocketPath = 107

// FolderError is a socket folder that cannot be trusted or used. It wraps
// fs.ErrPermission or what the system said, so it is an I/O failure.
type FolderError struct {
	Path   string
	Reason string
	Err    error
}

func (e *FolderError) Error() string { return fmt.Sprintf("socket folder %s %s", e.Path, e.Reason) }

// Unwrap returns the cause.
func (e *FolderError) Unwrap() error { return e.Err }

// Folder returns the folder of this user's owner sockets and makes it when it is
// missing: drover in $XDG_RUNTIME_DIR, or drover-UID in the folder for temporary
// files when there is no such directory. A folder that is a link, another
// user's, or open to others is a *FolderError (D24).
func Folder(env func(string) string) (string, error) {
	path := ""
	if base := env("XDG_RUNTIME_DIR"); filepath.IsAbs(base) && isDir(base) {
		path = filepath.Join(base, "drover")
	} else {
		temp := env("TMPDIR")
		if !filepath.IsAbs(temp) {
			temp = "/tmp"
		}
		path = filepath.Join(temp, "drover-"+strconv.Itoa(os.Getuid()))
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", &FolderError{Path: path, Reason: "cannot be made: " + err.Error(), Err: err}
	}
	return path, checkFolder(path)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// checkFolder looks at the folder itself, not at what a link points to.
func checkFolder(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return &FolderError{Path: path, Reason: "cannot be read: " + err.Error(), Err: err}
	}
	refuse := func(reason string) error { return &FolderError{Path: path, Reason: reason, Err: fs.ErrPermission} }
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return refuse("is a link")
	case !info.IsDir():
		return refuse("is no folder")
	case !ok || int(st.Uid) != os.Getuid():
		return refuse("belongs to another user")
	case info.Mode().Perm() != 0o700:
		return refuse(fmt.Sprintf("has mode %04o instead of 0700", info.Mode().Perm()))
	}
	return nil
}

// SocketPath names the socket of the owner that holds a session file under a
// fence: 16 hexadecimal digits that no other owner of any session has (D24).
func SocketPath(folder, sessionFile string, fence int64) (string, error) {
	info, err := os.Stat(sessionFile)
	if err != nil {
		return "", fmt.Errorf("name the owner socket: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", fmt.Errorf("name the owner socket: %s has no inode", sessionFile)
	}
	var key [24]byte
	binary.BigEndian.PutUint64(key[:8], uint64(st.Dev))
	binary.BigEndian.PutUint64(key[8:16], st.Ino)
	binary.BigEndian.PutUint64(key[16:], uint64(fence))
	sum := sha256.Sum256(key[:])
	path := filepath.Join(folder, hex.EncodeToString(sum[:8]))
	if len(path) > maxSocketPath {
		return "", &FolderError{Path: folder, Reason: "has a name too long for a socket", Err: syscall.ENAMETOOLONG}
	}
	return path, nil
}

// listen binds the socket. What lies at its path and nobody serves is the rest
// of an owner that was killed.
func listen(path string) (*net.UnixListener, error) {
	addr := &net.UnixAddr{Name: path, Net: "unix"}
	l, err := net.ListenUnix("unix", addr)
	if errors.Is(err, syscall.EADDRINUSE) && abandoned(path) {
		if err = os.Remove(path); err == nil {
			l, err = net.ListenUnix("unix", addr)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("listen on the owner socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("protect the owner socket: %w", err), l.Close())
	}
	return l, nil
}

// abandoned reports whether path is a socket that nobody listens on.
func abandoned(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return false
	}
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err == nil {
		_ = c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// settlingTime is how old a socket must be before it is judged by whether
// somebody listens: a new one is bound a moment before it listens.
const settlingTime = time.Minute

// sweep removes the sockets that killed owners left in the folder. It is
// housekeeping: what cannot be removed stays.
func sweep(folder string, now time.Time) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, e := range entries {
		if raw, err := hex.DecodeString(e.Name()); err != nil || len(raw) != 8 || e.Type() != fs.ModeSocket {
			continue
		}
		info, err := e.Info()
		if err != nil || now.Sub(info.ModTime()) < settlingTime {
			continue
		}
		if path := filepath.Join(folder, e.Name()); abandoned(path) {
			_ = os.Remove(path)
		}
	}
}
