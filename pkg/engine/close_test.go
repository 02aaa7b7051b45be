package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// manual is a world that parks at every breakpoint that a run without tools has:
// its hooks are there, its first request fails.
func manual(w *enginetest.World) {
	w.Options.Manual = true
	w.Options.Retry.BaseDelayMs = 100
	w.Options.Hooks.BeforeDrive = []func(context.Context, engine.BeforeDrive) error{
		func(context.Context, engine.BeforeDrive) error { return nil },
	}
	w.Options.Hooks.BeforeRun = []func(context.Context, engine.BeforeRun) ([]message.Message, error){
		func(context.Context, engine.BeforeRun) ([]message.Message, error) { return nil, nil },
	}
	w.Model.Reply = enginetest.Sequence(enginetest.Fail("overloaded"), enginetest.Say("ok"))
}

// breakpoints are the actions of that run, in order, with their details (D43).
var breakpoints = []effect.Action{
	{Kind: "hook.before_drive", Description: "Run the before_drive hooks"},
	{Kind: "hook.before_run", Description: "Run the before_run hooks"},
	{Kind: "run.begin", Description: "Complete the run's initial context"},
	{Kind: "assistant.intent", Description: "Record the intent to request an answer", Details: []byte(`{"attempt":1}`)},
	{Kind: "assistant.request", Description: "Request the assistant's answer", Details: []byte(`{"attempt":1}`)},
	{Kind: "assistant.settlement", Description: "Settle the assistant's answer"},
	{Kind: "retry.sleep", Description: "Wait before the next attempt", Details: []byte(`{"attempt":2,"notBefore":1700000000100}`)},
	{Kind: "assistant.intent", Description: "Record the intent to request an answer", Details: []byte(`{"attempt":2}`)},
	{Kind: "assistant.request", Description: "Request the assistant's answer", Details: []byte(`{"attempt":2}`)},
	{Kind: "assistant.settlement", Description: "Settle the assistant's answer"},
	{Kind: "checkpoint.finish", Description: "End the run"},
}

func TestBreakpoints(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		manual(w)
		w.Open()
		if a, ok := w.Lane.PeekAction(t.Context()); ok {
			t.Errorf("parked before any drive: %v", a)
		}
		id := w.Accept("hi")
		done := drive(w, engine.DriveOptions{OperationID: id, WaitForRetry: true})
		var seen []effect.Action
		for {
			a, ok := w.Lane.ExecuteAction(t.Context())
			if !ok {
				break
			}
			seen = append(seen, a)
		}
		enginetest.Equal(t, "breakpoints", seen, breakpoints)
		if end := <-done; end.err != nil || end.value.Kind != engine.Settled {
			t.Errorf("ended with %+v", end)
		}
		if a, ok := w.Lane.ExecuteAction(t.Context()); ok {
			t.Errorf("executed after the end: %v", a)
		}
	})
	bubble(t, func(t *testing.T, w *enginetest.World) {
		w.OpenUntil(7)
		w.Die(w.Accept("hi"))
		w.Options.Manual = true
		w.Reopen()
		done := drive(w, engine.DriveOptions{OperationID: current(t, w)})
		a, ok := w.Lane.PeekAction(t.Context())
		want := effect.Action{Kind: "recovery.settlement", Description: "Settle an interrupted request", Details: []byte(`{"attempt":1}`)}
		enginetest.Equal(t, "first breakpoint of a recovery", a, want)
		w.Lane.RunToCompletion(t.Context())
		if end := <-done; !ok || end.err != nil {
			t.Error(end.err)
		}
	})
}

func current(t *testing.T, w *enginetest.World) string {
	t.Helper()
	info, err := w.Lane.InspectExecution(t.Context())
	if err != nil || info.Current == nil {
		t.Fatalf("no operation is open: %v", err)
	}
	return info.Current.ID
}

// close vs parked manual action: the action is not executed, what is durable is
// the committed prefix, and the next process ends the run from there.
func TestCloseVersusParkedAction(t *testing.T) {
	for n, parked := range breakpoints {
		t.Run(fmt.Sprintf("%d %s", n, parked.Kind), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				manual(w)
				w.Open()
				id := w.Accept("hi")
				done := drive(w, engine.DriveOptions{OperationID: id, WaitForRetry: true})
				for range n {
					w.Lane.ExecuteAction(t.Context())
				}
				if a, _ := w.Lane.PeekAction(t.Context()); !cmp.Equal(a, parked) {
					t.Fatalf("parked before %v", a)
				}
				before, requests := w.Records(), len(w.Model.Requests())
				w.Close()
				if end := <-done; !errors.Is(end.err, store.ErrClosed) {
					t.Errorf("the drive ended with %v", end.err)
				}
				enginetest.Equal(t, "what the close left", w.Records(), before)
				if got := len(w.Model.Requests()); got != requests {
					t.Errorf("%d requests, %d before the close", got, requests)
				}
				w.Options.Manual = false
				w.Reopen()
				if err := w.Play(t.Context(), []string{"hi"}); err != nil {
					t.Fatal(err)
				}
				w.Settled()
				said, end := w.End()
				essence, failures := enginetest.Essence(said)
				enginetest.Equal(t, "conversation", essence, []enginetest.Said{
					{Role: message.RoleUser, Text: "hi"}, {Role: message.RoleAssistant, Stop: message.StopStop, Text: "ok"},
				})
				enginetest.Equal(t, "end", end, enginetest.End{Outcome: op.Completed, Completion: op.CompletedByAssistant})
				if failures > 2 {
					t.Errorf("%d failures", failures)
				}
			})
		})
	}
}

// close vs settlement: one that was admitted commits, and close waits for it; the
// other order is TestCloseVersusParkedAction before assistant.settlement.
func TestCloseVersusSettlement(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		*w.Pace = enginetest.Free
		g := gated(w)
		accepted := begin(func() (engine.Admission, error) {
			return w.Lane.Accept(context.Background(), engine.Request{Text: "hi"})
		})
		g.Next(1)
		id := (<-accepted).value.OperationID
		done := drive(w, engine.DriveOptions{OperationID: id})
		g.Next(3 + 5) // to the intent, then the frames
		synctest.Wait()
		closed := begin(func() (struct{}, error) { return struct{}{}, w.Harness.Close() })
		if over(closed) {
			t.Fatal("close did not wait for the settlement")
		}
		g.Next(1)
		if end := <-closed; end.err != nil {
			t.Error(end.err)
		}
		if end := <-done; !errors.Is(end.err, store.ErrClosed) {
			t.Errorf("the drive ended with %v", end.err)
		}
		wantPoint(t, w, id, op.PointMayFinish)
		w.Reopen()
		g = nil
		w.Continue()
		w.Settled()
		if n := len(w.Model.Requests()); n != 1 {
			t.Errorf("%d requests: a settled answer was asked for again", n)
		}
	})
}

// Whatever is called after a close says so, and reads no more.
func TestAfterClose(t *testing.T) {
	w := enginetest.InMemory(t)
	w.Open()
	id := w.Accept("hi")
	for range 2 {
		if err := w.Harness.Close(); err != nil {
			t.Fatal(err)
		}
	}
	calls := map[string]func() error{
		"accept":    func() error { _, err := w.Lane.Accept(t.Context(), engine.Request{Text: "x"}); return err },
		"prompt":    func() error { _, err := w.Lane.Prompt(t.Context(), engine.Request{Text: "x"}); return err },
		"drive":     func() error { _, err := w.Lane.Drive(t.Context(), engine.DriveOptions{OperationID: id}); return err },
		"resume":    func() error { _, err := w.Lane.Resume(t.Context()); return err },
		"inspect":   func() error { _, err := w.Lane.InspectExecution(t.Context()); return err },
		"configure": func() error { return w.Lane.Configure(t.Context(), engine.Configure{ActiveToolNames: &[]string{"x"}}) },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
