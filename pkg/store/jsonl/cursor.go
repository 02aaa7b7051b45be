package jsonl

import (
	"encoding/json"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store/memory"
)

// cursor reads the literal text that the encoder writes. The first thing that
// is different makes it bad, and the result meaningless.
type cursor struct {
	b   []byte
	i   int
	bad bool
}

// takes steps over s if it comes next.
func (c *cursor) takes(s string) bool {
	end := c.i + len(s)
	if c.bad || end > len(c.b) || string(c.b[c.i:end]) != s {
		return false
	}
	c.i = end
	return true
}

func (c *cursor) literal(s string) {
	if !c.takes(s) {
		c.bad = true
	}
}

// integer reads up to 18 digits, which cannot overflow.
func (c *cursor) integer() (n int64) {
	start := c.i
	for c.i < len(c.b) && c.b[c.i]-'0' <= 9 {
		n = n*10 + int64(c.b[c.i]-'0')
		c.i++
	}
	digits := c.i - start
	if digits == 0 || digits > 18 || (digits > 1 && c.b[start] == '0') {
		c.bad = true
	}
	return n
}

// text reads a string without escapes and returns what is between its quotes.
func (c *cursor) text() []byte {
	c.literal(`"`)
	if c.bad {
		return nil
	}
	start := c.i
	for c.i < len(c.b) {
		switch ch := c.b[c.i]; {
		case ch == '"':
			c.i++
			return c.b[start : c.i-1]
		case ch == '\\' || ch < ' ':
			c.bad = true
			return nil
		}
		c.i++
	}
	c.bad = true
	return nil
}

// name reads a string that is no payload: one that is not UTF-8 is bad too.
func (c *cursor) name() []byte {
	b := c.text()
	c.bad = c.bad || rawjson.ValidUTF8(b) >= 0
	return b
}

// value reads one value of any kind.
func (c *cursor) value() (json.RawMessage, memory.Span) {
	if c.bad {
		return nil, memory.Span{}
	}
	start := c.i
	end, err := rawjson.Skip(c.b, start)
	if err != nil || skipSpace(c.b, start) != start {
		c.bad = true
		return nil, memory.Span{}
	}
	c.i = end
	return c.b[start:end:end], spanOf(start, end)
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}
