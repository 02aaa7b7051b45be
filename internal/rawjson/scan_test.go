package rawjson

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A long string in front moves what follows off the word boundary.
var padding = strings.Repeat("p", 13)

// syntax lists texts by what is wrong with them: one value each, no white
// space around. An empty msg means valid.
var syntax = []struct {
	text   string
	offset int
	msg    string
}{
	{"null", 0, ""},
	{"true", 0, ""},
	{"false", 0, ""},
	{"0", 0, ""},
	{"-0", 0, ""},
	{"-0.0e-00", 0, ""},
	{"1234567890123456789012345678901234567890", 0, ""},
	{"1e400", 0, ""},
	{"1.5E+2", 0, ""},
	{`""`, 0, ""},
	{`"\"\\\/\b\f\n\r\t\u00e9\uD83D"`, 0, ""},
	{"\"\x7f\xff\u2028\"", 0, ""},
	{`"12345678\"12345678\\"`, 0, ""},
	{"[]", 0, ""},
	{"[ ]", 0, ""},
	{"{}", 0, ""},
	{"{\t\r\n }", 0, ""},
	{`{"a":1,"a":[{},[],"",0.0]}`, 0, ""},
	{" [ 1 , { \"a\" : 2 , \"b\" : \"\" } ] ", 0, ""},
	{`[1,[2,{"b":[{"c":[3]}]},4],5]`, 0, ""},

	{"", 0, msgEnd},
	{" ", 1, msgEnd},
	{"nul", 3, msgEnd},
	{"nulx", 3, msgLiteral},
	{"tRue", 1, msgLiteral},
	{"falsx", 4, msgLiteral},
	{"True", 0, msgValue},
	{"NaN", 0, msgValue},
	{"+1", 0, msgValue},
	{".5", 0, msgValue},
	{"'a'", 0, msgValue},
	{"\xef\xbb\xbf1", 0, msgValue},
	{"\x00", 0, msgValue},
	{"\v1", 0, msgValue},
	{"-", 1, msgEnd},
	{"-x", 1, msgNumber},
	{"--1", 1, msgNumber},
	{"01", 1, msgNumber},
	{"-00", 2, msgNumber},
	{"1.", 2, msgEnd},
	{"1.]", 2, msgNumber},
	{"1.e5", 2, msgNumber},
	{"1e", 2, msgEnd},
	{"1e+", 3, msgEnd},
	{"1e+x", 3, msgNumber},
	{"1E", 2, msgEnd},
	{`"`, 1, msgEnd},
	{`"abcdefghijklmnop`, 17, msgEnd},
	{`"\`, 1, msgEscape},
	{`"\"`, 3, msgEnd},
	{`"\x"`, 1, msgEscape},
	{`"\'"`, 1, msgEscape},
	{`"\u12`, 1, msgEscape},
	{`"\u12"`, 1, msgEscape},
	{`"a\u12g4"`, 2, msgEscape},
	{`"\u123é"`, 1, msgEscape},
	{`"\U0041"`, 1, msgEscape},
	{"\"a\nb\"", 2, msgControl},
	{"\"1234567\x1f\"", 8, msgControl},
	{"\"\x00\"", 1, msgControl},
	{"[", 1, msgEnd},
	{"[1", 2, msgEnd},
	{"[1,", 3, msgEnd},
	{"[,1]", 1, msgValue},
	{"[1,]", 3, msgValue},
	{"[1 2]", 3, msgArraySep},
	{"[1}", 2, msgArraySep},
	{"[1:2]", 2, msgArraySep},
	{"[\v]", 1, msgValue},
	{"[\u00a01]", 1, msgValue},
	{"[01]", 2, msgNumber},
	{"[truefalse]", 5, msgArraySep},
	{"{", 1, msgEnd},
	{"{]", 1, msgKey},
	{"{1:2}", 1, msgKey},
	{"{a:1}", 1, msgKey},
	{`{"a"}`, 4, msgColon},
	{`{"a`, 3, msgEnd},
	{`{"a\z":1}`, 3, msgEscape},
	{`{"a" `, 5, msgEnd},
	{`{"a":1, "b" : 2 , `, 18, msgEnd},
	{`{"a",1}`, 4, msgColon},
	{`{"a":`, 5, msgEnd},
	{`{"a":}`, 5, msgValue},
	{`{"a":1`, 6, msgEnd},
	{`{"a":1,`, 7, msgEnd},
	{`{"a":1,}`, 7, msgKey},
	{`{,"a":1}`, 1, msgKey},
	{`{"a":1 "b":2}`, 7, msgObjectSep},
	{`{"a":1]`, 6, msgObjectSep},
	{`{"a":1:2}`, 6, msgObjectSep},
	{`{"a\n":"` + padding + `\z"}`, 21, msgEscape},
	{`[/* */1]`, 1, msgValue},
}

func TestValid(t *testing.T) {
	for _, tt := range syntax {
		want := (*SyntaxError)(nil)
		if tt.msg != "" {
			want = &SyntaxError{Offset: tt.offset, Msg: tt.msg}
		}
		if diff := cmp.Diff(want, Valid([]byte(tt.text))); diff != "" {
			t.Errorf("Valid(%q): %s", tt.text, diff)
		}
		if tt.msg == "" || tt.text == "" {
			continue
		}
		// The same text as the second element, off its alignment.
		front := `["` + padding + `",`
		err := Valid([]byte(front + tt.text))
		if err == nil || err.Offset != len(front)+tt.offset {
			t.Errorf("Valid(%q) = %+v, want an error at %d", front+tt.text, err, len(front)+tt.offset)
		}
	}
	for text, offset := range map[string]int{"1 2": 2, "{} {": 3, "[]]": 2, `"a""b"`: 3, "nullx": 4, "1x": 1} {
		want := &SyntaxError{Offset: offset, Msg: msgTrailing}
		if diff := cmp.Diff(want, Valid([]byte(text))); diff != "" {
			t.Errorf("Valid(%q): %s", text, diff)
		}
	}
}

func TestSkip(t *testing.T) {
	tests := []struct {
		text   string
		i, end int
	}{
		{`1`, 0, 1},
		{` 1 `, 0, 2},
		{"\t\r\n\"a\" x", 0, 6},
		{`[1,2],{"a":1}`, 0, 5},
		{`[1,2],{"a":1}`, 6, 13},
		{`[1,2],{"a":1}`, 3, 4},
		{`{"a":[1]}}`, 0, 9},
		{`truefalse`, 0, 4},
		{`-1.5e3,`, 0, 6},
		{`1-`, 0, 1},
		{`""`, 0, 2},
	}
	for _, tt := range tests {
		end, err := Skip([]byte(tt.text), tt.i)
		if err != nil || end != tt.end {
			t.Errorf("Skip(%q, %d) = %d, %v, want %d", tt.text, tt.i, end, err, tt.end)
		}
	}
	for _, i := range []int{3, 4, 5} {
		if end, err := Skip([]byte("[1] "), i); err == nil || end != err.Offset || err.Msg != msgEnd {
			t.Errorf("Skip past the text from %d = %d, %v, want an error", i, end, err)
		}
	}
	if got := (&SyntaxError{Offset: 3, Msg: msgEnd}).Error(); got != msgEnd {
		t.Errorf("Error() = %q, want %q", got, msgEnd)
	}
}

// Every byte decides alone whether it may stand in a string, at each place in
// a word and beside each high byte.
func TestStringBytes(t *testing.T) {
	for c := range 256 {
		for at := range 17 {
			text := []byte(`"` + strings.Repeat("\xff", 18) + `"`)
			text[1+at] = byte(c)
			err := Valid(text)
			switch {
			case c == '"' || c == '\\' || c < ' ':
				want := &SyntaxError{Offset: 1 + at, Msg: msgControl}
				if c == '"' {
					want = &SyntaxError{Offset: 2 + at, Msg: msgTrailing}
				} else if c == '\\' {
					want.Msg = msgEscape
				}
				if diff := cmp.Diff(want, err); diff != "" {
					t.Fatalf("byte %#x at %d: %s", c, at, diff)
				}
			case err != nil:
				t.Fatalf("byte %#x at %d: %v", c, at, err)
			}
		}
	}
}

// So does every byte after a backslash, behind another escape.
func TestEscapeBytes(t *testing.T) {
	for c := range 256 {
		for at := range 17 {
			text := `"\n` + strings.Repeat("x", at) + `\` + string([]byte{byte(c)}) + strings.Repeat("0", 17) + `"`
			want := (*SyntaxError)(nil)
			if !strings.ContainsRune(`"\/bfnrtu`, rune(c)) {
				want = &SyntaxError{Offset: 3 + at, Msg: msgEscape}
			}
			if diff := cmp.Diff(want, Valid([]byte(text))); diff != "" {
				t.Fatalf("escape of %#x at %d: %s", c, at, diff)
			}
		}
	}
}

// bytewise is scanString without words.
func bytewise(b []byte) (end int, msg string) {
	for i := 1; i < len(b); {
		switch c := b[i]; {
		case c == '"':
			return i + 1, ""
		case c == '\\':
			n := escapeLen(b, i)
			if n == 0 {
				return i, msgEscape
			}
			i += n
		case c < ' ':
			return i, msgControl
		default:
			i++
		}
	}
	return len(b), msgEnd
}

// Strings of the pieces that mean something to the scanner, so that runs of
// escapes and cuts fall on every place of a word.
func TestStringsAgainstBytewise(t *testing.T) {
	pieces := []string{`\n`, `\t`, `\"`, `\n\t\t`, `\\`, `\r`, `\/`, `\b`, `\u00e9`, `\ud83d`, "a", "ab", "abcdefgh", "é", "\xff", "n", "u", "\xdc\xa2", "\x82"}
	bad := []string{`\`, `\x`, `"`, "\n", "\\\n", `\u12`, "\x00", `\u00g0`, "\\\xdc", "\\\xee", "\x1f"}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200_000 {
		text := []byte{'"'}
		for range rng.IntN(24) {
			text = append(text, pieces[rng.IntN(len(pieces))]...)
		}
		if rng.IntN(2) == 0 {
			text = append(text, bad[rng.IntN(len(bad))]...)
		}
		for range rng.IntN(9) {
			text = append(text, pieces[rng.IntN(len(pieces))]...)
		}
		if rng.IntN(4) != 0 {
			text = append(text, `",`...)
		}
		end, msg := scanString(text, 0)
		if wantEnd, wantMsg := bytewise(text); end != wantEnd || msg != wantMsg {
			t.Fatalf("scanString(%q) = %d, %q, want %d, %q", text, end, msg, wantEnd, wantMsg)
		}
	}
}

func TestDepth(t *testing.T) {
	for _, n := range []int{1, 61, 62, 63, 64, 65, 126, 127, 128, 500, 20_000, 1_000_000} {
		// Objects and arrays alternate with a period that no word size shares.
		var front, back []byte
		for k := range n {
			if k%7 < 3 {
				front, back = append(front, `{"k":`...), append(back, '}')
			} else {
				front, back = append(front, '['), append(back, ']')
			}
		}
		for i, j := 0, len(back)-1; i < j; i, j = i+1, j-1 {
			back[i], back[j] = back[j], back[i]
		}
		text := append(append(front, '0'), back...)
		if err := Valid(text); err != nil {
			t.Fatalf("depth %d: %v at %d of %d", n, err, err.Offset, len(text))
		}
		if n > 1 { // a wrong closer at the outermost but one level
			wrong := append([]byte(nil), text...)
			wrong[len(wrong)-2] ^= '}' ^ ']'
			if err := Valid(wrong); err == nil || err.Offset != len(wrong)-2 {
				t.Fatalf("depth %d with a wrong closer: %+v, want an error at %d", n, err, len(wrong)-2)
			}
		}
		if err := Valid(text[:len(text)-1]); err == nil || err.Msg != msgEnd {
			t.Fatalf("depth %d without its last closer: %v", n, err)
		}
	}
}

func TestScanAllocatesNothing(t *testing.T) {
	deep := []byte(strings.Repeat(`[`, 512) + strings.Repeat(`]`, 512))
	object := []byte(`{"a":[1,{"b":"c\n"}],"é\u00e9":true,"n":-12,"s":"text"}`)
	array := []byte(`[1,"two",{"three":[3]},null]`)
	var dst []byte
	tests := map[string]func() bool{
		"Skip deep":   func() bool { _, err := Skip(deep, 0); return err == nil },
		"Valid":       func() bool { return Valid(object) == nil },
		"MembersFunc": func() bool { return MembersFunc(object, func(m Member) bool { return m.Key != nil }) == nil },
		"Members": func() bool {
			n := 0
			for range Members(object) {
				n++
			}
			return n == 4
		},
		"ElementsFunc": func() bool { return ElementsFunc(array, func(start, end int) bool { return start < end }) == nil },
		"Get escaped":  func() bool { _, ok := Get(object, "éé"); return ok },
		"GetInt":       func() bool { n, ok := GetInt(object, "n"); return ok && n == -12 },
		"GetBool":      func() bool { b, ok := GetBool(object, "éé"); return ok && b },
		"ValidUTF8":    func() bool { return ValidUTF8(object) == -1 },
		"Compact": func() bool {
			var err error
			dst, err = Compact(dst[:0], object)
			return err == nil
		},
		"AppendQuote": func() bool {
			dst = AppendQuote(dst[:0], "text \" with \xed\xa0\xbd")
			return len(dst) > 0
		},
		"AppendUnquote": func() bool {
			var err error
			dst, err = AppendUnquote(dst[:0], []byte(`"a\u00e9"`))
			return err == nil
		},
	}
	for name, fn := range tests {
		if !fn() {
			t.Errorf("%s: wrong result", name)
		}
		if n := testing.AllocsPerRun(100, func() { fn() }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}

func TestKindOf(t *testing.T) {
	want := map[string]Kind{
		"": Invalid, " ": Invalid, "null": Null, "true": Bool, "false": Bool, "0": Number, "-1": Number, "9": Number,
		`"a"`: String, "[": Array, "{": Object, " \t\r\n{": Object, "x": Invalid, "+1": Invalid, "}": Invalid, "\xff": Invalid,
		"/": Invalid, ":": Invalid, "\v1": Invalid,
	}
	got := map[string]Kind{}
	for text := range want {
		got[text] = KindOf([]byte(text))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestValidUTF8(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 5)
	want := map[string]int{
		"": -1, "abc": -1, "é会🙂\ufffd\x00\x7f": -1, long + "é": -1,
		"\xff": 0, "ab\x80": 2, "é\xc3": 2, "\xc0\xaf": 0, "ab\xed\xa0\xbdc": 2, "\xf4\x90\x80\x80": 0, "a\xe4\xbd": 1,
		long + "\xff" + long: 80, long + "é\xc3" + long: 82, "1234567\xe4\xbd": 7, "\U0010ffff\xf0\x80\x80\x80": 4,
	}
	got := map[string]int{}
	for text := range want {
		got[text] = ValidUTF8([]byte(text))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
