package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	lib "modernc.org/sqlite/lib"

	"github.com/drover-run/drover/pkg/store"
)

// Scratch is memory in which small sessions are put together, each to be written in
// one piece. Declaring the tables and preparing the statements takes longer than
// filling a small database, and is done once here: every session is a transaction
// over the same empty tables that is copied out and then rolled back.
//
// The zero value is ready, for any number of builds at a time.
type Scratch struct {
	mu   sync.Mutex
	free []*handle
}

// scratchBytes is the size up to which a session is small: beyond it, indexes that
// are made when all rows are there are worth more than tables that are there.
const scratchBytes = 1 << 20

// suits reports whether a session shall be put together here.
func (s *Scratch) suits(snap *store.Snapshot) bool {
	return s != nil && 0 < snap.Size && snap.Size <= scratchBytes
}

// Close gives the memory back. No build may be running.
func (s *Scratch) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, h := range s.free {
		errs = append(errs, h.close())
	}
	s.free = nil
	return errors.Join(errs...)
}

// take lends the caller a database, in which errors name a path.
func (s *Scratch) take(path string) (*handle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.free) - 1; last >= 0 {
		h := s.free[last]
		s.free, h.path = s.free[:last], path
		return h, nil
	}
	return newScratch(path)
}

func (s *Scratch) give(h *handle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, h)
}

// newScratch makes an empty database in memory, with all tables and indexes.
func newScratch(path string) (*handle, error) {
	h, err := openHandle(path, dsnScratch)
	if err != nil {
		return nil, err
	}
	for _, script := range []string{sqlTables, sqlBranchTables, sqlIndexes, sqlBranchIndexes} {
		if err := h.run(script); err != nil {
			return nil, errors.Join(err, h.close())
		}
	}
	return h, nil
}

// compose fills an empty file like fill, through the scratch memory.
func (d Driver) compose(ctx context.Context, path string, snap *store.Snapshot) error {
	image, err := d.Scratch.image(ctx, path, snap)
	if err != nil {
		return err
	}
	f, err := d.fs().OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(image)
	return errors.Join(err, f.Close())
}

// image is the database that holds a snapshot, byte for byte.
func (s *Scratch) image(ctx context.Context, path string, snap *store.Snapshot) (image []byte, err error) {
	h, err := s.take(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		// What failed in any way is not used again.
		if err == nil {
			s.give(h)
		} else {
			image, err = nil, errors.Join(err, h.close())
		}
	}()
	if _, err := h.exec("BEGIN"); err != nil {
		return nil, err
	}
	tree, err := h.load(ctx, snap)
	if err != nil {
		return nil, err
	}
	if err := h.fillIndex(ctx, tree.newestFirst()); err != nil {
		return nil, err
	}
	if image, err = h.serialize(); err != nil {
		return nil, err
	}
	_, err = h.exec("ROLLBACK")
	return image, err
}

// serialize copies the database of a connection out of memory, as it is within the
// open transaction, and makes a file in WAL mode of it.
func (h *handle) serialize() (image []byte, err error) {
	err = h.conn.Raw(func(conn any) error {
		image, err = conn.(interface{ Serialize() ([]byte, error) }).Serialize()
		return err
	})
	if err != nil {
		return nil, classify(h.path, err)
	}
	if len(image) < headerBytes {
		return nil, fmt.Errorf("a database in memory has %d bytes", len(image))
	}
	asWAL(image)
	return image, nil
}

// headerBytes is how long the header of a database file is.
const headerBytes = 100

// asWAL completes the header that a database in memory has: the version of the format
// that has a WAL, for writing and reading, and who wrote it, as of its first change.
func asWAL(image []byte) {
	image[18], image[19] = 2, 2
	const first = 1
	binary.BigEndian.PutUint32(image[24:], first)
	binary.BigEndian.PutUint32(image[92:], first)
	binary.BigEndian.PutUint32(image[96:], lib.SQLITE_VERSION_NUMBER)
}
