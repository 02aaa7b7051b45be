package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Status is how an open operation looks from outside (spec §5.4, D23).
type Status string

// The statuses of an open operation.
const (
	StatusRunning   Status = "running"
	StatusSuspended Status = "suspended"
	StatusAborting  Status = "aborting"
)

// ExecutionInfo is one lane's current and latest terminal operation, read
// together (spec §5.1).
type ExecutionInfo struct {
	Lane       string
	LeafID     store.LeafID
	Current    *CurrentOperation
	LastResult *op.LaneLastResult
}

// CurrentOperation describes an open operation (spec §5.1).
type CurrentOperation struct {
	ID        string
	Kind      op.Kind
	Status    Status
	StartedAt int64 // Unix ms
	Point     op.Point
	Suspended *SuspendedOperation
}

// SuspendedOperation says why nobody drives an operation, where the reason has a
// name: a request whose process is gone, or missing identities (spec §5.2, D39).
type SuspendedOperation struct {
	Lane        string
	OperationID string
	Kind        op.Kind
	StartedAt   int64 // Unix ms
	Prompt      []message.Message
	Reason      string // crash, missing_identities, deferred
	Missing     *op.Missing
	Deferred    json.RawMessage // the handle
	// PollFailed is why the last poll was not answered. It is for people, and no part
	// of the JSON.
	PollFailed message.ErrorInfo
	// Aborting are the drained messages of a cancelled run (spec §4.6).
	Aborting *Drained
}

// Drained are the queued messages that a cancellation took out.
type Drained struct{ Steer, FollowUp []message.Message }

// Owner is what a reader knows of who drives the lane.
type Owner struct {
	Live    bool        // some process does
	Missing *op.Missing // why this process's last pass waits
}

// ReadExecution reads a lane's execution from any reader (spec §5.1).
func ReadExecution(ctx context.Context, q store.Queries, lane string, owner Owner) (ExecutionInfo, error) {
	info, _, err := readExecution(ctx, q, lane, owner)
	return info, err
}

func readExecution(ctx context.Context, q store.Queries, lane string, owner Owner) (ExecutionInfo, op.Turn, error) {
	t, err := loadTurn(ctx, q, lane, 0)
	if err != nil {
		return ExecutionInfo{}, t, err
	}
	info := ExecutionInfo{Lane: lane, LeafID: t.Leaf}
	last, ok, err := store.Get(ctx, q, op.LastResult(lane))
	if err != nil {
		return info, t, err
	}
	if ok {
		info.LastResult = &last.Value
	}
	if t.State != nil {
		info.Current, err = describe(ctx, q, t, owner)
	}
	return info, t, err
}

func describe(ctx context.Context, q store.Queries, t op.Turn, owner Owner) (*CurrentOperation, error) {
	o := t.Operation
	c := &CurrentOperation{ID: o.OperationID, Kind: o.Intent.Kind, StartedAt: o.StartedAt, Status: StatusSuspended, Point: op.PointOf(t.State)}
	control := t.State.Cancel()
	if control.Cancelled() {
		c.Status = StatusAborting
	} else if owner.Live {
		c.Status = StatusRunning
	}
	if owner.Live {
		return c, nil
	}
	s := &SuspendedOperation{Lane: t.Lane, OperationID: o.OperationID, Kind: o.Intent.Kind, StartedAt: o.StartedAt}
	var err error
	switch {
	case control.Cancelled():
		s.Reason = "crash"
		s.Aborting, err = drainedOf(ctx, q, t.Lane, control)
	case op.PointOf(t.State) == op.PointDeferredWaiting:
		s.Reason = "deferred"
		err = s.readDeferred(ctx, q, t)
	case owner.Missing != nil:
		s.Reason, s.Missing = "missing_identities", owner.Missing
	case !op.Safe(t.State):
		s.Reason = "crash"
	default:
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := q.Entries(ctx, o.Intent.PromptEntryIDs)
	if err != nil {
		return nil, err
	}
	for _, id := range o.Intent.PromptEntryIDs {
		if e, ok := entries[id]; ok {
			s.Prompt = append(s.Prompt, e.Message())
		}
	}
	c.Suspended = s
	return c, nil
}

func drainedOf(ctx context.Context, q store.Queries, lane string, c op.Control) (*Drained, error) {
	steer, err := pendingMessages(ctx, q, lane, c.DrainedSteer)
	if err != nil {
		return nil, err
	}
	followUp, err := pendingMessages(ctx, q, lane, c.DrainedFollowUp)
	return &Drained{steer, followUp}, err
}

// pendingMessages dereferences queued messages.
func pendingMessages(ctx context.Context, q store.Queries, lane string, ids []string) ([]message.Message, error) {
	messages := []message.Message{}
	for _, id := range ids {
		content, err := required(ctx, q, lane, store.Pending(id))
		if err != nil {
			return nil, err
		}
		messages = append(messages, message.Message(content.Payload))
	}
	return messages, nil
}

func (s *SuspendedOperation) readDeferred(ctx context.Context, q store.Queries, t op.Turn) error {
	run, _ := t.Run()
	source, err := deferredSource(ctx, q, t.Lane, run.Phase.(op.DeferredPhase).Deferred)
	s.Deferred, s.PollFailed = source.handle.Raw, source.failed
	return err
}

// InspectExecution reads current ownership and the latest result coherently, on
// the lane line (spec §5.1).
func (l *Lane) InspectExecution(ctx context.Context) (ExecutionInfo, error) {
	return onLine(ctx, l, func(m *store.Mutator) (ExecutionInfo, error) {
		return ReadExecution(ctx, m, l.name, l.owner())
	})
}

func (l *Lane) owner() Owner {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Owner{Live: l.active != nil, Missing: l.missing}
}

// AppendJSON writes the LaneExecutionInfo of §5.1.
func (i ExecutionInfo) AppendJSON(dst []byte) ([]byte, error) {
	return append(i.appendFields(append(dst, '{')), '}'), nil
}

// MarshalJSON is AppendJSON.
func (i ExecutionInfo) MarshalJSON() ([]byte, error) { return i.AppendJSON(nil) }

func (i ExecutionInfo) appendFields(dst []byte) []byte {
	dst = append(dst, `"lane":`...)
	dst = rawjson.AppendQuote(dst, i.Lane)
	dst = append(dst, `,"leafId":`...)
	dst, _ = i.LeafID.AppendJSON(dst)
	dst = append(dst, `,"current":`...)
	if i.Current == nil {
		dst = append(dst, "null"...)
	} else {
		dst = i.Current.append(dst)
	}
	if i.LastResult != nil {
		if b, err := i.LastResult.MarshalJSON(); err == nil {
			dst = append(append(dst, `,"lastResult":`...), b...)
		}
	}
	return dst
}

func (c CurrentOperation) append(dst []byte) []byte {
	dst = append(dst, `{"id":`...)
	dst = rawjson.AppendQuote(dst, c.ID)
	dst = append(dst, `,"kind":`...)
	dst = rawjson.AppendQuote(dst, string(c.Kind))
	dst = append(dst, `,"status":`...)
	dst = rawjson.AppendQuote(dst, string(c.Status))
	dst = append(dst, `,"startedAt":`...)
	dst = rawjson.AppendInt(dst, c.StartedAt)
	dst = append(dst, `,"point":`...)
	dst = rawjson.AppendQuote(dst, string(c.Point))
	if c.Suspended != nil {
		dst = append(dst, `,"suspended":`...)
		dst = c.Suspended.append(dst)
	}
	return append(dst, '}')
}

func (s SuspendedOperation) append(dst []byte) []byte {
	dst = append(dst, `{"lane":`...)
	dst = rawjson.AppendQuote(dst, s.Lane)
	dst = append(dst, `,"operationId":`...)
	dst = rawjson.AppendQuote(dst, s.OperationID)
	dst = append(dst, `,"kind":`...)
	dst = rawjson.AppendQuote(dst, string(s.Kind))
	dst = append(dst, `,"startedAt":`...)
	dst = rawjson.AppendInt(dst, s.StartedAt)
	if s.Prompt != nil {
		dst = appendMessageList(append(dst, `,"prompt":`...), s.Prompt)
	}
	dst = append(dst, `,"reason":`...)
	dst = rawjson.AppendQuote(dst, s.Reason)
	if s.Missing != nil {
		dst = append(dst, `,"missing":`...)
		dst = appendMissing(dst, *s.Missing)
	}
	if s.Deferred != nil {
		dst = append(append(dst, `,"deferred":`...), s.Deferred...)
	}
	if s.Aborting != nil {
		dst = appendMessageList(append(dst, `,"aborting":{"steer":`...), s.Aborting.Steer)
		dst = append(appendMessageList(append(dst, `,"followUp":`...), s.Aborting.FollowUp), '}')
	}
	return append(dst, '}')
}

// LaneNames lists the lanes of a session, in byte order.
func LaneNames(ctx context.Context, q store.Queries) ([]string, error) {
	leaves, err := store.Scan(ctx, q, store.LaneLeaves())
	if err != nil {
		return nil, fmt.Errorf("read lanes: %w", err)
	}
	names := make([]string, len(leaves))
	for i, l := range leaves {
		names[i] = l.Address.Key
	}
	if len(names) == 0 {
		return nil, &Defect{Lane: store.MainLane, Err: &store.Corrupt{Offset: -1, Msg: "the session has no lanes"}}
	}
	return names, nil
}
