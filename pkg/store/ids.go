package store

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"
)

// IDSource mints the ids of a session (spec §1.2, D4).
type IDSource interface {
	// NewID mints a UUIDv7 with the current time.
	NewID() string
	// At mints a UUIDv7 with the given time, Unix ms, and a fresh random tail.
	At(ms int64) string
}

// SystemNow is the system's clock in Unix ms.
func SystemNow() int64 { return time.Now().UnixMilli() }

// IDs mints UUIDv7s that rise within one process. The zero value is not usable.
type IDs struct {
	now func() int64

	mu      sync.Mutex
	random  io.Reader
	last    int64
	counter uint16
}

// NewIDs returns a source over the given clock, Unix ms, and randomness; nil
// randomness means the system's.
func NewIDs(now func() int64, random io.Reader) *IDs {
	if random == nil {
		random = bufio.NewReaderSize(rand.Reader, 1024)
	}
	return &IDs{now: now, random: random}
}

// NewID mints an id that sorts after every id NewID minted before it.
func (s *IDs) NewID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms := s.now()
	tail := s.tail()
	if ms > s.last {
		s.last, s.counter = ms, binary.BigEndian.Uint16(tail[:2])&0x7ff
	} else if s.counter++; s.counter > 0xfff {
		s.last, s.counter = s.last+1, 0
	}
	binary.BigEndian.PutUint16(tail[:2], s.counter)
	return format(s.last, tail)
}

// At mints a follower id: the given time, a fresh random tail (spec §1.2).
func (s *IDs) At(ms int64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return format(ms, s.tail())
}

func (s *IDs) tail() (t [10]byte) {
	// crypto/rand never fails on the systems Go supports.
	_, _ = io.ReadFull(s.random, t[:])
	return t
}

func format(ms int64, tail [10]byte) string {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], uint64(max(ms, 0))<<16)
	copy(id[6:], tail[:])
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}

// IDTime returns the mint time of a UUIDv7, Unix ms. Other spellings of a UUID
// than the canonical one are refused: they would be other ids.
func IDTime(id string) (int64, error) {
	u, err := uuid.Parse(id)
	if err != nil || u.String() != id {
		return 0, fmt.Errorf("id %q is no UUID", id)
	}
	if u.Version() != 7 {
		return 0, fmt.Errorf("id %s is a UUID of version %d, not 7", id, u.Version())
	}
	return int64(binary.BigEndian.Uint64(u[:8]) >> 16), nil
}
