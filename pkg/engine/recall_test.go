package engine_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// What a lane remembers of a state is what a process that opens the session now
// would read.
func TestRecallIsWhatIsStored(t *testing.T) {
	compared, operations := 0, 0
	for _, s := range enginetest.Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				s.Setup(w)
				w.Decorate = func(b store.Backend) store.Backend { return &recalled{b, t, w, &compared, &operations} }
				w.Open()
				for _, prompt := range s.Prompts {
					if _, err := w.Lane.Prompt(t.Context(), engine.Request{Text: prompt}); err != nil {
						t.Fatal(err)
					}
				}
				w.Decorate = nil
			})
		})
	}
	if compared < 50 {
		t.Errorf("only %d states were compared", compared)
	}
	if operations < 50 {
		t.Errorf("only %d operations were compared", operations)
	}
}

// recalled compares before every commit.
type recalled struct {
	store.Backend
	t          *testing.T
	w          *enginetest.World
	compared   *int
	operations *int
}

func (r *recalled) Commit(ctx context.Context, tx store.Tx) (store.CommitResult, error) {
	lane, ok, err := store.Get(ctx, r.Backend, store.LaneStateOf(store.MainLane))
	if err == nil && ok && lane.Value.CurrentOperationID != "" {
		r.compare(ctx, op.StateOf(string(lane.Value.CurrentOperationID)))
		r.compareOperation(ctx, op.Meta(string(lane.Value.CurrentOperationID)))
	}
	return r.Backend.Commit(ctx, tx)
}

func (r *recalled) compare(ctx context.Context, v store.Value[op.State]) {
	stored, ok, err := store.Get(ctx, r.Backend, v)
	state, seq := engine.Recalled(r.w.Lane)
	if err != nil || !ok || seq != stored.Seq {
		return
	}
	*r.compared++
	if diff := cmp.Diff(stored.Value, state, cmpopts.EquateEmpty()); diff != "" {
		r.t.Errorf("the recalled state is not the stored one (-stored +recalled):\n%s", diff)
	}
}

func (r *recalled) compareOperation(ctx context.Context, v store.Value[op.Operation]) {
	stored, ok, err := store.Get(ctx, r.Backend, v)
	operation, seq := engine.RecalledOperation(r.w.Lane)
	if err != nil || !ok || seq != stored.Seq {
		return
	}
	*r.operations++
	if diff := cmp.Diff(stored.Value, operation, cmpopts.EquateEmpty()); diff != "" {
		r.t.Errorf("the recalled operation is not the stored one (-stored +recalled):\n%s", diff)
	}
}
