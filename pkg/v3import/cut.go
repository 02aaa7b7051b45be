package v3import

import (
	"bytes"
	"fmt"
	"io"

	"github.com/drover-run/drover/pkg/store"
)

// maxLine is the length above which a line is refused: no payload may be larger
// than store.MaxPayload, and the rest of a record is small.
const maxLine = store.MaxPayload + 1<<20

const (
	// firstChunk is the buffer's size until a longer line asks for more.
	firstChunk = 256 << 10
	// headChunk is enough for the headers of most files.
	headChunk = 16 << 10
)

// lines cuts the first size bytes of a file at its newlines, without a limit
// that a legal line could meet (B04). The line returned by next is valid until
// the next call.
type lines struct {
	src   io.ReaderAt
	size  int64
	chunk int // the first buffer's size

	buf    []byte
	lo, hi int   // the unread part of buf
	at     int64 // file offset of buf[lo]

	off   int64 // of the line returned last
	num   int64 // its number, from 1
	ended bool  // whether it ended in a newline
}

// next returns the next line without its newline, false after the last one.
func (l *lines) next() (line []byte, ok bool, err error) {
	seen := 0
	for {
		if i := bytes.IndexByte(l.buf[l.lo+seen:l.hi], '\n'); i >= 0 {
			return l.take(seen+i, true), true, nil
		}
		seen = l.hi - l.lo
		if l.at+int64(seen) >= l.size {
			if seen == 0 {
				return nil, false, nil
			}
			return l.take(seen, false), true, nil
		}
		if seen > maxLine {
			l.off, l.num = l.at, l.num+1
			return nil, false, errLineTooLong
		}
		if err := l.fill(); err != nil {
			return nil, false, err
		}
	}
}

var errLineTooLong = fmt.Errorf("line is longer than %d bytes", int64(maxLine))

// take hands out the first n unread bytes as a line.
func (l *lines) take(n int, ended bool) []byte {
	line := l.buf[l.lo : l.lo+n]
	l.off, l.ended = l.at, ended
	l.num++
	if ended {
		n++
	}
	l.lo += n
	l.at += int64(n)
	return line
}

// fill reads more behind the unread part, which it first moves to the front.
func (l *lines) fill() error {
	if l.lo > 0 {
		l.hi = copy(l.buf, l.buf[l.lo:l.hi])
		l.lo = 0
	}
	if l.hi == len(l.buf) {
		grown := make([]byte, max(int(min(int64(l.chunk), l.size)), 2*len(l.buf)))
		copy(grown, l.buf[:l.hi])
		l.buf = grown
	}
	at := l.at + int64(l.hi)
	room := l.buf[l.hi:min(int64(len(l.buf)), int64(l.hi)+l.size-at)]
	n, err := l.src.ReadAt(room, at)
	l.hi += n
	if n > 0 {
		return nil
	}
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// window reads pieces of a file that mostly follow each other, in either
// direction; a piece from elsewhere is read alone.
type window struct {
	src  io.ReaderAt
	size int64
	buf  []byte
	at   int64 // file offset of buf[0]
}

// bytes returns n bytes from off, valid until the next call.
func (w *window) bytes(off, n int64) ([]byte, error) {
	if off+n > w.size {
		return nil, io.ErrUnexpectedEOF
	}
	if end := w.at + int64(len(w.buf)); off < w.at || off+n > end {
		start, want := off, n
		switch {
		case off >= w.at && off < end+firstChunk: // onwards
			want = min(max(n, firstChunk), w.size-off)
		case off < w.at && off+n > w.at-firstChunk: // backwards
			start = max(0, min(off, off+n-firstChunk))
			want = off + n - start
		}
		if err := w.load(start, want); err != nil {
			return nil, err
		}
	}
	return w.buf[off-w.at : off-w.at+n], nil
}

func (w *window) load(off, n int64) error {
	if int64(cap(w.buf)) < n {
		w.buf = make([]byte, n)
	}
	w.at, w.buf = off, w.buf[:n]
	if got, err := w.src.ReadAt(w.buf, off); int64(got) < n {
		w.buf = w.buf[:0]
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	return nil
}
