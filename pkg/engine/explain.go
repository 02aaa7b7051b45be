package engine

import (
	"context"
	"slices"

	"github.com/drover-run/drover/pkg/engine/effect"
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
// would repeat, at the time now, Unix ms. models are those that it would have. A lane
// without an open operation is *NothingToResume.
func Explain(ctx context.Context, q store.Queries, models effect.Models, lane string, now int64) (Explanation, error) {
	t, err := loadTurn(ctx, q, lane, now)
	if err != nil {
		return Explanation{}, err
	}
	if t.State == nil {
		return Explanation{}, &NothingToResume{Lane: lane}
	}
	e := Explanation{Lane: lane, OperationID: t.Operation.OperationID, Point: op.PointOf(t.State), Next: op.Explain(t.State, now)}
	looks, err := looksFirst(ctx, q, t, models)
	if err != nil {
		return Explanation{}, err
	}
	if looks {
		e.Next = slices.Insert(e.Next, sleeps(e.Next), op.NextStep{
			Kind: "deferred.fetch", Description: "Look for the job of an interrupted submission", Effect: op.EffectNone,
		})
	}
	e.WaitingFor, err = waitOf(ctx, q, t)
	return e, err
}

// sleeps is the number of steps that only wait, at the beginning.
func sleeps(steps []op.NextStep) int {
	if len(steps) > 0 && steps[0].Kind == "retry.sleep" {
		return 1
	}
	return 0
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
