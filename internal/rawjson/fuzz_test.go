package rawjson

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// lax makes jsontext accept what this package accepts.
var lax = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// tooDeep tells whether text may nest deeper than the 10,000 levels at which
// both oracles give up.
func tooDeep(text []byte) bool {
	return bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) >= 10_000
}

func addSyntax(f *testing.F) {
	for _, tt := range syntax {
		f.Add([]byte(tt.text))
	}
}

// FuzzSkip compares the verdict and the end of a value with both oracles, and
// the walks with jsontext's tokens.
func FuzzSkip(f *testing.F) {
	addSyntax(f)
	f.Add([]byte(`[1] {"a":[2]}x`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if tooDeep(text) {
			t.Skip()
		}
		err := Valid(text)
		if err != nil && (err.Offset < 0 || err.Offset > len(text) || err.Msg == "") {
			t.Errorf("Valid(%q) = %+v: no such offset", text, err)
		}
		if want := json.Valid(text); (err == nil) != want {
			t.Errorf("Valid(%q) = %v, encoding/json says %v", text, err, want)
		}
		if want := jsontext.Value(text).IsValid(lax...); (err == nil) != want {
			t.Errorf("Valid(%q) = %v, jsontext says %v", text, err, want)
		}

		end, err := Skip(text, 0)
		d := jsontext.NewDecoder(bytes.NewReader(text), lax...)
		value, derr := d.ReadValue()
		leadingZero := err != nil && err.Msg == msgNumber && derr == nil
		switch {
		case leadingZero && bytes.HasSuffix(value, []byte("0")) && end == int(d.InputOffset()):
			// jsontext takes the 0 of 01 for a value and fails at the 1.
		case (err == nil) != (derr == nil):
			t.Errorf("Skip(%q) = %d, %v, jsontext says %v", text, end, err, derr)
		case err == nil && int64(end) != d.InputOffset():
			t.Errorf("Skip(%q) = %d, jsontext ends at %d", text, end, d.InputOffset())
		}
		if err == nil {
			compareWalk(t, value)
		}
	})
}

// compareWalk compares what Members or Elements give for the valid value with
// a walk by jsontext.
func compareWalk(t *testing.T, value []byte) {
	t.Helper()
	d := jsontext.NewDecoder(bytes.NewReader(value), lax...)
	kind := d.PeekKind()
	if kind != '{' && kind != '[' {
		if MembersFunc(value, nil) == nil || ElementsFunc(value, nil) == nil {
			t.Errorf("the scalar %q was walked", value)
		}
		return
	}
	var want, got []string
	if _, err := d.ReadToken(); err != nil {
		t.Fatal(err)
	}
	for d.PeekKind() != kind+2 {
		item, err := d.ReadValue()
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, string(item))
	}
	if kind == '{' {
		for m, err := range Members(value) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(m.Key), string(m.Value))
		}
	} else {
		for e, err := range Elements(value) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(e))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("walk of %q: %s", value, diff)
	}
}

// FuzzCompact compares with encoding/json, which keeps every other byte too.
func FuzzCompact(f *testing.F) {
	addSyntax(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		if tooDeep(text) {
			t.Skip()
		}
		var want bytes.Buffer
		wantErr := json.Compact(&want, text)
		got, err := Compact([]byte("x"), text)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("Compact(%q) = %v, encoding/json says %v", text, err, wantErr)
		}
		if string(got) != "x"+want.String() && err == nil {
			t.Fatalf("Compact(%q) = %q, want x%q", text, got, want.Bytes())
		}
		own := bytes.Clone(text)
		if again, err := Compact(own[:0], own); err == nil && !bytes.Equal(again, want.Bytes()) {
			t.Fatalf("Compact(%q) in place = %q, want %q", text, again, want.Bytes())
		}
	})
}

// units is the plain meaning of a WTF-8 text: its UTF-16 units, with U+FFFD for
// each byte that is not part of a sequence.
func units(s string) []uint16 {
	var out []uint16
	for len(s) > 0 {
		if r, n := utf8.DecodeRuneInString(s); r != utf8.RuneError || n > 1 {
			out = utf16.AppendRune(out, r)
			s = s[n:]
			continue
		}
		if len(s) >= 3 && s[0] == 0xed && s[1] >= 0xa0 && s[1] <= 0xbf && s[2] >= 0x80 && s[2] <= 0xbf {
			out = append(out, 0xd000|uint16(s[1]&0x3f)<<6|uint16(s[2]&0x3f))
			s = s[3:]
			continue
		}
		out = append(out, utf8.RuneError)
		s = s[1:]
	}
	return out
}

// wtf8 is the one WTF-8 spelling of UTF-16 units.
func wtf8(u []uint16) string {
	var out []byte
	for i := 0; i < len(u); i++ {
		switch {
		case i+1 < len(u) && u[i]>>10 == 0xd8>>2 && u[i+1]>>10 == 0xdc>>2:
			out = utf8.AppendRune(out, utf16.DecodeRune(rune(u[i]), rune(u[i+1])))
			i++
		case u[i]>>11 == 0xd8>>3:
			out = append(out, 0xed, 0x80|byte(u[i]>>6)&0x3f, 0x80|byte(u[i])&0x3f)
		default:
			out = utf8.AppendRune(out, rune(u[i]))
		}
	}
	return string(out)
}

// FuzzQuote checks that a text survives Quote and Unquote, that encoding/json
// reads the literal as the same text (it turns lone surrogates into U+FFFD),
// that jsontext writes valid UTF-8 alike, that a text cut between two UTF-16
// units joins again, and that any literal decodes as encoding/json decodes it.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "plain", "a\"b\\c\n\x00\x7f", "é会🙂\u2028<&>", high, low, high + low, low + high, "\xff\xe4\xbd", `\ud83d\u00e9\n`, `\ud83d\ude42`} {
		f.Add(s, uint16(len(s)/2))
	}
	f.Fuzz(func(t *testing.T, s string, cut uint16) {
		lit := Quote(s)
		var std string
		if err := json.Unmarshal(lit, &std); err != nil || !utf8.Valid(lit) {
			t.Fatalf("Quote(%q) = %q: %v", s, lit, err)
		}
		if want := string(utf16.Decode(units(s))); std != want {
			t.Errorf("Quote(%q) = %s is %q to encoding/json, want %q", s, lit, std, want)
		}
		if got, err := Unquote(lit); err != nil || got != wtf8(units(s)) {
			t.Errorf("Unquote(Quote(%q)) = %q, %v, want %q", s, got, err, wtf8(units(s)))
		}
		if utf8.ValidString(s) {
			want, err := jsontext.AppendQuote(nil, s)
			if err != nil || !bytes.Equal(lit, want) {
				t.Errorf("Quote(%q) = %s, jsontext writes %s, %v", s, lit, want, err)
			}
		}
		if u := units(s); int(cut) <= len(u) {
			front, back := wtf8(u[:cut]), wtf8(u[cut:])
			if joined := JoinText(front, back); joined != wtf8(u) {
				t.Errorf("JoinText(%q, %q) = %q, want %q", front, back, joined, wtf8(u))
			}
		}

		raw := `"` + s + `"`
		got, err := Unquote([]byte(raw))
		stdErr := json.Unmarshal([]byte(raw), &std)
		if (err == nil) != (stdErr == nil) {
			t.Fatalf("Unquote(%q) = %v, encoding/json says %v", raw, err, stdErr)
		}
		if want := std; err == nil && utf8.ValidString(s) && string(utf16.Decode(units(got))) != want {
			t.Errorf("Unquote(%q) = %q, encoding/json reads %q", raw, got, want)
		}
		if err == nil && utf8.ValidString(s) && got != wtf8(units(got)) {
			t.Errorf("Unquote(%q) = %q, which is no WTF-8", raw, got)
		}
	})
}

// longestPrefix is Complete by trial: the longest part of the prefix that a
// quote and closing brackets make a value.
func longestPrefix(prefix []byte) string {
	for n := len(prefix); n > 0; n-- {
		var closers []byte
		inString := false
		for i := 0; i < n; i++ {
			switch c := prefix[i]; {
			case inString && c == '\\':
				i++
			case c == '"':
				inString = !inString
			case inString:
			case c == '{' || c == '[':
				closers = append([]byte{c + 2}, closers...)
			case len(closers) > 0 && c == closers[0]:
				closers = closers[1:]
			}
		}
		for _, quote := range []string{"", `"`} {
			if text := string(prefix[:n]) + quote + string(closers); json.Valid([]byte(text)) {
				return text
			}
		}
	}
	return "{}"
}

// FuzzComplete compares with the search by trial where the input is UTF-8, and
// checks everywhere that the result is a value in UTF-8.
func FuzzComplete(f *testing.F) {
	addSyntax(f)
	f.Add([]byte(`{"path":"a\u00e9b","n":[1.5e+3,true,{"x":null}],"s":"🙂`))
	f.Fuzz(func(t *testing.T, prefix []byte) {
		if len(prefix) > 400 { // the trial is quadratic
			t.Skip()
		}
		got := Complete(prefix)
		if !json.Valid(got) || !utf8.Valid(got) {
			t.Fatalf("Complete(%q) = %q, which is no value in UTF-8", prefix, got)
		}
		if !utf8.Valid(prefix) {
			return
		}
		var plain, want bytes.Buffer
		if json.Compact(&plain, got) != nil || json.Compact(&want, []byte(longestPrefix(prefix))) != nil {
			t.Fatal("an oracle gave no value")
		}
		if plain.String() != want.String() {
			t.Errorf("Complete(%q) = %s, want %s", prefix, got, want.Bytes())
		}
	})
}

// FuzzSet compares Set, Delete and Get with the same change to encoding/json's
// map of the object, where names can be told apart in it.
func FuzzSet(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":2,"a":3}`), "a", []byte(`[4]`))
	f.Add([]byte(` { "a" : 1 } `), "é\n", []byte(` null `))
	f.Add([]byte(`{}`), high, []byte(`"x"`))
	f.Add([]byte(`{"\u0061\ud83d":1}`), "a", []byte(`0`))
	f.Fuzz(func(t *testing.T, obj []byte, key string, value []byte) {
		var before map[string]json.RawMessage
		valid := KindOf(obj) == Object && json.Unmarshal(obj, &before) == nil
		if tooDeep(obj) || tooDeep(value) {
			t.Skip()
		}
		set, err := Set(obj, key, value)
		if (err == nil) != (valid && json.Valid(value)) {
			t.Fatalf("Set(%q, %q, %q) = %v", obj, key, value, err)
		}
		deleted, delErr := Delete(obj, key)
		if (delErr == nil) != valid {
			t.Fatalf("Delete(%q, %q) = %v", obj, key, delErr)
		}
		if !valid {
			return
		}
		if _, ok := Get(deleted, key); ok {
			t.Errorf("Delete(%q, %q) = %q still has it", obj, key, deleted)
		}
		_, had := Get(obj, key)
		if !had && !bytes.Equal(deleted, obj) {
			t.Errorf("Delete(%q, %q) = %q, want no change", obj, key, deleted)
		}
		if key != wtf8(units(key)) || strings.ContainsRune(strings.Join(slices.Collect(maps.Keys(before)), "")+key, utf8.RuneError) {
			return // not a text, or names that encoding/json mangles
		}
		compareMap(t, deleted, before, func(m map[string]json.RawMessage) { delete(m, key) })
		if err != nil {
			return
		}
		want := json.RawMessage(bytes.Trim(value, " \t\r\n"))
		compareMap(t, set, before, func(m map[string]json.RawMessage) { m[key] = want })
		if got, ok := Get(set, key); !ok || !bytes.Equal(got, want) {
			t.Errorf("Get(Set(%q, %q, %q)) = %q, %v", obj, key, value, got, ok)
		}
		if same, err := Set(set, key, want); err != nil || !bytes.Equal(same, set) {
			t.Errorf("Set(%q, %q, %q) = %q, %v: more than the value changed", set, key, want, same, err)
		}
	})
}

func compareMap(t *testing.T, got []byte, before map[string]json.RawMessage, change func(map[string]json.RawMessage)) {
	t.Helper()
	want := map[string]json.RawMessage{}
	maps.Copy(want, before)
	change(want)
	var after map[string]json.RawMessage
	if err := json.Unmarshal(got, &after); err != nil {
		t.Fatalf("%q: %v", got, err)
	}
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("%q: %s", got, diff)
	}
}
