package engine_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

var errGone = errors.New("the caller is gone")

// A caller that stops waiting for a pass leaves it to the next one.
func TestDriveOutlivesItsCaller(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		w.Options.Manual = true
		w.Open()
		id := w.Accept("hi")
		ctx, leave := context.WithCancelCause(t.Context())
		first := begin(func() (engine.DriveOutcome, error) {
			return w.Lane.Drive(ctx, engine.DriveOptions{OperationID: id})
		})
		leave(errGone)
		if end := <-first; !errors.Is(end.err, errGone) {
			t.Errorf("the caller got %v", end.err)
		}
		second := drive(w, engine.DriveOptions{OperationID: id})
		w.Lane.RunToCompletion(t.Context())
		if end := <-second; end.err != nil || end.value.Kind != engine.Settled {
			t.Errorf("the joiner got %+v", end)
		}
	})
}

// Callers that stop waiting while their job is still in line: the job runs all
// the same, and nothing is left half-done.
func TestCallersThatLeaveTheLine(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		g := gated(w)
		accepted := begin(func() (engine.Admission, error) {
			return w.Lane.Accept(context.Background(), engine.Request{Text: "hi"})
		})
		g.Next(1)
		id := (<-accepted).value.OperationID

		// Something holds the lane's line.
		held := begin(func() (struct{}, error) { return struct{}{}, w.Session.View("main").SetName(context.Background(), "x") })
		ctx, leave := context.WithCancelCause(t.Context())
		calls := []<-chan ended[struct{}]{
			begin(func() (struct{}, error) {
				d, err := w.Lane.Drive(ctx, engine.DriveOptions{OperationID: id})
				if d.Kind != "" {
					t.Errorf("the drive answered %+v", d)
				}
				return struct{}{}, err
			}),
			begin(func() (struct{}, error) { _, err := w.Lane.InspectExecution(ctx); return struct{}{}, err }),
			begin(func() (struct{}, error) { return struct{}{}, w.Lane.Configure(ctx, engine.Configure{}) }),
			begin(func() (struct{}, error) {
				_, err := w.Lane.Accept(ctx, engine.Request{Text: "again"})
				return struct{}{}, err
			}),
		}
		leave(errGone)
		for _, c := range calls {
			if end := <-c; !errors.Is(end.err, errGone) {
				t.Errorf("a caller got %v", end.err)
			}
		}
		g.Open()
		if end := <-held; end.err != nil {
			t.Fatal(end.err)
		}
		// Whether the drive that nobody waits for has begun or not, the run has one
		// pass and one end.
		if err := w.Play(t.Context(), []string{"hi"}); err != nil {
			t.Fatal(err)
		}
		if n := len(w.Model.Requests()); n != 1 {
			t.Errorf("%d requests", n)
		}
		w.Close()
		w.Settled()
	})
}

// The same in all its variants of timing, for the race detector.
func TestCallersThatLeaveRace(t *testing.T) {
	for range 50 {
		w := enginetest.InMemory(t)
		w.Open()
		id := w.Accept("hi")
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan struct{})
		for range 3 {
			go func() {
				_, _ = w.Lane.Drive(ctx, engine.DriveOptions{OperationID: id})
				_, _ = w.Lane.InspectExecution(ctx)
				_, _ = w.Lane.Accept(ctx, engine.Request{Text: "again"})
				left <- struct{}{}
			}()
		}
		leave()
		for range 3 {
			<-left
		}
		if err := w.Harness.Close(); err != nil {
			t.Fatal(err)
		}
		w.Verify()
	}
}

// A lane has one pass at a time: while the last one still tells its end, the next
// operation is accepted and waits (spec §4.1).
func TestOnePassAtATime(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		w.Open()
		telling, go_on := make(chan struct{}), make(chan struct{})
		w.Harness.On(func(e op.Event) {
			if e.Type == op.EventRunEnd {
				telling <- struct{}{}
				<-go_on
			}
		})
		a := w.Accept("a")
		first := drive(w, engine.DriveOptions{OperationID: a})
		<-telling
		// The acceptance commits; its events wait behind the one being told.
		ctx, leave := context.WithCancelCause(t.Context())
		accepted := begin(func() (engine.Admission, error) { return w.Lane.Accept(ctx, engine.Request{Text: "b"}) })
		leave(errGone)
		b := <-accepted
		if b.err != nil {
			t.Fatal(b.err)
		}
		second := drive(w, engine.DriveOptions{OperationID: b.value.OperationID})
		if n := len(w.Model.Requests()); n != 1 || over(second) {
			t.Errorf("a second pass started: %d requests", n)
		}
		wantPoint(t, w, b.value.OperationID, op.PointStarting)
		close(go_on)
		one := <-first
		<-telling
		two := <-second
		if one.err != nil || one.value.Outcome.RunID != a || two.err != nil || two.value.Outcome.RunID != b.value.OperationID {
			t.Errorf("got %+v and %+v", one, two)
		}
		w.Settled()
	})
}

// A pass answers with its own end, even when the lane's latest result is another
// operation's by then.
func TestPassAnswersWithItsOwnEnd(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		w.Open()
		a := w.Accept("a")
		w.Harness.On(func(e op.Event) {
			if e.Type != op.EventRunEnd || e.RunID != a {
				return
			}
			ctx, leave := context.WithCancel(context.Background())
			accepted := begin(func() (engine.Admission, error) { return w.Lane.Accept(ctx, engine.Request{Text: "b"}) })
			leave() // committed; only its events are still to be told
			b := <-accepted
			ctx, leave = context.WithCancel(context.Background())
			finalized := begin(func() (struct{}, error) { return struct{}{}, engine.Finalize(ctx, w.Lane, b.value.OperationID) })
			leave()
			if end := <-finalized; b.err != nil || end.err != nil {
				t.Error(b.err, end.err)
			}
		})
		d := w.Drive(engine.DriveOptions{OperationID: a})
		if d.Outcome.RunID != a || d.Outcome.Kind != op.Completed {
			t.Errorf("got %+v", d.Outcome)
		}
		if _, end := w.End(); end.Outcome != op.Aborted {
			t.Errorf("the latest result is %+v", end)
		}
	})
}

// prompt and resume go on after a pass that they only joined and that ended by
// its own options (spec §4.1).
func TestPromptGoesOnAfterAJoinedPass(t *testing.T) {
	for _, tt := range []struct {
		name string
		pass engine.DriveOptions
		kind engine.DriveKind
	}{
		{"that yielded", engine.DriveOptions{Deadline: enginetest.Start + 1}, engine.Yielded},
		{"that does not wait for a retry", engine.DriveOptions{}, engine.Waiting},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				manual(w)
				w.Options.Hooks = engine.Hooks{}
				if tt.kind == engine.Yielded {
					w.Model.Reply = enginetest.Echo
				}
				w.Open()
				tt.pass.OperationID = w.Accept("hi")
				pass := drive(w, tt.pass)
				executeTo(t, w, "assistant.settlement")
				resumed := begin(func() (engine.DriveOutcome, error) { return w.Lane.Resume(context.Background()) })
				w.Clock.Advance(500)
				for !over(pass) {
					w.Lane.ExecuteAction(t.Context())
				}
				if end := <-pass; end.err != nil || end.value.Kind != tt.kind {
					t.Fatalf("the pass ended with %+v", end)
				}
				for !over(resumed) {
					w.Lane.ExecuteAction(t.Context())
				}
				if end := <-resumed; end.err != nil || end.value.Kind != engine.Settled {
					t.Errorf("resume ended with %+v", end)
				}
			})
		})
	}
}

func TestResume(t *testing.T) {
	w := enginetest.InMemory(t)
	w.Open()
	_, err := w.Lane.Resume(t.Context())
	var nothing *engine.NothingToResume
	if !errors.As(err, &nothing) || nothing.Lane != "main" {
		t.Errorf("an idle lane: %v", err)
	}
	id := w.Accept("hi")
	w.Models.Remove(enginetest.Ref)
	_, err = w.Lane.Resume(t.Context())
	var missing *engine.MissingIdentities
	if !errors.As(err, &missing) {
		t.Fatalf("without its model: %v", err)
	}
	enginetest.Equal(t, "missing", missing.Missing, op.Missing{Tools: []string{}, Model: "acme/one"})
	enginetest.Equal(t, "why", missing.Error(), "model acme/one is not registered")
	w.Models.Add(w.Model)
	var events []op.Event
	w.Harness.On(func(e op.Event) { events = append(events, e) })
	d, err := w.Lane.Resume(t.Context())
	if err != nil || d.Outcome.RunID != id {
		t.Errorf("got %+v, %v", d, err)
	}
	enginetest.Equal(t, "first event", events[0], op.Event{Type: op.EventRunResume, Lane: "main", RunID: id})
}

// A delay that no timer can count is waited for all the same, and a close ends
// the wait.
func TestLongRetryWait(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		w.Options.Retry.BaseDelayMs = math.MaxInt64/1_000_000 + 1
		w.Model.Reply = enginetest.Sequence(enginetest.Fail("overloaded"))
		w.Open()
		id := w.Accept("hi")
		done := drive(w, engine.DriveOptions{OperationID: id, WaitForRetry: true})
		time.Sleep(365 * 24 * time.Hour)
		if over(done) || len(w.Model.Requests()) != 1 {
			t.Errorf("the wait ended: %d requests", len(w.Model.Requests()))
		}
		w.Close()
		if end := <-done; !errors.Is(end.err, store.ErrClosed) {
			t.Errorf("ended with %v", end.err)
		}
		wantPoint(t, w, id, op.PointRetryWait)
	})
}

// The wait for a retry in this process ends at its time, not before.
func TestRetryWait(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		w.Options.Retry.BaseDelayMs = 1_000
		w.Model.Reply = enginetest.Sequence(enginetest.Fail("overloaded"), enginetest.Fail("overloaded"), enginetest.Say("ok"))
		w.Open()
		done := begin(func() (engine.DriveOutcome, error) {
			return w.Lane.Prompt(context.Background(), engine.Request{Text: "hi"})
		})
		for i, wait := range []time.Duration{1_000, 2_000} {
			time.Sleep(wait*time.Millisecond - 1)
			if n := len(w.Model.Requests()); n != i+1 {
				t.Errorf("%d requests just before %d ms", n, wait)
			}
			w.Clock.Advance(int64(wait))
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if n := len(w.Model.Requests()); n != i+2 {
				t.Errorf("%d requests after %d ms", n, wait)
			}
		}
		if end := <-done; end.err != nil || end.value.Kind != engine.Settled {
			t.Errorf("ended with %+v", end)
		}
	})
}
