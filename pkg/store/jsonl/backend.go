package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/memory"
)

const (
	// inlineValue is the size up to which a value that was set here stays in
	// memory.
	inlineValue = 4 << 10
	// keptBuffer is the size up to which the encoding buffer is kept.
	keptBuffer = 1 << 20
)

// backend is an owned, open session file.
type backend struct {
	*memory.State
	fs        fsx.FS
	path      string
	file      fsx.File
	lock      *fsx.Lock
	now       func() int64
	powerSafe bool

	// turn holds one token: whoever took it out may use what follows. Waiters
	// get it in the order they came.
	turn   chan struct{}
	closed bool
	err    error // of the close
	size   int64 // where the next line starts
	end    int64 // where the file ends, as this owner left it
	bare   bool  // the last line still needs its newline
	torn   int64 // the number of the line that lies between size and end, if any
	broken error // why nothing more is accepted
	// identity says which file this is, nil until somebody asks; its size is old.
	identity fs.FileInfo
	tally    tally
	idle     int64 // the size below which no compaction starts by itself
	buf      []byte
	places   []memory.Place
	sizes    []int64
	// scratch has the records of the transaction at hand; the State keeps no bytes
	// of those that it has a place for.
	scratch store.Scratch
}

// enter waits for the turn of its caller, who gives it back with leave.
func (b *backend) enter(ctx context.Context) error {
	select {
	case <-b.turn:
	default:
		select {
		case <-b.turn:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if b.closed {
		b.leave()
		return store.ErrClosed
	}
	return nil
}

func (b *backend) leave() { b.turn <- struct{}{} }

// Commit writes one transaction as one line with one write.
func (b *backend) Commit(ctx context.Context, tx store.Tx) (store.CommitResult, error) {
	if err := b.enter(ctx); err != nil {
		return store.CommitResult{}, err
	}
	defer b.leave()
	res, err := b.commit(tx)
	if err == nil && deletes(tx) {
		b.tidy(ctx)
	}
	return res, err
}

func (b *backend) commit(tx store.Tx) (store.CommitResult, error) {
	if b.broken != nil {
		return store.CommitResult{}, fmt.Errorf("refused after a failed commit: %w", b.broken)
	}
	base := b.Base(b.now())
	base.Scratch = &b.scratch
	records, res, err := store.Prepare(tx, base)
	if err != nil {
		return store.CommitResult{}, err
	}
	if len(records) > 0 {
		if err := b.append(records); err != nil {
			b.broken = err
			return store.CommitResult{}, err
		}
		for i := range records {
			b.tally.add(&records[i], b.sizes[i])
		}
	}
	res.Stats = b.Apply(records, b.places, res.Timestamp)
	return res, nil
}

// append makes the file hold the records, all or none, and sets b.places.
func (b *backend) append(records []store.Record) error {
	b.encode(records)
	if b.end > b.size {
		if err := b.file.Truncate(b.size); err != nil {
			return fmt.Errorf("cut torn tail: %w", err)
		}
		b.end = b.size
	}
	n, err := b.file.WriteAt(b.buf, b.size)
	b.end += int64(n)
	if cap(b.buf) > keptBuffer {
		b.buf = nil
	}
	if err == nil && b.powerSafe {
		err = b.file.Sync()
	}
	if err != nil {
		// Back to the last good commit. Should even that fail, a part of a line
		// is left, which the next owner cuts.
		if cutErr := b.file.Truncate(b.size); cutErr == nil {
			b.end = b.size
		}
		return fmt.Errorf("append to session: %w", err)
	}
	b.size, b.bare = b.end, false
	return nil
}

func (b *backend) encode(records []store.Record) {
	b.buf = b.buf[:0]
	if n := lineRoom(records); n > keptBuffer {
		b.buf = make([]byte, 0, n) // in one step: growing would copy a long answer again (D41)
	}
	if b.bare {
		b.buf = append(b.buf, '\n')
	}
	if cap(b.places) < len(records) {
		b.places = make([]memory.Place, len(records))
		b.sizes = make([]int64, len(records))
	}
	b.places, b.sizes = b.places[:len(records)], b.sizes[:len(records)]
	b.buf = appendLine(b.buf, records, b.places, b.sizes)
	for i, p := range b.places {
		if b.places[i] = held(&records[i], moved(p, b.size)); b.places[i] == (memory.Place{}) {
			records[i].Detach()
		}
	}
}

// Check reports a file that is not the one this owner left: deleted, replaced,
// or changed by another hand; or a lock that is not the only one any more.
func (b *backend) Check(ctx context.Context) error {
	if err := b.enter(ctx); err != nil {
		return err
	}
	defer b.leave()
	return b.check()
}

func (b *backend) check() error {
	if b.identity == nil {
		mine, err := b.file.Stat()
		if err != nil {
			return fmt.Errorf("check session: %w", err)
		}
		b.identity = mine
	}
	there, err := os.Stat(b.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &store.Lost{Path: b.path, Reason: "deleted"}
	case err != nil:
		return fmt.Errorf("check session: %w", err)
	case !os.SameFile(b.identity, there):
		return &store.Lost{Path: b.path, Reason: "replaced"}
	case there.Size() < b.end:
		return &store.Lost{Path: b.path, Reason: "truncated"}
	case there.Size() > b.end:
		return &store.Lost{Path: b.path, Reason: "appended to"}
	}
	named, err := b.lock.Named()
	if err == nil && !named {
		return &store.Lost{Path: b.path, Reason: "fenced"}
	}
	return err
}

// Close drains admitted commits, then closes the file and gives up the lock.
func (b *backend) Close() error {
	<-b.turn
	defer b.leave()
	if !b.closed {
		b.closed = true
		b.State.Close()
		b.err = errors.Join(b.file.Close(), b.lock.Unlock())
	}
	return b.err
}
