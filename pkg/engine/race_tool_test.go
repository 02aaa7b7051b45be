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
	"github.com/drover-run/drover/pkg/store"
)

// The rows of spec §9.2 in which a tool call is one side.

// held is a tool that does what the test tells it, in its own goroutine.
type held struct {
	call   effect.Invocation
	begun  chan struct{}
	orders chan func()
	answer message.ToolResult
}

func (h *held) puppet(name string, safe bool) puppet {
	h.begun, h.orders, h.answer = make(chan struct{}), make(chan func()), text(name+" is done")
	return puppet{name: name, safe: safe, run: func(_ context.Context, call effect.Invocation) (message.ToolResult, error) {
		h.call = call
		close(h.begun)
		for order := range h.orders {
			order()
		}
		return h.answer, nil
	}}
}

// do lets the tool do something and waits until everything stands still.
func (h *held) do(order func()) {
	h.orders <- order
	synctest.Wait()
}

func (h *held) finish() { close(h.orders) }

// running opens a world in which a call of h is under way.
func running(t *testing.T, w *enginetest.World, h *held) (id string, done <-chan ended[engine.DriveOutcome]) {
	t.Helper()
	arm(w, h.puppet("tool", false))
	w.Model.Reply = enginetest.Sequence(calls("tool"), whole("ok"))
	activate(t, w)
	id = w.Accept("hi")
	done = drive(w, engine.DriveOptions{OperationID: id})
	<-h.begun
	return id, done
}

func value(t *testing.T, w *enginetest.World, v store.Value[json.RawMessage]) string {
	t.Helper()
	got, _, err := store.Get(t.Context(), w.View(), v)
	if err != nil {
		t.Fatal(err)
	}
	return string(got.Value)
}

// checkpoint vs tool settlement: staging waits for the latest accepted checkpoint
// and deletes the value; what comes after the call's end is fenced off.
func TestCheckpointVersusToolSettlement(t *testing.T) {
	t.Run("checkpoints first", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *enginetest.World) {
			var h held
			after := 0
			w.Options.Hooks.AfterTool = []engine.Hook[engine.AfterTool, engine.ToolPatch]{
				func(context.Context, engine.AfterTool) (engine.ToolPatch, error) {
					after++
					return engine.ToolPatch{}, nil
				},
			}
			arm(w, h.puppet("tool", false))
			w.Model.Reply = enginetest.Sequence(calls("tool"), whole("ok"))
			activate(t, w)
			id := w.Accept("hi")
			_ = w.Harness.Close()
			g := gated(w)
			done := drive(w, engine.DriveOptions{OperationID: id})
			g.Next(5) // begin, ready, intent, settlement, clearance
			<-h.begun
			h.do(func() { h.call.Update(text("one"), true); h.call.Update(text("two"), true) })
			h.finish()
			output := op.ToolOutput(id, h.call.ID)
			for _, want := range []string{`{"content":[{"type":"text","text":"one"}]}`, `{"content":[{"type":"text","text":"two"}]}`} {
				if over(done) || after != 0 {
					t.Fatal("the settlement did not wait for the checkpoints")
				}
				g.Next(1)
				enginetest.Equal(t, "checkpoint", value(t, w, output), want)
			}
			g.Next(1) // staging
			enginetest.Equal(t, "checkpoint after staging", value(t, w, output), "")
			enginetest.Equal(t, "calls", statuses(batch(t, w, id)), []op.CallStatus{op.CallOutcomeReady})
			g.Open()
			finishPass(t, w, done, op.Completed)
			if after != 1 {
				t.Errorf("after_tool ran %d times", after)
			}
		})
	})
	t.Run("settlement first", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *enginetest.World) {
			var h held
			id, done := running(t, w, &h)
			h.finish()
			finishPass(t, w, done, op.Completed)
			before := w.Records()
			h.call.Update(text("late"), true)
			if err := h.call.Memos.Set(t.Context(), "late", json.RawMessage(`1`)); err == nil {
				t.Error("a memo was set after the call")
			}
			if _, _, err := h.call.Memos.Get(t.Context(), "late"); err == nil {
				t.Error("a memo was read after the call")
			}
			synctest.Wait()
			enginetest.Equal(t, "what the late writes left", w.Records(), before)
			_ = id
		})
	})
}

// live update event vs its queued commit: either ends first, and who connects
// later sees what was committed.
func TestUpdateEventVersusCommit(t *testing.T) {
	t.Run("checkpoint, event first", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *enginetest.World) {
			var h held
			arm(w, h.puppet("tool", false))
			w.Model.Reply = enginetest.Sequence(calls("tool"), whole("ok"))
			activate(t, w)
			id := w.Accept("hi")
			_ = w.Harness.Close()
			g := gated(w)
			told := 0
			w.Harness.On(func(e op.Event) {
				if e.Type == op.EventToolUpdate {
					told++
				}
			})
			done := drive(w, engine.DriveOptions{OperationID: id})
			g.Next(5)
			<-h.begun
			h.do(func() { h.call.Update(text("half"), true) })
			if told != 1 || value(t, w, op.ToolOutput(id, h.call.ID)) != "" {
				t.Errorf("told %d times, stored %s", told, value(t, w, op.ToolOutput(id, h.call.ID)))
			}
			h.finish()
			g.Open()
			finishPass(t, w, done, op.Completed)
		})
	})
	t.Run("checkpoint, commit first", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *enginetest.World) {
			var h held
			id, done := running(t, w, &h)
			listening := make(chan struct{})
			w.Harness.On(func(e op.Event) {
				if e.Type == op.EventToolUpdate {
					<-listening
				}
			})
			h.do(func() { h.call.Update(text("half"), true) })
			if got := value(t, w, op.ToolOutput(id, h.call.ID)); got == "" {
				t.Error("the commit waited for the listener")
			}
			close(listening)
			h.finish()
			finishPass(t, w, done, op.Completed)
		})
	})
	t.Run("frame, event first", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *enginetest.World) {
			*w.Pace = enginetest.Free
			w.Open()
			id := w.Accept("hi")
			_ = w.Harness.Close()
			g := gated(w)
			told := 0
			w.Harness.On(func(e op.Event) {
				if e.Type == op.EventMessageUpdate {
					told++
				}
			})
			done := drive(w, engine.DriveOptions{OperationID: id})
			g.Next(3)
			synctest.Wait()
			if n := frames(t, w); told != 4 || n != 0 {
				t.Errorf("told %d updates, %d frames are stored", told, n)
			}
			g.Open()
			finishPass(t, w, done, op.Completed)
		})
	})
	t.Run("frame, commit first", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *enginetest.World) {
			*w.Pace = enginetest.Free
			w.Open()
			listening := make(chan struct{})
			w.Harness.On(func(e op.Event) {
				if e.Type == op.EventMessageUpdate {
					<-listening
				}
			})
			id := w.Accept("hi")
			done := drive(w, engine.DriveOptions{OperationID: id})
			if n := frames(t, w); n != 2 {
				t.Errorf("%d frames are stored while the first update is told", n)
			}
			close(listening)
			finishPass(t, w, done, op.Completed)
		})
	})
}

// external finalization vs memo and checkpoint mutation: what was written goes
// with the terminal transaction, what comes later is refused.
func TestFinalizationVersusInvocationWrites(t *testing.T) {
	t.Run("mutation first", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *enginetest.World) {
			var h held
			id, done := running(t, w, &h)
			h.do(func() {
				h.call.Update(text("half"), true)
				if err := h.call.Memos.Set(t.Context(), "step", json.RawMessage(`{"n":1.0}`)); err != nil {
					t.Error(err)
				}
			})
			enginetest.Equal(t, "memo", value(t, w, op.ToolMemo(id, h.call.ID, "step")), `{"n":1.0}`)
			if err := engine.Finalize(t.Context(), w.Lane, id); err != nil {
				t.Fatal(err)
			}
			nothingLeft(t, w)
			h.finish()
			finishPass(t, w, done, op.Aborted)
		})
	})
	t.Run("finalization first", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *enginetest.World) {
			var h held
			id, done := running(t, w, &h)
			if err := engine.Finalize(t.Context(), w.Lane, id); err != nil {
				t.Fatal(err)
			}
			before := w.Records()
			h.do(func() {
				h.call.Update(text("half"), true)
				if err := h.call.Memos.Set(t.Context(), "step", json.RawMessage(`1`)); err == nil {
					t.Error("a memo was set for an operation that has ended")
				}
			})
			enginetest.Equal(t, "what the late writes left", w.Records(), before)
			h.finish()
			finishPass(t, w, done, op.Aborted)
			enginetest.Equal(t, "what the call left", w.Records(), before)
			wantTalk(t, w, "user: hi", "assistant toolUse")
		})
	})
}

// An external finalization stops the pass wherever it is: a parked one, under
// cancellation too, and one whose effect runs, by its signal (spec §4.9).
func TestFinalizationStopsThePass(t *testing.T) {
	for _, tt := range []struct {
		name, parked string
		cancelled    bool
	}{
		{"parked before a request", "assistant.request", false},
		{"parked in cancellation work", "cancel.reconcile", true},
		{"parked before a settlement", "assistant.settlement", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				w.Options.Manual = true
				w.Open()
				id := w.Accept("hi")
				var done <-chan ended[engine.DriveOutcome]
				if tt.cancelled {
					cancel(t, w, id)
				}
				done = parkAt(t, w, tt.parked, engine.DriveOptions{OperationID: id})
				requests := len(w.Model.Requests())
				if err := engine.Finalize(t.Context(), w.Lane, id); err != nil {
					t.Fatal(err)
				}
				if !over(done) {
					t.Fatal("the pass is still parked")
				}
				if end := <-done; end.err != nil || end.value.Outcome.Kind != op.Aborted || end.value.OperationID != id {
					t.Errorf("the pass ended with %+v", end)
				}
				if n := len(w.Model.Requests()); n != requests {
					t.Errorf("%d requests, %d before", n, requests)
				}
				wantTalk(t, w, "user: hi")
				nothingLeft(t, w)
				// The lane is free for another operation.
				finishPass(t, w, drive(w, engine.DriveOptions{OperationID: w.Accept("more")}), op.Completed)
			})
		})
	}
	t.Run("in a request", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *enginetest.World) {
			w.Model.Reply = enginetest.Sequence(enginetest.Reply{Chunks: []string{"par"}, Hang: true}, enginetest.Say("ok"))
			w.Open()
			id := w.Accept("hi")
			done := drive(w, engine.DriveOptions{OperationID: id})
			<-w.Model.Hanging()
			if err := engine.Finalize(t.Context(), w.Lane, id); err != nil {
				t.Fatal(err)
			}
			finishPass(t, w, done, op.Aborted)
			wantTalk(t, w, "user: hi")
		})
	})
}

// later tool B settles vs earlier tool A: B is final at once, its place in the tree
// waits for A, and it never runs again.
func TestLaterToolVersusEarlierTool(t *testing.T) {
	for _, tt := range []struct {
		name   string
		bFirst bool
	}{{"later first", true}, {"earlier first", false}} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				var a, b held
				arm(w, a.puppet("a", false), b.puppet("b", false))
				w.Model.Reply = enginetest.Sequence(calls("a", "b"), whole("ok"))
				activate(t, w)
				id := w.Accept("hi")
				done := drive(w, engine.DriveOptions{OperationID: id})
				<-a.begun
				<-b.begun
				want := []op.CallStatus{op.CallEffectPending, op.CallOutcomeReady}
				placed := []string{"user: hi", "assistant toolUse"}
				first, second := &b, &a
				if !tt.bFirst {
					first, second = &a, &b
					want = []op.CallStatus{op.CallCompleted, op.CallEffectPending}
					placed = append(placed, "toolResult: a is done")
				}
				first.finish()
				synctest.Wait()
				enginetest.Equal(t, "calls", statuses(batch(t, w, id)), want)
				wantTalk(t, w, placed...)
				second.finish()
				finishPass(t, w, done, op.Completed)
				wantTalk(t, w, "user: hi", "assistant toolUse", "toolResult: a is done", "toolResult: b is done", "assistant stop: ok")
			})
		})
	}
	t.Run("later first, then a crash", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *enginetest.World) {
			var a, b held
			arm(w, a.puppet("a", false), b.puppet("b", false))
			w.Model.Reply = enginetest.Sequence(calls("a", "b"), whole("ok"))
			activate(t, w)
			id := w.Accept("hi")
			done := drive(w, engine.DriveOptions{OperationID: id})
			<-a.begun
			<-b.begun
			b.finish()
			synctest.Wait()
			closed := begin(func() (struct{}, error) { return struct{}{}, w.Harness.Close() })
			a.finish() // too late: its process is gone
			<-closed
			<-done
			w.Reopen()
			finishPass(t, w, drive(w, engine.DriveOptions{OperationID: id}), op.Completed)
			got := talk(t, w)
			enginetest.Equal(t, "b's result", got[3], "toolResult: b is done")
			if got[2] == "toolResult: a is done" {
				t.Errorf("the interrupted call counts as done: %v", got)
			}
		})
	})
}
