package tool

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

type named struct {
	effect.Tool
	name string
}

func (n named) Spec() message.ToolSpec { return message.ToolSpec{Name: n.name} }

func TestRegistry(t *testing.T) {
	r, err := New(Builtins(Options{})...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"bash", "edit", "read", "write"}, r.Names()); diff != "" {
		t.Error(diff)
	}
	if tool, ok := r.Lookup("read"); !ok || tool.Spec().Name != "read" || !tool.ReplaySafe() {
		t.Errorf("read: %v, %v", tool, ok)
	}
	for _, name := range []string{"bash", "edit", "write"} {
		if tool, ok := r.Lookup(name); !ok || tool.ReplaySafe() {
			t.Errorf("%s: %v, %v", name, tool, ok)
		}
	}
	if tool, ok := r.Lookup("Bash"); ok {
		t.Errorf("a name is found in another case: %v", tool)
	}
	nearest := map[string][]string{
		"Bash":    {"bash"},
		"sh":      {"bash"},
		"writes":  {"write"},
		"raed":    {"read"},
		"reit":    {"edit", "read"},
		"grep":    nil,
		"":        nil,
		"unknown": nil,
	}
	for name, want := range nearest {
		if diff := cmp.Diff(want, r.Nearest(name)); diff != "" {
			t.Errorf("%q: %s", name, diff)
		}
	}
}

func TestRegistryRefuses(t *testing.T) {
	cases := map[string][]string{
		`register tool "a": the name is taken`:                                                   {"a", "b", "a"},
		`register tool "": a name is 1 to 64 letters, digits, underscores and hyphens`:           {""},
		`register tool "files.read": a name is 1 to 64 letters, digits, underscores and hyphens`: {"files.read"},
	}
	for want, names := range cases {
		var tools []effect.Tool
		for _, n := range names {
			tools = append(tools, named{name: n})
		}
		if _, err := New(tools...); err == nil || err.Error() != want {
			t.Errorf("%q: %v", names, err)
		}
	}
}
