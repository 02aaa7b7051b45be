package secret

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"

	"pgregory.net/rapid"
)

const key = `sk-"é/0123+&456🙂%<\789`

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b[1 : len(b)-1])
}

// numbered spells all but letters and digits by their numbers.
func numbered(s, format string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, format, r)
		}
	}
	return b.String()
}

func ascii(s string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(&b, `\u%04X`, unit)
	}
	return b.String()
}

// Whatever a server makes of a key, it is taken out, and nothing else is.
func TestOut(t *testing.T) {
	for name, spell := range map[string]func(string) string{
		"plain":             func(s string) string { return s },
		"JSON":              quoted,
		"JSON in JSON":      func(s string) string { return quoted(quoted(s)) },
		"ASCII JSON":        ascii,
		"lower case":        func(s string) string { return strings.ToLower(ascii(s)) },
		"ASCII in JSON":     func(s string) string { return quoted(ascii(s)) },
		"JSON with slashes": func(s string) string { return strings.ReplaceAll(quoted(s), "/", `\/`) },
		"a query":           url.QueryEscape,
		"a path":            url.PathEscape,
		"a query, again":    func(s string) string { return url.QueryEscape(url.QueryEscape(s)) },
		"lower percent":     func(s string) string { return strings.ToLower(url.QueryEscape(s)) },
		"HTML":              html.EscapeString,
		"HTML by numbers":   func(s string) string { return numbered(s, "&#x%X;") },
		"decimal HTML":      func(s string) string { return numbered(s, "&#%04d;") },
		"HTML in HTML":      func(s string) string { return html.EscapeString(numbered(s, "&#x%x;")) },
		"HTML in JSON":      func(s string) string { return quoted(numbered(s, "&#x%x;")) },
		"named HTML":        strings.NewReplacer("/", "&sol;", "+", "&plus;", "%", "&percnt;", `\\`, "&bsol;").Replace,
		"base64":            func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"basic":             func(s string) string { return base64.StdEncoding.EncodeToString([]byte("user:" + s)) },
		"basic, named x":    func(s string) string { return base64.StdEncoding.EncodeToString([]byte("x:" + s)) },
		"in a cookie":       func(s string) string { return base64.URLEncoding.EncodeToString([]byte(`{"k": "` + s + `"}`)) },
	} {
		t.Run(name, func(t *testing.T) {
			var set Set
			set.Add(key)
			spelt := spell(key)
			got := set.Out("wrong " + spelt + "! and " + spelt)
			// Of base64 the neighbours' characters stay.
			if !strings.HasPrefix(got, "wrong ") || strings.Count(got, Redacted) != 2 || len(got) > len("wrong ! and ")+2*len(Redacted)+60 {
				t.Errorf("got %q", got)
			}
			if rest := strings.ReplaceAll(got, Redacted, ""); strings.Contains(rest, spelt[len(spelt)/2-4:len(spelt)/2+4]) {
				t.Errorf("it is still in %q", got)
			}
			if spelt == key && got != "wrong "+Redacted+"! and "+Redacted {
				t.Errorf("got %q", got)
			}
		})
	}
}

// Any mixture of spellings of any key.
func TestMixtures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringOfN(rapid.RuneFrom([]rune(`abc01-_"\/%&+<é🙂`)), 8, 40, -1).Draw(t, "key")
		var set Set
		set.Add(key)
		var spelt strings.Builder
		for _, r := range key {
			ways := []string{string(r), ascii(string(r)), quoted(string(r)), url.QueryEscape(string(r)), html.EscapeString(string(r)), numbered(string(r), "&#x%x;")}
			spelt.WriteString(rapid.SampledFrom(ways).Draw(t, "way"))
		}
		if got := set.Out("[" + spelt.String() + "]"); got != "["+Redacted+"]" {
			t.Errorf("%q becomes %q", spelt.String(), got)
		}
	})
}

// What is no secret stays as it is, such as a short word that stands in for a key.
func TestStays(t *testing.T) {
	text := `a "sentence" that says a thing or two, ollama, EMPTY, sk-0123, 100% \ \u0041 &amp; %41`
	for _, key := range []string{"a", "x", "EMPTY", "ollama", "", "sk-01234", "sk-0123456"} {
		var set Set
		set.Add(key)
		set.AddHeader("Authorization", "Bearer "+key[:min(1, len(key))])
		if got := set.Out(text); got != text {
			t.Errorf("%q: %q", key, got)
		}
	}
}

// A header's value is one secret, and what it says behind its scheme another. What
// holds none by its name, or is short and not named like one, stays.
func TestHeader(t *testing.T) {
	var set Set
	set.AddHeader("Authorization", "Bearer sk-bearer-1")
	set.AddHeader("proxy-authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("me:password-2")))
	set.AddHeader("X-Extra", "plain-value-3")
	set.AddHeader("Api-Key", "short-4-")
	set.AddHeader("X-Org", "my-org-id-5")
	set.AddHeader("User-Agent", "somebodys-agent-6")
	got := set.Out("sk-bearer-1 password-2 me plain-value-3 short-4- my-org-id-5 somebodys-agent-6")
	if got != "[redacted] [redacted] me [redacted] [redacted] my-org-id-5 somebodys-agent-6" {
		t.Errorf("got %q", got)
	}
}

// A text may have been cut off in a key.
func TestOutCut(t *testing.T) {
	var set Set
	set.Add(key)
	for _, spelt := range []string{key, ascii(key), quoted(key), url.QueryEscape(key)} {
		for n := range spelt {
			text := "wrong key " + spelt[:n] + "…"
			got := set.OutCut(text, "…")
			if got != "wrong key "+Redacted+"…" && (got != text || len(spelt[:n]) >= 4*6+6) {
				t.Errorf("%q becomes %q", text, got)
			}
		}
	}
	if got := set.OutCut("a plain text…", "…"); got != "a plain text…" {
		t.Errorf("got %q", got)
	}
}
