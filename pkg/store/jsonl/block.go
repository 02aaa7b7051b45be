package jsonl

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"sync"

	"github.com/drover-run/drover/internal/rawjson"
)

// block is a run of whole lines of a file, and what they hold.
type block struct {
	buf      []byte
	base     int64 // offset of buf in the file
	decoder  *decoder
	starts   []int64 // the offset of each line that was looked at
	complete int64   // the end of the last of them
	bare     bool    // which has no newline
	bad      *fault  // in the last of them
	err      error   // of the reading; it ends the blocks
	ready    bool    // it is decoded
}

// decode looks at the lines of the block. A text after the last newline of the
// file is a line if it is complete, and otherwise torn.
func (b *block) decode() {
	b.decoder.items, b.starts, b.bad, b.bare = b.decoder.items[:0], b.starts[:0], nil, false
	for at := 0; at < len(b.buf) && b.bad == nil; {
		line, whole := b.buf[at:], false
		if n := bytes.IndexByte(line, '\n'); n >= 0 {
			line, whole = line[:n], true
		} else if b.err != nil || rawjson.Valid(line) != nil {
			return
		}
		offset := b.base + int64(at)
		b.starts = append(b.starts, offset)
		b.bad = b.decoder.line(line, offset, len(b.starts)-1)
		at += len(line)
		if b.bare = !whole; whole {
			at++
		}
		b.complete = b.base + int64(at)
	}
}

const (
	// blockSize fits the processor's cache.
	blockSize = 256 << 10
	// Fewer blocks are not worth the start of other goroutines.
	manyBlocks = 4
)

// blockReader cuts a range of a file into blocks.
type blockReader struct {
	src   io.ReaderAt
	read  int64 // offset of what comes next
	end   int64 // where to stop
	size  int   // of a block, unless a line is longer
	judge bool  // payloads are judged
	rest  []byte
	over  bool
}

// next fills b with the next lines, false after the last block.
func (r *blockReader) next(b *block) bool {
	if r.over {
		return false
	}
	b.base, b.err = r.read-int64(len(r.rest)), nil
	b.buf = append(b.buf[:0], r.rest...)
	for {
		more, err := r.fill(b)
		cut := bytes.LastIndexByte(b.buf, '\n') + 1
		if !more || err != nil {
			b.err, r.over = err, true
			return true
		}
		if cut > 0 {
			r.rest = append(r.rest[:0], b.buf[cut:]...)
			b.buf = b.buf[:cut]
			return true
		}
	}
}

// fill reads more of the file behind what b has; it makes b no larger than the
// file can fill.
func (r *blockReader) fill(b *block) (more bool, err error) {
	left := r.end - r.read
	if left <= 0 {
		return false, nil
	}
	old := len(b.buf)
	if old == cap(b.buf) {
		grown := make([]byte, old, old+int(min(left, int64(max(old, r.size)))))
		copy(grown, b.buf)
		b.buf = grown
	}
	b.buf = b.buf[:old+int(min(left, int64(cap(b.buf)-old)))]
	n, err := r.src.ReadAt(b.buf[old:], r.read)
	b.buf = b.buf[:old+n]
	r.read += int64(n)
	if errors.Is(err, io.EOF) {
		r.end, err = r.read, nil // the file is shorter than it was
	}
	return n > 0, err
}

// blocks decodes the lines that r reads, on every core when they are many, and
// hands the blocks to use in the order of the file. It returns the first error.
func blocks(r *blockReader, use func(*block) error) error {
	workers := runtime.GOMAXPROCS(0)
	if r.end-r.read < manyBlocks*int64(r.size) || workers == 1 {
		b := &block{decoder: newDecoder(r.judge)}
		for r.next(b) {
			b.decode()
			if err := use(b); err != nil {
				return err
			}
		}
		return nil
	}
	return newAssembly(r, workers).run(workers, use)
}

// assembly is several workers who decode blocks, each the next one of the file.
// One of them, whoever comes first, uses what is decoded: that wakes nobody, which
// would take longer than a block.
type assembly struct {
	reading sync.Mutex // of the reader, and of the order in which blocks are queued
	r       *blockReader

	mu     sync.Mutex // of what follows
	freed  sync.Cond  // a block has become free, or no more will be needed
	free   []*block
	queue  []*block // in the order of the file, the first the next to be used
	using  bool     // somebody uses blocks
	closed bool
	err    error
}

func newAssembly(r *blockReader, workers int) *assembly {
	a := &assembly{r: r}
	a.freed.L = &a.mu
	for range workers + 2 {
		a.free = append(a.free, &block{decoder: newDecoder(r.judge)})
	}
	return a
}

func (a *assembly) run(workers int, use func(*block) error) error {
	var working sync.WaitGroup
	for range workers - 1 {
		working.Go(func() { a.work(use) })
	}
	a.work(use)
	working.Wait()
	return a.err
}

func (a *assembly) work(use func(*block) error) {
	for b := a.take(); b != nil; b = a.take() {
		b.decode()
		a.decoded(b, use)
	}
}

// take reads and queues the next block, nil when there is no more to do.
func (a *assembly) take() *block {
	a.reading.Lock()
	defer a.reading.Unlock()
	b := a.spare()
	if b == nil {
		return nil
	}
	more := a.r.next(b)
	a.mu.Lock()
	defer a.mu.Unlock()
	if !more {
		a.close()
		return nil
	}
	b.ready = false
	a.queue = append(a.queue, b)
	return b
}

// spare waits for a free block, nil when none is needed.
func (a *assembly) spare() *block {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.free) == 0 && !a.closed {
		a.freed.Wait()
	}
	if a.closed {
		return nil
	}
	b := a.free[len(a.free)-1]
	a.free = a.free[:len(a.free)-1]
	return b
}

// decoded uses all blocks whose turn it is, unless somebody is about it, who will
// find this one.
func (a *assembly) decoded(b *block, use func(*block) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b.ready = true
	if a.using {
		return
	}
	a.using = true
	for len(a.queue) > 0 && a.queue[0].ready {
		first := a.queue[0]
		a.queue = a.queue[1:]
		if a.err == nil {
			a.mu.Unlock()
			err := use(first)
			a.mu.Lock()
			a.err = err
		}
		if a.err != nil {
			a.close()
		}
		a.free = append(a.free, first)
		a.freed.Signal()
	}
	a.using = false
}

// close makes the block that was queued last the last one.
func (a *assembly) close() {
	a.closed = true
	a.freed.Broadcast()
}
