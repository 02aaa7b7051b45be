// Package yamlpos reads YAML strictly and tells where a text goes wrong. The
// parser knows the problem, but no column, and not always the line.
//
// Import law: yaml, internal/rawjson and the standard library.
package yamlpos

import (
	"bytes"
	"errors"
	"io"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

const (
	locateSize   = 256 << 10 // larger texts are not searched
	locateBudget = 1 << 20   // bytes parsed by the careful part of a search
)

// Locate returns the line and column where YAML goes wrong, both from 1, the
// column in characters; err is what the parser says of the text. The parser tells a line that may be off, and no column. But it reads from left to
// right: the shortest start of the text that fails in the same way ends with
// the offending character. In a large text the place is where the parser had
// read to, a little behind.
func Locate(text []byte, err error) (line, column int) {
	l := locator{text: text, want: Message(err), budget: locateBudget}
	end := l.consumed()
	if end > locateSize {
		return place(text, end)
	}
	lines := lineEnds(text[:end])
	at := l.shortest(len(lines), func(i int) int { return lines[i] })
	start := 0
	if at > 0 {
		start = lines[at-1]
	}
	column = l.shortest(lines[at]-start, func(i int) int { return start + i + 1 })
	return place(text, start+column)
}

// lineEnds returns the lengths of the starts of text that end with a line.
func lineEnds(text []byte) []int {
	var ends []int
	for i := 0; i < len(text); {
		n := bytes.IndexByte(text[i:], '\n') + 1
		if n == 0 {
			n = len(text) - i
		}
		i += n
		ends = append(ends, i)
	}
	return ends
}

type locator struct {
	text   []byte
	want   string
	budget int
}

// shortest returns the index of the shortest of n starts of the text, given by
// their lengths, that fails like the whole; the last one does. A start cut
// inside of something sound may fail alike: so it goes back step by step while
// the budget lasts, and only then by halves.
func (l *locator) shortest(n int, length func(int) int) int {
	i := n - 1
	for ; i > 0 && l.budget > 0; i-- {
		l.budget -= length(i - 1)
		if !l.fails(length(i - 1)) {
			return i
		}
	}
	return sort.Search(i, func(i int) bool { return l.fails(length(i)) })
}

// fails reports whether the first n bytes fail like the whole text.
func (l *locator) fails(n int) bool {
	err := decodeAll(bytes.NewReader(l.text[:n]))
	return err != nil && Message(err) == l.want
}

// consumed returns how many bytes the parser reads before it gives up.
func (l *locator) consumed() int {
	r := &byteReader{text: l.text}
	_ = decodeAll(r) // it fails, as it did before
	return r.n
}

// byteReader hands out single bytes, so that no buffer reads ahead.
type byteReader struct {
	text []byte
	n    int
}

func (r *byteReader) Read(p []byte) (int, error) {
	if r.n == len(r.text) {
		return 0, io.EOF
	}
	p[0] = r.text[r.n]
	r.n++
	return 1, nil
}

func decodeAll(r io.Reader) error {
	d := yaml.NewDecoder(r)
	for {
		var n yaml.Node
		switch err := d.Decode(&n); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// place translates a byte offset.
func place(text []byte, off int) (line, column int) {
	before := text[:off]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

// Message is the parser's error without its own idea of the place.
func Message(err error) string {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(msg, "line "); ok {
		if number, rest, ok := strings.Cut(rest, ": "); ok {
			if _, err := strconv.Atoi(number); err == nil {
				return rest
			}
		}
	}
	return msg
}
