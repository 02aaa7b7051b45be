package tool

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func decodeChunks(chunks ...string) string {
	var d decoder
	var out []byte
	for _, c := range chunks {
		out = d.append(out, []byte(c))
	}
	return string(d.flush(out))
}

func TestDecoder(t *testing.T) {
	cases := []struct {
		name   string
		chunks []string
		want   string
	}{
		{"text", []string{"a\x1b[31mb\x00c\r\n"}, "a\x1b[31mb\x00c\r\n"},
		{"invalid bytes", []string{"\xff\xfe"}, "��"},
		{"split over two", []string{"\xc3", "\xa9"}, "é"},
		{"split over four", []string{"a\xf0", "\x9f", "\x98", "\x80b"}, "a😀b"},
		{"split and broken", []string{"\xf0\x9f", "x"}, "��x"},
		{"split and begun again", []string{"\xe2\x82", "\xe2\x82\xac"}, "��€"},
		{"empty chunks", []string{"\xc3", "", "\xa9", ""}, "é"},
		{"unfinished end", []string{"a\xe2\x82"}, "a��"},
		{"surrogate", []string{"\xed\xa0", "\x80"}, "���"},
		{"replacement itself", []string{"\xef\xbf", "\xbd"}, "�"},
		{"latin-1", []string{"caf\xe9 au lait"}, "caf� au lait"},
	}
	for _, c := range cases {
		if got := decodeChunks(c.chunks...); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// FuzzDecoder checks that cuts between chunks change nothing, and that only
// bytes that are not UTF-8 are changed, as Go's own conversion changes them.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte("a\xc3\xa9\xff\xf0\x9f\x98\x80\xe2\x82"), uint8(1), uint8(3))
	f.Add([]byte("\xf0\x9f\xf0\x9f\x98\x80"), uint8(2), uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, first, second uint8) {
		i := min(int(first), len(b))
		j := min(i+int(second), len(b))
		got := decodeChunks(string(b[:i]), string(b[i:j]), string(b[j:]))
		if want := string([]rune(string(b))); got != want {
			t.Fatalf("%q cut at %d and %d: got %q, want %q", b, i, j, got, want)
		}
		if !utf8.ValidString(got) || validText(string(b)) != got {
			t.Fatalf("%q: %q is not what validText makes: %q", b, got, validText(string(b)))
		}
	})
}

func TestCountLines(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 1, "a\n": 1, "\n": 1, "a\nb": 2, "a\n\n": 2} {
		if got := countLines(text); got != want {
			t.Errorf("%q: %d lines, want %d", text, got, want)
		}
	}
}

func BenchmarkDecoder(b *testing.B) {
	chunk := []byte(strings.Repeat("some text with an é in it\n", 1200))
	b.SetBytes(int64(len(chunk)))
	o := &Output{Tool: "bash", TempDir: b.TempDir()}
	for b.Loop() {
		_, _ = o.Write(chunk)
	}
	o.Finish()
}
