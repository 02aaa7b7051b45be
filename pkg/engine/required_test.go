package engine_test

import (
	"context"
	"encoding/json"
	"errors"
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

// failingHook is one handler of one hook; it fails with err, unless that is nil.
func failingHook(name string, err func() error) engine.Hooks {
	summary := []engine.Hook[engine.BeforeSummary, engine.SummaryDecision]{
		func(context.Context, engine.BeforeSummary) (engine.SummaryDecision, error) {
			return engine.SummaryDecision{}, err()
		},
	}
	all := engine.Hooks{
		BeforeDrive:  []func(context.Context, engine.BeforeDrive) error{func(context.Context, engine.BeforeDrive) error { return err() }},
		BeforeRun:    []engine.Hook[engine.BeforeRun, []message.Message]{func(context.Context, engine.BeforeRun) ([]message.Message, error) { return nil, err() }},
		BeforeRunEnd: []engine.Hook[engine.BeforeRunEnd, string]{func(context.Context, engine.BeforeRunEnd) (string, error) { return "", err() }},
		TransformContext: []engine.Hook[engine.RequestContext, engine.RequestContext]{func(context.Context, engine.RequestContext) (engine.RequestContext, error) {
			return engine.RequestContext{}, err()
		}},
		BeforeRequest: []engine.Hook[engine.BeforeRequest, *message.StreamOptions]{func(context.Context, engine.BeforeRequest) (*message.StreamOptions, error) { return nil, err() }},
		BeforePayload: []engine.Hook[engine.BeforePayload, json.RawMessage]{func(context.Context, engine.BeforePayload) (json.RawMessage, error) { return nil, err() }},
		AfterResponse: []engine.Hook[engine.AfterResponse, message.Message]{func(context.Context, engine.AfterResponse) (message.Message, error) { return nil, err() }},
		BeforeTool: []engine.Hook[engine.BeforeTool, engine.ToolDecision]{func(context.Context, engine.BeforeTool) (engine.ToolDecision, error) {
			return engine.ToolDecision{}, err()
		}},
		AfterTool:        []engine.Hook[engine.AfterTool, engine.ToolPatch]{func(context.Context, engine.AfterTool) (engine.ToolPatch, error) { return engine.ToolPatch{}, err() }},
		BeforeCompaction: summary, BeforeNavigation: summary,
	}
	switch name {
	case "before_drive":
		return engine.Hooks{BeforeDrive: all.BeforeDrive}
	case "before_run":
		return engine.Hooks{BeforeRun: all.BeforeRun}
	case "before_run_end":
		return engine.Hooks{BeforeRunEnd: all.BeforeRunEnd}
	case "transform_context":
		return engine.Hooks{TransformContext: all.TransformContext}
	case "before_request":
		return engine.Hooks{BeforeRequest: all.BeforeRequest}
	case "before_payload":
		return engine.Hooks{BeforePayload: all.BeforePayload}
	case "after_response":
		return engine.Hooks{AfterResponse: all.AfterResponse}
	case "before_tool":
		return engine.Hooks{BeforeTool: all.BeforeTool}
	case "after_tool":
		return engine.Hooks{AfterTool: all.AfterTool, Guarded: func(name string) bool { return name == "tool" }}
	case "before_compaction":
		return engine.Hooks{BeforeCompaction: all.BeforeCompaction}
	}
	return engine.Hooks{BeforeNavigation: all.BeforeNavigation}
}

// showing is a provider that shows the bodies of its requests, and words a refusal as
// one that could be repeated.
type showing struct{ deferring }

func (m *showing) Stream(ctx context.Context, req effect.Request) effect.Events {
	return func(yield func(message.StreamEvent) bool) {
		if req.Payload != nil {
			if _, err := req.Payload(ctx, json.RawMessage(`{}`)); err != nil {
				a := ending(message.StopError)
				a.ErrorMessage = "503 overloaded: " + err.Error()
				yield(message.StreamEvent{Type: message.EventError, Reason: a.StopReason, Message: a.Message()})
				return
			}
		}
		m.Model.Stream(ctx, req)(yield)
	}
}

func (m *showing) Poll(ctx context.Context, _ message.DeferredHandle, req effect.Request) effect.Events {
	return m.Stream(ctx, req)
}

// openRun accepts a run that calls a tool, with a hook that fails.
func openRun(t *testing.T, w *enginetest.World, hooks engine.Hooks, replies ...enginetest.Reply) string {
	t.Helper()
	w.Models.Add(&showing{deferring{Model: w.Model}})
	w.Options.Hooks = hooks
	arm(w, puppet{name: "tool", run: func(context.Context, effect.Invocation) (message.ToolResult, error) {
		r := text("secret")
		r.Details, r.Usage = json.RawMessage(`{"secret":1}`), &message.Usage{Input: 7, TotalTokens: 7}
		return r, nil
	}})
	w.Model.Reply = enginetest.Sequence(replies...)
	activate(t, w)
	return w.Accept("hi")
}

// What the failure of a required handler means, hook by hook (D48). Each heals after
// its first failure.
func TestRequiredHookFails(t *testing.T) {
	said := []string{"user: hi", "assistant toolUse", "toolResult: secret", "assistant stop: said"}
	refused := []string{"user: hi", "assistant error"}
	for _, tt := range []struct {
		hook     string
		rejected bool       // the first pass is
		outcome  op.Outcome // of the run, in the end
		talk     []string
		asked    int // requests that the provider saw
	}{
		{"before_drive", true, op.Completed, said, 2},
		{"before_run", true, op.Completed, said, 2},
		{"before_run_end", true, op.Completed, said, 2},
		{"before_tool", true, op.Completed, said, 2},
		// The answer is gone with the pass: its request is repeated.
		{"after_response", true, op.Completed, []string{"user: hi", "assistant error", "assistant stop: said"}, 2},
		{"transform_context", false, op.Failed, refused, 0},
		{"before_request", false, op.Failed, refused, 0},
		{"before_payload", false, op.Failed, refused, 0},
		{"after_tool", false, op.Completed, []string{
			"user: hi", "assistant toolUse",
			"toolResult: the result of this call is withheld: a required after_tool hook failed", "assistant stop: said",
		}, 2},
	} {
		t.Run(tt.hook, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				id := openRun(t, w, failingHook(tt.hook, failures(1, &engine.Required{Err: errors.New("no")})), calls("tool"), whole("said"))
				before := w.Records()
				d, err := w.Lane.Drive(t.Context(), engine.DriveOptions{OperationID: id, WaitForRetry: true})
				if tt.rejected {
					failed, ok := errors.AsType[*engine.HookFailed](err)
					if !ok || *failed != (engine.HookFailed{Lane: "main", OperationID: id, Hook: tt.hook, Err: failed.Err}) {
						t.Fatalf("the pass ended with %+v, %v", d, err)
					}
					if first := tt.hook == "before_drive" || tt.hook == "before_run"; first {
						enginetest.Equal(t, "durable state", w.Records(), before)
					}
					d, err = w.Lane.Drive(t.Context(), engine.DriveOptions{OperationID: id, WaitForRetry: true})
				}
				if err != nil || d.Kind != engine.Settled || d.Outcome.Kind != tt.outcome {
					t.Fatalf("the run ended with %+v, %v", d, err)
				}
				if want := "a required " + tt.hook + " hook: no"; tt.outcome == op.Failed && d.Outcome.Error.Message != want {
					t.Errorf("it failed with %q, want %q", d.Outcome.Error.Message, want)
				}
				wantTalk(t, w, tt.talk...)
				if got := len(w.Model.Requests()); got != tt.asked {
					t.Errorf("the provider was asked %d times, want %d", got, tt.asked)
				}
				nothingLeft(t, w)
			})
		})
	}
}

// A required handler that fails after an abort has nothing left to guard: the run ends
// as aborted, in the same pass (spec §4.6).
func TestRequiredHookFailsUnderAbort(t *testing.T) {
	no := &engine.Required{Err: errors.New("no")}
	for _, hook := range []string{
		"before_drive", "before_run", "before_request", "transform_context", "before_payload", "after_response",
		"before_tool", "after_tool", "before_run_end",
	} {
		t.Run(hook, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				var id string
				id = openRun(t, w, failingHook(hook, func() error { cancel(t, w, id); return no }), calls("tool"), whole("said"))
				d, err := w.Lane.Drive(t.Context(), engine.DriveOptions{OperationID: id})
				if err != nil || d.Kind != engine.Settled || d.Outcome.Kind != op.Aborted {
					t.Fatalf("the run ended with %+v, %v", d, err)
				}
				nothingLeft(t, w)
			})
		})
	}
	for hook, accept := range map[string]func(*testing.T, *enginetest.World) string{
		"before_compaction": acceptCompaction, "before_navigation": summarized,
	} {
		t.Run(hook, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				var id string
				talked(t, w)
				_ = w.Harness.Close()
				w.Options.Hooks = failingHook(hook, func() error { cancel(t, w, id); return no })
				w.Open()
				id = accept(t, w)
				d, err := w.Lane.Drive(t.Context(), engine.DriveOptions{OperationID: id})
				if err != nil || d.Kind != engine.Settled || d.Outcome.Kind != op.Aborted {
					t.Fatalf("it ended with %+v, %v", d, err)
				}
				nothingLeft(t, w)
			})
		})
	}
}

// failures fails the first n times.
func failures(n int, err error) func() error {
	return func() error {
		if n--; n < 0 {
			return nil
		}
		return err
	}
}

// The failure of a handler that is not required is told, and changes nothing but
// that it blocks a tool and rejects a pass (spec §5.6).
func TestOtherHookFails(t *testing.T) {
	for _, hook := range []string{"before_run", "before_run_end", "transform_context", "before_request", "before_payload", "after_response", "before_tool", "after_tool"} {
		t.Run(hook, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				id := openRun(t, w, failingHook(hook, failures(1, errors.New("no"))), calls("tool"), whole("said"))
				var told []string
				w.Harness.On(func(e op.Event) {
					if e.Type == op.EventHandlerError {
						told = append(told, e.Hook+": "+e.ErrorText)
					}
				})
				passOf(t, w, id)
				enginetest.Equal(t, "told", told, []string{hook + ": no"})
				result := "toolResult: secret"
				if hook == "before_tool" {
					result = "toolResult: blocked: a before_tool hook failed"
				}
				wantTalk(t, w, "user: hi", "assistant toolUse", result, "assistant stop: said")
			})
		})
	}
}

// A required hook of a summary rejects the pass, one of its request fails the
// operation.
func TestRequiredHookOfSummary(t *testing.T) {
	for _, tt := range []struct {
		hook   string
		accept func(*testing.T, *enginetest.World) string
		failed bool
	}{
		{"before_compaction", acceptCompaction, false},
		{"before_navigation", summarized, false},
		{"before_request", acceptCompaction, true},
		{"before_payload", summarized, true},
	} {
		t.Run(tt.hook, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				talked(t, w, whole("sum"), whole("turn"))
				_ = w.Harness.Close()
				w.Models.Add(&showing{deferring{Model: w.Model}})
				w.Options.Hooks = failingHook(tt.hook, failures(1, &engine.Required{Err: errors.New("no")}))
				w.Open()
				id := tt.accept(t, w)
				d, err := w.Lane.Drive(t.Context(), engine.DriveOptions{OperationID: id})
				if tt.failed {
					if err != nil || d.Outcome == nil || d.Outcome.Kind != op.Failed || d.Outcome.Error.Message != "a required "+tt.hook+" hook: no" {
						t.Fatalf("it ended with %+v, %v", d, err)
					}
					return
				}
				if _, ok := errors.AsType[*engine.HookFailed](err); !ok {
					t.Fatalf("the pass ended with %+v, %v", d, err)
				}
				passOf(t, w, id)
			})
		})
	}
}

// A poll that a required hook refuses leaves the job as it is (D33, D48).
func TestRequiredHookOfPoll(t *testing.T) {
	for _, hook := range []string{"transform_context", "before_request", "before_payload"} {
		t.Run(hook, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				calls := 0
				second := func() error { // that of the first poll
					if calls++; calls == 2 {
						return &engine.Required{Err: errors.New("no")}
					}
					return nil
				}
				w.Options.StreamOptions.Deferred = json.RawMessage(`true`)
				id := openRun(t, w, failingHook(hook, second), later("job"), whole("said"))
				for range 2 {
					d, err := w.Lane.Drive(t.Context(), engine.DriveOptions{OperationID: id, PollDeferred: calls > 0})
					if err != nil || d.Reason != engine.WaitDeferred || !strings.Contains(string(d.Deferred), `"id":"job"`) {
						t.Fatalf("the pass ended with %+v, %v", d, err)
					}
					if want := "a required " + hook + " hook: no"; calls > 1 && d.PollFailed.Text != want {
						t.Errorf("the poll failed of %q, want %q", d.PollFailed.Text, want)
					}
				}
				d, err := w.Lane.Drive(t.Context(), engine.DriveOptions{OperationID: id, PollDeferred: true})
				if err != nil || d.Kind != engine.Settled || d.Outcome.Kind != op.Completed {
					t.Fatalf("the run ended with %+v, %v", d, err)
				}
				if got := talk(t, w); got[len(got)-1] != "assistant stop: said" || len(w.Model.Requests()) != 2 {
					t.Errorf("%q after %d requests", got, len(w.Model.Requests()))
				}
			})
		})
	}
}

// Of a call whose result a required handler must see, nothing is told or stored
// before, and a result that an abort kept from it is withheld (D48).
func TestGuardedTool(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		var h held
		var told []op.EventType
		w.Options.Manual = true
		w.Options.Hooks = failingHook("after_tool", failures(0, nil))
		arm(w, h.puppet("tool", false))
		w.Model.Reply = enginetest.Sequence(calls("tool"))
		h.answer = text("secret")
		activate(t, w)
		w.Harness.On(func(e op.Event) { told = append(told, e.Type) })
		id := w.Accept("hi")
		done := parkAt(t, w, "tool.execute", engine.DriveOptions{OperationID: id})
		w.Lane.ExecuteAction(t.Context())
		<-h.begun
		before := w.Records()
		h.do(func() { h.call.Update(text("half a secret"), true) })
		enginetest.Equal(t, "durable state after an update", w.Records(), before)
		if slices.Contains(told, op.EventToolUpdate) {
			t.Error("the update was told")
		}
		h.finish()
		executeTo(t, w, "hook.after_tool")
		cancel(t, w, id)
		finishPass(t, w, done, op.Aborted)
		wantTalk(t, w, "user: hi", "assistant toolUse",
			"toolResult: the result of this call is withheld: the run was aborted before a required after_tool hook saw it")
		for _, r := range w.Records() {
			if strings.Contains(string(r.Value), "secret") || r.Entry != nil && strings.Contains(string(r.Entry.Payload), "secret") {
				t.Errorf("the session holds %+v", r)
			}
		}
	})
}

// The system prompt is made for the lane's tools and the operation's start.
func TestSystemPromptOfLane(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		var asked []engine.Prompting
		w.Options.SystemPrompt = func(p engine.Prompting) string {
			asked = append(asked, p)
			return strings.Join(p.Tools, ",")
		}
		id := openRun(t, w, engine.Hooks{}, calls("tool"), whole("said"))
		passOf(t, w, id)
		one := engine.Prompting{Lane: "main", StartedAt: enginetest.Start, Tools: []string{"tool"}}
		enginetest.Equal(t, "asked", asked, []engine.Prompting{one, one})
		for _, req := range w.Model.Requests() {
			if req.SystemPrompt != "tool" {
				t.Errorf("the system prompt is %q", req.SystemPrompt)
			}
		}
	})
}

// A close that cuts a handler short leaves no trace of what it then answered (spec
// §4.7).
func TestCloseDuringHook(t *testing.T) {
	for _, in := range integrations {
		if !strings.HasPrefix(in.point, "hook.") {
			continue
		}
		t.Run(in.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				*w.Pace = enginetest.Free
				var before []store.Record
				b := begun{}
				id := in.start(t, w, func(ctx context.Context, name string) {
					b.tell(ctx, name)
					if name == in.name && b.count(name) == in.nth {
						before = w.Records()
						engine.Seal(w.Harness)
						<-ctx.Done()
					}
				})
				if end := <-driveEverything(w, id); !errors.Is(end.err, store.ErrClosed) {
					t.Errorf("the pass ended with %+v, %v", end.value, end.err)
				}
				enginetest.Equal(t, "durable state", w.Records(), before)
			})
		})
	}
}
