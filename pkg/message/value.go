package message

import (
	"bytes"
	"math"
	"strconv"

	"github.com/drover-run/drover/internal/rawjson"
)

// text decodes a valid raw value; anything but a string is empty.
func text(raw []byte) string {
	s, err := rawjson.Unquote(raw)
	if err != nil {
		return ""
	}
	return s
}

// isName tells whether a valid raw value is the string want.
func isName(raw []byte, want string) bool {
	return rawjson.KindOf(raw) == rawjson.String && rawjson.KeyIs(raw, want)
}

// name reads a string field that is usually one of a few constants, for which
// no string is made.
func name[T ~string](obj []byte, field string, known []T) T {
	raw, _ := rawjson.Get(obj, field)
	for _, k := range known {
		if isName(raw, string(k)) {
			return k
		}
	}
	return T(text(raw))
}

// keyText returns the decoded text of a valid raw member name.
func keyText(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	key, _ := rawjson.AppendUnquote(nil, raw)
	return key
}

// integer reads a raw number with an integral value in the range of int64,
// however it is spelled: 12, 12.0, 1.2e1.
func integer(raw []byte) (int64, bool) {
	if n, ok := rawjson.ParseInt(raw); ok {
		return n, true
	}
	f, ok := float(raw)
	if !ok || f != math.Trunc(f) || f < math.MinInt64 || f >= math.MaxInt64 {
		return 0, false
	}
	return int64(f), true
}

// float reads a raw number.
func float(raw []byte) (float64, bool) {
	if rawjson.KindOf(raw) != rawjson.Number {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return f, err == nil
}

// appendFloat appends the shortest number that reads back as f, spelled as
// JavaScript spells it. JSON has no word for what is not finite: that is 0.
func appendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, '0')
	}
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
		// e-07 is spelled e-7.
		if n := len(dst); dst[n-4] == 'e' && dst[n-2] == '0' {
			dst = append(dst[:n-2], dst[n-1])
		}
		return dst
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}

// The append helpers write one member of an object; key is its text with the
// separators, as `,"name":`.

func appendString(dst []byte, key, value string) []byte {
	return rawjson.AppendQuote(append(dst, key...), value)
}

func appendOptional(dst []byte, key, value string) []byte {
	if value == "" {
		return dst
	}
	return appendString(dst, key, value)
}

func appendInt(dst []byte, key string, value int64) []byte {
	return rawjson.AppendInt(append(dst, key...), value)
}

// appendRaw writes null for a raw value that is empty.
func appendRaw(dst []byte, key string, value []byte) []byte {
	dst = append(dst, key...)
	if len(value) == 0 {
		return append(dst, "null"...)
	}
	return append(dst, value...)
}

func appendOptionalRaw(dst []byte, key string, value []byte) []byte {
	if len(value) == 0 {
		return dst
	}
	return appendRaw(dst, key, value)
}
