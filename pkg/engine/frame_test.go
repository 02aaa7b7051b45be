package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

func frames(t *testing.T, w *enginetest.World) (n int) {
	t.Helper()
	for _, r := range w.Records() {
		if r.Kind == store.KindList {
			n++
		}
	}
	return n
}

// assistant frame append vs external finalization: what was appended goes with
// the terminal transaction, what comes later is fenced off.
func TestFrameAppendVersusFinalization(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		*w.Pace = enginetest.Free
		pause := make(chan struct{})
		w.Model.Reply = enginetest.Sequence(enginetest.Reply{Chunks: []string{"early ", "late"}, Pause: pause})
		w.Open()
		id := w.Accept("hi")
		done := drive(w, engine.DriveOptions{OperationID: id})
		if n := frames(t, w); n != 3 {
			t.Fatalf("%d frames before the finalization", n)
		}
		if err := engine.Finalize(t.Context(), w.Lane, id); err != nil {
			t.Fatal(err)
		}
		if n := frames(t, w); n != 0 {
			t.Errorf("%d frames outlive the operation", n)
		}
		before := w.Records()
		close(pause)
		end := <-done
		if end.err != nil || end.value.Kind != engine.Settled || end.value.Outcome.Kind != op.Aborted {
			t.Errorf("the task ended with %+v", end)
		}
		enginetest.Equal(t, "what the task wrote afterwards", w.Records(), before)
		w.Verify()
	})
}

// assistant frame append vs response settlement: the settlement waits for the
// latest append, then takes the list with it.
func TestFrameAppendVersusSettlement(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		*w.Pace = enginetest.Free
		g := gated(w)
		accepted := begin(func() (engine.Admission, error) {
			return w.Lane.Accept(t.Context(), engine.Request{Text: "hi"})
		})
		g.Next(1)
		id := (<-accepted).value.OperationID
		done := drive(w, engine.DriveOptions{OperationID: id})
		g.Next(3)
		for n := range 5 {
			if got := frames(t, w); got != n || over(done) {
				t.Errorf("%d frames, want %d", got, n)
			}
			g.Next(1)
		}
		wantPoint(t, w, id, op.PointEffectPending)
		g.Next(1) // the settlement
		if n := frames(t, w); n != 0 {
			t.Errorf("%d frames after the settlement", n)
		}
		g.Open()
		if end := <-done; end.err != nil {
			t.Error(end.err)
		}
	})
}

// More frames than one page of a list are read to the last.
func TestManyFrames(t *testing.T) {
	w := enginetest.InMemory(t)
	w.Quiet, *w.Pace = true, enginetest.Free
	chunks := make([]string, store.MaxListPage+50)
	for i := range chunks {
		chunks[i] = string(rune('a' + i%26))
	}
	w.Model.Reply = enginetest.Sequence(enginetest.Reply{Chunks: chunks, Hang: true}, enginetest.Say("ok"))
	w.Open()
	id := w.Accept("hi")
	go func() { _, _ = w.Lane.Drive(context.Background(), engine.DriveOptions{OperationID: id}) }()
	<-w.Model.Hanging()
	w.Reopen() // a close lets the frames that were appended become durable
	w.Continue()
	said, _ := w.End()
	if got, want := said[1].Text, strings.Join(chunks, ""); got != want {
		t.Errorf("%d characters were recovered, want %d", len(got), len(want))
	}
}

// What a provider must not do, whatever it does: each of these ends in band, and
// none of them becomes a frame that no drive could read (spec §4.8).
func TestBrokenStreams(t *testing.T) {
	start := message.StreamEvent{Type: message.EventStart, Message: message.Assistant{API: "echo", Provider: "acme", Model: "one", StopReason: message.StopPending}.Message()}
	open := message.StreamEvent{Type: message.EventTextStart, Block: message.Block{Type: message.BlockText}}
	delta := message.StreamEvent{Type: message.EventTextDelta, Delta: "x"}
	done := func(raw string) message.StreamEvent {
		return message.StreamEvent{Type: message.EventDone, Message: message.Message(raw)}
	}
	good := `{"role":"assistant","content":[],"api":"echo","provider":"acme","model":"one","stopReason":"stop","timestamp":1}`
	tests := []struct {
		name    string
		events  []message.StreamEvent
		want    string // the run's error, "" for none
		updates int
	}{
		{"nothing", []message.StreamEvent{}, "the provider's stream ended early", 0},
		{"no end", []message.StreamEvent{start, open, delta}, "the provider's stream ended early", 2},
		{"no start", []message.StreamEvent{done(good)}, "", 0},
		{"more after the end", []message.StreamEvent{start, done(good), open, delta}, "", 0},
		{"a delta before the start", []message.StreamEvent{delta}, "the provider's stream ended early, where it contradicted itself: reduce frame 1: block 0 has not started", 0},
		{"two starts", []message.StreamEvent{start, start}, "the provider's stream ended early, where it contradicted itself: reduce frame 2: a second start", 0},
		{"an event of no type", []message.StreamEvent{start, {Type: "shrug"}}, `the provider's stream ended early, where it contradicted itself: reduce frame 2: unknown type "shrug"`, 0},
		{"an answer that is no answer", []message.StreamEvent{start, open, delta, done(`{"role":"user","content":"x"}`)}, "the provider's answer is no assistant message", 2},
		{"an answer that is no message", []message.StreamEvent{start, done(`{"role":`)}, "the provider's answer is no assistant message", 0},
		{"an answer without content", []message.StreamEvent{start, done(`{"role":"assistant","stopReason":"stop"}`)}, "the provider's answer is not valid: message field content is missing", 0},
		{"usage that is none", []message.StreamEvent{start, done(`{"role":"assistant","content":[],"usage":7,"stopReason":"stop"}`)}, "the provider's answer is not valid: message field usage is not a usage object", 0},
		{"an answer that has not ended", []message.StreamEvent{start, done(`{"role":"assistant","content":[],"stopReason":"pending"}`)}, "the provider's stream ended early: the answer is still pending", 0},
		{"an abort", []message.StreamEvent{start, done(`{"role":"assistant","content":[],"stopReason":"aborted"}`)}, "the provider reported an abort that nobody asked for", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := enginetest.InMemory(t)
			*w.Pace = enginetest.Free
			w.Watch = true
			w.Options.Retry.MaxRetries = 0
			w.Model.Reply = enginetest.Sequence(enginetest.Reply{Events: tt.events})
			w.Open()
			updates := 0
			w.Harness.On(func(e op.Event) {
				if e.Type == op.EventMessageUpdate {
					updates++
				}
			})
			d := w.Prompt("hi")
			if updates != tt.updates {
				t.Errorf("%d updates, want %d", updates, tt.updates)
			}
			got := ""
			if d.Outcome.Error != nil {
				got = d.Outcome.Error.Message
			}
			if got != tt.want {
				t.Errorf("the run's error is %q, want %q", got, tt.want)
			}
			w.Settled()
		})
	}
}

// A failed commit ends everything in this process, once, and nothing is committed
// after it (spec §4.8).
func TestFault(t *testing.T) {
	for _, tt := range []struct {
		name   string
		commit int
		point  op.Point
	}{
		{"the first checkpoint", 2, op.PointStarting},
		{"the intent", 4, op.PointReady},
		{"the first frame", 5, op.PointEffectPending},
		{"a later frame", 7, op.PointEffectPending},
		{"the settlement", 10, op.PointEffectPending},
		{"the end", 11, op.PointMayFinish},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				w.OpenFaulty(tt.commit)
				faults := 0
				w.Harness.On(func(e op.Event) {
					if e.Type == op.EventFault {
						faults++
					}
				})
				id := w.Accept("hi")
				w.Die(id)
				before := w.Records()
				wantPoint(t, w, id, tt.point)
				calls := map[string]func() error{
					"accept":    func() error { _, err := w.Lane.Accept(t.Context(), engine.Request{Text: "x"}); return err },
					"drive":     func() error { _, err := w.Lane.Drive(t.Context(), engine.DriveOptions{OperationID: id}); return err },
					"inspect":   func() error { _, err := w.Lane.InspectExecution(t.Context()); return err },
					"configure": func() error { return w.Lane.Configure(t.Context(), engine.Configure{ActiveToolNames: &[]string{"x"}}) },
				}
				for name, call := range calls {
					var fault *store.Fault
					if err := call(); !errors.As(err, &fault) {
						t.Errorf("%s: %v", name, err)
					}
				}
				_ = w.Harness.Close()
				if faults != 1 {
					t.Errorf("%d fault events", faults)
				}
				enginetest.Equal(t, "what came after the fault", w.Records(), before)
				w.Reopen()
				w.Continue()
				w.Settled()
			})
		})
	}
}

// An owner whose store was replaced finds out at its acceptances and settlements,
// and commits no more (D12).
func TestLostStore(t *testing.T) {
	wantLost := func(t *testing.T, err error) {
		t.Helper()
		var fault *store.Fault
		var lost *store.Lost
		if !errors.As(err, &fault) || !errors.As(err, &lost) {
			t.Errorf("got %v", err)
		}
	}
	t.Run("at an acceptance", func(t *testing.T) {
		w := enginetest.InMemory(t)
		w.Open()
		w.Replace()
		before := w.Records()
		_, err := w.Lane.Accept(t.Context(), engine.Request{Text: "hi"})
		wantLost(t, err)
		enginetest.Equal(t, "the new store", w.Records(), before)
	})
	t.Run("at a settlement", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *enginetest.World) {
			w.Options.Manual = true
			w.Open()
			done := drive(w, engine.DriveOptions{OperationID: w.Accept("hi")})
			executeTo(t, w, "assistant.settlement")
			w.Replace()
			w.Lane.RunToCompletion(t.Context())
			wantLost(t, (<-done).err)
			w.Reopen()
			w.Options.Manual = false
			w.Reopen()
			w.Continue() // the copy lacks the answer, which is asked for again
			w.Settled()
			if n := len(w.Model.Requests()); n != 2 {
				t.Errorf("%d requests", n)
			}
		})
	})
}
