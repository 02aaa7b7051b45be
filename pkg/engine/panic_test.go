package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/storetest"
)

const defect = "a defect of ours"

// Every goroutine of the engine may panic: the process lives, the session is
// faulted once and commits no more, and closes as in a controlled crash. The next
// process goes on from what was durable (spec §4.7, §4.8).
func TestPanic(t *testing.T) {
	atCommit := func(n int) func(*enginetest.World) {
		return func(w *enginetest.World) {
			plan := storetest.Plan{Commit: n, Crash: func() { panic(defect) }}
			w.Decorate = func(b store.Backend) store.Backend { return storetest.NewFaulty(b, plan) }
		}
	}
	for name, tt := range map[string]struct {
		before func(*enginetest.World) // the session is opened
		after  func(*enginetest.World)
	}{
		"a provider that is called": {before: func(w *enginetest.World) {
			w.Models.Add(breaking{Model: w.Model, after: -1})
		}},
		"a provider's stream": {before: func(w *enginetest.World) {
			w.Models.Add(breaking{Model: w.Model, after: 2})
		}},
		"a hook of parallel tools": {before: func(w *enginetest.World) {
			w.Models.Add(calling{w.Model})
			w.Options.Tools = noting{}
			w.Options.Hooks.AfterTool = []engine.Hook[engine.AfterTool, engine.ToolPatch]{
				func(context.Context, engine.AfterTool) (engine.ToolPatch, error) { panic(defect) },
			}
		}, after: func(w *enginetest.World) {
			if err := w.Lane.Configure(w.TB.Context(), engine.Configure{ActiveToolNames: &[]string{"note"}}); err != nil {
				w.TB.Fatal(err)
			}
		}},
		"a commit of the pass": {before: atCommit(3)},
		"a commit of a frame":  {before: atCommit(6)},
		"the last commit":      {before: atCommit(11)},
		"a listener": {after: func(w *enginetest.World) {
			w.Harness.On(func(e op.Event) {
				if e.Type == op.EventMessageUpdate {
					panic(defect)
				}
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				if tt.before != nil {
					tt.before(w)
				}
				w.Open()
				w.Decorate = nil
				if tt.after != nil {
					tt.after(w)
				}
				faults := 0
				w.Harness.On(func(e op.Event) {
					if e.Type == op.EventFault {
						faults++
					}
				})
				id := w.Accept("hi")
				_, err := w.Lane.Drive(t.Context(), engine.DriveOptions{OperationID: id})
				wantPanic(t, err)
				wantPanic(t, w.Session.Fault())
				durable := w.Records()
				_, err = w.Lane.Accept(t.Context(), engine.Request{Text: "more"})
				wantPanic(t, err)
				if err := w.Harness.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
				if faults != 1 {
					t.Errorf("%d fault events, want 1", faults)
				}
				enginetest.Equal(t, "what came after the fault", w.Records(), durable)

				w.Models.Add(w.Model)
				w.Options.Hooks = engine.Hooks{}
				w.Reopen()
				if d := w.Continue(); d.Kind != engine.Settled || d.Outcome.Kind != op.Completed {
					t.Errorf("the next process ends with %+v", d)
				}
				w.Verify()
			})
		})
	}
}

func wantPanic(t *testing.T, err error) {
	t.Helper()
	var fault *store.Fault
	var panicked *store.Panicked
	switch {
	case !errors.As(err, &fault), !errors.As(err, &panicked):
		t.Errorf("got %v, want a fault that holds a *store.Panicked", err)
	case panicked.Value != defect, fault.Error() != "internal error: "+defect:
		t.Errorf("got %v of %q", panicked.Value, fault)
	case !strings.Contains(string(panicked.Stack), "panic"):
		t.Error("the panic has no stack")
	}
}

// breaking is a model that panics after some events of its stream, or when it is
// called.
type breaking struct {
	*enginetest.Model
	after int
}

func (m breaking) Stream(ctx context.Context, req effect.Request) iter.Seq[message.StreamEvent] {
	if m.after < 0 {
		panic(defect)
	}
	return func(yield func(message.StreamEvent) bool) {
		n := 0
		for e := range m.Model.Stream(ctx, req) {
			if n == m.after {
				panic(defect)
			}
			if n++; !yield(e) {
				return
			}
		}
	}
}

// calling is a model that asks for two calls of a tool.
type calling struct{ *enginetest.Model }

func (m calling) Stream(ctx context.Context, req effect.Request) iter.Seq[message.StreamEvent] {
	if req.Messages[len(req.Messages)-1].Role() == message.RoleToolResult {
		return m.Model.Stream(ctx, req)
	}
	call := func(id string) message.Block {
		return message.Block{Type: message.BlockToolCall, ID: id, Name: "note", Arguments: json.RawMessage(`{}`)}
	}
	info := m.Info()
	answer := message.Assistant{
		API: info.API, Provider: info.Ref.Provider, Model: info.Ref.ModelID, Timestamp: req.Now,
		Content: []message.Block{call("1"), call("2")}, StopReason: message.StopToolUse,
	}
	return func(yield func(message.StreamEvent) bool) {
		yield(message.StreamEvent{Type: message.EventDone, Reason: answer.StopReason, Message: answer.Message()})
	}
}

// noting is a registry with a tool that does nothing.
type noting struct{}

func (noting) Lookup(name string) (effect.Tool, bool) { return noting{}, name == "note" }
func (noting) Spec() message.ToolSpec                 { return message.ToolSpec{Name: "note"} }
func (noting) ReplaySafe() bool                       { return false }
func (noting) Prepare(args json.RawMessage) (json.RawMessage, error) {
	return args, nil
}
func (noting) Execute(context.Context, effect.Invocation) (message.ToolResult, error) {
	return message.ToolResult{Content: []message.Block{message.TextBlock("noted")}}, nil
}
