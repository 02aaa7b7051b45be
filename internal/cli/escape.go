package cli

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/olekukonko/tablewriter/pkg/twwidth"
)

// escapeLine makes any text safe for one line of a terminal: control
// characters, line separators, direction overrides and bytes that are no UTF-8
// are shown as escapes.
func escapeLine(s string) string { return escape(s, "") }

// escapeText is escapeLine for text of several lines: line ends and tabs stay.
func escapeText(s string) string { return escape(strings.ReplaceAll(s, "\r\n", "\n"), "\n\t") }

func escape(s, keep string) string {
	clean := true
	for _, r := range s {
		if unsafeRune(r) && !strings.ContainsRune(keep, r) || r == utf8.RuneError {
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
		case unsafeRune(r) && !strings.ContainsRune(keep, r):
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

// unsafeRune tells whether a terminal could act on the rune instead of showing
// it: C0, DEL and C1 controls, line and paragraph separators, direction marks.
func unsafeRune(r rune) bool {
	switch r {
	case 0x2028, 0x2029, 0x200E, 0x200F, 0x061C, 0xFEFF:
		return true
	}
	return unicode.IsControl(r) || 0x202A <= r && r <= 0x202E || 0x2066 <= r && r <= 0x2069
}

// plainText makes text for a pipe: what is no UTF-8, such as half a surrogate
// pair, becomes the replacement character; every other byte stays.
func plainText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, string(utf8.RuneError))
}

// shorten cuts text to a display width, the last column an ellipsis.
func shorten(s string, width int) string {
	if width < 1 || twwidth.Width(s) <= width {
		return s
	}
	return twwidth.Truncate(s, width, "…")
}
