package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/memory"
)

const (
	// inlineValue is the size up to which a value that was set here stays in
	// memory; the engine reads small ones again and again.
	inlineValue = 4 << 10
	// keptBuffer is the size up to which the encoding buffer is kept.
	keptBuffer = 1 << 20
)

// backend is an owned, open session file.
type backend struct {
	*memory.State
	path      string
	file      fsx.File
	lock      *fsx.Lock
	now       func() int64
	powerSafe bool

	commits  store.Line
	closing  sync.Once
	closeErr error

	// The rest belongs to the job that holds the commit line.
	size   int64 // where the next line starts
	end    int64 // where the file ends, as this owner left it
	bare   bool  // the last line still needs its newline
	broken error // why nothing more is accepted
	buf    []byte
	places []memory.Place
}

// Commit writes one transaction as one line with one write.
func (b *backend) Commit(ctx context.Context, tx store.Tx) (res store.CommitResult, err error) {
	err = b.commits.Do(ctx, func() (err error) {
		res, err = b.commit(tx)
		return err
	})
	return res, err
}

func (b *backend) commit(tx store.Tx) (store.CommitResult, error) {
	if b.broken != nil {
		return store.CommitResult{}, fmt.Errorf("refused after a failed commit: %w", b.broken)
	}
	records, res, err := store.Prepare(tx, b.Base(b.now()))
	if err != nil {
		return store.CommitResult{}, err
	}
	if len(records) > 0 {
		if err := b.append(records); err != nil {
			b.broken = err
			return store.CommitResult{}, err
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
	if cap(b.buf) > keptBuffer {
		b.buf = nil
	}
	b.buf = b.buf[:0]
	if b.bare {
		b.buf = append(b.buf, '\n')
	}
	if cap(b.places) < len(records) {
		b.places = make([]memory.Place, len(records))
	}
	b.places = b.places[:len(records)]
	b.buf = appendLine(b.buf, records, b.places)
	for i := range b.places {
		p := &b.places[i]
		if records[i].Kind == store.KindValue && p.Payload.Len <= inlineValue {
			*p = memory.Place{}
			continue
		}
		p.Payload.Off += b.size
		p.Details.Off += b.size
	}
}

// Check reports a file that is not the one this owner left: deleted, replaced,
// or changed by another hand; or a lock that is not the only one any more.
func (b *backend) Check(ctx context.Context) error {
	return b.commits.Do(ctx, b.check)
}

func (b *backend) check() error {
	mine, err := b.file.Stat()
	if err != nil {
		return fmt.Errorf("check session: %w", err)
	}
	there, err := os.Stat(b.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &store.Lost{Path: b.path, Reason: "deleted"}
	case err != nil:
		return fmt.Errorf("check session: %w", err)
	case !os.SameFile(mine, there):
		return &store.Lost{Path: b.path, Reason: "replaced"}
	case mine.Size() < b.end:
		return &store.Lost{Path: b.path, Reason: "truncated"}
	case mine.Size() > b.end:
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
	<-b.commits.Seal(store.ErrClosed)
	b.closing.Do(func() {
		b.State.Close()
		b.closeErr = errors.Join(b.file.Close(), b.lock.Unlock())
	})
	return b.closeErr
}

// reader is a view: the file as it was for a moment.
type reader struct {
	*memory.State
	file fsx.File
	once sync.Once
	err  error
}

// Close releases the file.
func (r *reader) Close() error {
	r.once.Do(func() {
		r.State.Close()
		r.err = r.file.Close()
	})
	return r.err
}
