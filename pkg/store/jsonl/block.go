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
	decoded  chan struct{}
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
	return newAssembly(r, workers).run(use)
}

// assembly is several workers who decode blocks, each the next one of the file.
type assembly struct {
	mu      sync.Mutex // of the reader, and of the order in which blocks are queued
	r       *blockReader
	closed  bool
	free    chan *block
	ordered chan *block
	workers int
}

func newAssembly(r *blockReader, workers int) *assembly {
	n := workers + 2
	a := &assembly{r: r, workers: workers, free: make(chan *block, n), ordered: make(chan *block, n)}
	for range n {
		a.free <- &block{decoder: newDecoder(r.judge), decoded: make(chan struct{}, 1)}
	}
	return a
}

func (a *assembly) run(use func(*block) error) (err error) {
	var working sync.WaitGroup
	for range a.workers {
		working.Go(a.work)
	}
	for b := range a.ordered {
		<-b.decoded
		if err == nil {
			if err = use(b); err != nil {
				a.stop()
			}
		}
		a.free <- b
	}
	working.Wait()
	return err
}

func (a *assembly) work() {
	for {
		b := <-a.free
		if !a.take(b) {
			a.free <- b
			return
		}
		b.decode()
		b.decoded <- struct{}{}
	}
}

// take reads the next block and queues it.
func (a *assembly) take(b *block) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || !a.r.next(b) {
		a.close()
		return false
	}
	a.ordered <- b
	return true
}

// stop makes the block that was queued last the last one.
func (a *assembly) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.close()
}

func (a *assembly) close() {
	if !a.closed {
		a.closed = true
		close(a.ordered)
	}
}
