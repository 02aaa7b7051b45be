package rawjson

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// ValidUTF8 finds the first byte that decoding finds, wherever it lies in a word.
func TestValidUTF8Anywhere(t *testing.T) {
	part := rapid.SampledFrom([]string{
		"a", "plain text", strings.Repeat("x", 31), strings.Repeat("x", 32), "é", "\u07ff", "€", "\ud7ff", "\U0001f600", "\U0010ffff",
		"\x80", "\xc0\x80", "\xc1", "\xc3", "\xdf", "\xe0\x80\x80", "\xe2\x82", "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xff",
	})
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(strings.Join(rapid.SliceOf(part).Draw(t, "parts"), ""))
		want := -1
		for i := 0; i < len(text) && want < 0; {
			r, n := utf8.DecodeRune(text[i:])
			if r == utf8.RuneError && n == 1 {
				want = i
			}
			i += n
		}
		if got := ValidUTF8(text); got != want {
			t.Fatalf("%q: %d, want %d", text, got, want)
		}
	})
}

// SkipString is Skip, of strings alone.
func TestSkipString(t *testing.T) {
	for text, ok := range map[string]bool{
		`"a"`: true, `"a\"b" ,`: true, `""`: true, `"a`: false, `"\x"`: false, "\"a\n\"": false, `1`: false, ` "a"`: false, ``: false,
	} {
		end, got := SkipString([]byte("["+text), 1)
		if got != ok {
			t.Errorf("%q: %v, want %v", text, got, ok)
		}
		if want, err := Skip([]byte("["+text), 1); ok && (err != nil || end != want) {
			t.Errorf("%q ends at %d, want %d (%v)", text, end, want, err)
		}
	}
}
