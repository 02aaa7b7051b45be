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

// loading is how a file is loaded.
type loading struct {
	size  int  // of a block
	judge bool // payloads are judged while they are read
}

const (
	// headerBuffer holds an ordinary header: a list of sessions reads many.
	headerBuffer = 4 << 10
	// maxHeader keeps a file that is no session from being read whole.
	maxHeader = 16 << 20
)

// load replays the first end bytes of the file at path (spec §1.7, D8, D15).
func load(f fsx.File, path string, end int64) (*loaded, error) {
	return loading{size: blockSize}.load(f, path, end)
}

func (o loading) load(f fsx.File, path string, end int64) (*loaded, error) {
	h, begin, bare, err := readHeader(f, path, end)
	if err != nil {
		return nil, err
	}
	p := newReplay(memory.NewState(h, source{f}), path)
	p.size, p.bare = begin, bare
	if o.judge {
		p.verdicts = new(memory.Verdicts)
		p.state.Judged(p.verdicts)
	}
	r := &blockReader{src: f, read: begin, end: end, size: o.size, judge: o.judge}
	begun := false
	err = blocks(r, func(b *block) error {
		if !begun {
			begun = true
			p.reserve(b, end-begin)
		}
		return p.block(b)
	})
	if err != nil {
		return nil, err
	}
	return &loaded{state: p.state, size: p.size, end: r.end, bare: p.bare, tally: p.tally, next: p.lines + 1}, nil
}

// replay puts decoded records together, in the order of the file.
type replay struct {
	state *memory.State
	tally tally
	path  string
	lines int64 // whole ones, the header's too
	size  int64 // where the last complete line ends
	bare  bool  // the last complete line has no newline yet

	verdicts *memory.Verdicts // nil: payloads are not judged
}

func newReplay(s *memory.State, path string) *replay {
	return &replay{state: s, tally: newTally(), path: path, lines: 1}
}

// fewestBytes of a record is what reserve counts on at least: short records at the
// start of a file may be followed by long ones.
const fewestBytes = 256

// reserve makes room for the ids of size bytes that begin as b does.
func (p *replay) reserve(b *block, size int64) {
	ids := 0
	for i := range b.decoder.items {
		if k := b.decoder.items[i].record.Kind; k == store.KindEntry || k == store.KindUsage {
			ids++
		}
	}
	if read := int64(max(len(b.buf), 1)); size > read {
		p.state.Reserve(int(min(size/fewestBytes, size/read*int64(ids))))
	}
}

// block replays a block. The error of its reading counts after what was read.
func (p *replay) block(b *block) error {
	for i := range b.decoder.items {
		it := &b.decoder.items[i]
		if err := p.item(it); err != nil {
			return p.corrupt(it.line, b.starts[it.line]+int64(it.at), err.Error())
		}
	}
	if b.bad != nil {
		n := len(b.starts) - 1
		return p.corrupt(n, b.starts[n]+int64(b.bad.at), b.bad.msg)
	}
	p.lines += int64(len(b.starts))
	if len(b.starts) > 0 {
		p.size, p.bare = b.complete, b.bare
	}
	return b.err
}

func (p *replay) corrupt(line int, offset int64, msg string) error {
	return &store.Corrupt{Path: p.path, Line: p.lines + int64(line) + 1, Offset: offset, Msg: msg}
}

func (p *replay) item(it *item) error {
	r := &it.record
	switch r.Kind {
	case store.KindEntry:
		r.Entry = &it.entry
		if len(it.ref) > 0 {
			r.Entry.ParentID = p.known(it.ref)
		}
	case store.KindUsage:
		r.Usage = &it.usage
		if len(it.ref) > 0 {
			r.Usage.EntryID = p.known(it.ref)
		}
	}
	var err error
	if it.summed {
		err = p.state.ReplayUsage(r, it.place, it.sum)
	} else {
		err = p.state.Replay(r, it.place)
	}
	if err != nil {
		return err
	}
	p.tally.add(r, it.size)
	if p.verdicts != nil {
		p.judged(r.Kind, it.verdict)
	}
	return nil
}

func (p *replay) judged(k store.WriteKind, v store.Verdict) {
	switch k {
	case store.KindEntry:
		p.verdicts.Entry(v)
	case store.KindUsage:
		p.verdicts.Usage(v)
	}
}

// known returns an id that the state probably holds already.
func (p *replay) known(id []byte) string {
	if s, ok := p.state.Intern(id); ok {
		return s
	}
	return string(id)
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
