package rawjson

import (
	"encoding/binary"
	"math/bits"
)

// What a syntax error says. Every internal scan returns one of these beside an
// offset, "" meaning success, so that the hot path never builds an error value.
const (
	msgEnd       = "unexpected end of text"
	msgValue     = "expected a value"
	msgKey       = "expected a member name"
	msgColon     = "expected a colon after the member name"
	msgObjectSep = "expected a comma or the end of the object"
	msgArraySep  = "expected a comma or the end of the array"
	msgControl   = "control character in a string"
	msgEscape    = "invalid escape in a string"
	msgNumber    = "invalid number"
	msgLiteral   = "invalid literal"
	msgTrailing  = "unexpected text after the value"
	msgObject    = "expected an object"
	msgArray     = "expected an array"
	msgString    = "expected a string"
)

// Byte patterns for the word-at-a-time search in strings.
const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// stops marks (bit 7 of each byte) the bytes of w that end a plain stretch of
// a string: controls, the quote and the backslash. Only the lowest mark is
// exact; a borrow may add false ones above it.
func stops(w uint64) uint64 {
	// XOR with 2 swaps the quote with the space, which puts the quote right
	// after the controls: one comparison finds both.
	return (((w ^ 0x02*ones) - 0x21*ones) | ((w ^ '\\'*ones) - ones)) &^ w & highs
}

// plainEnd returns the index of the first control, quote or backslash in
// b[i:], or len(b).
func plainEnd(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		if m := stops(binary.LittleEndian.Uint64(b[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for i < len(b) && b[i] >= ' ' && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// scanString scans the string whose opening quote is b[i] and returns the index
// after its closing quote. On error the index is where the valid part of the
// contents ends (the backslash of a bad escape).
func scanString(b []byte, i int) (end int, msg string) {
	i++
	for {
		i = plainEnd(b, i)
		if i == len(b) {
			return i, msgEnd
		}
		switch b[i] {
		case '"':
			return i + 1, ""
		case '\\':
			n := escapeLen(b, i)
			if n == 0 {
				return i, msgEscape
			}
			i += n
		default:
			return i, msgControl
		}
	}
}

// escapeLen returns the length of the escape that starts with the backslash
// b[i]: 2 or 6, or 0 when it is not a whole valid one.
func escapeLen(b []byte, i int) int {
	if i+1 >= len(b) {
		return 0
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if i+6 <= len(b) && hexUnit(b[i+2:i+6]) >= 0 {
			return 6
		}
	}
	return 0
}

// hexUnit decodes four hexadecimal digits to a UTF-16 unit, -1 when they are
// not all digits.
func hexUnit(b []byte) rune {
	var u rune
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			u = u<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			u = u<<4 | rune(c|0x20-'a'+10)
		default:
			return -1
		}
	}
	return u
}

// scanNumber scans the number that starts at b[i].
func scanNumber(b []byte, i int) (end int, msg string) {
	if b[i] == '-' {
		i++
	}
	j := digits(b, i)
	switch {
	case j == i:
		return i, orEnd(b, i, msgNumber)
	case b[i] == '0' && j > i+1:
		return i + 1, msgNumber
	}
	i = j
	if i < len(b) && b[i] == '.' {
		if j = digits(b, i+1); j == i+1 {
			return j, orEnd(b, j, msgNumber)
		}
		i = j
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if j = digits(b, i); j == i {
			return j, orEnd(b, j, msgNumber)
		}
		i = j
	}
	return i, ""
}

func digits(b []byte, i int) int {
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i
}

// scanLiteral scans true, false or null, of which b[i] is the first letter.
func scanLiteral(b []byte, i int) (end int, msg string) {
	want := "null"
	switch b[i] {
	case 't':
		want = "true"
	case 'f':
		want = "false"
	}
	for k := range len(want) {
		if i+k == len(b) || b[i+k] != want[k] {
			return i + k, orEnd(b, i+k, msgLiteral)
		}
	}
	return i + len(want), ""
}

// orEnd is msg, or msgEnd when i is past the text.
func orEnd(b []byte, i int, msg string) string {
	if i >= len(b) {
		return msgEnd
	}
	return msg
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// skipSpace returns the index of the first byte of b[i:] that is no white
// space, or len(b).
func skipSpace(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

// scanScalar scans the string, number or literal that starts at b[i].
func scanScalar(b []byte, i int) (end int, msg string) {
	switch c := b[i]; {
	case c == '"':
		return scanString(b, i)
	case c == '-' || c-'0' <= 9:
		return scanNumber(b, i)
	case c == 't' || c == 'f' || c == 'n':
		return scanLiteral(b, i)
	}
	return i, msgValue
}

// scan scans the value that starts at b[i], which must not be white space, and
// returns the index after it; spaced tells whether white space occurs inside.
//
// Open containers are one bit each (1 an object). word holds the innermost of
// them below a sentinel bit; a full word moves to spill, so that nesting is
// limited by memory alone and costs no allocation up to 567 levels.
func scan(b []byte, i int) (end int, spaced bool, msg string) {
	var first [8]uint64
	spill := first[:0]
	word := uint64(1)
value:
	if i >= len(b) {
		return i, spaced, msgEnd
	}
	switch b[i] {
	case '{', '[':
		if word>>63 != 0 {
			spill = append(spill, word)
			word = 1
		}
		word <<= 1
		if b[i] == '{' {
			word |= 1
		}
		i++
		if i < len(b) && isSpace(b[i]) {
			i, spaced = skipSpace(b, i), true
		}
		switch {
		case word&1 == 0 && i < len(b) && b[i] == ']', word&1 != 0 && i < len(b) && b[i] == '}':
			goto pop
		case word&1 == 0:
			goto value
		}
		goto key
	}
	if i, msg = scanScalar(b, i); msg != "" {
		return i, spaced, msg
	}
after:
	if word == 1 && len(spill) == 0 {
		return i, spaced, ""
	}
	if i < len(b) && isSpace(b[i]) {
		i, spaced = skipSpace(b, i), true
	}
	if i >= len(b) {
		return i, spaced, msgEnd
	}
	switch c := b[i]; {
	case c == ',':
		i++
		if i < len(b) && isSpace(b[i]) {
			i, spaced = skipSpace(b, i), true
		}
		if word&1 == 0 {
			goto value
		}
		goto key
	case c == '}' && word&1 != 0, c == ']' && word&1 == 0:
		goto pop
	case word&1 != 0:
		return i, spaced, msgObjectSep
	}
	return i, spaced, msgArraySep
pop:
	i++
	word >>= 1
	if word == 1 && len(spill) > 0 {
		word = spill[len(spill)-1]
		spill = spill[:len(spill)-1]
	}
	goto after
key:
	if i >= len(b) || b[i] != '"' {
		return i, spaced, orEnd(b, i, msgKey)
	}
	if i, msg = scanString(b, i); msg != "" {
		return i, spaced, msg
	}
	if i < len(b) && isSpace(b[i]) {
		i, spaced = skipSpace(b, i), true
	}
	if i >= len(b) || b[i] != ':' {
		return i, spaced, orEnd(b, i, msgColon)
	}
	i++
	if i < len(b) && isSpace(b[i]) {
		i, spaced = skipSpace(b, i), true
	}
	goto value
}
