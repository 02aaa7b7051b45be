package jsonl

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/memory"
)

// reader is a view: the file as it was for a moment.
type reader struct {
	*memory.State
	path  string
	file  fsx.File
	size  int64 // how much of the file was read
	next  int64 // the number of the line that follows
	end   int64 // of the file, a torn tail included
	tally tally
	once  sync.Once
	err   error
}

var _ store.Textual = (*reader)(nil)

// Textual implements store.Textual: what a line says stands in it.
func (r *reader) Textual() {}

// Close releases the file.
func (r *reader) Close() error {
	r.once.Do(func() {
		r.State.Close()
		r.err = r.file.Close()
	})
	return r.err
}

// View reads the session as it is now, beside whoever owns it.
func (d Driver) View(ctx context.Context, path string) (store.Reader, error) {
	return d.view(ctx, path, loading{size: blockSize})
}

// ViewJudged is View with payloads judged in the pass that looks for them.
func (d Driver) ViewJudged(ctx context.Context, path string) (store.Reader, error) {
	return d.view(ctx, path, loading{size: blockSize, judge: true})
}

func (d Driver) view(ctx context.Context, path string, o loading) (store.Reader, error) {
	real, err := resolve(path)
	if err != nil {
		return nil, err
	}
	f, err := d.fs().OpenFile(real, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	l, err := o.settled(f, path)
	if err == nil {
		return &reader{State: l.state, path: real, file: f, size: l.size, next: l.next, end: l.end, tally: l.tally}, nil
	}
	err = errors.Join(err, f.Close())
	var legacy *store.Legacy
	if errors.As(err, &legacy) {
		return legacyView(ctx, path)
	}
	return nil, err
}

func (o loading) settled(f fsx.File, path string) (*loaded, error) {
	end, size, err := settledEnd(f)
	if err != nil {
		return nil, err
	}
	l, err := o.load(f, path, end)
	if err == nil {
		l.end = size
	}
	return l, err
}

// settledEnd finds how much of the file no owner will ever change: everything
// up to its last newline, and a complete last line without one. What follows, to
// the size that the file has, may be cut, and something else written in its
// place, while it is being read; the two together can even look like a line.
func settledEnd(f fsx.File) (end, size int64, err error) {
	for tries := 0; ; tries++ {
		before, err := f.Stat()
		if err != nil {
			return 0, 0, err
		}
		size := before.Size()
		end, err := afterLastNewline(f, size)
		if err != nil || end == size {
			return end, size, err
		}
		if end == 0 {
			return size, size, nil // a header, which nobody cuts
		}
		tail := make([]byte, size-end)
		if _, err := f.ReadAt(tail, end); err != nil && !errors.Is(err, io.EOF) {
			return 0, 0, err
		}
		after, err := f.Stat()
		if err != nil {
			return 0, 0, err
		}
		unchanged := after.Size() == size && after.ModTime().Equal(before.ModTime())
		switch {
		case unchanged && rawjson.Valid(tail) == nil:
			return size, size, nil
		case unchanged || tries == 3:
			return end, size, nil
		}
	}
}

// afterLastNewline returns the offset after the last newline of the first size
// bytes, 0 when there is none.
func afterLastNewline(f io.ReaderAt, size int64) (int64, error) {
	for end, step := size, int64(4<<10); end > 0; step = min(2*step, 1<<20) {
		start := max(0, end-step)
		buf := make([]byte, end-start)
		if _, err := f.ReadAt(buf, start); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf, '\n'); i >= 0 {
			return start + int64(i) + 1, nil
		}
		end = start
	}
	return 0, nil
}
