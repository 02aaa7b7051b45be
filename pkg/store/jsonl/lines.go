package jsonl

import (
	"bytes"
	"errors"
	"io"
)

// lineReader splits a range of a file into lines of any length, each valid until
// the next call. Its buffer grows with the longest line.
type lineReader struct {
	src    io.ReaderAt
	end    int64 // where to stop reading
	buf    []byte
	start  int   // of the unread part of buf
	filled int   // end of the read part
	read   int64 // offset in the file of what comes after buf[:filled]
}

// newLineReader reads the bytes from start up to end, with a buffer of the given
// size to begin with.
func newLineReader(src io.ReaderAt, start, end int64, size int) *lineReader {
	return &lineReader{src: src, read: start, end: end, buf: make([]byte, size)}
}

// next returns the next line without its newline and the offset of its first
// byte; whole is false for a last line without a newline. At the end it returns
// io.EOF.
func (r *lineReader) next() (line []byte, offset int64, whole bool, err error) {
	searched := r.start
	for {
		if n := bytes.IndexByte(r.buf[searched:r.filled], '\n'); n >= 0 {
			line, offset = r.buf[r.start:searched+n], r.offset()
			r.start = searched + n + 1
			return line, offset, true, nil
		}
		searched = r.filled - r.start
		more, err := r.fill()
		if err != nil {
			return nil, r.offset(), false, err
		}
		if !more {
			break
		}
		searched += r.start
	}
	if r.start == r.filled {
		return nil, r.offset(), false, io.EOF
	}
	line, offset = r.buf[r.start:r.filled], r.offset()
	r.start = r.filled
	return line, offset, false, nil
}

// offset is where in the file the unread part of the buffer starts.
func (r *lineReader) offset() int64 { return r.read - int64(r.filled-r.start) }

// fill reads more of the file behind the unread part, which it moves to the
// front; it grows the buffer no further than the file can fill.
func (r *lineReader) fill() (more bool, err error) {
	if r.read >= r.end {
		return false, nil
	}
	if r.start > 0 {
		r.filled = copy(r.buf, r.buf[r.start:r.filled])
		r.start = 0
	}
	if r.filled == len(r.buf) {
		size := min(int64(len(r.buf))*2, int64(r.filled)+r.end-r.read)
		grown := make([]byte, size)
		copy(grown, r.buf)
		r.buf = grown
	}
	room := min(int64(len(r.buf)-r.filled), r.end-r.read)
	n, err := r.src.ReadAt(r.buf[r.filled:r.filled+int(room)], r.read)
	r.filled += n
	r.read += int64(n)
	if errors.Is(err, io.EOF) {
		r.end = r.read // the file is shorter than it was
		err = nil
	}
	return n > 0, err
}
