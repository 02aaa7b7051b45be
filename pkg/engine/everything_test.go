package engine_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// effects is told of every effect, by its name in spec §4.2, when it begins and
// with the context that it runs under.
type effects func(ctx context.Context, name string)

// names collects the effects that began.
func (e *begun) tell(_ context.Context, name string) { e.names = append(e.names, name) }

type begun struct{ names []string }

// everything makes a world whose run has every effect of spec §4.2 but the
// navigation's hook: a first request that is retried, two tools, a deferred
// answer, a compaction at the threshold with a split turn, whose first attempt is
// retried, and a follow-up.
func everything(w *enginetest.World, tell effects) {
	w.Options.Retry = engine.RetryPolicy{MaxRetries: 2, BaseDelayMs: 100, MaxDelayMs: 1_000}
	w.Options.Compaction = op.CompactionSettings{Enabled: true, ReserveTokens: 1_000, KeepRecentTokens: 1}
	w.Options.ToolExecution = op.Sequential
	w.Options.Hooks = toldHooks(tell)
	tool := func(name string) puppet {
		return puppet{name: name, run: func(ctx context.Context, call effect.Invocation) (message.ToolResult, error) {
			tell(ctx, "tool")
			call.Update(text("half of "+name), true)
			return text(name + " is done"), nil
		}}
	}
	arm(w, tool("one"), tool("two"))
	w.Model.Reply = func(n int, _ effect.Request) enginetest.Reply {
		w.Clock.Advance(1)
		return everyReply(n)
	}
	w.Models.Add(&telling{deferring{Model: w.Model}, tell})
}

// everyReply is the answer to the n-th request of that run.
func everyReply(n int) enginetest.Reply {
	switch n {
	case 1:
		return enginetest.Fail("overloaded")
	case 2:
		return calls("one", "two")
	case 3:
		return later("job")
	case 4:
		polled := ending(message.StopStop)
		polled.Content = []message.Block{message.TextBlock("polled")}
		polled.Usage = message.Usage{Input: 99_500, TotalTokens: 99_500}
		return only(polled)
	case 5:
		return enginetest.Fail("overloaded")
	}
	return whole("enough")
}

func toldHooks(tell effects) engine.Hooks {
	summary := func(name string) []engine.Hook[engine.BeforeSummary, engine.SummaryDecision] {
		return []engine.Hook[engine.BeforeSummary, engine.SummaryDecision]{
			func(ctx context.Context, _ engine.BeforeSummary) (engine.SummaryDecision, error) {
				tell(ctx, name)
				return engine.SummaryDecision{}, nil
			},
		}
	}
	return engine.Hooks{
		BeforeDrive: []func(context.Context, engine.BeforeDrive) error{
			func(ctx context.Context, _ engine.BeforeDrive) error { tell(ctx, "before_drive"); return nil },
		},
		BeforeRun: []engine.Hook[engine.BeforeRun, []message.Message]{
			func(ctx context.Context, _ engine.BeforeRun) ([]message.Message, error) {
				tell(ctx, "before_run")
				return nil, nil
			},
		},
		BeforeRunEnd: []engine.Hook[engine.BeforeRunEnd, string]{
			func(ctx context.Context, _ engine.BeforeRunEnd) (string, error) {
				tell(ctx, "before_run_end")
				return "", nil
			},
		},
		TransformContext: []engine.Hook[engine.RequestContext, engine.RequestContext]{
			func(ctx context.Context, in engine.RequestContext) (engine.RequestContext, error) {
				tell(ctx, "transform_context")
				return in, nil
			},
		},
		BeforeRequest: []engine.Hook[engine.BeforeRequest, *message.StreamOptions]{
			func(ctx context.Context, _ engine.BeforeRequest) (*message.StreamOptions, error) {
				tell(ctx, "before_request")
				return nil, nil
			},
		},
		BeforePayload: []engine.Hook[engine.BeforePayload, json.RawMessage]{
			func(ctx context.Context, _ engine.BeforePayload) (json.RawMessage, error) {
				tell(ctx, "before_payload")
				return nil, nil
			},
		},
		AfterResponse: []engine.Hook[engine.AfterResponse, message.Message]{
			func(ctx context.Context, _ engine.AfterResponse) (message.Message, error) {
				tell(ctx, "after_response")
				return nil, nil
			},
		},
		BeforeTool: []engine.Hook[engine.BeforeTool, engine.ToolDecision]{
			func(ctx context.Context, _ engine.BeforeTool) (engine.ToolDecision, error) {
				tell(ctx, "before_tool")
				return engine.ToolDecision{}, nil
			},
		},
		AfterTool: []engine.Hook[engine.AfterTool, engine.ToolPatch]{
			func(ctx context.Context, _ engine.AfterTool) (engine.ToolPatch, error) {
				tell(ctx, "after_tool")
				return engine.ToolPatch{}, nil
			},
		},
		BeforeCompaction: summary("before_compaction"),
		BeforeNavigation: summary("before_navigation"),
	}
}

// telling is a provider that tells of its requests and shows their bodies.
type telling struct {
	deferring
	tell effects
}

func (m *telling) Stream(ctx context.Context, req effect.Request) effect.Events {
	name := "request"
	if strings.Contains(req.Messages[len(req.Messages)-1].Text(), "<conversation>") {
		name = "summary"
	}
	return m.begin(ctx, name, req)
}

func (m *telling) Poll(ctx context.Context, _ message.DeferredHandle, req effect.Request) effect.Events {
	return m.begin(ctx, "poll", req)
}

func (m *telling) begin(ctx context.Context, name string, req effect.Request) effect.Events {
	m.tell(ctx, name)
	return func(yield func(message.StreamEvent) bool) {
		if _, err := req.Payload(ctx, json.RawMessage(`{}`)); err != nil {
			a := ending(message.StopError)
			a.ErrorMessage = err.Error()
			if ctx.Err() != nil {
				a.StopReason = message.StopAborted
			}
			yield(message.StreamEvent{Type: message.EventError, Reason: a.StopReason, Message: a.Message()})
			return
		}
		m.Model.Stream(ctx, req)(yield)
	}
}

// startEverything opens the world, accepts its run and fills its queues.
func startEverything(t *testing.T, w *enginetest.World) string {
	t.Helper()
	activate(t, w)
	id := w.Accept("hi")
	for _, add := range []func() error{
		func() error { _, err := w.Lane.Steer(t.Context(), engine.Queued{Text: "steer"}); return err },
		func() error { _, err := w.Lane.FollowUp(t.Context(), engine.Queued{Text: "follow"}); return err },
		func() error { _, err := w.Lane.NextRun(t.Context(), engine.Queued{Text: "next"}); return err },
		func() error {
			_, _, err := w.Lane.Append(t.Context(), "", store.PendingEntry{Type: store.TypeCustom, CustomType: "note"})
			return err
		},
	} {
		if err := add(); err != nil {
			t.Fatal(err)
		}
	}
	return id
}

var everyDrive = engine.DriveOptions{WaitForRetry: true, PollDeferred: true}

func driveEverything(w *enginetest.World, id string) <-chan ended[engine.DriveOutcome] {
	o := everyDrive
	o.OperationID = id
	return drive(w, o)
}

// parkEverything drives the run of everything up to its breakpoint n, and answers
// with what has begun, the operation and its end.
func parkEverything(t *testing.T, w *enginetest.World, n int) (*begun, string, <-chan ended[engine.DriveOutcome]) {
	t.Helper()
	b := &begun{}
	everything(w, b.tell)
	id := startEverything(t, w)
	done := driveEverything(w, id)
	for range n {
		w.Lane.ExecuteAction(t.Context())
	}
	if a, ok := w.Lane.PeekAction(t.Context()); !ok || a.Kind != everyAction[n] {
		t.Fatalf("parked before %v, not %s", a, everyAction[n])
	}
	return b, id, done
}

// everyAction are the breakpoints of that run, in order.
var everyAction = []string{
	"hook.before_drive", "hook.before_run", "run.begin", "checkpoint.write", "checkpoint.steer",
	"hook.before_request", "hook.transform_context", "assistant.intent", "assistant.request", "hook.before_payload", "hook.after_response", "assistant.settlement", "retry.sleep",
	"hook.before_request", "hook.transform_context", "assistant.intent", "assistant.request", "hook.before_payload", "hook.after_response", "assistant.settlement",
	"hook.before_tool", "tool.intent", "tool.execute", "hook.after_tool", "tool.settlement", "tool.materialize",
	"hook.before_tool", "tool.intent", "tool.execute", "hook.after_tool", "tool.settlement", "tool.materialize",
	"hook.before_request", "hook.transform_context", "assistant.intent", "assistant.request", "hook.before_payload", "hook.after_response", "assistant.settlement",
	"hook.before_request", "hook.transform_context", "deferred.intent", "deferred.fetch", "hook.before_payload", "hook.after_response", "deferred.settlement",
	"checkpoint.threshold", "hook.before_compaction",
	"structural.intent", "hook.before_request", "structural.request", "hook.before_payload", "hook.after_response", "structural.settlement", "retry.sleep",
	"structural.intent", "hook.before_request", "structural.request", "hook.before_payload", "hook.after_response", "structural.settlement",
	"hook.before_request", "structural.request", "hook.before_payload", "hook.after_response", "structural.settlement", "structural.publish",
	"checkpoint.follow_up",
	"hook.before_request", "hook.transform_context", "assistant.intent", "assistant.request", "hook.before_payload", "hook.after_response", "assistant.settlement",
	"hook.before_run_end", "checkpoint.finish",
}

// parkings are the breakpoints of that run that a test parks at: all of them in a
// long test, otherwise the first of each kind.
func parkings() []int {
	var at []int
	for n, kind := range everyAction {
		if long() || slices.Index(everyAction, kind) == n {
			at = append(at, n)
		}
	}
	return at
}

// long reports whether tests may take their time.
func long() bool { return os.Getenv("DROVER_TEST_LONG") != "" }

// The run of the tests below is what it says.
func TestEverything(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		*w.Pace = enginetest.Free
		w.Options.Manual = true
		var b begun
		everything(w, b.tell)
		id := startEverything(t, w)
		done := driveEverything(w, id)
		var seen []string
		for {
			a, ok := w.Lane.ExecuteAction(t.Context())
			if !ok {
				break
			}
			seen = append(seen, a.Kind)
		}
		enginetest.Equal(t, "breakpoints", seen, everyAction)
		finishPass(t, w, done, op.Completed)
		var kinds []string
		for _, name := range b.names {
			if !slices.Contains(kinds, name) {
				kinds = append(kinds, name)
			}
		}
		enginetest.Equal(t, "kinds of effects", kinds, []string{
			"before_drive", "before_run", "before_request", "transform_context", "request", "before_payload", "after_response",
			"before_tool", "tool", "after_tool", "poll", "before_compaction", "summary", "before_run_end",
		})
	})
}
