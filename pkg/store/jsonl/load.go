package jsonl

import (
	"errors"
	"io"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/memory"
	"github.com/drover-run/drover/pkg/v3import"
)

// loaded is a session file as one pass found it.
type loaded struct {
	state *memory.State
	// size is where the last complete line ends; what follows up to end is a
	// torn tail.
	size, end int64
	// next is the number of the line that follows the last complete one.
	next int64
	// bare: the last complete line has no newline yet.
	bare bool
	// tally is of the records up to size.
	tally tally
}

const (
	// lineBuffer fits the processor's cache.
	lineBuffer = 256 << 10
	// headerBuffer holds an ordinary header: a list of sessions reads many.
	headerBuffer = 4 << 10
	// maxHeader keeps a file that is no session from being read whole.
	maxHeader = 16 << 20
)

// load replays the first end bytes of the file at path (spec §1.7, D8, D15).
func load(f fsx.File, path string, end int64) (*loaded, error) {
	h, size, bare, err := readHeader(f, path, end)
	if err != nil {
		return nil, err
	}
	l := &loaded{state: memory.NewState(h, source{f}), size: size, bare: bare}
	d := newDecoder(l.state)
	r := newLineReader(f, size, end, lineBuffer)
	for n := int64(2); ; n++ {
		line, offset, whole, err := r.next()
		if errors.Is(err, io.EOF) || (err == nil && !whole && rawjson.Valid(line) != nil) {
			l.end, l.tally, l.next = r.end, d.tally, n
			return l, nil
		}
		if err != nil {
			return nil, err
		}
		if bad := d.line(line, offset); bad != nil {
			return nil, &store.Corrupt{Path: path, Line: n, Offset: offset + int64(bad.at), Msg: bad.msg}
		}
		l.size, l.bare = offset+int64(len(line)), !whole
		if whole {
			l.size++
		}
	}
}

// readHeader reads the first line, and where the second starts; bare tells that
// the first has no newline.
func readHeader(f fsx.File, path string, end int64) (h store.Header, size int64, bare bool, err error) {
	line, _, whole, err := newLineReader(f, 0, min(end, maxHeader), headerBuffer).next()
	if err != nil && !errors.Is(err, io.EOF) {
		return h, 0, false, err
	}
	if h, err = parseHeader(path, line); err != nil {
		return h, 0, false, err
	}
	if size = int64(len(line)); whole {
		size++
	}
	return h, size, !whole, nil
}

// parseHeader reads a file's first line, and tells what the file is when it is
// no session that this binary can read.
func parseHeader(path string, line []byte) (store.Header, error) {
	if v3import.IsLegacy(line) {
		return store.Header{}, &store.Legacy{Path: path}
	}
	h, err := store.ParseHeader(line)
	if err != nil {
		bad := &store.Corrupt{Path: path, Line: 1, Msg: err.Error()}
		var syntax *rawjson.SyntaxError
		if errors.As(err, &syntax) {
			bad.Offset = int64(syntax.Offset)
		}
		return store.Header{}, bad
	}
	if h.StorageVersion > store.StorageVersion {
		return store.Header{}, &store.NewerVersion{Path: path, Found: h.StorageVersion, Supported: store.StorageVersion}
	}
	return h, nil
}
