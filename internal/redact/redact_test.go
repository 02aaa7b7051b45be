package redact

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-run/drover/internal/rawjson"
)

func rules(t *testing.T, file string) *Rules {
	t.Helper()
	r, err := Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name, file, want string
		line             int
	}{
		{"nothing", "", "", 0},
		{"comments and empty lines", "# a ==> b\n\n#\n", "", 0},
		{"a literal", "sk-1 ==> KEY\n", "", 0},
		{"no newline at the end, CRLF, BOM", "\uFEFFsk-1 ==> KEY\r\nsk-2 ==> KEY", "", 0},
		{"the first arrow splits", "a ==> b ==> c\n", "", 0},
		{"blanks count", "  a  ==>  b \n", "", 0},
		{"an empty replacement", "a ==> \n", "", 0},
		{"no arrow", "# x\na => b\n", `no " ==> "`, 2},
		{"no literal", "x ==> y\n ==> b\n", "nothing stands", 2},
		{"no literal, nothing in front", " ==> b", "nothing stands", 1},
		{"not UTF-8", "a\xff ==> b\n", "not UTF-8", 1},
		{"a pattern that does not compile", "regex:a( ==> b\n", "missing closing )", 1},
		{"a pattern for nothing", "regex:a* ==> b\n", "empty string", 1},
		{"a pattern between characters", "ok ==> x\nregex:\\b ==> b\n", "empty string", 2},
		{"an alternative of nothing", "regex:a|b? ==> c\n", "empty string", 1},
		{"an empty pattern", "regex: ==> b\n", "empty string", 1},
		{"a pattern", "regex:(?i)key-[0-9a-f]{8,}|x+ ==> [key]\n", "missing", -1},
		{"the replacement matches its own pattern", "a ==> bab\n", "line 1 replaces", 1},
		{"the replacement matches another pattern", "a ==> b\nregex:b+ ==> c\n", "line 2 replaces", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(tt.file))
			var bad *FileError
			switch {
			case tt.line == 0 && err == nil:
			case tt.line == -1: // x+ matches nothing of [key]
				if err != nil {
					t.Error(err)
				}
			case !errors.As(err, &bad) || bad.Line != tt.line || !strings.Contains(bad.Msg, tt.want):
				t.Errorf("got %v, want line %d: %s", err, tt.line, tt.want)
			}
		})
	}
}

func TestText(t *testing.T) {
	for _, tt := range []struct {
		name, file, in, want string
		count                int
	}{
		{"no rule", "", "secret", "secret", 0},
		{"every occurrence", "secret ==> X", "a secret and a secret", "a X and a X", 2},
		{"a pattern", `regex:sk-\w+ ==> KEY`, "use sk-abc, sk-def", "use KEY, KEY", 2},
		{"groups are no references", `regex:k(\d) ==> $1`, "k7", "$1", 1},
		{"in the file's order", "ab ==> 1\na ==> 2", "aba", "12", 2},
		{"nothing is trimmed", "a  ==>  b", "xa y", "x by", 1},
		{"what comes together matches again", "ab ==> ", "aabb", "", 2},
		{"what never ends is replaced whole", "ab ==> bbaa", strings.Repeat("a", 20) + "b", "bbaa", -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, n := rules(t, tt.file).Text(tt.in)
			if got != tt.want || tt.count >= 0 && n != tt.count {
				t.Errorf("got %q with %d replacements, want %q with %d", got, n, tt.want, tt.count)
			}
		})
	}
}

func TestEntry(t *testing.T) {
	const file = "KEY ==> ***"
	for _, tt := range []struct {
		name, in, want string
		structural     []string
	}{
		{"untouched bytes stay", `{"message":{"role":"user","content":"caf\u00e9 \/ ","n":1.0}}`, `{"message":{"role":"user","content":"caf\u00e9 \/ ","n":1.0}}`, nil},
		{"any spelling", `{"message":{"role":"user","content":"\u004bEY"}}`, `{"message":{"role":"user","content":"***"}}`, nil},
		{"arguments and their keys", `{"message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"n","arguments":{"KEY":["KEY"]}}]}}`,
			`{"message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"n","arguments":{"***":["***"]}}]}}`, nil},
		{"a changed block loses its signature", `{"message":{"content":[{"type":"thinking","thinking":"KEY","thinkingSignature":"s"},{"type":"thinking","thinking":"b","thinkingSignature":"s"}]}}`,
			`{"message":{"content":[{"type":"thinking","thinking":"***"},{"type":"thinking","thinking":"b","thinkingSignature":"s"}]}}`, nil},
		{"details, data and what nobody knows", `{"data":{"a":"KEY"},"other":"KEY"}`, `{"data":{"a":"***"},"other":"***"}`, nil},
		{"a retained tail", `{"summary":"KEY","retainedTail":[{"role":"user","content":"KEY"}],"tokensBefore":1}`,
			`{"summary":"***","retainedTail":[{"role":"user","content":"***"}],"tokensBefore":1}`, nil},
		{"an attachment stays", `{"message":{"content":[{"type":"image","data":"KEY","mimeType":"image/png"}]}}`, `{"message":{"content":[{"type":"image","data":"KEY","mimeType":"image/png"}]}}`, nil},
		{"structure is reported", `{"message":{"role":"toolResult","toolCallId":"KEY","toolName":"a","content":[]}}`, `{"message":{"role":"toolResult","toolCallId":"KEY","toolName":"a","content":[]}}`, []string{"toolCallId"}},
		{"a signature is structure", `{"message":{"content":[{"type":"text","text":"a","textSignature":"KEY"}]}}`, `{"message":{"content":[{"type":"text","text":"a","textSignature":"KEY"}]}}`, []string{"textSignature"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := rules(t, file).Entry([]byte(tt.in))
			if string(got.JSON) != tt.want {
				t.Errorf("got  %s\nwant %s", got.JSON, tt.want)
			}
			if diff := cmp.Diff(tt.structural, got.Structural); diff != "" {
				t.Error(diff)
			}
			if (got.Count > 0) != (tt.in != tt.want) {
				t.Errorf("%d replacements", got.Count)
			}
		})
	}
	if got := rules(t, "user ==> who").Entry([]byte(`{"message":{"role":"user","content":[]}}`)); got.Structural != nil {
		t.Errorf("a word of the format is reported: %v", got.Structural)
	}
	if got := rules(t, "KEY ==> ").Content([]byte(`{"KEY":1,"a":"KEY"}`)); got.EmptyKeys != 1 || string(got.JSON) != `{"":1,"a":""}` {
		t.Errorf("got %s with %d empty keys", got.JSON, got.EmptyKeys)
	}
}

// Whatever the rules and the text, nothing that they replace is left, and a
// payload stays JSON.
func TestNothingIsLeft(t *testing.T) {
	word := rapid.StringMatching(`[ab"\\]{1,3}`)
	rapid.Check(t, func(t *rapid.T) {
		var file strings.Builder
		for range rapid.IntRange(1, 3).Draw(t, "rules") {
			file.WriteString(word.Draw(t, "from") + " ==> " + rapid.StringMatching(`[abc]{0,3}`).Draw(t, "with") + "\n")
		}
		r, err := Parse([]byte(file.String()))
		if err != nil {
			t.Skip(err)
		}
		in := rapid.StringMatching(`[ab"\\]{0,12}`).Draw(t, "text")
		if out, n := r.Text(in); r.Matches(out) || n == 0 && out != in {
			t.Fatalf("%q became %q", in, out)
		}
		got := r.Content(append(append([]byte(`{"k":`), rawjson.Quote(in)...), '}'))
		if err := rawjson.Valid(got.JSON); err != nil {
			t.Fatalf("%s: %v", got.JSON, err)
		}
	})
}
