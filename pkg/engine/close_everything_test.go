package engine_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// close vs parked manual action, at every breakpoint of the run of everything: the
// action is not executed, what is durable is the committed prefix, and the next
// process brings the run to its end.
func TestCloseVersusEveryBreakpoint(t *testing.T) {
	for _, n := range parkings() {
		kind := everyAction[n]
		t.Run(fmt.Sprintf("%02d %s", n, kind), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				w.Quiet, w.Watch, *w.Pace = true, false, enginetest.Free // one of many
				w.Options.Manual = true
				b, id, done := parkEverything(t, w, n)
				before, began := w.Records(), len(b.names)
				_ = w.Harness.Close()
				if end := <-done; !errors.Is(end.err, store.ErrClosed) {
					t.Errorf("the pass ended with %v", end.err)
				}
				enginetest.Equal(t, "what the close left", w.Records(), before)
				if len(b.names) != began {
					t.Errorf("%v began after the close", b.names[began:])
				}
				w.Options.Manual = false
				w.Open()
				o := everyDrive
				o.OperationID = id
				for {
					d := w.Drive(o)
					if d.Kind == engine.Settled {
						if d.Outcome.Kind != op.Completed {
							t.Errorf("the run ended as %s", d.Outcome.Kind)
						}
						break
					}
				}
				nothingLeft(t, w)
				wantQueuesOf(t, w)
			})
		})
	}
}
