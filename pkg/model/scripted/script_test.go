package scripted_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model/scripted"
)

func TestScriptErrors(t *testing.T) {
	tests := []struct {
		name, file, text string
		want             string // line:column: message
	}{
		{"empty", "s.yaml", "", "1:1: a script must be an object, not nothing"},
		{"an empty document", "s.yaml", "---", "1:1: a script must be an object, not nothing"},
		{"comment alone", "s.yaml", "# nothing\n", "1:1: a script must be an object, not nothing"},
		{"a list", "s.yaml", "\n- text: a\n", "2:1: a script must be an object, not a list"},
		{"no responses", "s.yaml", "model: {reasoning: true}\n", "1:1: responses are missing"},
		{"unknown field", "s.yaml", "respones: []\n", `1:1: unknown field "respones"; a script has model, responses`},
		{"unknown field of a response", "s.yaml", "responses:\n  - text: a\n    delay: 3\n",
			`3:5: unknown field "delay"; a response has text, thinking, chunk, delay_ms, hang_ms, tool_calls, usage, stop, error, deferred`},
		{"column in characters", "s.yaml", `responses: [{text: "ééé😀", tex: b}]`,
			`1:28: unknown field "tex"; a response has text, thinking, chunk, delay_ms, hang_ms, tool_calls, usage, stop, error, deferred`},
		{"field twice", "s.yaml", "responses:\n  - text: a\n    text: b\n", "3:5: text is there twice"},
		{"responses no list", "s.yaml", "responses: {text: a}\n", "1:12: responses must be a list, not an object"},
		{"response is text", "s.yaml", "responses:\n  - hello\n", "2:5: a response must be an object, not text"},
		{"response is null", "s.yaml", "responses:\n  -\n  - text: a\n", "2:4: a response must be an object, not nothing"},
		{"text is a number", "s.yaml", "responses:\n  - text: 42\n", "2:11: text must be text, not the number 42"},
		{"chunk of 0", "s.yaml", "responses:\n  - {text: a, chunk: 0}\n", "2:22: chunk must be at least 1"},
		{"chunk with a point", "s.yaml", "responses:\n  - {chunk: 1.5}\n", "2:13: chunk must be a whole number, not the number 1.5"},
		{"delay below 0", "s.yaml", "responses:\n  - {delay_ms: -1}\n", "2:16: delay_ms must be at least 0"},
		{"delay beyond time", "s.yaml", "responses:\n  - {delay_ms: 9223372036855}\n", "2:16: delay_ms is too large"},
		{"hang beyond integers", "s.yaml", "responses:\n  - {hang_ms: 18446744073709551615}\n", "2:15: hang_ms is too large"},
		{"stop is not a reason", "s.yaml", "responses:\n  - stop: aborted\n", "2:11: stop must be one of stop, length, toolUse"},
		{"stop with an error", "s.yaml", "responses:\n  - {stop: stop, error: {message: m}}\n", "2:5: stop is not for an error or a deferred response"},
		{"deferred with text", "s.yaml", "responses:\n  - {text: a, deferred: {id: j}}\n", "2:5: a deferred response has no error and no content"},
		{"deferred without id", "s.yaml", "responses:\n  - deferred: {poll_after_ms: 5}\n", "2:15: the deferred response has no id"},
		{"error without message", "s.yaml", "responses:\n  - error: {retryable: true}\n", "2:12: the error has no message"},
		{"retryable is text", "s.yaml", "responses:\n  - error: {message: m, retryable: \"yes\"}\n", "2:36: retryable must be true or false, not text"},
		{"status out of range", "s.yaml", "responses:\n  - error: {message: m, status: 600}\n", "2:12: the error's status is above 599"},
		{"call without name", "s.yaml", "responses:\n  - tool_calls: [{arguments: {}}]\n", "2:18: the tool call has no name"},
		{"arguments no object", "s.yaml", "responses:\n  - tool_calls: [{name: a, arguments: [1]}]\n", "2:39: arguments must be an object, not a list"},
		{"arguments with .inf", "s.yaml", "responses:\n  - tool_calls: [{name: a, arguments: {x: .inf}}]\n", "2:43: JSON has no word for the number .inf"},
		{"arguments with a tag", "s.yaml", "responses:\n  - tool_calls: [{name: a, arguments: {x: !!binary aGk=}}]\n", "2:43: JSON has no word for a value with the tag !!binary"},
		{"arguments with a name twice", "s.yaml", "responses:\n  - tool_calls: [{name: a, arguments: {x: 1, x: 2}}]\n", "2:46: x is there twice"},
		{"arguments without end", "s.yaml", "responses:\n  - tool_calls: [{name: a, arguments: &x {y: *x}}]\n",
			"2:46: the alias x stands for something that holds it"},
		{"arguments that multiply", "s.yaml", "responses:\n  - tool_calls: [{name: a, arguments: {a: &a [1,1,1,1,1,1,1,1,1,1,1,1],\n" +
			"b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a], c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b], d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c],\n" +
			"e: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]}}]\n", "2:39: more than 100000 values"},
		{"merge key", "s.yaml", "responses:\n  - tool_calls: [{name: a, arguments: {<<: {a: 1}}}]\n", "2:40: merge keys are not supported"},
		{"usage below 0", "s.yaml", "responses:\n  - usage: {input: -5}\n", "2:20: input must be at least 0"},
		{"unknown usage", "s.yaml", "responses:\n  - usage: {in: 5}\n",
			`2:13: unknown field "in"; usage has input, output, cacheRead, cacheWrite, cacheWrite1h, reasoning, totalTokens, cost`},
		{"endless price", "s.yaml", "responses:\n  - usage: {cost: {total: .inf}}\n", "2:27: total must be at least 0 and finite"},
		{"no window", "s.yaml", "model: {context_window: 0}\nresponses: []\n", "1:25: context_window must be at least 1"},
		{"second document", "s.yaml", "responses: []\n---\nresponses: []\n", "2:1: a second document"},

		{"quote left open", "s.yaml", "responses:\n  - text: \"abc\n  - text: x\n", "2:11: found unexpected end of stream"},
		{"brace left open", "s.yaml", "responses:\n  - {text: a, chunk: 3\n  - {text: b}\n", "2:22: did not find expected ',' or '}'"},
		{"two colons", "s.yaml", "responses:\n  - text: a: b\n", "2:12: mapping values are not allowed in this context"},
		{"tab", "s.yaml", "responses:\n\t- text: a\n", "2:1: found character that cannot start any token"},
		{"text behind a quote", "s.yaml", "responses:\n  - text: 'a' b\n  - text: c\n", "2:15: did not find expected key"},
		{"no colon", "s.yaml", "model: {}\nresponses\n", "2:1: could not find expected ':'"},
		{"unknown anchor", "s.yaml", "responses:\n  - text: *x\n", "2:12: unknown anchor 'x' referenced"},
		{"control character", "s.yaml", "responses:\n  - text: \"a\x01\"\n", "2:13: control characters are not allowed"},
		{"invalid UTF-8", "s.yaml", "responses:\n  - text: \"é\xff\"\n", "2:13: invalid UTF-8"},
		{"error in a second document", "s.yaml", "responses: []\n---\na: b: c\n", "3:5: mapping values are not allowed in this context"},

		{"JSON: unknown field", "s.json", "{\n  \"responses\": [\n    {\"texts\": \"é\"}]}",
			`3:6: unknown field "texts"; a response has text, thinking, chunk, delay_ms, hang_ms, tool_calls, usage, stop, error, deferred`},
		{"JSON: wrong type", "s.json", "{\"responses\": [{\"thinking\": \"😀\", \"text\": [1]}]}", "1:42: text must be text, not a list"},
		{"JSON: arguments no object", "s.json", "{\"responses\": [{\"tool_calls\": [{\"name\": \"a\", \"arguments\": \"{}\"}]}]}", "1:59: arguments must be an object, not text"},
		{"JSON: comma", "s.json", "{\"responses\": [\n{},]}", "2:4: expected a value"},
		{"JSON: too deep", "s.json", `{"responses": ` + strings.Repeat("[", 20) + strings.Repeat("]", 20) + "}", "1:31: nested too deeply"},
		{"JSON in a YAML file", "s.yaml", "{\"responses\": [{\"chunk\": \"a\"}]}", "1:26: chunk must be a whole number, not text"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, tt.file, tt.text)
			_, err := scripted.New(scripted.Options{}).Resolve(path)
			se, ok := errors.AsType[*scripted.ScriptError](err)
			if !ok {
				t.Fatalf("Resolve: %v", err)
			}
			if se.Path != path {
				t.Errorf("path = %s", se.Path)
			}
			if diff := cmp.Diff(tt.want, fmt.Sprintf("%d:%d: %s", se.Line, se.Column, se.Msg)); diff != "" {
				t.Error(diff)
			}
			if got, want := err.Error(), "script "+path+":"+tt.want; got != want {
				t.Errorf("error = %q, want %q", got, want)
			}
			if _, err := os.Stat(path + ".state"); err == nil {
				t.Error("a broken script has a position")
			}
		})
	}
}

func TestArguments(t *testing.T) {
	tests := []struct{ name, file, text, want string }{
		{"JSON keeps its spelling", "s.json", `{"b": 1.50, "a": "\u0041\/\ud83d", "b": [ 1E2, {} ], "n": 123456789012345678901234567890}`,
			`{"b":1.50,"a":"\u0041\/\ud83d","b":[1E2,{}],"n":123456789012345678901234567890}`},
		{"YAML numbers", "s.yaml", `{a: 1.50, b: 0x1F, c: 1_000, d: .5, e: 1e3, f: -0, g: +7, h: 0xFFFFFFFFFFFFFFFF, i: 1_0.5, j: 123456789012345678901234567890}`,
			`{"a":1.50,"b":31,"c":1000,"d":0.5,"e":1e3,"f":-0,"g":7,"h":18446744073709551615,"i":10.5,"j":123456789012345678901234567890}`},
		{"YAML words", "s.yaml", `{a: yes, b: true, c: ~, d: 2024-01-02, e: "1", f: '', 5: x}`,
			`{"a":"yes","b":true,"c":null,"d":"2024-01-02","e":"1","f":"","5":"x"}`},
		{"YAML alias", "s.yaml", `{a: &v [1, "<é>"], b: *v}`, `{"a":[1,"<é>"],"b":[1,"<é>"]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, tt.file, `{"responses": [{"tool_calls": [{"name": "x", "arguments": `+tt.text+`}]}]}`)
			calls := last(ask(t.Context(), resolve(t, path), request())).ToolCalls()
			if diff := cmp.Diff(tt.want, string(calls[0].Arguments)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// texts asks as often as there are responses and returns the answers' texts.
func texts(t *testing.T, path string, n int) []string {
	t.Helper()
	var all []string
	for range n {
		all = append(all, last(ask(t.Context(), resolve(t, path), request())).Text())
	}
	return all
}

func TestAliasedResponses(t *testing.T) {
	path := write(t, "s.yaml", "responses:\n  - &same {text: again}\n  - *same\n  - {text: null, thinking: ~}\n")
	if diff := cmp.Diff([]string{"again", "again", ""}, texts(t, path, 3)); diff != "" {
		t.Error(diff)
	}
}

func TestMissingScripts(t *testing.T) {
	dir := t.TempDir()
	rewrite(t, filepath.Join(dir, "file"), "x")
	tests := []struct{ name, id, reason string }{
		{"absent", filepath.Join(dir, "none.yaml"), "there is no such script file"},
		{"below a file", filepath.Join(dir, "file", "x.yaml"), "there is no such script file"},
		{"name too long", strings.Repeat("x", 5000), "there is no such script file"},
		{"name with a zero", "a\x00b", "there is no such script file"},
		{"a folder", dir, "it is not a regular file"},
		{"a device", os.DevNull, "it is not a regular file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := scripted.New(scripted.Options{}).Resolve(tt.id)
			got, ok := errors.AsType[*effect.UnknownModel](err)
			if !ok {
				t.Fatalf("Resolve: %v", err)
			}
			want := &effect.UnknownModel{Ref: message.ModelRef{Provider: scripted.Name, ModelID: tt.id}, Reason: tt.reason}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAbsolute(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ in, want string }{
		{"scripted/echo", "scripted/echo"},
		{"scripted/./echo", "scripted/" + filepath.Join(dir, "echo")},
		{"scripted/a/../s.yaml", "scripted/" + filepath.Join(dir, "s.yaml")},
		{"scripted//tmp/s.yaml", "scripted//tmp/s.yaml"},
		{"openai/s.yaml", "openai/s.yaml"},
	}
	for _, tt := range tests {
		ref, err := message.ParseModelRef(tt.in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := scripted.Absolute(ref)
		if err != nil || got.String() != tt.want {
			t.Errorf("Absolute(%s) = %s, %v; want %s", tt.in, got, err, tt.want)
		}
	}
}
