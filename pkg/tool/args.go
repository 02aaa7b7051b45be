package tool

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/drover-run/drover/internal/rawjson"
)

// checkText refuses strings that cannot be a path, a command or the content of a
// text file: half of a surrogate pair has no bytes of its own.
func checkText(value []byte, path string) error {
	switch rawjson.KindOf(value) {
	case rawjson.String:
		if s, err := rawjson.Unquote(value); err != nil || !utf8.ValidString(s) {
			return &ArgumentError{Path: path, Msg: "is a string that holds half of a surrogate pair or bytes that are not UTF-8"}
		}
	case rawjson.Array:
		i := 0
		for el, err := range rawjson.Elements(value) {
			if err != nil {
				return err
			}
			if err := checkText(el, path+"["+strconv.Itoa(i)+"]"); err != nil {
				return err
			}
			i++
		}
	case rawjson.Object:
		for m, err := range rawjson.Members(value) {
			if err != nil {
				return err
			}
			name, _ := rawjson.Unquote(m.Key)
			if err := checkText(m.Value, memberPath(path, validText(name))); err != nil {
				return err
			}
		}
	}
	return nil
}

// textArg returns a string argument.
func textArg(args json.RawMessage, name string) (string, error) {
	s, ok := rawjson.GetString(args, name)
	if !ok {
		return "", &ArgumentError{Path: "$", Msg: fmt.Sprintf("is an object without the text %q", name)}
	}
	return s, nil
}

// numberArg returns a number argument, fallback when it is not given. Schemas see
// to the type and the lower bound; whatever is above most is most.
func numberArg(args json.RawMessage, name string, fallback, most float64) float64 {
	raw, ok := rawjson.Get(args, name)
	if !ok || rawjson.KindOf(raw) != rawjson.Number {
		return fallback
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.IsNaN(n) {
		return most // only its size can be wrong with a JSON number
	}
	return min(n, most)
}

// noNUL refuses what the system cannot take as a name or an argument.
func noNUL(s, name string) error {
	if strings.IndexByte(s, 0) >= 0 {
		return &ArgumentError{Path: "$." + name, Msg: "is a string that holds a NUL character"}
	}
	return nil
}
