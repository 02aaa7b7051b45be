package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
)

// starting are tools that have to be started.
type starting struct {
	engine.ToolRegistry
	fails  error
	starts []string
}

type startingTool struct {
	effect.Tool
	of *starting
}

func (s *starting) Lookup(name string) (effect.Tool, bool) {
	t, ok := s.ToolRegistry.Lookup(name)
	return &startingTool{t, s}, ok
}

func (t *startingTool) Start(context.Context) error {
	t.of.starts = append(t.of.starts, t.Spec().Name)
	return t.of.fails
}

func withStarting(t *testing.T, fails error) (*enginetest.World, *starting) {
	w := enginetest.InMemory(t)
	s := &starting{ToolRegistry: w.Tools("", &enginetest.Tool{Name: "look"}), fails: fails}
	w.Options.Tools = s
	w.Model.Reply = enginetest.Sequence(enginetest.Ask(enginetest.Call("c1", "look", `{}`)), enginetest.Say("ok"))
	w.Open()
	activateTool(t, w, "look")
	return w, s
}

// A tool is started before the run that could offer it is accepted, and is ready
// when a request is made (D47).
func TestToolsAreStarted(t *testing.T) {
	w, s := withStarting(t, nil)
	if len(s.starts) != 0 {
		t.Errorf("started with nothing to run: %v", s.starts)
	}
	id := w.Accept("go")
	if len(s.starts) != 1 {
		t.Errorf("at acceptance: %v", s.starts)
	}
	if d := w.Drive(engine.DriveOptions{OperationID: id}); d.Kind != engine.Settled || d.Outcome.Kind != op.Completed {
		t.Errorf("%+v", d)
	}
}

// One that does not start refuses the acceptance, and holds up a run that was
// accepted before; nothing is lost by that (D47).
func TestToolsThatDoNotStart(t *testing.T) {
	broken := errors.New("MCP server x: it ended with exit code 1")
	w, s := withStarting(t, broken)
	_, err := w.Lane.Accept(t.Context(), engine.Request{Text: "go"})
	missing, ok := errors.AsType[*engine.MissingIdentities](err)
	if !ok || missing.Missing.Tools[0] != "look" || missing.Error() != broken.Error() {
		t.Fatalf("accepted: %v", err)
	}
	s.fails = nil
	id := w.Accept("go")
	s.fails = broken
	d := w.Drive(engine.DriveOptions{OperationID: id})
	if d.Kind != engine.Waiting || d.Reason != engine.WaitMissing || d.Missing.Tools[0] != "look" {
		t.Fatalf("%+v", d)
	}
	s.fails = nil
	if d := w.Continue(); d.Kind != engine.Settled || d.Outcome.Kind != op.Completed {
		t.Errorf("%+v", d)
	}
}
