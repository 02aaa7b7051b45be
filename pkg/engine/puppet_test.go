package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// puppet is a tool whose calls are code; without any it answers with its name.
type puppet struct {
	name string
	safe bool
	run  func(context.Context, effect.Invocation) (message.ToolResult, error)
}

func (p puppet) Spec() message.ToolSpec {
	return message.ToolSpec{Name: p.name, Parameters: json.RawMessage(`{"type":"object"}`)}
}

func (p puppet) ReplaySafe() bool { return p.safe }

func (p puppet) Prepare(args json.RawMessage) (json.RawMessage, error) { return args, nil }

func (p puppet) Execute(ctx context.Context, call effect.Invocation) (message.ToolResult, error) {
	if p.run == nil {
		return text(p.name + " is done"), nil
	}
	return p.run(ctx, call)
}

func text(s string) message.ToolResult {
	return message.ToolResult{Content: []message.Block{message.TextBlock(s)}}
}

// puppets are the tools of one world.
type puppets []puppet

func (ps puppets) Lookup(name string) (effect.Tool, bool) {
	for _, p := range ps {
		if p.name == name {
			return p, true
		}
	}
	return nil, false
}

// arm gives the harness that opens next these tools.
func arm(w *enginetest.World, tools ...puppet) { w.Options.Tools = puppets(tools) }

// activate opens the world and lets main use every tool of the harness.
func activate(t *testing.T, w *enginetest.World) {
	t.Helper()
	w.Open()
	var names []string
	for _, p := range w.Options.Tools.(puppets) {
		names = append(names, p.name)
	}
	if err := w.Lane.Configure(t.Context(), engine.Configure{ActiveToolNames: &names}); err != nil {
		t.Fatal(err)
	}
}

// calls is an answer that calls tools, one call per name.
func calls(names ...string) enginetest.Reply {
	a := ending(message.StopToolUse)
	for i, name := range names {
		a.Content = append(a.Content, message.Block{
			Type: message.BlockToolCall, ID: fmt.Sprintf("call-%d", i), Name: name, Arguments: json.RawMessage(`{}`),
		})
	}
	return only(a)
}

// later is an answer that comes later: its handle names the job.
func later(job string) enginetest.Reply {
	a := ending(message.StopDeferred)
	a.Deferred = json.RawMessage(`{"provider":"acme","modelId":"one","api":"echo","id":"` + job + `"}`)
	return only(a)
}

func ending(stop message.StopReason) message.Assistant {
	return message.Assistant{
		API: "echo", Provider: "acme", Model: "one", StopReason: stop, Timestamp: enginetest.Start,
		Usage: message.Usage{Input: 10, Output: 1, TotalTokens: 11},
	}
}

// only is a stream of nothing but its end.
func only(a message.Assistant) enginetest.Reply {
	return enginetest.Reply{Events: []message.StreamEvent{{Type: message.EventDone, Reason: a.StopReason, Message: a.Message()}}}
}

// deferring answers polls as it answers requests, and counts cancellations.
type deferring struct {
	*enginetest.Model
	cancelled int
}

func (d *deferring) Poll(ctx context.Context, _ message.DeferredHandle, req effect.Request) effect.Events {
	return d.Stream(ctx, req)
}

func (d *deferring) Cancel(context.Context, message.DeferredHandle) error {
	d.cancelled++
	return nil
}

// deferrable replaces the world's model with one that can answer later.
func deferrable(w *enginetest.World) *deferring {
	d := &deferring{Model: w.Model}
	w.Models.Add(d)
	return d
}

// parkAt drives an operation in manual mode until it is parked before kind.
func parkAt(t *testing.T, w *enginetest.World, kind string, o engine.DriveOptions) <-chan ended[engine.DriveOutcome] {
	t.Helper()
	done := drive(w, o)
	executeTo(t, w, kind)
	return done
}

// finishPass executes whatever is parked until a pass ends, and wants it settled.
func finishPass(t *testing.T, w *enginetest.World, done <-chan ended[engine.DriveOutcome], want op.Outcome) {
	t.Helper()
	for !over(done) {
		w.Lane.ExecuteAction(t.Context())
	}
	end := <-done
	if end.err != nil || end.value.Kind != engine.Settled || end.value.Outcome.Kind != want {
		t.Fatalf("the pass ended with %+v, %v; want %s", end.value, end.err, want)
	}
	nothingLeft(t, w)
}

// nothingLeft wants a clean session in which no operation has left a value.
func nothingLeft(t *testing.T, w *enginetest.World) {
	t.Helper()
	w.Verify()
	for _, r := range w.Records() {
		ns := r.Address.Namespace
		if r.Kind == store.KindList || slices.Contains([]string{"pi.op.meta", "pi.op.state", "pi.op.tool_args", "pi.op.tool_memo", "pi.op.preparation", "pi.pending.tool_output"}, ns) {
			t.Errorf("%s is left", r.Address)
		}
	}
}

// cancel requests an abort and wants it to be the first.
func cancel(t *testing.T, w *enginetest.World, id string) engine.AbortRequest {
	t.Helper()
	r, err := w.Lane.RequestAbort(t.Context(), id)
	if err != nil || !r.NewlyRequested {
		t.Fatalf("abort: %+v, %v", r, err)
	}
	return r
}

// talk is the conversation, one short line per entry: role, how it ended, text.
func talk(t *testing.T, w *enginetest.World) []string {
	t.Helper()
	said, err := enginetest.Conversation(t.Context(), w.View())
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]string, len(said))
	for i, s := range said {
		lines[i] = string(s.Role)
		if s.Stop != "" {
			lines[i] += " " + string(s.Stop)
		}
		if s.Text != "" {
			lines[i] += ": " + s.Text
		}
	}
	return lines
}

func wantTalk(t *testing.T, w *enginetest.World, want ...string) {
	t.Helper()
	enginetest.Equal(t, "conversation", talk(t, w), want)
}

// batch is the tool batch at which a run stands.
func batch(t *testing.T, w *enginetest.World, id string) []op.ToolCall {
	t.Helper()
	run, _ := state(t, w, id).(op.RunState)
	tools, ok := run.Phase.(op.Tools)
	if !ok {
		t.Fatalf("the run stands at %s", op.PointOf(run))
	}
	return tools.Batch.Calls
}

func statuses(calls []op.ToolCall) []op.CallStatus {
	out := make([]op.CallStatus, len(calls))
	for i, c := range calls {
		out[i] = c.Status
	}
	return out
}

func wantMismatch(t *testing.T, err error, want engine.OperationMismatch) {
	t.Helper()
	var got *engine.OperationMismatch
	if !errors.As(err, &got) {
		t.Fatalf("got %v, want a mismatch", err)
	}
	enginetest.Equal(t, "mismatch", *got, want)
}

// whole is an answer that arrives at once, as the requests of a summary take it:
// they keep no frames.
func whole(s string) enginetest.Reply {
	a := ending(message.StopStop)
	a.Content = []message.Block{message.TextBlock(s)}
	return only(a)
}
