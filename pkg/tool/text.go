package tool

import (
	"strings"
	"unicode/utf8"
)

// decoder turns the chunks of a byte stream into valid UTF-8, whatever the cuts
// between them: a character split over chunks stays whole, every byte that is
// part of none becomes U+FFFD. Nothing else changes (B11).
type decoder struct {
	held [utf8.UTFMax - 1]byte // the start of a character that may go on
	n    int
}

// append appends the text of one chunk to dst.
func (d *decoder) append(dst, chunk []byte) []byte {
	for d.n > 0 && len(chunk) > 0 {
		// Byte by byte: the held start may turn out to be none.
		var head [utf8.UTFMax]byte
		copy(head[:], d.held[:d.n])
		head[d.n] = chunk[0]
		start := head[:d.n+1]
		if !utf8.FullRune(start) {
			d.n = copy(d.held[:], start)
			chunk = chunk[1:]
			continue
		}
		if r, size := utf8.DecodeRune(start); r != utf8.RuneError || size > 1 {
			dst = append(dst, start...)
			chunk = chunk[1:]
			d.n = 0
			continue
		}
		dst = utf8.AppendRune(dst, utf8.RuneError)
		d.n = copy(d.held[:], d.held[1:d.n])
	}
	dst, rest := appendText(dst, chunk)
	if len(rest) > 0 {
		d.n = copy(d.held[:], rest)
	}
	return dst
}

// flush appends what the end of the stream left unfinished.
func (d *decoder) flush(dst []byte) []byte {
	for range d.n {
		dst = utf8.AppendRune(dst, utf8.RuneError)
	}
	d.n = 0
	return dst
}

// appendText appends b as valid UTF-8, but for an unfinished character at its
// end, which it returns.
func appendText(dst, b []byte) (text, rest []byte) {
	if utf8.Valid(b) {
		return append(dst, b...), nil
	}
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 && !utf8.FullRune(b) {
			return dst, b
		}
		dst = utf8.AppendRune(dst, r)
		b = b[size:]
	}
	return dst, nil
}

// validText returns s with every byte that is not part of valid UTF-8 replaced.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var d decoder
	return string(d.flush(d.append(make([]byte, 0, len(s)+16), []byte(s))))
}

// countLines counts lines, an unfinished last one included.
func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}
