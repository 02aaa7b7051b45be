package rawjson

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Unquote decodes a string literal with its quotes to WTF-8: surrogate pairs
// become one character, an unpaired surrogate escape its three-byte sequence.
// Bytes that are not valid UTF-8 are kept. The error is a *SyntaxError.
func Unquote(raw []byte) (string, error) {
	if err := checkString(raw); err != nil {
		return "", err
	}
	return text(raw), nil
}

// text is the text of the valid string literal raw.
func text(raw []byte) string {
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	return string(decode(nil, raw))
}

// AppendUnquote appends what Unquote returns to dst; dst is returned unchanged
// on error. A surrogate at the end of dst is not joined (see AppendJoin).
func AppendUnquote(dst, raw []byte) ([]byte, error) {
	if err := checkString(raw); err != nil {
		return dst, err
	}
	return decode(dst, raw), nil
}

// checkString checks that raw is exactly one string literal.
func checkString(raw []byte) error {
	if len(raw) == 0 || raw[0] != '"' {
		return &SyntaxError{Offset: 0, Msg: orEnd(raw, 0, msgString)}
	}
	end, msg := scanString(raw, 0)
	if msg == "" && end < len(raw) {
		msg = msgTrailing
	}
	if msg != "" {
		return &SyntaxError{Offset: end, Msg: msg}
	}
	return nil
}

// decode appends the text of the valid string literal raw to dst.
func decode(dst, raw []byte) []byte {
	raw = raw[1 : len(raw)-1]
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:i]...)
		for raw = raw[i:]; len(raw) > 0 && raw[0] == '\\'; {
			if c := raw[1]; c != 'u' {
				dst, raw = append(dst, unescape(c)), raw[2:]
				continue
			}
			r, n := unescapeUnit(raw)
			dst, raw = appendUnit(dst, r), raw[n:]
		}
	}
}

// unescapeUnit decodes the \u escape raw starts with, or the two of a pair of
// surrogates, and returns its length.
func unescapeUnit(raw []byte) (r rune, n int) {
	r = hexUnit(raw[2:])
	if isHigh(r) && len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
		if low := hexUnit(raw[8:]); isLow(low) {
			return utf16.DecodeRune(r, low), 12
		}
	}
	return r, 6
}

func unescape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// appendUnit is utf8.AppendRune that writes a surrogate as three bytes.
func appendUnit(dst []byte, r rune) []byte {
	if utf16.IsSurrogate(r) {
		return append(dst, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0xBF, 0x80|byte(r)&0xBF)
	}
	return utf8.AppendRune(dst, r)
}

// surrogate returns the surrogate whose three-byte sequence s starts with, 0
// when there is none.
func surrogate[T string | []byte](s T) rune {
	if len(s) < 3 || s[0] != 0xED || s[1]&0xE0 != 0xA0 || s[2]&0xC0 != 0x80 {
		return 0
	}
	return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F)
}

func isHigh(r rune) bool { return 0xD800 <= r && r < 0xDC00 }
func isLow(r rune) bool  { return 0xDC00 <= r && r < 0xE000 }

// Quote returns the string literal of s; see AppendQuote.
func Quote(s string) []byte { return AppendQuote(make([]byte, 0, len(s)+2+len(s)/16), s) }

const hexDigits = "0123456789abcdef"

// AppendQuote appends the string literal of the WTF-8 text s. It escapes what
// RFC 8259 requires and nothing else. A surrogate sequence becomes its escape
// in lower-case hexadecimal, a high one directly followed by a low one their
// character, and any other byte that is not valid UTF-8 becomes \ufffd.
func AppendQuote(dst []byte, s string) []byte {
	dst = append(dst, '"')
	rest := []byte(s) // never written to, so the compiler makes no copy
	for {
		i := ValidUTF8(rest)
		if i < 0 {
			return append(appendEscaped(dst, rest), '"')
		}
		var n int
		dst, n = appendInvalid(appendEscaped(dst, rest[:i]), rest[i:])
		rest = rest[i+n:]
	}
}

// appendEscaped appends valid UTF-8 as the inside of a string literal.
func appendEscaped(dst, text []byte) []byte {
	for run := 0; ; {
		i := plainEnd(text, run)
		dst = append(dst, text[run:i]...)
		// Escapes come in bunches: a line's end and the next one's indent.
		for ; i < len(text) && stops(uint64(text[i]))&0x80 != 0; i++ {
			dst = appendEscape(dst, text[i])
		}
		if run = i; run == len(text) {
			return dst
		}
	}
}

// appendEscape appends the escape of an ASCII byte.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// appendInvalid appends what stands in a string literal for the bytes at the
// start of s, which are not valid UTF-8, and returns how many it took.
func appendInvalid[T string | []byte](dst []byte, s T) ([]byte, int) {
	r := surrogate(s)
	switch {
	case r == 0:
		return append(dst, `\ufffd`...), 1
	case isHigh(r) && isLow(surrogate(s[3:])):
		return utf8.AppendRune(dst, utf16.DecodeRune(r, surrogate(s[3:]))), 6
	}
	return append(dst, '\\', 'u', 'd', hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15]), 3
}

// AppendJoin appends the WTF-8 text s to the WTF-8 text dst. A high surrogate
// at the end of dst and a low one at the start of s become one character, in
// the place of dst's last three bytes.
func AppendJoin(dst []byte, s string) []byte {
	if low := surrogate(s); isLow(low) && len(dst) >= 3 {
		if high := surrogate(dst[len(dst)-3:]); isHigh(high) {
			dst = utf8.AppendRune(dst[:len(dst)-3], utf16.DecodeRune(high, low))
			s = s[3:]
		}
	}
	return append(dst, s...)
}

// JoinText concatenates WTF-8 texts, joining a high surrogate at the end of
// one with a low one at the start of the next: a character that a stream cut
// in two becomes whole again.
func JoinText(parts ...string) string {
	n, cut := 0, false
	for _, p := range parts {
		n += len(p)
		cut = cut || isLow(surrogate(p))
	}
	if !cut {
		return strings.Join(parts, "")
	}
	buf := make([]byte, 0, n)
	for _, p := range parts {
		buf = AppendJoin(buf, p)
	}
	return string(buf)
}
