package v3import

import (
	"bytes"

	"github.com/drover-run/drover/internal/rawjson"
)

// IsLegacy tells from the first bytes of a file, a few kilobytes, whether it is
// a legacy session: its first JSON object says "type":"session". A format-4
// session, whose first object says "kind":"header", is not.
func IsLegacy(first []byte) bool {
	first = bytes.TrimPrefix(first, []byte("\xef\xbb\xbf"))
	for len(first) > 0 {
		line, rest, _ := bytes.Cut(first, []byte{'\n'})
		if i, _ := skipBlank(line, 0); i < len(line) && line[i] == '{' {
			return typedSession(line, i)
		}
		first = rest
	}
	return false
}

// typedSession looks for the type among the members that a cut-off object shows.
func typedSession(line []byte, i int) (session bool) {
	_, _ = walk(line, i, func(name []byte, i int) (int, *rawjson.SyntaxError) {
		end, err := rawjson.Skip(line, i)
		if err == nil && keyOf(name) == keyType {
			s, _ := textOf(line[i:end])
			session = s == "session"
		}
		return end, err
	})
	return session
}
