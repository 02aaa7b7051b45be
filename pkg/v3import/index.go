package v3import

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"unicode/utf8"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
)

// index is the first pass over a file: what it holds and where.
type index struct {
	file *os.File
	size int64
	o    Options
	// headOnly ends the scan behind the header.
	headOnly bool

	head    header
	version int64 // as the header states it: 1, 2 or 3
	stated  bool  // whether it states one at all
	records []record
	links   []links
	byID    map[string]int32
	twins   map[string][]int32 // further records of an id, of another content
	slots   int32
	labels  []label
	title   string // the session's name
	kinds   []KindCount
	kindAt  map[string]int
	unknown map[string]*tally // unknown types
	usage   message.Usage
	odd     int64 // records without an id
	// lostLines are the records of unreadable lines, in rising order.
	lostLines []int32
	lastTS    int64 // of the newest record so far, noTime when none had one

	obj   *object
	spare *object // of a text that had to be mended
	back  window  // for looking at earlier records again
	notes notes
}

// label is one label or name record.
type label struct {
	at    int32 // its record
	text  string
	clear bool
}

func newIndex(f *os.File, size int64, o Options) *index {
	return &index{
		file: f, size: size, o: o, lastTS: noTime,
		byID: make(map[string]int32), kindAt: make(map[string]int), unknown: make(map[string]*tally),
		obj: newObject(), spare: newObject(), back: window{src: f, size: size},
	}
}

func (x *index) fail(line, offset int64, format string, args ...any) *Failure {
	return &Failure{Path: x.o.Path, Code: CodeCorrupt, Message: fmt.Sprintf(format, args...), Line: line, Offset: offset}
}

func (x *index) warn(line, offset int64, code, format string, args ...any) {
	x.notes.add(line, offset, code, format, args...)
}

// warnAt warns about a record.
func (x *index) warnAt(i int32, code, format string, args ...any) {
	r := &x.records[i]
	x.notes.add(r.line, r.off, code, format, args...)
}

// scan reads the whole file.
func (x *index) scan(ctx context.Context) error {
	l := &lines{src: x.file, size: x.size, chunk: firstChunk}
	if x.headOnly {
		l.chunk = headChunk
	}
	for {
		line, ok, err := l.next()
		switch {
		case errors.Is(err, errLineTooLong):
			return x.fail(l.num, l.off, "%v", err)
		case err != nil:
			return fmt.Errorf("read %s: %w", x.o.Path, err)
		case !ok:
			return x.end(l)
		}
		if x.o.tick != nil {
			x.o.tick(int64(len(line)) + 1)
		}
		if l.num%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := x.line(line, l); err != nil || x.headOnly && x.head.found {
			return err
		}
	}
}

// end refuses a file in which no header was found.
func (x *index) end(l *lines) error {
	switch {
	case x.head.found:
		return nil
	case x.size == 0:
		return x.fail(1, 0, "file is empty")
	case x.head.garbage > 0:
		return x.fail(x.head.firstLine, x.head.firstOff, "no session header: nothing in the file is a JSON object")
	}
	return x.fail(1, 0, "no session header: the file holds only blank lines")
}

// line reads the records of one line: one as a rule, more when lines were glued
// together.
func (x *index) line(line []byte, l *lines) error {
	i := 0
	if l.num == 1 {
		if enc := foreignEncoding(line); enc != "" {
			return x.fail(1, 0, "no session header: the file is encoded as %s", enc)
		}
		if bytes.HasPrefix(line, []byte("\xef\xbb\xbf")) {
			i = 3
			x.warn(1, 0, "byte_order_mark", "byte order mark skipped")
		}
	}
	bad := !utf8.Valid(line)
	for first := true; ; first = false {
		start := i
		var nuls int
		if i, nuls = skipBlank(line, i); nuls > 0 {
			x.warn(l.num, l.off+int64(start), "nul_bytes", "%d NUL bytes skipped", nuls)
		}
		if i == len(line) {
			return nil
		}
		if !first && x.slots == 1 && !l.ended && l.num == 1 && bytes.IndexByte(line[start:i], '\r') >= 0 {
			return x.fail(1, 0, "no session header: the lines end in carriage returns")
		}
		end, err := x.value(line, i, l, first, bad)
		if err != nil || end < 0 {
			return err
		}
		i = end
	}
}

// value reads one value of a line and returns the place after it, -1 when the
// rest of the line is of no use.
func (x *index) value(line []byte, i int, l *lines, first, bad bool) (int, error) {
	off := l.off + int64(i)
	if line[i] != '{' {
		return x.noObject(line, i, l)
	}
	end, syntax := x.obj.parse(line, i)
	if syntax != nil {
		return -1, x.malformed(line, i, l, syntax)
	}
	if !first {
		x.warn(l.num, off, "glued_line", "a further record on the same line")
	}
	o := x.obj
	if bad && !utf8.Valid(line[i:end]) {
		x.warn(l.num, off+int64(rawjson.ValidUTF8(line[i:end])), "invalid_utf8", "bytes that are not UTF-8 replaced by U+FFFD")
		mended := mendUTF8(line[i:end])
		if _, syntax := x.spare.parse(mended, 0); syntax != nil {
			return -1, x.malformed(line, i, l, syntax)
		}
		o = x.spare
	}
	return end, x.object(o, place{off: off, line: l.num, size: end - i, mended: o == x.spare})
}

// place is where a record stands in the file.
type place struct {
	off, line int64
	size      int
	mended    bool
}

// noObject handles a value that is no object: null is skipped, the rest is as
// good as malformed.
func (x *index) noObject(line []byte, i int, l *lines) (int, error) {
	off := l.off + int64(i)
	end, syntax := rawjson.Skip(line, i)
	if syntax != nil {
		return -1, x.malformed(line, i, l, syntax)
	}
	switch {
	case line[i] == 'n' && x.head.found:
		x.slots++
		x.warn(l.num, off, "null_line", "null skipped")
		return end, nil
	case line[i] == 'n':
		x.head.skip(l.num, off)
		return end, nil
	case !x.head.found:
		return -1, x.fail(l.num, off, "no session header: the first value is no object")
	}
	return -1, x.malformed(line, i, l, &rawjson.SyntaxError{Offset: i, Msg: "expected an object"})
}

// malformed handles the unreadable rest of a line. In front of the header it is
// skipped; at the end of the file, without a newline, it is a torn write; else
// it is damage.
func (x *index) malformed(line []byte, i int, l *lines, cause *rawjson.SyntaxError) error {
	off, rest := l.off+int64(i), line[i:]
	if !x.head.found {
		x.head.skip(l.num, off)
		return nil
	}
	if !l.ended {
		x.warn(l.num, off, "torn_line", "last line incomplete, %d bytes not imported", len(rest))
		return nil
	}
	nul := bytes.IndexByte(rest, 0) >= 0
	if !x.o.Salvage {
		detail := cause.Msg
		if cause.Offset < len(line) && line[cause.Offset] == 0 {
			detail = "NUL byte inside the record"
		}
		f := x.fail(l.num, off, "malformed line: %s at byte %d", detail, l.off+int64(cause.Offset))
		f.Salvageable = true
		return f
	}
	k := kindLost
	if nul {
		k = kindRaw
	}
	x.lost(rest, off, l.num, k)
	return nil
}

// lost keeps the place of an unreadable line, so that its children find the
// record in front of it.
func (x *index) lost(rest []byte, off, line int64, k kind) {
	what := fmt.Sprintf("malformed line of %d bytes left out", len(rest))
	if k == kindRaw {
		what = fmt.Sprintf("malformed line of %d bytes kept as a custom entry", len(rest))
	}
	x.warn(line, off, "malformed_line", "%s", what)
	ln := links{id: scavengeID(rest)}
	if _, taken := x.byID[ln.id]; taken {
		ln.id = ""
	}
	r := record{off: off, line: line, size: int32(len(rest)), kind: k, ref: none, ts: x.lastTS}
	if r.ts == noTime {
		r.flags |= flagNoTime
	}
	x.lostLines = append(x.lostLines, x.push(r, ln))
}

// push appends a record and gives it its slot.
func (x *index) push(r record, ln links) int32 {
	i := int32(len(x.records))
	r.slot = x.slots
	x.slots++
	x.records = append(x.records, r)
	x.links = append(x.links, ln)
	if ln.id != "" {
		if _, taken := x.byID[ln.id]; !taken {
			x.byID[ln.id] = i
		}
	}
	return i
}

// skipBlank skips white space and NUL bytes and counts the latter.
func skipBlank(b []byte, i int) (end, nuls int) {
	for ; i < len(b); i++ {
		switch b[i] {
		case ' ', '\t', '\r', '\n':
		case 0:
			nuls++
		default:
			return i, nuls
		}
	}
	return i, nuls
}

// foreignEncoding names the encoding of a first line that is not UTF-8.
func foreignEncoding(line []byte) string {
	switch {
	case bytes.HasPrefix(line, []byte{0xff, 0xfe}), bytes.HasPrefix(line, []byte{'{', 0, '"', 0}):
		return "UTF-16, little endian"
	case bytes.HasPrefix(line, []byte{0xfe, 0xff}), bytes.HasPrefix(line, []byte{0, '{', 0, '"'}):
		return "UTF-16, big endian"
	}
	return ""
}

// mendUTF8 replaces every byte that is no part of valid UTF-8, as the agent's
// own reader does.
func mendUTF8(b []byte) []byte {
	out := make([]byte, 0, len(b)+16)
	for len(b) > 0 {
		n := rawjson.ValidUTF8(b)
		if n < 0 {
			return append(out, b...)
		}
		out = append(append(out, b[:n]...), "\uFFFD"...)
		b = b[n+1:]
	}
	return out
}

// scavengeID finds what looks like the id of a record in an unreadable line.
func scavengeID(b []byte) string {
	_, after, ok := bytes.Cut(b, []byte(`"id":"`))
	if !ok {
		return ""
	}
	id, _, ok := bytes.Cut(after, []byte(`"`))
	if !ok || len(id) > 128 || bytes.IndexByte(id, '\\') >= 0 {
		return ""
	}
	return string(id)
}
