package rewrite

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"
)

const marker = `ERASE-<&"é😀-77`

// escapeAll spells every character of a text as an escape.
func escapeAll(text string, format string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(text)) {
		fmt.Fprintf(&b, format, unit)
	}
	return b.String()
}

func quoted(t testing.TB, text string) string {
	t.Helper()
	b, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[1 : len(b)-1])
}

// Every spelling that JSON has for a text is found, and so are those of JSON
// within JSON text (B44).
func TestLiteralSpellings(t *testing.T) {
	l := newLiteral(marker)
	html := quoted(t, marker)
	for name, text := range map[string]string{
		"plain":           marker,
		"required":        strings.ReplaceAll(marker, `"`, `\"`),
		"html":            html,
		"lower":           escapeAll(marker, `\u%04x`),
		"upper":           escapeAll(marker, `\u%04X`),
		"nested":          quoted(t, html),
		"nested twice":    quoted(t, quoted(t, html)),
		"lower nested":    quoted(t, escapeAll(marker, `\u%04x`)),
		"after a newline": `\n` + html,
		"after slashes":   `\\\\` + html,
		"escaped slashes": strings.ReplaceAll(quoted(t, html), `\\`, `\u005c`),
		"half of them":    strings.ReplaceAll(quoted(t, quoted(t, html)), `\\\\`, `\u005c\\`),
	} {
		for _, around := range []string{"", "some text ", `\"x\" `, "é"} {
			b := []byte(around + text + around)
			start, end := l.find(b, true)
			if start < 0 {
				t.Errorf("%s: not found in %s", name, b)
				continue
			}
			if got := string(b[end:]); got != around {
				t.Errorf("%s: ends before %q, not %q", name, got, around)
			}
		}
	}
}

// What only looks alike is left alone.
func TestLiteralLookalikes(t *testing.T) {
	for _, tt := range []struct{ literal, raw string }{
		{"name", `\name`},
		{"uber", `\u00fcber`},
		{"ab", `a\\b`},
		{"a\nb", `a\\\tb`},
		{marker, quoted(t, marker[:len(marker)-1])},
		{"😀", `\ud83d`},
		{"😀", `\ud83d\ud83d`},
	} {
		if start, _ := newLiteral(tt.literal).find([]byte(tt.raw), true); start >= 0 {
			t.Errorf("%q found in %s", tt.literal, tt.raw)
		}
	}
	for _, tt := range []struct{ literal, raw string }{
		{`C:\name`, `C:\\name`}, {"name", `C:\\name`}, {`a\\b`, `a\\\\b`}, {`a\`, `a\u005c`}, {"a\\\nb", `a\\\nb`}, {"/", `\/`},
	} {
		if start, _ := newLiteral(tt.literal).find([]byte(tt.raw), true); start < 0 {
			t.Errorf("%q not found in %s", tt.literal, tt.raw)
		}
	}
}

// A literal is found in a JSON string exactly when the decoded string holds it,
// as long as no text spells JSON itself.
func TestLiteralAgreesWithDecoding(t *testing.T) {
	alphabet := rapid.SampledFrom([]rune("abnu\n\"é😀/ 0"))
	text := rapid.StringOfN(alphabet, 0, 12, -1)
	rapid.Check(t, func(rt *rapid.T) {
		whole := text.Draw(rt, "text")
		part := rapid.StringOfN(alphabet, 1, 3, -1).Draw(rt, "literal")
		raw := spell(rt, whole)
		start, _ := newLiteral(part).find([]byte(raw), true)
		if want := strings.Contains(whole, part); (start >= 0) != want {
			rt.Fatalf("%q in %s: found at %d, want %t", part, raw, start, want)
		}
	})
}

// spell writes a text as a JSON string would hold it, each character in a way of
// its own.
func spell(rt *rapid.T, text string) string {
	var b strings.Builder
	for _, r := range text {
		if rapid.Bool().Draw(rt, "escape") {
			b.WriteString(escapeAll(string(r), `\u%04x`))
			continue
		}
		switch r {
		case '"':
			b.WriteString(`\"`)
		case '\n':
			b.WriteString(`\n`)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
