package owner

import (
	"context"
	"encoding/json"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/message"
)

// AbortResult is a cancellation as the owner answers it.
type AbortResult struct {
	engine.AbortRequest
	// Outcome is the TerminalOperationOutcome of an operation that had ended
	// before, nil while it is open.
	Outcome json.RawMessage
}

// Abort cancels an operation durably; unless requestOnly, the owner also drives it
// to its end, which WaitOperation waits for. It may be repeated. An operation that
// is neither open nor the lane's latest is *engine.OperationMismatch.
func (c *Client) Abort(ctx context.Context, lane, operationID string, requestOnly bool) (r AbortResult, err error) {
	f, err := c.call(ctx, opAbort, func(o *object) error {
		o.optional("lane", lane)
		o.str("operationId", operationID)
		o.bool("requestOnly", requestOnly)
		return nil
	}, nil)
	if err != nil {
		return r, err
	}
	if r.OperationID, err = f.text("operationId"); err != nil {
		return r, err
	}
	if r.Steer, err = f.messages("steer"); err != nil {
		return r, err
	}
	r.NewlyRequested, r.Outcome = f.bool("newlyRequested"), f.raw("outcome")
	r.FollowUp, err = f.messages("followUp")
	return r, err
}

func (f fields) messages(name string) ([]message.Message, error) {
	all := []message.Message{}
	for raw, err := range rawjson.Elements(f[name]) {
		if err != nil {
			return nil, err
		}
		all = append(all, raw)
	}
	return all, nil
}

// Wait returns once the lane, or every lane when lane is "", is idle or has an
// open operation that nobody drives.
func (c *Client) Wait(ctx context.Context, lane string) ([]LaneStatus, error) {
	return laneStatuses(c.call(ctx, opWait, func(o *object) error {
		o.optional("lane", lane)
		return nil
	}, nil))
}

// WaitOperation returns an operation's TerminalOperationOutcome once it has ended,
// or nil when it is open and nobody drives it. One that is neither open nor the
// lane's latest is *engine.OperationMismatch.
func (c *Client) WaitOperation(ctx context.Context, lane, operationID string) (json.RawMessage, error) {
	f, err := c.call(ctx, opWait, func(o *object) error {
		o.optional("lane", lane)
		o.str("operationId", operationID)
		return nil
	}, nil)
	return f.raw("outcome"), err
}

// Inspect reports the lane, or every lane when lane is "", as the owner knows
// them: with snapshot, live answers and tools included (spec §5.4).
func (c *Client) Inspect(ctx context.Context, lane string, snapshot bool) ([]LaneStatus, error) {
	return laneStatuses(c.call(ctx, opInspect, func(o *object) error {
		o.optional("lane", lane)
		o.bool("snapshot", snapshot)
		return nil
	}, nil))
}

// Sight is one thing that a watcher sees: first the snapshot, then events.
type Sight struct {
	Snapshot json.RawMessage // LaneSnapshot, or SessionSnapshot without a lane
	Event    json.RawMessage
}

// Watch hands the snapshot of a lane, or of the session when lane is "", and then
// every later event to see, each once and in order, until see fails, the context
// ends, the owner closes (ErrClosing) or dies (ErrGone). It always returns an
// error, and the client is used up (spec §5.4).
func (c *Client) Watch(ctx context.Context, lane string, see func(Sight) error) error {
	_, err := c.call(ctx, opWatch, func(o *object) error {
		o.optional("lane", lane)
		return nil
	}, func(f fields) error {
		return see(Sight{f.raw("snapshot"), f.raw("event")})
	})
	return err
}
