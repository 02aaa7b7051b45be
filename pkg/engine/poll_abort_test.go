package engine_test

import (
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
)

// A job whose run is aborted is dropped once, wherever its poll stands; one that has
// answered needs no dropping (spec §4.6).
func TestAbortDropsJob(t *testing.T) {
	hanging := enginetest.Reply{Chunks: []string{"par"}, Hang: true}
	for _, tt := range []struct {
		name    string
		poll    enginetest.Reply
		at      string // where the abort comes; "" while the poll is under way
		dropped int
	}{
		{"before the intent", later("j1"), "deferred.intent", 1},
		{"before the question", later("j1"), "deferred.fetch", 1},
		{"in the question", hanging, "", 1},
		{"before a pending answer is settled", later("j1"), "deferred.settlement", 1},
		{"before an answer is settled", whole("done"), "deferred.settlement", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				w.Options.Manual = true
				model := deferrable(w)
				w.Model.Reply = enginetest.Sequence(later("j1"), tt.poll)
				w.Open()
				id := w.Accept("hi")
				first := drive(w, engine.DriveOptions{OperationID: id})
				for !over(first) {
					w.Lane.ExecuteAction(t.Context())
				}
				var done <-chan ended[engine.DriveOutcome]
				if tt.at != "" {
					done = parkAt(t, w, tt.at, engine.DriveOptions{OperationID: id, PollDeferred: true})
				} else {
					done = parkAt(t, w, "deferred.fetch", engine.DriveOptions{OperationID: id, PollDeferred: true})
					go w.Lane.ExecuteAction(t.Context())
					<-w.Model.Hanging()
				}
				cancel(t, w, id)
				finishPass(t, w, done, op.Aborted)
				if model.cancelled != tt.dropped {
					t.Errorf("the job was dropped %d times, want %d", model.cancelled, tt.dropped)
				}
			})
		})
	}
}

// A poll that died does not keep its job from being dropped.
func TestAbortAfterDeathInPoll(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		model := deferrable(w)
		w.Model.Reply = enginetest.Sequence(later("j1"))
		w.Options.Manual = true
		w.Open()
		id := w.Accept("hi")
		first := drive(w, engine.DriveOptions{OperationID: id})
		for !over(first) {
			w.Lane.ExecuteAction(t.Context())
		}
		parkAt(t, w, "deferred.fetch", engine.DriveOptions{OperationID: id, PollDeferred: true})
		w.Options.Manual = false
		w.Reopen()
		enginetest.Equal(t, "where it died", op.PointOf(state(t, w, id)), op.PointDeferredPending)
		cancel(t, w, id)
		d := w.Drive(engine.DriveOptions{OperationID: id})
		if d.Kind != engine.Settled || d.Outcome.Kind != op.Aborted || model.cancelled != 1 {
			t.Errorf("outcome %+v, the job was dropped %d times", d, model.cancelled)
		}
		nothingLeft(t, w)
	})
}
