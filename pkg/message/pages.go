package message

import (
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
)

const (
	firstPage = 1 << 10
	lastPage  = 1 << 20
	// halfLen is the length of a surrogate half; every one begins with halfByte.
	halfLen, halfByte = 3, 0xED
)

// pages is a text that grows at its end without moving what it has: a growing
// slice would hold the text twice whenever it moves, and up to a quarter more in
// between (D41). The zero value is empty.
type pages struct {
	full [][]byte
	last []byte
	size int // bytes in full
}

// add appends a WTF-8 text; a surrogate half at its start joins one at the end.
func (p *pages) add(s string) {
	p.reserve(len(s))
	p.last = rawjson.AppendJoin(p.last, s)
}

// addQuoted is add for the text of a raw string; false when it is none.
func (p *pages) addQuoted(raw []byte) bool {
	p.reserve(len(raw)) // a text is never longer than its literal
	before := len(p.last)
	grown, err := rawjson.AppendUnquote(p.last, raw)
	if err != nil {
		return false
	}
	// Elsewhere nothing can join.
	if before >= halfLen && len(grown) > before && grown[before-halfLen] == halfByte && grown[before] == halfByte {
		grown = rawjson.AppendJoin(grown[:before], string(grown[before:]))
	}
	p.last = grown
	return true
}

// reserve makes room for n bytes at the end of the last page. A new page begins
// with what may be half a character, so that the other half can join it.
func (p *pages) reserve(n int) {
	if n <= cap(p.last)-len(p.last) {
		return
	}
	end := len(p.last)
	if end >= halfLen && p.last[end-halfLen] == halfByte {
		end -= halfLen
	}
	page := make([]byte, 0, max(min(max(2*cap(p.last), firstPage), lastPage), n+halfLen))
	page = append(page, p.last[end:]...)
	if end > 0 {
		p.full = append(p.full, p.last[:end])
		p.size += end
	}
	p.last = page
}

// String returns a copy of the text.
func (p *pages) String() string {
	var b strings.Builder
	b.Grow(p.size + len(p.last))
	for _, page := range p.full {
		b.Write(page)
	}
	b.Write(p.last)
	return b.String()
}
