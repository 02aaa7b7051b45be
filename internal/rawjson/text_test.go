package rawjson

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The halves of 🙂 as WTF-8.
const (
	high = "\xed\xa0\xbd"
	low  = "\xed\xb9\x82"
)

func TestQuote(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", `""`},
		{"plain", `"plain"`},
		{"a\"b\\c/d", `"a\"b\\c/d"`},
		{"\b\f\n\r\t", `"\b\f\n\r\t"`},
		{"\x00\x01\x0b\x1f\x7f", "\"\\u0000\\u0001\\u000b\\u001f\x7f\""},
		{"<script>&\u2028\u2029'é会🙂\ufffd", "\"<script>&\u2028\u2029'é会🙂\ufffd\""},
		{high, `"\ud83d"`},
		{low, `"\ude42"`},
		{"\xed\xa0\x80\xed\xbf\xbf!", "\"\U000103ff!\""},
		{"\xed\xaf\xbf\xed\xbf\xbf", "\"\U0010ffff\""},
		{"\xed\x9f\xbf\xee\x80\x80", "\"\ud7ff\ue000\""},
		{high + low, `"🙂"`},
		{low + high, `"\ude42\ud83d"`},
		{high + high + low, `"\ud83d🙂"`},
		{high + "x" + low, `"\ud83dx\ude42"`},
		{high + "\n" + low, `"\ud83d\n\ude42"`},
		{"é" + high, `"é\ud83d"`},
		{"\xff", `"\ufffd"`},
		{"a\xe4\xbd\nb", `"a\ufffd\ufffd\nb"`},
		{"\xed\xa0", `"\ufffd\ufffd"`},
		{high + "\xed\xb9", `"\ud83d\ufffd\ufffd"`},
		{"\xc0\xaf\xf8", `"\ufffd\ufffd\ufffd"`},
		{strings.Repeat("p", 100) + "\n" + strings.Repeat("q", 7), `"` + strings.Repeat("p", 100) + `\n` + strings.Repeat("q", 7) + `"`},
	}
	for _, tt := range tests {
		if got := string(Quote(tt.text)); got != tt.want {
			t.Errorf("Quote(%q) = %s, want %s", tt.text, got, tt.want)
		}
		if got := string(AppendQuote([]byte(high), tt.text)); got != high+tt.want {
			t.Errorf("AppendQuote(%q) = %q, want %s", tt.text, got, tt.want)
		}
	}
	// Every control at every place in a word.
	for c := range byte(' ') {
		for at := range 17 {
			front, back := strings.Repeat("é", at/2)+"x"[:at%2], strings.Repeat("y", 17-at)
			want := `"` + front + string(appendEscape(nil, c)) + back + `"`
			if got := string(Quote(front + string(rune(c)) + back)); got != want {
				t.Fatalf("Quote of %#x at %d = %s, want %s", c, at, got, want)
			}
		}
	}
}

func TestUnquote(t *testing.T) {
	tests := []struct{ raw, want string }{
		{`""`, ""},
		{`"plain é会🙂"`, "plain é会🙂"},
		{`"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t"},
		{`"\u0000\u001F\u00e9\u4F1a"`, "\x00\x1fé会"},
		{`"\ud83d\ude42"`, "🙂"},
		{`"\uD83D\uDE42!"`, "🙂!"},
		{`"\udbff\udfff\ud800\udc00"`, "\U0010ffff\U00010000"},
		{`"\ud83d"`, high},
		{`"\ude42"`, low},
		{`"\ude42\ud83d"`, low + high},
		{`"\ud83d\ud83d\ude42"`, high + "🙂"},
		{`"\ud83dx\ude42"`, high + "x" + low},
		{`"\ud83d\n\ude42"`, high + "\n" + low},
		{`"\ud83d\\ude42"`, high + `\ude42`},
		{`"\ud83d\u0041"`, high + "A"},
		{`"\\\\u0041"`, `\\u0041`},
		{"\"" + high + "\"", high},
		{"\"\xff\\n\"", "\xff\n"},
	}
	for _, tt := range tests {
		got, err := Unquote([]byte(tt.raw))
		if err != nil || got != tt.want {
			t.Errorf("Unquote(%s) = %q, %v, want %q", tt.raw, got, err, tt.want)
		}
		app, err := AppendUnquote([]byte("x"), []byte(tt.raw))
		if err != nil || string(app) != "x"+tt.want {
			t.Errorf("AppendUnquote(%s) = %q, %v, want x%q", tt.raw, app, err, tt.want)
		}
	}
	bad := map[string]*SyntaxError{
		``:             {0, msgEnd},
		`a`:            {0, msgString},
		` "a"`:         {0, msgString},
		`"a" `:         {3, msgTrailing},
		`"a`:           {2, msgEnd},
		`"`:            {1, msgEnd},
		`"\"`:          {3, msgEnd},
		`"\u00g0"`:     {1, msgEscape},
		"\"a\n\"":      {2, msgControl},
		`1`:            {0, msgString},
		`"a""`:         {3, msgTrailing},
		`"a\ud83d\u"`:  {8, msgEscape},
		`"a\ud83d\ud8`: {8, msgEscape},
	}
	for raw, want := range bad {
		got, err := Unquote([]byte(raw))
		if diff := cmp.Diff(error(want), err); diff != "" || got != "" {
			t.Errorf("Unquote(%q) = %q: %s", raw, got, diff)
		}
		app, err := AppendUnquote([]byte("x"), []byte(raw))
		if diff := cmp.Diff(error(want), err); diff != "" || string(app) != "x" {
			t.Errorf("AppendUnquote(%q) = %q: %s", raw, app, diff)
		}
	}
}

func TestJoinText(t *testing.T) {
	tests := []struct {
		parts []string
		want  string
	}{
		{nil, ""},
		{[]string{"a"}, "a"},
		{[]string{"a", "", "é"}, "aé"},
		{[]string{"a" + high, low + "b"}, "a🙂b"},
		{[]string{high, "", low}, "🙂"},
		{[]string{high, low, high, low}, "🙂🙂"},
		{[]string{low, high}, low + high},
		{[]string{high, high, low}, high + "🙂"},
		{[]string{high, "x", low}, high + "x" + low},
		{[]string{"\xa0\xbd", low}, "\xa0\xbd" + low},
		{[]string{high + low, "x"}, high + low + "x"}, // only seams are joined
		{[]string{"\ud7ff", low}, "\ud7ff" + low},
		{[]string{high, "\xed\xb9"}, high + "\xed\xb9"},
	}
	for _, tt := range tests {
		if got := JoinText(tt.parts...); got != tt.want {
			t.Errorf("JoinText(%q) = %q, want %q", tt.parts, got, tt.want)
		}
		var got []byte
		for _, p := range tt.parts {
			got = AppendJoin(got, p)
		}
		if string(got) != tt.want {
			t.Errorf("AppendJoin of %q = %q, want %q", tt.parts, got, tt.want)
		}
	}
}
