package engine

import (
	"context"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// AbortRequest is a durable cancellation: what it drained from the queues, and
// whether this call wrote it (spec §5.1).
type AbortRequest struct {
	OperationID    string
	NewlyRequested bool
	Steer          []message.Message
	FollowUp       []message.Message
}

// RequestAbort cancels an operation durably and returns; a live pass reconciles,
// otherwise the next drive does. An operation that is not current is an
// *OperationMismatch (spec §4.6).
func (l *Lane) RequestAbort(ctx context.Context, operationID string) (AbortRequest, error) {
	settled := make(chan struct{})
	live := l.activePass()
	if live != nil && live.operationID == operationID {
		// Ordinary work must not start any more before the marker is durable.
		live.gate.BeginAbort(settled)
		l.barrier.Interrupt(&effect.AbortRequested{Settled: settled})
	} else {
		live = nil
	}
	// The marker is written even if its caller stops waiting: the gate is closed.
	r, err := decide(context.WithoutCancel(ctx), l, func(ctx context.Context, q store.Queries, t op.Turn) (op.Plan, AbortRequest, error) {
		return l.cancelPlan(ctx, q, t, operationID)
	})
	close(settled)
	if live != nil && err == nil {
		live.gate.Signal()
	}
	if live != nil && err != nil {
		live.gate.Close(errOperationEnded)
	}
	return r, err
}

func (l *Lane) cancelPlan(ctx context.Context, q store.Queries, t op.Turn, operationID string) (op.Plan, AbortRequest, error) {
	r := AbortRequest{OperationID: operationID}
	if fence(t, operationID) != nil {
		return op.Plan{}, r, mismatch(ctx, q, t, operationID)
	}
	plan, fresh := op.RequestCancel(t)
	r.NewlyRequested = fresh
	control := t.State.Cancel()
	if fresh {
		control = plan.Next.Cancel()
	}
	var err error
	if r.Steer, err = pendingMessages(ctx, q, l.name, control.DrainedSteer); err != nil {
		return plan, r, err
	}
	if r.FollowUp, err = pendingMessages(ctx, q, l.name, control.DrainedFollowUp); err != nil {
		return plan, r, err
	}
	if _, ok := t.Run(); ok && fresh {
		plan.Events = []op.Event{{Type: op.EventRunAbort, Lane: l.name, RunID: operationID, Body: r.drainedJSON()}}
	}
	return plan, r, nil
}

// drainedJSON are the members that abort results and events share.
func (r AbortRequest) drainedJSON() []byte {
	dst := appendMessageList([]byte(`,"steer":`), r.Steer)
	return appendMessageList(append(dst, `,"followUp":`...), r.FollowUp)
}

func appendMessageList(dst []byte, messages []message.Message) []byte {
	dst = append(dst, '[')
	for i, m := range messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, m...)
	}
	return append(dst, ']')
}

// AppendJSON writes the AbortRequestResult of §5.1.
func (r AbortRequest) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"operationId":`...)
	dst = rawjson.AppendQuote(dst, r.OperationID)
	dst = append(dst, `,"newlyRequested":`...)
	if r.NewlyRequested {
		dst = append(dst, "true"...)
	} else {
		dst = append(dst, "false"...)
	}
	return append(append(dst, r.drainedJSON()...), '}'), nil
}

// MarshalJSON is AppendJSON.
func (r AbortRequest) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil) }

// Abort cancels the lane's open operation and makes sure that a pass reconciles
// it; it returns once the cancellation is durable (spec §5.1, §4.6). An idle lane
// is *NoActiveOperation.
func (l *Lane) Abort(ctx context.Context) (AbortRequest, error) {
	info, err := l.InspectExecution(ctx)
	if err != nil {
		return AbortRequest{}, err
	}
	if info.Current == nil {
		return AbortRequest{}, &NoActiveOperation{Lane: l.name}
	}
	r, err := l.RequestAbort(ctx, info.Current.ID)
	if err != nil {
		return r, err
	}
	_, err = onLine(ctx, l, func(m *store.Mutator) (installed, error) {
		return l.install(ctx, m, DriveOptions{OperationID: r.OperationID})
	})
	return r, err
}
