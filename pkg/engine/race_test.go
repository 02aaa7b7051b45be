package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/storetest"
)

// Every test here forces both orders of a row of spec §9.2, and is named as the
// row.

// ended is how a call that ran in a goroutine of its own ended.
type ended[T any] struct {
	value T
	err   error
}

// begin runs a call in a goroutine and waits until everything stands still.
func begin[T any](call func() (T, error)) <-chan ended[T] {
	out := make(chan ended[T], 1)
	go func() {
		v, err := call()
		out <- ended[T]{v, err}
	}()
	synctest.Wait()
	return out
}

func over[T any](c <-chan ended[T]) bool {
	synctest.Wait()
	return len(c) > 0
}

func drive(w *enginetest.World, o engine.DriveOptions) <-chan ended[engine.DriveOutcome] {
	return begin(func() (engine.DriveOutcome, error) { return w.Lane.Drive(context.Background(), o) })
}

// bubble runs a test in which everything but the test can stand still.
func bubble(t *testing.T, test func(*testing.T, *enginetest.World)) {
	synctest.Test(t, func(t *testing.T) {
		w := enginetest.InMemory(t)
		w.Watch = true
		test(t, w)
	})
}

// gated opens a world whose commits wait for Next.
func gated(w *enginetest.World) *storetest.Gating {
	var g *storetest.Gating
	w.Decorate = func(b store.Backend) store.Backend {
		g = storetest.NewGating(b)
		return g
	}
	w.Open()
	w.Decorate = nil
	return g
}

func state(t *testing.T, w *enginetest.World, id string) op.State {
	t.Helper()
	s, ok, err := store.Get(t.Context(), w.View(), op.StateOf(id))
	if err != nil || !ok {
		t.Fatalf("state of %s: %t, %v", id, ok, err)
	}
	return s.Value
}

func wantPoint(t *testing.T, w *enginetest.World, id string, want op.Point) {
	t.Helper()
	if got := op.PointOf(state(t, w, id)); got != want {
		t.Errorf("the run stands at %s, want %s", got, want)
	}
}

// executeTo executes actions until the pass is parked before kind.
func executeTo(t *testing.T, w *enginetest.World, kind string) {
	t.Helper()
	for {
		a, ok := w.Lane.PeekAction(t.Context())
		if !ok {
			t.Fatalf("the pass ended before %s", kind)
		}
		if a.Kind == kind {
			return
		}
		w.Lane.ExecuteAction(t.Context())
	}
}

func TestPromptVersusPrompt(t *testing.T) {
	high, low := message.ThinkingHigh, message.ThinkingLow
	request := func(text string, level *message.ThinkingLevel) engine.Request {
		return engine.Request{Text: text, Configure: engine.Configure{ThinkingLevel: level}}
	}
	bubble(t, func(t *testing.T, w *enginetest.World) {
		g := gated(w)
		accept := func(r engine.Request) <-chan ended[engine.Admission] {
			return begin(func() (engine.Admission, error) { return w.Lane.Accept(context.Background(), r) })
		}
		first := accept(request("first", &high)) // its setter is under way
		second := accept(request("second", &low))
		g.Open()
		won, lost := <-first, <-second
		var busy *engine.LaneBusy
		if won.err != nil || !errors.As(lost.err, &busy) {
			t.Fatalf("got %v and %v", won.err, lost.err)
		}
		enginetest.Equal(t, "refusal", *busy, engine.LaneBusy{Lane: "main", OperationID: won.value.OperationID, Kind: op.KindRun})
		enginetest.Equal(t, "refused admission", lost.value, engine.Admission{})
		cfg, err := w.Lane.Configuration(t.Context())
		if err != nil || cfg.ThinkingLevel != high {
			t.Errorf("the refused prompt left the lane at %s, %v", cfg.ThinkingLevel, err)
		}
		said, err := enginetest.Conversation(t.Context(), w.View())
		enginetest.Equal(t, "conversation", said, []enginetest.Said{{Role: message.RoleUser, Text: "first"}})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestDriveVersusDrive(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		w.Options.Manual = true
		drives := 0
		w.Options.Hooks.BeforeDrive = []func(context.Context, engine.BeforeDrive) error{
			func(context.Context, engine.BeforeDrive) error { drives++; return nil },
		}
		w.Open()
		id := w.Accept("hi")
		first := drive(w, engine.DriveOptions{OperationID: id})
		executeTo(t, w, "assistant.settlement")
		second := drive(w, engine.DriveOptions{OperationID: id, Deadline: 1})
		w.Lane.RunToCompletion(t.Context())
		a, b := <-first, <-second
		if a.err != nil || b.err != nil || a.value.Outcome != b.value.Outcome || a.value.Kind != engine.Settled {
			t.Errorf("got %+v and %+v", a, b)
		}
		if n := len(w.Model.Requests()); n != 1 || drives != 1 {
			t.Errorf("%d requests in %d passes", n, drives)
		}
	})
}

func TestStaleDriveVersusCurrent(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		w.Open()
		a := w.Accept("a")
		end := w.Drive(engine.DriveOptions{OperationID: a})
		again, err := w.Lane.Drive(t.Context(), engine.DriveOptions{OperationID: a})
		if err != nil {
			t.Fatal(err)
		}
		enginetest.Equal(t, "the settled answer of the latest terminal", again, end)

		b := w.Accept("b")
		before := w.Records()
		for _, stale := range []string{a, "018bcfe5-6800-7000-8000-000000000000"} {
			_, err = w.Lane.Drive(t.Context(), engine.DriveOptions{OperationID: stale})
			var mismatch *engine.OperationMismatch
			if !errors.As(err, &mismatch) || *mismatch != (engine.OperationMismatch{Lane: "main", Expected: stale, Current: b, Last: a}) {
				t.Errorf("drive %s: %v", stale, err)
			}
		}
		enginetest.Equal(t, "what the stale drives left of b", w.Records(), before)

		w.Drive(engine.DriveOptions{OperationID: b})
		_, err = w.Lane.Drive(t.Context(), engine.DriveOptions{OperationID: a})
		var mismatch *engine.OperationMismatch
		if !errors.As(err, &mismatch) || *mismatch != (engine.OperationMismatch{Lane: "main", Expected: a, Last: b}) {
			t.Errorf("an operation before the latest: %v", err)
		}
		if n := len(w.Model.Requests()); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestSetModelVersusStepStart(t *testing.T) {
	other := message.ModelRef{Provider: "acme", ModelID: "two"}
	for _, tt := range []struct {
		name, parked string
		want         message.ModelRef
	}{
		{"setter first", "run.begin", other},
		{"step start first", "assistant.intent", enginetest.Ref},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				w.Options.Manual = true
				w.AddModel(effect.ModelInfo{Ref: other, API: "echo", ContextWindow: 9_000})
				w.Open()
				id := w.Accept("hi")
				done := drive(w, engine.DriveOptions{OperationID: id})
				executeTo(t, w, tt.parked)
				if err := w.Lane.Configure(t.Context(), engine.Configure{Model: &other}); err != nil {
					t.Fatal(err)
				}
				executeTo(t, w, "assistant.request")
				g := state(t, w, id).(op.RunState).Phase.(op.Assistant).Generation.(op.EffectPending)
				if got := g.Context.Configuration.Model; got != tt.want {
					t.Errorf("the step runs with %s, want %s", got, tt.want)
				}
				w.Lane.RunToCompletion(t.Context())
				if end := <-done; end.err != nil || end.value.Kind != engine.Settled {
					t.Errorf("ended with %+v", end)
				}
				cfg, err := w.Lane.Configuration(t.Context())
				if err != nil || cfg.Model != other {
					t.Errorf("the lane is set to %s, %v", cfg.Model, err)
				}
			})
		})
	}
}
