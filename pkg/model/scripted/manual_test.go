package scripted

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The manual names exactly the fields that the decoder knows, in its order: a
// field that no object has is answered with those that it has.
func TestManualNamesEveryField(t *testing.T) {
	objects := []struct{ of, script string }{
		{"a script", "none: 1"},
		{"model", "model: {none: 1}"},
		{"a response", "responses: [{none: 1}]"},
		{"a tool call", "responses: [{tool_calls: [{none: 1}]}]"},
		{"usage", "responses: [{usage: {none: 1}}]"},
		{"cost", "responses: [{usage: {cost: {none: 1}}}]"},
		{"error", "responses: [{error: {none: 1}}]"},
		{"deferred", "responses: [{deferred: {none: 1}}]"},
	}
	var said []string
	for _, o := range objects {
		_, err := parseScript("s.yaml", []byte(o.script))
		bad, ok := errors.AsType[*ScriptError](err)
		if !ok {
			t.Fatalf("%s: got %v", o.script, err)
		}
		said = append(said, bad.Msg)
	}
	var want []string
	for _, o := range objects {
		var names []string
		for _, f := range Fields() {
			if f.Of == o.of {
				names = append(names, f.Name)
			}
			if f.What == "" {
				t.Errorf("%s of %s is not explained", f.Name, f.Of)
			}
		}
		want = append(want, `unknown field "none"; `+o.of+" has "+strings.Join(names, ", "))
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
}

// The manual's example is a script.
func TestManualExample(t *testing.T) {
	s, err := parseScript("s.yaml", []byte(Example()))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.responses) != 7 {
		t.Errorf("it has %d responses", len(s.responses))
	}
}

// A used-up script is known by its error, and nothing else is.
func TestUsedUp(t *testing.T) {
	cases := []struct{ message, want string }{
		{"script /a b/s.yaml has no response 4", "/a b/s.yaml"},
		{"script s has no response x", ""},
		{"skript s has no response 1", ""},
		{"429 too many requests", ""},
	}
	for _, c := range cases {
		if got := UsedUp(c.message); got != c.want {
			t.Errorf("%q: got %q, want %q", c.message, got, c.want)
		}
	}
}
