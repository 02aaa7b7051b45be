package rawjson

import "unicode/utf8"

// Complete returns the best value that a prefix of a JSON text stands for
// (behaviours §2): unterminated strings and containers are closed, a name
// without a value is dropped, and a half literal, number, escape or character
// is dropped or cut down to its valid part. At a syntax error the text in front
// of it counts. The result is a valid value in valid UTF-8, {} when nothing
// parses.
func Complete(prefix []byte) []byte {
	start := skipSpace(prefix, 0)
	c := completion{b: prefix, good: start}
	c.run(start)
	if c.good == start {
		return []byte("{}")
	}
	out := make([]byte, 0, c.good-start+len(c.closers)+1)
	out = appendUTF8(out, prefix[start:c.good])
	if c.inString {
		out = append(out, '"')
	}
	for i := len(c.closers) - 1; i >= 0; i-- {
		out = append(out, c.closers[i])
	}
	return out
}

// completion finds the usable part of a JSON prefix: b up to good, a quote if
// inString, and the closers from last to first.
type completion struct {
	b        []byte
	good     int
	inString bool
	closers  []byte // one for each open container
}

// run scans from the first byte of a value until the text ends or breaks.
func (c *completion) run(i int) {
	i, fresh := c.value(i)
	for i >= 0 && len(c.closers) > 0 {
		if i = skipSpace(c.b, i); i == len(c.b) {
			return
		}
		closer := c.closers[len(c.closers)-1]
		switch {
		case c.b[i] == closer:
			c.closers = c.closers[:len(c.closers)-1]
			i++
			c.good, fresh = i, false
			continue
		case fresh:
		case c.b[i] == ',':
			i = skipSpace(c.b, i+1)
		default:
			return
		}
		if closer == '}' {
			i = c.name(i)
		}
		i, fresh = c.value(i)
	}
}

// value scans a scalar, or enters a container (fresh), and takes what is usable
// of it. It returns -1 when the text ends or breaks there, or did before.
func (c *completion) value(i int) (end int, fresh bool) {
	if i < 0 || i >= len(c.b) {
		return -1, false
	}
	if first := c.b[i]; first == '{' || first == '[' {
		c.closers = append(c.closers, first+2) // the closing bracket in ASCII
		c.good = i + 1
		return i + 1, true
	}
	end, msg := scanScalar(c.b, i)
	switch {
	case msg == "":
		c.good = end
		return end, false
	case c.b[i] == '"':
		c.good, c.inString = wholeRunes(c.b[:end]), true
	case c.b[i] == '-' || c.b[i]-'0' <= 9:
		c.good = max(c.good, numberPrefix(c.b[:end], i))
	}
	return -1, false
}

// name scans a member name and its colon and returns where the value starts,
// -1 when the text ends or breaks before.
func (c *completion) name(i int) int {
	if i >= len(c.b) || c.b[i] != '"' {
		return -1
	}
	i, msg := scanString(c.b, i)
	if msg != "" {
		return -1
	}
	if i = skipSpace(c.b, i); i >= len(c.b) || c.b[i] != ':' {
		return -1
	}
	return skipSpace(c.b, i+1)
}

// numberPrefix returns the end of the longest number that starts at b[i], 0
// when there is none.
func numberPrefix(b []byte, i int) int {
	for ; len(b) > i; b = b[:len(b)-1] {
		if end, msg := scanNumber(b, i); msg == "" {
			return end
		}
	}
	return 0
}

// wholeRunes returns the length of b without a UTF-8 sequence cut off at its
// end.
func wholeRunes(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return len(b) - n
			}
			break
		}
	}
	return len(b)
}

// appendUTF8 appends the valid JSON text b with the invalid UTF-8 in its
// strings replaced as AppendQuote does.
func appendUTF8(dst, b []byte) []byte {
	for {
		i := ValidUTF8(b)
		if i < 0 {
			return append(dst, b...)
		}
		var n int
		dst, n = appendInvalid(append(dst, b[:i]...), b[i:])
		b = b[i+n:]
	}
}
