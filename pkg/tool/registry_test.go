package tool

import (
	"errors"
	"strings"
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
	more := r.WithSources(served{"files__"}, served{"mail__"})
	for name, want := range map[string][]string{"fils__list": {"files__list"}, "raed": {"read"}, "other__thing": nil} {
		if diff := cmp.Diff(want, more.Nearest(name)); diff != "" {
			t.Errorf("%q: %s", name, diff)
		}
	}
}

// served is a source of tools whose names begin with it.
type served struct{ prefix string }

func (s served) Prefix() string                  { return s.prefix }
func (served) Lookup(string) (effect.Tool, bool) { return nil, false }
func (served) Close() error                      { return nil }

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

// source is one that has the tools of a prefix.
type source struct {
	prefix string
	fails  error
	closed bool
}

func (s *source) Lookup(name string) (effect.Tool, bool) {
	return toolNamed("read", Options{}), strings.HasPrefix(name, s.prefix)
}

func (s *source) Close() error {
	s.closed = true
	return s.fails
}

// Sources are asked for what the registry does not list; all are closed, whatever
// one of them says.
func TestSources(t *testing.T) {
	plain, err := New(Builtins(Options{})...)
	if err != nil {
		t.Fatal(err)
	}
	first, second := &source{prefix: "b", fails: errors.New("stuck")}, &source{prefix: "x__"}
	r := plain.WithSources(first, second)
	for name, want := range map[string]bool{"bash": true, "x__y": true, "bus": true, "y": false} {
		if _, ok := r.Lookup(name); ok != want {
			t.Errorf("%s: %t", name, ok)
		}
	}
	if found, _ := r.Lookup("bash"); found.Spec().Name != "bash" {
		t.Error("a source is asked before the registry")
	}
	if _, ok := plain.Lookup("x__y"); ok {
		t.Error("the registry that it was made from has the sources too")
	}
	if err := r.Close(); !errors.Is(err, first.fails) || !first.closed || !second.closed {
		t.Errorf("closed with %v: %t, %t", err, first.closed, second.closed)
	}
}
