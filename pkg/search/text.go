package search

import (
	"strings"
	"unicode/utf8"

	"github.com/drover-run/drover/pkg/store"
)

// What is around a match in a snippet. No indexed text has them.
const (
	matchBegins = "\x01"
	matchEnds   = "\x02"
)

// entryText is what is indexed of an entry, "" for nothing: the text of a message,
// of whatever role.
func entryText(e store.Entry) string {
	m := e.Message()
	if m == nil {
		return ""
	}
	return indexable(m.Text())
}

// indexable makes any text one that SQLite keeps as it is: UTF-8, half a surrogate
// pair replaced, and without the marks of a snippet and the zero that ends a C
// string.
func indexable(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, string(utf8.RuneError))
	}
	if !strings.ContainsAny(s, "\x00"+matchBegins+matchEnds) {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch r {
		case 0, 1, 2:
			return ' '
		}
		return r
	}, s)
}
