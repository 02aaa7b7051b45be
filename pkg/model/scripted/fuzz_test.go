package scripted

import (
	"errors"
	"strings"
	"testing"

	"github.com/drover-run/drover/internal/rawjson"
)

// FuzzParseScript: any file is a script or a *ScriptError that points into it.
func FuzzParseScript(f *testing.F) {
	for _, s := range []string{
		"responses:\n  - {text: a, chunk: 3, tool_calls: [{name: x, arguments: {a: [1, ~]}}]}\n",
		`{"responses": [{"tool_calls": [{"name": "x", "arguments": {"a": [1e3, "\ud83d"]}}]}]}`,
		"model: {context_window: 0x10}\nresponses: [&a {error: {message: |\n  x\n}}, *a]\n",
		"responses:\n  - text: \"abc\n  - ? [a]\n",
		"%YAML 1.2\n--- !!map\nresponses: []\n...\n",
	} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, text string, json bool) {
		path := "s.yaml"
		if json {
			path = "s.json"
		}
		s, err := parseScript(path, []byte(text))
		if err != nil {
			se, ok := errors.AsType[*ScriptError](err)
			if !ok {
				t.Fatalf("%T %v", err, err)
			}
			if lines := strings.Count(text, "\n") + strings.Count(text, "\r") +
				strings.Count(text, "\u0085") + strings.Count(text, "\u2028") + strings.Count(text, "\u2029") + 1; se.Line < 1 || se.Line > lines || se.Column < 1 || se.Column > len(text)+1 {
				t.Errorf("%v in %d lines", se, lines)
			}
			return
		}
		for _, r := range s.responses {
			for _, c := range r.calls {
				if rawjson.Valid(c.Arguments) != nil || c.Arguments[0] != '{' {
					t.Errorf("arguments %s", c.Arguments)
				}
			}
		}
	})
}
