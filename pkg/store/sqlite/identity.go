package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drover-run/drover/pkg/store"
)

// identity is the file that a connection works on, whatever its path names
// later.
type identity struct{ info fs.FileInfo }

// locate resolves a path as SQLite does, so that side files are found beside
// the real file, and identifies what it names. It never opens the file.
func locate(path string) (string, identity, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", identity{}, err
	}
	if real, err = filepath.Abs(real); err != nil {
		return "", identity{}, err
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", identity{}, err
	}
	switch {
	case !info.Mode().IsRegular():
		return "", identity{}, corrupt(path, "not a regular file")
	case info.Size() == 0:
		// To SQLite it would be a new database.
		return "", identity{}, corrupt(path, "file is empty")
	}
	return real, identity{info}, nil
}

// present reports, as *store.Lost, a path that no longer names the file.
func (id identity) present(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &store.Lost{Path: path, Reason: "deleted"}
	case err != nil:
		return err
	case !os.SameFile(info, id.info):
		return &store.Lost{Path: path, Reason: "replaced"}
	}
	return nil
}

// The side files that SQLite keeps beside a database.
func walPath(path string) string { return path + "-wal" }
func shmPath(path string) string { return path + "-shm" }

// walHolds reports whether the WAL beside a database may hold commits.
func walHolds(path string) (bool, error) {
	size, err := walSize(path)
	return size > 0, err
}

// walSize is the length of the WAL beside a database, 0 when there is none.
func walSize(path string) (int64, error) {
	info, err := os.Stat(walPath(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, err
	}
	return info.Size(), nil
}
