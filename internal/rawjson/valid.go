package rawjson

import (
	"math/bits"
	"unicode/utf8"
)

// KindOf returns the kind of the value that starts at b[0] or after the white
// space there. It looks at one byte only: the value may still be malformed.
func KindOf(b []byte) Kind {
	i := skipSpace(b, 0)
	if i == len(b) {
		return Invalid
	}
	switch c := b[i]; c {
	case '"', '[', '{', 'n':
		return Kind(c)
	case 't', 'f':
		return Bool
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return Number
	}
	return Invalid
}

// Skip scans the one value that starts at b[i] or after the white space there
// and returns the index just after it. The grammar of RFC 8259 is checked to
// the letter, UTF-8 is not. What follows the value is not looked at, except
// that a digit may not follow a leading zero. Depth is not limited. On error
// end is the error's offset.
func Skip(b []byte, i int) (end int, err *SyntaxError) {
	end, _, msg := scan(b, skipSpace(b, i))
	if msg != "" {
		return end, &SyntaxError{Offset: end, Msg: msg}
	}
	return end, nil
}

// Valid returns nil when b is exactly one value with optional white space
// around it. UTF-8 is not checked.
func Valid(b []byte) *SyntaxError {
	_, _, _, err := whole(b)
	return err
}

// whole scans b as exactly one value and returns where it starts and ends and
// whether white space occurs inside.
func whole(b []byte) (start, end int, spaced bool, err *SyntaxError) {
	start = skipSpace(b, 0)
	end, spaced, msg := scan(b, start)
	if msg != "" {
		return 0, 0, false, &SyntaxError{Offset: end, Msg: msg}
	}
	if i := skipSpace(b, end); i < len(b) {
		return 0, 0, false, &SyntaxError{Offset: i, Msg: msgTrailing}
	}
	return start, end, spaced, nil
}

// SkipString is Skip for a string whose opening quote is b[i]; it is not ok for
// anything else.
func SkipString(b []byte, i int) (end int, ok bool) {
	if i >= len(b) || b[i] != '"' {
		return i, false
	}
	end, msg := scanString(b, i)
	return end, msg == ""
}

// ValidUTF8 returns the offset of the first byte of b that is not part of
// valid UTF-8, -1 when there is none. Surrogates are invalid.
func ValidUTF8(b []byte) (offset int) {
	for i := 0; ; {
		if i = asciiEnd(b, i); i == len(b) {
			return -1
		}
		// Most of what is not ASCII in a text of ASCII takes two bytes.
		if c := b[i]; c-0xC2 <= 0xDF-0xC2 && i+1 < len(b) && b[i+1]&0xC0 == 0x80 {
			i += 2
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
}

// asciiEnd returns the index of the first byte of b[i:] that is no ASCII, or
// len(b).
func asciiEnd(b []byte, i int) int {
	for i+32 <= len(b) && (word(b, i)|word(b, i+8)|word(b, i+16)|word(b, i+24))&highs == 0 {
		i += 32
	}
	for ; i+8 <= len(b); i += 8 {
		if m := word(b, i) & highs; m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for i < len(b) && b[i] < utf8.RuneSelf {
		i++
	}
	return i
}

// Compacted is Compact for whoever does not change src afterwards: where there is
// no white space to remove, the result is a part of src and no copy.
func Compacted(src []byte) ([]byte, error) {
	start, end, spaced, err := whole(src)
	switch {
	case err != nil:
		return nil, err
	case spaced:
		return Compact(make([]byte, 0, end-start), src)
	}
	return src[start:end:end], nil
}

// Compact appends the value src to dst without the white space between its
// tokens (D5); every other byte stays as it is. dst is returned unchanged when
// src is not exactly one value. dst may be src[:0].
func Compact(dst, src []byte) ([]byte, error) {
	start, end, spaced, err := whole(src)
	if err != nil {
		return dst, err
	}
	if !spaced {
		return append(dst, src[start:end]...), nil
	}
	run := start
	for i := start; i < end; {
		switch c := src[i]; {
		case c == '"':
			i, _ = scanString(src, i)
		case isSpace(c):
			dst = append(dst, src[run:i]...)
			i = skipSpace(src, i)
			run = i
		default:
			i++
		}
	}
	return append(dst, src[run:end]...), nil
}
