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
		if m := stops(word(b, i)); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for i < len(b) && stops(uint64(b[i]))&0x80 == 0 {
		i++
	}
	return i
}

// word is the eight bytes at b[i], the first one lowest.
func word(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }

// scanString scans the string whose opening quote is b[i] and returns the index
// after its closing quote. On error the index is where the valid part of the
// contents ends (the backslash of a bad escape).
func scanString(b []byte, i int) (end int, msg string) {
	if i++; i+8 <= len(b) {
		if m := stops(word(b, i)); m != 0 {
			if j := i + bits.TrailingZeros64(m)>>3; b[j] == '"' {
				return j + 1, ""
			}
		}
	}
	return scanText(b, i)
}

// scanText scans the rest of a string from b[i] on.
func scanText(b []byte, i int) (end int, msg string) {
	for i = plainEnd(b, i); i < len(b); i = escapedEnd(b, i) {
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
	return i, msgEnd
}

// escapedEnd is plainEnd for text that has escapes: it walks over the simple
// ones (of quote, n and t) eight bytes at a time, without a branch for each,
// and stops at the backslash of any other. Here all marks are exact.
func escapedEnd(b []byte, i int) int {
	var carry uint64 // the mark of an escape cut by the end of a word
	for ; i+8 <= len(b); i += 8 {
		w := word(b, i)
		if stops(w)|carry == 0 {
			continue // half of the work for most words
		}
		low := w & (0x7f * ones)
		plain := differs(low, '"') | w
		backslash := ^(differs(low, '\\') | w) & highs
		escaped := backslash<<8 | carry
		carry = backslash >> 56
		control := ^(low + 0x60*ones | w) & highs
		other := escaped & (differs(low, 'n')&differs(low, 't')&plain | w)
		if stop := ^(plain|escaped)&highs | control | other; stop != 0 {
			n := bits.TrailingZeros64(stop)
			return i + n>>3 - int(escaped>>n&1)
		}
	}
	return plainEnd(b, i-int(carry>>7))
}

// differs marks the bytes of low, all below 0x80, that are not c. Its other
// bits mean nothing.
func differs(low uint64, c byte) uint64 {
	return (low ^ uint64(c)*ones) + 0x7f*ones
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

func isSpace(c byte) bool { return c <= ' ' && (c == ' ' || c == '\n' || c == '\r' || c == '\t') }

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
// Open containers are one bit each (1 an object). open holds the innermost of
// them below a sentinel bit; a full one moves to spill, so that nesting is
// limited by memory alone and costs no allocation up to 567 levels. White space
// is looked for where nothing else fits, because stored text has none.
func scan(b []byte, i int) (end int, spaced bool, msg string) {
	var first [8]uint64
	spill := first[:0]
	open := uint64(1)
value:
	if i >= len(b) {
		return i, spaced, msgEnd
	}
	switch c := b[i]; c {
	case '"':
		i, msg = scanString(b, i)
	case '{', '[':
		if open>>63 != 0 {
			spill, open = append(spill, open), 1
		}
		open = open<<1 | uint64(c>>5&1) // bit 5 tells the two brackets apart
		if i++; i < len(b) && isSpace(b[i]) {
			i, spaced = skipSpace(b, i), true
		}
		if i < len(b) && b[i] == c+2 { // its closing bracket
			goto pop
		}
		if c == '{' {
			goto key
		}
		goto value
	case ' ', '\t', '\r', '\n':
		i, spaced = skipSpace(b, i), true
		goto value
	default:
		i, msg = scanScalar(b, i)
	}
	if msg != "" {
		return i, spaced, msg
	}
after:
	if open == 1 {
		if len(spill) == 0 {
			return i, spaced, ""
		}
		open, spill = spill[len(spill)-1], spill[:len(spill)-1]
	}
	if i >= len(b) {
		return i, spaced, msgEnd
	}
	switch c := b[i]; {
	case c == ',':
		if i++; open&1 == 0 {
			goto value
		}
		goto key
	case c == '}' && open&1 != 0, c == ']' && open&1 == 0:
		goto pop
	case isSpace(c):
		i, spaced = skipSpace(b, i), true
		goto after
	case open&1 != 0:
		return i, spaced, msgObjectSep
	}
	return i, spaced, msgArraySep
pop:
	i++
	open >>= 1
	goto after
key:
	if i < len(b) && isSpace(b[i]) {
		i, spaced = skipSpace(b, i), true
	}
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
	goto value
}
