package cli

import (
	"strings"
	"unicode/utf8"

	"github.com/olekukonko/tablewriter/pkg/twwidth"

	"github.com/drover-run/drover/internal/visible"
)

// escapeLine makes any text safe for one line of a terminal.
func escapeLine(s string) string { return visible.Line(s) }

// escapeText is escapeLine for text of several lines: line ends and tabs stay.
func escapeText(s string) string { return visible.Text(s) }

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
