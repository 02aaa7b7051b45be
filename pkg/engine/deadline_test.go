package engine_test

import (
	"context"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// ticking is a backend after whose n-th commit the time is up.
type ticking struct {
	store.Backend
	left  int
	clock *enginetest.Clock
}

func (b *ticking) Commit(ctx context.Context, tx store.Tx) (store.CommitResult, error) {
	res, err := b.Backend.Commit(ctx, tx)
	if b.left--; b.left == 0 {
		b.clock.Advance(1_000)
	}
	return res, err
}

// A deadline stops a pass at the next boundary without an effect under way, and
// nothing starts after that (spec §4.1, §4.5). The time is up after the n-th
// commit of the drive; the frames of the answer are the fourth to the seventh.
func TestDeadline(t *testing.T) {
	tests := []struct {
		name     string
		reply    enginetest.Reply
		commits  int
		kind     engine.DriveKind
		point    op.Point
		requests int
	}{
		{"before anything", enginetest.Say("ok"), 0, engine.Yielded, op.PointStarting, 0},
		{"after the initial context", enginetest.Say("ok"), 1, engine.Yielded, op.PointNeedAssistant, 0},
		{"after the step's start", enginetest.Say("ok"), 2, engine.Yielded, op.PointReady, 0},
		{"after the intent the request is made and settled", enginetest.Say("ok"), 3, engine.Yielded, op.PointMayFinish, 1},
		{"during the stream", enginetest.Say("ok"), 5, engine.Yielded, op.PointMayFinish, 1},
		{"after the settlement", enginetest.Say("ok"), 8, engine.Yielded, op.PointMayFinish, 1},
		{"after the end", enginetest.Say("ok"), 9, engine.Settled, op.PointIdle, 1},
		{"after a failure", enginetest.Refuse("no", 400, 0), 4, engine.Yielded, op.PointFailureDrain, 1},
		{"in a retry wait the wait says more", enginetest.Refuse("slow down", 429, 5_000), 4, engine.Waiting, op.PointRetryWait, 1},
		{"in a retry wait that is due", enginetest.Refuse("slow down", 429, 1_000), 4, engine.Yielded, op.PointRetryWait, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := enginetest.InMemory(t)
			w.Watch = true
			w.Model.Reply = enginetest.Sequence(tt.reply, enginetest.Say("ok"))
			w.Open()
			id := w.Accept("hi")
			w.Decorate = func(b store.Backend) store.Backend { return &ticking{b, tt.commits, w.Clock} }
			w.Reopen()
			deadline := w.Clock.Now() + 500
			if tt.commits == 0 {
				w.Clock.Advance(1_000)
			}
			d := w.Drive(engine.DriveOptions{OperationID: id, Deadline: deadline, WaitForRetry: true})
			if d.Kind != tt.kind {
				t.Errorf("ended as %s, want %s", d.Kind, tt.kind)
			}
			if n := len(w.Model.Requests()); n != tt.requests {
				t.Errorf("%d requests, want %d", n, tt.requests)
			}
			if tt.point == op.PointIdle {
				w.Settled()
				return
			}
			wantPoint(t, w, id, tt.point)
			again := w.Drive(engine.DriveOptions{OperationID: id, Deadline: deadline})
			if again.Kind != engine.Yielded {
				t.Errorf("a late drive ended as %s", again.Kind)
			}
			wantPoint(t, w, id, tt.point)
			w.Clock.Advance(5_000)
			w.Drive(engine.DriveOptions{OperationID: id})
			w.Settled()
		})
	}
}

// drive deadline vs next ordinary effect, when the effect was admitted first: it
// ends after the deadline and settles.
func TestDeadlineVersusAdmittedEffect(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		w.Options.Manual = true
		w.Open()
		id := w.Accept("hi")
		done := drive(w, engine.DriveOptions{OperationID: id, Deadline: w.Clock.Now() + 10})
		executeTo(t, w, "assistant.settlement")
		w.Clock.Advance(10)
		w.Lane.RunToCompletion(t.Context())
		if end := <-done; end.err != nil || end.value.Kind != engine.Yielded {
			t.Errorf("ended with %+v", end)
		}
		wantPoint(t, w, id, op.PointMayFinish)
	})
}
