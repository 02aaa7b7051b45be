package tool

import (
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
)

// describe names the type of a JSON value and quotes it when it is short.
func describe(value []byte) string {
	switch rawjson.KindOf(value) {
	case rawjson.Null:
		return "null"
	case rawjson.Bool:
		return "a boolean (" + string(value) + ")"
	case rawjson.Number:
		return "a number (" + clip(string(value), 60) + ")"
	case rawjson.String:
		return "a string (" + clip(string(value), 60) + ")"
	case rawjson.Array:
		return "an array"
	}
	return "an object"
}

func article(noun string) string {
	switch {
	case strings.HasPrefix(noun, "null"):
		return noun
	case strings.IndexByte("aio", noun[0]) >= 0:
		return "an " + noun
	}
	return "a " + noun
}

// clip cuts text to about n bytes, at a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

// memberPath appends a member's name to a path: $.name, or $["a name"].
func memberPath(path, name string) string {
	plain := name != ""
	for i := range len(name) {
		c := name[i] | 0x20
		plain = plain && (c >= 'a' && c <= 'z' || name[i] == '_' || name[i] == '$' || i > 0 && name[i] >= '0' && name[i] <= '9')
	}
	if plain {
		return path + "." + name
	}
	return path + "[" + clip(string(rawjson.Quote(name)), 100) + "]"
}

func memberNames(properties []byte) string {
	var names []string
	for m, err := range rawjson.Members(properties) {
		if name, bad := rawjson.Unquote(m.Key); err == nil && bad == nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return clip(strings.Join(names, ", "), 300)
}

// types returns the types that a schema allows, nil when it names none.
func types(schema []byte) []string {
	raw, ok := rawjson.Get(schema, "type")
	if !ok {
		return nil
	}
	if t, err := rawjson.Unquote(raw); err == nil {
		return []string{t}
	}
	var all []string
	for el, err := range rawjson.Elements(raw) {
		if t, bad := rawjson.Unquote(el); err == nil && bad == nil {
			all = append(all, t)
		}
	}
	return all
}

func hasType(value []byte, want string) bool {
	switch rawjson.KindOf(value) {
	case rawjson.Null:
		return want == "null"
	case rawjson.Bool:
		return want == "boolean"
	case rawjson.String:
		return want == "string"
	case rawjson.Array:
		return want == "array"
	case rawjson.Object:
		return want == "object"
	case rawjson.Number:
		n, err := strconv.ParseFloat(string(value), 64)
		return want == "number" || want == "integer" && err == nil && n == math.Trunc(n)
	}
	return false
}

// sameScalar compares two values by meaning. Containers are equal here: to find
// one different is left to the validator.
func sameScalar(a, b []byte) bool {
	if rawjson.KindOf(a) != rawjson.KindOf(b) {
		return false
	}
	switch rawjson.KindOf(a) {
	case rawjson.String:
		x, _ := rawjson.Unquote(a)
		y, _ := rawjson.Unquote(b)
		return x == y
	case rawjson.Number:
		x, _ := strconv.ParseFloat(string(a), 64)
		y, _ := strconv.ParseFloat(string(b), 64)
		return x == y
	case rawjson.Bool:
		return string(a) == string(b)
	}
	return true
}

func containsScalar(list, value []byte) bool {
	for el, err := range rawjson.Elements(list) {
		if err == nil && sameScalar(el, value) {
			return true
		}
	}
	return false
}

// countProblem judges the number of parts by minWHAT and maxWHAT.
func countProblem[T any](schema, value []byte, path, what, noun string, parts func([]byte) iter.Seq2[T, error]) *ArgumentError {
	var n int64
	for range parts(value) {
		n++
	}
	typ := describe(value)
	if least, ok := rawjson.GetInt(schema, "min"+what); ok && n < least {
		return &ArgumentError{path, fmt.Sprintf("is %s with %d %s that must have at least %d", typ, n, noun, least)}
	}
	if most, ok := rawjson.GetInt(schema, "max"+what); ok && n > most {
		return &ArgumentError{path, fmt.Sprintf("is %s with %d %s that must have at most %d", typ, n, noun, most)}
	}
	return nil
}
