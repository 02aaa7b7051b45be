// Package visible makes text from anywhere safe to look at: what a terminal or a
// browser would act on instead of showing it is written as an escape. It depends
// on the standard library only.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line makes any text safe for one line: control characters, line separators,
// direction marks and bytes that are no UTF-8 are shown as escapes.
func Line(s string) string { return escape(s, "") }

// Text is Line for text of several lines: line ends and tabs stay.
func Text(s string) string { return escape(strings.ReplaceAll(s, "\r\n", "\n"), "\n\t") }

func escape(s, keep string) string {
	clean := true
	for _, r := range s {
		if Unsafe(r) && !strings.ContainsRune(keep, r) || r == utf8.RuneError {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n <= 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case Unsafe(r) && !strings.ContainsRune(keep, r):
			writeEscape(&b, r)
		default:
			b.WriteRune(r)
		}
		s = s[n:]
	}
	return b.String()
}

func writeEscape(b *strings.Builder, r rune) {
	switch r {
	case '\n':
		b.WriteString(`\n`)
	case '\r':
		b.WriteString(`\r`)
	case '\t':
		b.WriteString(`\t`)
	default:
		if r < 0x100 {
			fmt.Fprintf(b, `\x%02x`, r)
			return
		}
		fmt.Fprintf(b, `\u%04x`, r)
	}
}

// Unsafe tells whether a terminal could act on the rune instead of showing
// it: C0, DEL and C1 controls, line and paragraph separators, direction marks.
func Unsafe(r rune) bool {
	switch r {
	case 0x2028, 0x2029, 0x200E, 0x200F, 0x061C, 0xFEFF:
		return true
	}
	return unicode.IsControl(r) || 0x202A <= r && r <= 0x202E || 0x2066 <= r && r <= 0x2069
}
