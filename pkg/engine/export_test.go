package engine

import (
	"context"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// Finalize ends an operation from outside its task, as an administrator with
// access to the lane's door would (spec §4.9).
func Finalize(ctx context.Context, l *Lane, operationID string) error {
	return l.settle(ctx, operationID, func(ctx context.Context, q store.Queries, t op.Turn) (op.Plan, error) {
		t, err := withLeftovers(ctx, q, t)
		if err != nil {
			return op.Plan{}, err
		}
		run, _ := t.Run()
		run.Control = op.Control{Status: op.CancelRequested, RequestedAt: t.Now}
		t.State = run
		return op.Finish(t)
	})
}

// RecalledOperation is what Recalled is, for the operation.
func RecalledOperation(l *Lane) (op.Operation, int64) {
	l.recall.mu.Lock()
	defer l.recall.mu.Unlock()
	return l.recall.operation.value, l.recall.operation.seq
}

// Recalled is the state that a lane would answer with while the stored one has
// this seq.
func Recalled(l *Lane) (op.State, int64) {
	l.recall.mu.Lock()
	defer l.recall.mu.Unlock()
	return l.recall.state.value, l.recall.state.seq
}

// OperationSpan names the span of an operation.
var OperationSpan = operationSpan

// Seal is the beginning of a close: nothing more is admitted, and what runs is told
// to stop, while the session still takes commits.
func Seal(h *Harness) { h.seal(store.ErrClosed) }
