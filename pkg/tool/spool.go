package tool

import (
	"cmp"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/drover-run/drover/internal/fsx"
)

// maxSpooled bounds the file that holds the full output of one command, in bytes, so
// that an endless one does not fill the disk.
const maxSpooled = 256 << 20

// spool is a file that takes the full output of a command. It gets its name with its
// end, where the system can do that: a kill leaves nothing behind that no result tells
// of.
type spool struct {
	prefix string // of its path
	file   *os.File
	path   string // "" while it has no name
	saved  int64  // bytes
}

// newSpool makes a file in dir, or in the system's folder, for the output of a tool.
func newSpool(dir, tool string) (*spool, error) {
	dir = cmp.Or(dir, os.TempDir())
	s := &spool{prefix: filepath.Join(dir, "drover-"+tool+"-")}
	var err error
	if s.file, err = fsx.CreateUnnamed(dir); err == nil {
		return s, nil
	}
	if s.file, err = os.CreateTemp(dir, filepath.Base(s.prefix)+"*.log"); err != nil {
		return nil, err
	}
	s.path = s.file.Name()
	return s, nil
}

// write appends as much as there is room for.
func (s *spool) write(p []byte) error {
	n, err := s.file.Write(p[:min(int64(len(p)), maxSpooled-s.saved)])
	s.saved += int64(n)
	if bad, ok := errors.AsType[*fs.PathError](err); ok {
		return bad.Err // which file is told anyway
	}
	return err
}

// finish ends the file. When it has no path then, it is lost.
func (s *spool) finish() error {
	var naming error
	for s.path == "" && naming == nil {
		path := s.prefix + strconv.FormatUint(rand.Uint64(), 36) + ".log"
		naming = fsx.NameUnnamed(s.file, path)
		switch {
		case naming == nil:
			s.path = path
		case errors.Is(naming, fs.ErrExist):
			naming = nil // another one
		}
	}
	return cmp.Or(naming, s.file.Close())
}
