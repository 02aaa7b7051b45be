package engine_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
)

// window is a row that one run makes, between two breakpoints.
func window(first, last string, replies ...enginetest.Reply) func(*testing.T, *enginetest.World, *enginetest.Trace) {
	return func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		answering(t, w, replies...)
		between(t, w, from, w.Accept("hi"), first, last)
	}
}

// with sets the world up before a row.
func with(setup func(w *enginetest.World), row func(*testing.T, *enginetest.World, *enginetest.Trace)) func(*testing.T, *enginetest.World, *enginetest.Trace) {
	return func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		setup(w)
		row(t, w, from)
	}
}

func afterRetry(w *enginetest.World) { w.Options.Retry.BaseDelayMs = 100 }

var deferredRows = rows{
	"the settlement of a deferred answer with a valid handle": window("assistant.settlement", "deferred.intent", later("job")),
	"a permitted poll that is pending still":                  window("deferred.intent", "", later("job")),
	"a poll that comes with another handle":                   window("deferred.intent", "", later("job"), later("other")),
	"a poll that is ready, with tool calls":                   window("deferred.intent", "tool.intent", later("job"), calls("read")),
	"a poll that is ready, without tool calls":                window("deferred.intent", "checkpoint.finish", later("job"), whole("ready")),
	"a poll that fails has no retry":                          window("deferred.intent", "", later("job"), enginetest.Fail("overloaded")),
	"a poll whose process is gone is replaced at the same number": func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		answering(t, w, later("job"), whole("ready"))
		id := w.Accept("hi")
		between(t, w, from, id, "deferred.intent", "deferred.fetch")
		w.Open()
		between(t, w, from, id, "deferred.intent", "checkpoint.finish")
	},
	"a cancelled poll whose process is gone": func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		answering(t, w, later("job"), enginetest.Reply{Chunks: []string{"par"}, Hang: true})
		id := w.Accept("hi")
		done := parkAt(t, w, "deferred.fetch", engine.DriveOptions{OperationID: id, PollDeferred: true})
		w.Lane.ExecuteAction(t.Context())
		<-w.Model.Hanging()
		_ = w.Harness.Close()
		<-done
		w.Options.Manual = false
		w.Open()
		from.Reset()
		cancel(t, w, id)
		passOf(t, w, id)
	},
	"a cancelled wait starts no poll": func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		w.Model.Reply = enginetest.Sequence(later("job"))
		model := deferrable(w)
		w.Open()
		id := w.Accept("hi")
		if _, err := w.Lane.Drive(t.Context(), engine.DriveOptions{OperationID: id}); err != nil {
			t.Fatal(err)
		}
		from.Reset()
		cancel(t, w, id)
		passOf(t, w, id)
		if model.cancelled != 1 || len(w.Model.Requests()) != 1 {
			t.Errorf("%d jobs were dropped, %d requests made", model.cancelled, len(w.Model.Requests()))
		}
	},
}

// talked opens a world with two prompts that were answered.
func talked(t *testing.T, w *enginetest.World, replies ...enginetest.Reply) {
	t.Helper()
	w.Options.Compaction.KeepRecentTokens = 1
	w.Model.Reply = enginetest.Sequence(append([]enginetest.Reply{whole("said"), whole("said")}, replies...)...)
	w.Open()
	for _, prompt := range []string{"one", "two"} {
		passOf(t, w, w.Accept(prompt))
	}
}

func acceptCompaction(t *testing.T, w *enginetest.World) string {
	t.Helper()
	return admitted(t)(w.Lane.AcceptCompaction(t.Context(), engine.CompactRequest{}))
}

func acceptNavigation(t *testing.T, w *enginetest.World, summarize bool) string {
	t.Helper()
	r := engine.NavigateRequest{Target: firstEntry(t, w)}
	if summarize {
		r.Summarize, r.Label = true, "here"
	}
	return admitted(t)(w.Lane.AcceptNavigation(t.Context(), r))
}

var acceptanceRows = rows{
	"a prompt, with what waited for the next run": func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		w.Open()
		if _, err := w.Lane.NextRun(t.Context(), engine.Queued{Text: "queued"}); err != nil {
			t.Fatal(err)
		}
		from.Reset()
		w.Accept("hi")
	},
	"a compaction": func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		talked(t, w)
		from.Reset()
		acceptCompaction(t, w)
	},
	"a navigation": func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		talked(t, w)
		from.Reset()
		acceptNavigation(t, w, false)
	},
	"a summarized navigation": func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		talked(t, w)
		from.Reset()
		acceptNavigation(t, w, true)
	},
}

// cutOff is an answer that took all the output it might.
func cutOff(blocks ...message.Block) enginetest.Reply {
	a := ending(message.StopLength)
	a.Content, a.Usage = blocks, message.Usage{Input: 10, Output: 8_000, TotalTokens: 8_010}
	return only(a)
}

func noHandle() enginetest.Reply {
	a := ending(message.StopDeferred)
	a.Deferred = json.RawMessage(`{"provider":"acme","modelId":"one","api":"echo","id":""}`)
	return only(a)
}

var generationRows = rows{
	"a checkpoint that owes a turn, the step's snapshot, the intent": window("run.begin", "assistant.request", whole("said")),
	"tool calls": window("assistant.settlement", "tool.intent", calls("read", "read")),
	"a retryable error, then the wait's end": with(afterRetry,
		window("assistant.settlement", "assistant.request", enginetest.Fail("overloaded"), whole("said"))),
	"stop":             window("assistant.settlement", "checkpoint.finish", whole("said")),
	"a genuine length": window("assistant.settlement", "checkpoint.finish", cutOff(message.TextBlock("said"))),
	"a genuine length with tool calls executes nothing": window("assistant.settlement", "assistant.intent",
		cutOff(message.Block{Type: message.BlockToolCall, ID: "c", Name: "read", Arguments: json.RawMessage(`{}`)}), whole("said")),
	"a terminal error": window("assistant.settlement", "checkpoint.finish", enginetest.Refuse("no", 400, 0)),
	"retries that are exhausted": with(func(w *enginetest.World) { w.Options.Retry.MaxRetries = 0 },
		window("assistant.settlement", "checkpoint.finish", enginetest.Fail("overloaded"))),
	"a deferred answer without a valid handle": window("assistant.settlement", "checkpoint.finish", noHandle()),
	"a cancelled response": func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		answering(t, w, whole("said"))
		id := w.Accept("hi")
		done := parkAt(t, w, "assistant.settlement", engine.DriveOptions{OperationID: id})
		from.Reset()
		cancel(t, w, id)
		finishPass(t, w, done, op.Aborted)
	},
}

// final is the result of the tool in the rows of §3.8.
func final() message.ToolResult {
	r := text("final")
	r.Usage = &message.Usage{Input: 7, Output: 3, TotalTokens: 10}
	return r
}

var toolRows = rows{
	"clearance, checkpoint, staging, placement of a terminating call": with(func(w *enginetest.World) {
		arm(w, puppet{name: "submit", run: func(ctx context.Context, call effect.Invocation) (message.ToolResult, error) {
			err := call.Memos.Set(ctx, "step", json.RawMessage(`1`))
			call.Update(text("half"), true)
			r := final()
			r.Terminate = true
			return r, err
		}})
	}, window("tool.intent", "", calls("submit"))),
	"an unknown tool is staged without an intent": window("tool.settlement", "assistant.intent", calls("nope"), whole("said")),
	"a blocked call is staged without an intent": with(func(w *enginetest.World) {
		w.Options.Hooks.BeforeTool = []engine.Hook[engine.BeforeTool, engine.ToolDecision]{
			func(context.Context, engine.BeforeTool) (engine.ToolDecision, error) {
				return engine.ToolDecision{Block: "not today"}, nil
			},
		}
	}, window("tool.settlement", "assistant.intent", calls("read"), whole("said"))),
	"a cancelled batch: the call that runs keeps its result, the planned one never runs": func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		var h held
		w.Options.ToolExecution = op.Sequential
		arm(w, h.puppet("tool", false), puppet{name: "other"})
		h.answer = final()
		w.Model.Reply = enginetest.Sequence(calls("tool", "other"))
		activate(t, w)
		id := w.Accept("hi")
		done := drive(w, engine.DriveOptions{OperationID: id})
		<-h.begun
		from.Reset()
		cancel(t, w, id)
		h.finish()
		finishPass(t, w, done, op.Aborted)
	},
	"a later outcome is staged at once and waits for its place": func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		var a, b held
		arm(w, a.puppet("a", false), b.puppet("b", false))
		answering(t, w, calls("a", "b"), whole("said"))
		id := w.Accept("hi")
		done := parkAt(t, w, "tool.intent", engine.DriveOptions{OperationID: id})
		from.Reset()
		for range 4 { // two intents, two executions
			w.Lane.ExecuteAction(t.Context())
		}
		<-a.begun
		<-b.begun
		b.finish()
		executeTo(t, w, "tool.settlement")
		w.Lane.ExecuteAction(t.Context())
		synctest.Wait() // it is staged
		a.finish()
		executeTo(t, w, "assistant.intent")
		_ = w.Harness.Close()
		<-done
	},
}
