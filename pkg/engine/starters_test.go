package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
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

// Execute fails with what is not started.
func (t *startingTool) Execute(ctx context.Context, call effect.Invocation) (message.ToolResult, error) {
	if t.of.fails != nil {
		return message.ToolResult{}, t.of.fails
	}
	return t.Tool.Execute(ctx, call)
}

func withStarting(t *testing.T, tool *enginetest.Tool) (*enginetest.World, *starting) {
	w := enginetest.InMemory(t)
	s := &starting{ToolRegistry: w.Tools("", tool)}
	w.Options.Tools = s
	w.Model.Reply = enginetest.Sequence(enginetest.Ask(enginetest.Call("c1", "look", `{}`)), enginetest.Say("ok"))
	w.Open()
	activateTool(t, w, "look")
	return w, s
}

// A tool is started before the run that could offer it is accepted, and is ready
// when a request is made (D47).
func TestToolsAreStarted(t *testing.T) {
	w, s := withStarting(t, &enginetest.Tool{Name: "look"})
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
	w, s := withStarting(t, &enginetest.Tool{Name: "look"})
	s.fails = broken
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

// A call that was planned when the process died, or may run again, waits for a tool that
// cannot be started in the next one; an interrupted one that may not is settled
// without it. No call fails of it (D31, D47).
func TestCallsWaitForToolsThatDoNotStart(t *testing.T) {
	broken := errors.New("MCP server x: it ended with exit code 1")
	for _, safe := range []bool{true, false} {
		deaths := 0
		for n := 1; ; n++ {
			runs := 0
			w, s := withStarting(t, &enginetest.Tool{Name: "look", Safe: safe, Run: func(context.Context, *enginetest.World, effect.Invocation) (message.ToolResult, error) {
				runs++
				return enginetest.Result("seen"), nil
			}})
			w.Model.Reply = func(_ int, req effect.Request) enginetest.Reply {
				if req.Messages[len(req.Messages)-1].Role() == message.RoleToolResult {
					return enginetest.Say("ok")
				}
				return enginetest.Ask(enginetest.Call("c1", "look", `{}`))
			}
			id := w.Accept("go")
			w.Close()
			w.OpenUntil(n)
			if d, err := w.Lane.Drive(t.Context(), engine.DriveOptions{OperationID: id}); err == nil {
				if d.Kind != engine.Settled {
					t.Fatalf("%+v", d)
				}
				break // it outlived the run
			}
			deaths++
			w.Reopen()
			s.fails = broken
			d := w.Drive(engine.DriveOptions{OperationID: id})
			waits := d.Kind == engine.Waiting && d.Reason == engine.WaitMissing && d.Missing.Tools[0] == "look"
			if !waits && d.Kind != engine.Settled { // settled is what had its last request behind it
				t.Errorf("safe %t, death %d: %+v", safe, n, d)
			}
			if waits && d.Why.Error() != broken.Error() {
				t.Errorf("safe %t, death %d: it waits because %v", safe, n, d.Why)
			}
			if s.fails = nil; waits {
				d = w.Continue()
			}
			if d.Kind != engine.Settled || d.Outcome.Kind != op.Completed {
				t.Errorf("safe %t, death %d: %+v", safe, n, d)
			}
			got := toolResults(t, w)
			interrupted := !safe && len(got) == 1 && syntheticReason(t, w) == "interrupted"
			if !interrupted && !slices.Equal(got, []string{"seen"}) {
				t.Errorf("safe %t, death %d: results %q", safe, n, got)
			}
			if most := map[bool]int{true: 2, false: 1}[safe]; runs > most {
				t.Errorf("safe %t, death %d: %d runs", safe, n, runs)
			}
		}
		if deaths < 5 {
			t.Errorf("safe %t: it died %d times only", safe, deaths)
		}
	}
}

func toolResults(t *testing.T, w *enginetest.World) []string {
	t.Helper()
	var all []string
	for _, r := range w.Records() {
		if r.Entry != nil && r.Entry.Message().Role() == message.RoleToolResult {
			all = append(all, r.Entry.Message().Text())
		}
	}
	return all
}
