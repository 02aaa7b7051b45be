package engine_test

import (
	"context"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// The rows of summaries, navigations and queues.

func compacting(w *enginetest.World) {
	w.Options.Compaction = op.CompactionSettings{Enabled: true, ReserveTokens: 1_000, KeepRecentTokens: 1}
}

// full is an answer after which the context is over its threshold.
func full(s string) enginetest.Reply {
	a := ending(message.StopStop)
	a.Content, a.Usage = []message.Block{message.TextBlock(s)}, message.Usage{Input: 99_500, TotalTokens: 99_500}
	return only(a)
}

// second is the window of a second prompt, from the n-th time that it is parked
// before first.
func second(first string, n int, last string, replies ...enginetest.Reply) func(*testing.T, *enginetest.World, *enginetest.Trace) {
	return func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		if !w.Options.Compaction.Enabled {
			compacting(w)
		}
		answering(t, w, append([]enginetest.Reply{whole("said")}, replies...)...)
		finishPass(t, w, drive(w, engine.DriveOptions{OperationID: w.Accept("one")}), op.Completed)
		id := w.Accept("two")
		done := parkAt(t, w, first, engine.DriveOptions{OperationID: id, WaitForRetry: true})
		for range n - 1 {
			w.Lane.ExecuteAction(t.Context())
			executeTo(t, w, first)
		}
		from.Reset()
		if last != "" {
			executeTo(t, w, last)
			_ = w.Harness.Close()
			<-done
			return
		}
		for !over(done) {
			w.Lane.ExecuteAction(t.Context())
		}
		if end := <-done; end.err != nil {
			t.Fatal(end.err)
		}
	}
}

// tooLong is a length without output: an overflow.
func tooLong() enginetest.Reply {
	a := ending(message.StopLength)
	a.Usage = message.Usage{Input: 99_500, TotalTokens: 99_500}
	return only(a)
}

var overflowRows = rows{
	"an overflow that is compacted": second("assistant.settlement", 2, "",
		calls("read"), tooLong(), whole("sum"), whole("turn"), whole("fits")),
	"a second overflow is not compacted again": second("assistant.intent", 2, "",
		enginetest.Fail("prompt is too long"), whole("sum"), enginetest.Fail("prompt is too long")),
	"an overflow with nothing to compact": with(compacting,
		window("assistant.settlement", "checkpoint.finish", enginetest.Fail("prompt is too long"))),
}

// deciding answers the decision hooks.
func deciding(d engine.SummaryDecision) func(*enginetest.World) {
	return func(w *enginetest.World) {
		hooks := []engine.Hook[engine.BeforeSummary, engine.SummaryDecision]{
			func(context.Context, engine.BeforeSummary) (engine.SummaryDecision, error) { return d, nil },
		}
		w.Options.Hooks.BeforeCompaction, w.Options.Hooks.BeforeNavigation = hooks, hooks
	}
}

var (
	declining = deciding(engine.SummaryDecision{Decline: true})
	supplying = deciding(engine.SummaryDecision{Summary: &engine.SuppliedSummary{
		Text: "by hand", Usage: &message.Usage{Input: 5, Output: 2, TotalTokens: 7},
	}})
)

// structuralPass is an operation after two prompts, driven from its acceptance on,
// or from a breakpoint.
func structuralPass(accept func(*testing.T, *enginetest.World) string, first, last string, replies ...enginetest.Reply) func(*testing.T, *enginetest.World, *enginetest.Trace) {
	return func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		talked(t, w, replies...)
		id := accept(t, w)
		if first == "" {
			from.Reset()
			passOf(t, w, id)
			return
		}
		w.Options.Manual = true
		w.Reopen()
		between(t, w, from, id, first, last)
	}
}

func summarized(t *testing.T, w *enginetest.World) string { return acceptNavigation(t, w, true) }
func moved(t *testing.T, w *enginetest.World) string      { return acceptNavigation(t, w, false) }

var summaryRows = rows{
	"deciding, declined: standalone": with(declining, structuralPass(acceptCompaction, "", "")),
	"deciding, declined: threshold":  with(declining, second("checkpoint.threshold", 1, "", full("much"))),
	"deciding, declined: overflow":   with(declining, second("hook.before_compaction", 1, "", enginetest.Fail("prompt is too long"))),
	"deciding, supplied: standalone": with(supplying, structuralPass(acceptCompaction, "", "")),
	"deciding, supplied: in a run":   with(supplying, second("hook.before_compaction", 1, "checkpoint.finish", full("much"))),
	"generated: a retryable failure, then success": with(afterRetry,
		structuralPass(acceptCompaction, "", "", enginetest.Fail("overloaded"), whole("sum"))),
	"generated: a terminal failure, standalone": structuralPass(acceptCompaction, "structural.settlement", "", enginetest.Refuse("no", 400, 0)),
	"generated: a terminal failure, in a run":   second("structural.settlement", 1, "", full("much"), enginetest.Refuse("no", 400, 0)),
	"an attempt whose process is gone is given up wholly": func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		talked(t, w, whole("sum"))
		id := acceptCompaction(t, w)
		w.Options.Manual = true
		w.Reopen()
		between(t, w, from, id, "structural.intent", "structural.request")
		w.Open()
		between(t, w, from, id, "recovery.settlement", "structural.request")
	},
	"a threshold with an empty preparation is only marked": with(func(w *enginetest.World) {
		w.Options.Compaction = op.CompactionSettings{Enabled: true, ReserveTokens: 1_000, KeepRecentTokens: 50_000}
	}, window("checkpoint.threshold", "", full("much"))),
}

var navigationRows = rows{
	"without a summary": structuralPass(moved, "", ""),
	"to the root": structuralPass(func(t *testing.T, w *enginetest.World) string {
		return admitted(t)(w.Lane.AcceptNavigation(t.Context(), engine.NavigateRequest{}))
	}, "", ""),
	"with a generated summary and a label": structuralPass(summarized, "structural.settlement", "", whole("sum")),
	"with a summary that a hook supplied":  with(supplying, structuralPass(summarizedOnly, "", "")),
	"declined: nothing moves":              with(declining, structuralPass(summarized, "", "")),
	"aborted: nothing moves": func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		talked(t, w)
		id := moved(t, w)
		from.Reset()
		cancel(t, w, id)
		passOf(t, w, id)
	},
}

func summarizedOnly(t *testing.T, w *enginetest.World) string {
	return admitted(t)(w.Lane.AcceptNavigation(t.Context(), engine.NavigateRequest{Target: firstEntry(t, w), Summarize: true}))
}

var note = store.PendingEntry{Type: store.TypeCustom, CustomType: "note"}

// queue fills queues of the open run, or of the next.
func queue(t *testing.T, w *enginetest.World, items ...string) (ids []string) {
	t.Helper()
	for _, item := range items {
		var id string
		var err error
		q := engine.Queued{Text: item}
		switch item {
		case "follow":
			id, err = w.Lane.FollowUp(t.Context(), q)
		case "next":
			id, err = w.Lane.NextRun(t.Context(), q)
		case "note":
			id, _, err = w.Lane.Append(t.Context(), "", note)
		default:
			id, err = w.Lane.Steer(t.Context(), q)
		}
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// failing is the window of a run that fails while something comes in.
func failing(item, first, last string) func(*testing.T, *enginetest.World, *enginetest.Trace) {
	return func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		answering(t, w, enginetest.Refuse("no", 400, 0), whole("said"))
		id := w.Accept("hi")
		done := parkAt(t, w, "assistant.settlement", engine.DriveOptions{OperationID: id})
		queue(t, w, item)
		executeTo(t, w, first)
		from.Reset()
		if last == "" {
			finishPass(t, w, done, op.Failed)
			return
		}
		executeTo(t, w, last)
		_ = w.Harness.Close()
		<-done
	}
}

var queueRows = rows{
	"for the next run, on an idle lane": func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		w.Open()
		queue(t, w, "next")
	},
	"steering, follow-up and write of an open run": func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		w.Open()
		w.Accept("hi")
		from.Reset()
		queue(t, w, "steer", "follow", "note")
	},
	"a write on an idle lane": func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		w.Open()
		queue(t, w, "note")
	},
	"items that are cancelled while they wait": func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		w.Open()
		w.Accept("hi")
		ids := queue(t, w, "steer", "next")
		from.Reset()
		for _, id := range ids {
			if got, err := w.Lane.CancelQueued(t.Context(), id); err != nil || got != engine.CancelledItem {
				t.Errorf("%s, %v", got, err)
			}
		}
	},
	"the first abort of a run drains its queues, the terminal transaction their content": func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		w.Open()
		id := w.Accept("hi")
		queue(t, w, "steer", "follow", "note", "next")
		from.Reset()
		cancel(t, w, id)
		passOf(t, w, id)
	},
	"a checkpoint: writes, then steering, then the turn, at the end the follow-up": func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		w.Options.SteeringMode = op.QueueOne
		answering(t, w, whole("said"))
		id := w.Accept("hi")
		queue(t, w, "note", "steer", "again", "follow")
		done := parkAt(t, w, "checkpoint.write", engine.DriveOptions{OperationID: id})
		from.Reset()
		for range 3 {
			w.Lane.ExecuteAction(t.Context())
			executeTo(t, w, "assistant.intent")
		}
		_ = w.Harness.Close()
		<-done
	},
	"a failure that new input revives":                    failing("try this", "checkpoint.steer", "assistant.intent"),
	"a failure that an unprojected write does not revive": failing("note", "checkpoint.write", ""),
	"a follow-up of before_run_end is born placed": with(func(w *enginetest.World) {
		w.Options.Hooks.BeforeRunEnd = []engine.Hook[engine.BeforeRunEnd, string]{
			func(context.Context, engine.BeforeRunEnd) (string, error) { return "one more", nil },
		}
	}, window("hook.before_run_end", "assistant.intent", whole("said"))),
}
