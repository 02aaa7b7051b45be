package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// The rows of spec §9.2 about acceptance, queues and tree writes.

func TestAcceptVersusProcessLoss(t *testing.T) {
	t.Run("lost before the acceptance", func(t *testing.T) {
		w := enginetest.InMemory(t)
		w.OpenFaulty(1)
		before := w.Records()
		_, err := w.Lane.Accept(t.Context(), engine.Request{Text: "hi"})
		var fault *store.Fault
		if !errors.As(err, &fault) {
			t.Fatalf("accepted: %v", err)
		}
		w.Reopen()
		enginetest.Equal(t, "what the loss left", w.Records(), before)
		w.Prompt("hi") // the serving layer tries again
		w.Settled()
		wantTalk(t, w, "user: hi", "assistant stop: hello you")
	})
	t.Run("lost after the acceptance", func(t *testing.T) {
		w := enginetest.InMemory(t)
		w.OpenUntil(1)
		const id = "018bcfe5-6800-7000-8000-0000000000aa" // of the caller, who hears nothing any more
		if _, err := w.Lane.Accept(t.Context(), engine.Request{OperationID: id, Text: "hi"}); err == nil {
			t.Fatal("the process lives")
		}
		w.Reopen()
		info, err := w.Lane.InspectExecution(t.Context())
		if err != nil || info.Current == nil || info.Current.ID != id || info.Current.Point != op.PointStarting {
			t.Fatalf("restored as %+v, %v", info, err)
		}
		if s := info.Current.Suspended; s != nil {
			t.Errorf("restored as suspended by %s: no effect is unknown", s.Reason)
		}
		w.Drive(engine.DriveOptions{OperationID: id})
		w.Settled()
		wantTalk(t, w, "user: hi", "assistant stop: hello you")
	})
}

func TestCancelQueuedVersusConsumption(t *testing.T) {
	queue := map[string]func(*engine.Lane, context.Context, engine.Queued) (string, error){
		"checkpoint.steer":     (*engine.Lane).Steer,
		"checkpoint.follow_up": (*engine.Lane).FollowUp,
		"checkpoint.write": func(l *engine.Lane, ctx context.Context, q engine.Queued) (string, error) {
			id, _, err := l.Append(ctx, "", store.PendingEntry{Type: store.TypeMessage, Payload: []byte(message.NewUser(q.Text, nil, enginetest.Start))})
			return id, err
		},
	}
	for point, add := range queue {
		for _, consumed := range []bool{false, true} {
			name := point + "/cancelled first"
			if consumed {
				name = point + "/consumed first"
			}
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T, w *enginetest.World) {
					w.Options.Manual = true
					w.Model.Reply = enginetest.Echo
					w.Open()
					id := w.Accept("hi")
					item, err := add(w.Lane, t.Context(), engine.Queued{Text: "more"})
					if err != nil {
						t.Fatal(err)
					}
					done := parkAt(t, w, point, engine.DriveOptions{OperationID: id})
					want, after := engine.CancelledItem, engine.ItemNotFound
					if consumed {
						w.Lane.ExecuteAction(t.Context())
						executeTo(t, w, "assistant.intent")
						want, after = engine.AlreadyConsumed, engine.AlreadyConsumed
					}
					for _, want := range []engine.CancelResult{want, after} {
						if got, err := w.Lane.CancelQueued(t.Context(), item); err != nil || got != want {
							t.Errorf("cancelling says %s, %v; want %s", got, err, want)
						}
					}
					finishPass(t, w, done, op.Completed)
					placed, err := w.View().Entries(t.Context(), []string{item})
					if err != nil || len(placed) == 1 != consumed {
						t.Errorf("%d entries of the item, %v", len(placed), err)
					}
					pending, _, err := store.Get(t.Context(), w.View(), store.Pending(item))
					if err != nil || pending.Value.Payload != nil {
						t.Errorf("the item still waits: %s, %v", pending.Value.Payload, err)
					}
				})
			})
		}
	}
}

func TestNextRunVersusAcceptance(t *testing.T) {
	for _, tt := range []struct {
		name    string
		waiting bool // before the acceptance
		want    []string
	}{
		{"queued first", true, []string{"user: queued", "user: hi", "assistant stop: you said hi"}},
		{"accepted first", false, []string{"user: hi", "assistant stop: you said hi"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				w.Model.Reply = enginetest.Echo
				g := gated(w)
				accept := func() (engine.Admission, error) {
					return w.Lane.Accept(context.Background(), engine.Request{Text: "hi"})
				}
				next := func() (string, error) { return w.Lane.NextRun(context.Background(), engine.Queued{Text: "queued"}) }
				var accepted <-chan ended[engine.Admission]
				var queued <-chan ended[string]
				if tt.waiting {
					queued, accepted = begin(next), begin(accept) // each waits on the line for the one before
				} else {
					accepted, queued = begin(accept), begin(next)
				}
				g.Open()
				a, q := <-accepted, <-queued
				if a.err != nil || q.err != nil {
					t.Fatal(a.err, q.err)
				}
				meta := state(t, w, a.value.OperationID)
				if op.PointOf(meta) != op.PointStarting {
					t.Errorf("the run stands at %s", op.PointOf(meta))
				}
				finishPass(t, w, drive(w, engine.DriveOptions{OperationID: a.value.OperationID}), op.Completed)
				wantTalk(t, w, tt.want...)
				if tt.waiting {
					return
				}
				// It stays for the next run, and is enough for one.
				d, err := w.Lane.Prompt(t.Context(), engine.Request{})
				if err != nil || d.Outcome.Kind != op.Completed {
					t.Fatalf("%+v, %v", d, err)
				}
				wantTalk(t, w, append(tt.want, "user: queued", "assistant stop: you said queued")...)
			})
		})
	}
}

// B30: a write that comes between the preparation of a compaction and its acceptance
// makes the preparation stale: it is made again. One that comes after the
// acceptance waits for the compaction's end. The lane is never blocked by a
// preparation.
func TestB30CompactionPreparationVersusTreeWrite(t *testing.T) {
	write := func(w *enginetest.World) func() (bool, error) {
		return func() (bool, error) {
			m := message.NewUser("written", nil, enginetest.Start)
			_, queued, err := w.Lane.Append(context.Background(), "", store.PendingEntry{Type: store.TypeMessage, Payload: []byte(m)})
			return queued, err
		}
	}
	prepared := func(t *testing.T, w *enginetest.World, id string) op.Preparation {
		t.Helper()
		s := state(t, w, id)
		raw, _, err := store.Get(t.Context(), w.View(), op.PreparationOf(id, op.StructuralOf(s).TaskID))
		if err != nil {
			t.Fatal(err)
		}
		p, err := op.DecodePreparation(raw.Value)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	open := func(w *enginetest.World) {
		w.Model.Reply = enginetest.Sequence(whole("said"))
		w.Open()
		w.Prompt("one")
		w.Prompt("two")
	}
	t.Run("write first", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *enginetest.World) {
			open(w)
			_ = w.Harness.Close()
			g := gated(w)
			high := message.ThinkingHigh
			accepted := begin(func() (engine.Admission, error) {
				return w.Lane.AcceptCompaction(context.Background(), engine.CompactRequest{Configure: engine.Configure{ThinkingLevel: &high}})
			})
			// Its first preparation is made; its setter is under way.
			written := begin(write(w))
			g.Open()
			a, wr := <-accepted, <-written
			if a.err != nil || wr.err != nil || wr.value {
				t.Fatalf("%+v, %+v", a, wr)
			}
			tail := prepared(t, w, a.value.OperationID).RetainedTail
			if len(tail) == 0 || tail[len(tail)-1].Text() != "written" {
				t.Errorf("the preparation ends with %s", tail)
			}
			finishPass(t, w, drive(w, engine.DriveOptions{OperationID: a.value.OperationID}), op.Completed)
		})
	})
	t.Run("acceptance first", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *enginetest.World) {
			w.Options.Manual = true
			w.Model.Reply = enginetest.Sequence(whole("said"))
			w.Open()
			for _, prompt := range []string{"one", "two"} {
				finishPass(t, w, drive(w, engine.DriveOptions{OperationID: w.Accept(prompt)}), op.Completed)
			}
			id := admitted(t)(w.Lane.AcceptCompaction(t.Context(), engine.CompactRequest{}))
			done := parkAt(t, w, "structural.publish", engine.DriveOptions{OperationID: id})
			written := begin(write(w))
			if over(written) {
				t.Fatalf("the write did not wait: %+v", <-written)
			}
			finishPass(t, w, done, op.Completed)
			if wr := <-written; wr.err != nil || wr.value {
				t.Errorf("the write ended with %+v", wr)
			}
			got := talk(t, w)
			enginetest.Equal(t, "the end of the branch", got[len(got)-1], "user: written")
		})
	})
}
