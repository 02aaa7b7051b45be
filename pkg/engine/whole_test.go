package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
)

// An answer with a slow, a fast and an unknown call: the results stand in source
// order in the next request, then the lane is compacted and moved to its root.
// Every event of it is valid JSON.
func TestToolsThenCompactionThenNavigation(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		var slow, fast held
		w.Options.Compaction = op.CompactionSettings{Enabled: true, ReserveTokens: 100, KeepRecentTokens: 1}
		arm(w, slow.puppet("slow", false), fast.puppet("fast", false))
		w.Model.Reply = enginetest.Sequence(calls("slow", "fast", "nope"), whole("done"))
		activate(t, w)
		w.Harness.On(func(e op.Event) {
			if raw, err := e.MarshalJSON(); err != nil || !json.Valid(raw) {
				t.Errorf("event %s: %v", raw, err)
			}
		})
		done := drive(w, engine.DriveOptions{OperationID: w.Accept("hi")})
		<-slow.begun
		<-fast.begun
		fast.do(func() {
			fast.call.Update(text("half"), true)
			if err := fast.call.Memos.Set(t.Context(), "k", json.RawMessage(`1`)); err != nil {
				t.Error(err)
			}
		})
		fast.finish()
		slow.finish()
		finishPass(t, w, done, op.Completed)
		wantTalk(t, w, "user: hi", "assistant toolUse", "toolResult: slow is done", "toolResult: fast is done",
			`toolResult: there is no tool named "nope"`, "assistant stop: done")
		asked := w.Model.Requests()[1].Messages
		last := asked[len(asked)-1]
		synthetic, _ := last.Get("details")
		enginetest.Equal(t, "the unknown call", string(synthetic), `{"synthetic":"unknown_tool"}`)

		c, err := w.Lane.Compact(t.Context(), engine.CompactRequest{})
		if err != nil || c.Outcome.Kind != op.Completed || c.Outcome.Entry == nil {
			t.Fatalf("compacted to %+v, %v", c, err)
		}
		n, err := w.Lane.Navigate(t.Context(), engine.NavigateRequest{Target: ""})
		if err != nil || n.Outcome.Kind != op.Completed || n.Outcome.LeafID != "" || string(n.Outcome.OldLeafID) != c.Outcome.Entry.ID {
			t.Fatalf("moved to %+v, %v", n, err)
		}
		nothingLeft(t, w)
	})
}

// An abort gives back what waited for the run, as often as it is asked, and leaves
// what waits for the next one.
func TestAbortOfAHangingRequest(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		w.Model.Reply = enginetest.Sequence(enginetest.Reply{Chunks: []string{"par"}, Hang: true})
		w.Options.Manual = true
		w.Open()
		id := w.Accept("hi")
		done := parkAt(t, w, "assistant.request", engine.DriveOptions{OperationID: id})
		w.Lane.ExecuteAction(t.Context())
		<-w.Model.Hanging()
		for _, add := range []func() (string, error){
			func() (string, error) { return w.Lane.Steer(t.Context(), engine.Queued{Text: "also"}) },
			func() (string, error) { return w.Lane.FollowUp(t.Context(), engine.Queued{Text: "then"}) },
			func() (string, error) { return w.Lane.NextRun(t.Context(), engine.Queued{Text: "next"}) },
		} {
			if _, err := add(); err != nil {
				t.Fatal(err)
			}
		}
		want := engine.AbortRequest{
			OperationID: id, NewlyRequested: true,
			Steer:    []message.Message{message.NewUser("also", nil, enginetest.Start)},
			FollowUp: []message.Message{message.NewUser("then", nil, enginetest.Start)},
		}
		for range 2 {
			r, err := w.Lane.Abort(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			enginetest.Equal(t, "abort", r, want)
			want.NewlyRequested = false
		}
		finishPass(t, w, done, op.Aborted)
		wantTalk(t, w, "user: hi", "assistant aborted")
		snapshot, err := w.Lane.InspectExecution(t.Context())
		if err != nil || snapshot.Current != nil {
			t.Errorf("the lane runs %+v, %v", snapshot.Current, err)
		}
	})
}
