package engine

import (
	"context"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// Explanation says what a drive of a lane would do next; making it does nothing.
type Explanation struct {
	Lane        string        `json:"lane"`
	OperationID string        `json:"operationId"`
	Point       op.Point      `json:"point"`
	Next        []op.NextStep `json:"next"`
	WaitingFor  *ExplainWait  `json:"waitingFor"`
}

// ExplainWait is the durable wait that a drive would report.
type ExplainWait struct {
	Reason    WaitReason `json:"reason"`
	NotBefore *int64     `json:"notBefore"` // Unix ms
}

// Explain reads a lane and says what a drive would do next and which effects it
// would repeat, at the time now, Unix ms. A lane without an open operation is *NothingToResume.
func Explain(ctx context.Context, q store.Queries, lane string, now int64) (Explanation, error) {
	t, err := loadTurn(ctx, q, lane, now)
	if err != nil {
		return Explanation{}, err
	}
	if t.State == nil {
		return Explanation{}, &NothingToResume{Lane: lane}
	}
	e := Explanation{Lane: lane, OperationID: t.Operation.OperationID, Point: op.PointOf(t.State), Next: op.Explain(t.State, now)}
	e.WaitingFor, err = waitOf(ctx, q, t)
	return e, err
}

func waitOf(ctx context.Context, q store.Queries, t op.Turn) (*ExplainWait, error) {
	if t.State.Cancel().Cancelled() {
		return nil, nil
	}
	if notBefore, ok := op.RetryAt(t.State); ok {
		return &ExplainWait{WaitRetry, &notBefore}, nil
	}
	run, _ := t.Run()
	d, ok := run.Phase.(op.DeferredPhase)
	if !ok {
		return nil, nil
	}
	source, err := deferredSource(ctx, q, t.Lane, d.Deferred)
	if err != nil {
		return nil, err
	}
	notBefore := source.due()
	return &ExplainWait{WaitDeferred, &notBefore}, nil
}
