package openai

import (
	"bytes"
	"slices"

	"github.com/drover-run/drover/internal/rawjson"
)

// pick returns the values of an object's members, nil for those it has not. It
// looks at the object once: a long answer is worth that.
func pick(obj []byte, names ...string) ([][]byte, error) {
	values := make([][]byte, len(names))
	err := rawjson.MembersFunc(obj, func(m rawjson.Member) bool {
		for i, name := range names {
			if rawjson.KeyIs(m.Key, name) {
				values[i] = m.Value
			}
		}
		return true
	})
	return values, err
}

// fields is pick for what has been found to be JSON: what is no object has no
// members.
func fields(obj []byte, names ...string) [][]byte {
	values, _ := pick(obj, names...)
	return values
}

// text decodes a raw string; anything else is empty.
func text(raw []byte) string {
	s, err := rawjson.Unquote(raw)
	if err != nil {
		return ""
	}
	return s
}

// textLen is the length of the text of a valid raw string, in bytes.
func textLen(raw []byte) int {
	n := 0
	for i := 1; i < len(raw)-1; {
		end := i + 1
		switch {
		case raw[i] != '\\':
			n++
		case raw[i+1] != 'u':
			end++
			n++
		default: // two escapes may be one character
			for end = i; bytes.HasPrefix(raw[end:], []byte(`\u`)); {
				end += len(`\u0000`)
			}
			n += len(text(slices.Concat([]byte{'"'}, raw[i:end], []byte{'"'})))
		}
		i = end
	}
	return n
}
