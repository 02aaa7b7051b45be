package engine

import (
	"context"
	"errors"
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
	Reason      string // crash, missing_identities
	Missing     *op.Missing
}

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
	switch {
	case t.State.Cancel().Cancelled():
		c.Status = StatusAborting
		return c, nil
	case owner.Live:
		c.Status = StatusRunning
		return c, nil
	}
	s := &SuspendedOperation{Lane: t.Lane, OperationID: o.OperationID, Kind: o.Intent.Kind, StartedAt: o.StartedAt}
	switch {
	case owner.Missing != nil:
		s.Reason, s.Missing = "missing_identities", owner.Missing
	case !c.Point.Safe():
		s.Reason = "crash"
	default:
		return c, nil
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
		dst = append(dst, `,"prompt":[`...)
		for i, m := range s.Prompt {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, m...)
		}
		dst = append(dst, ']')
	}
	dst = append(dst, `,"reason":`...)
	dst = rawjson.AppendQuote(dst, s.Reason)
	if s.Missing != nil {
		dst = append(dst, `,"missing":`...)
		dst = appendMissing(dst, *s.Missing)
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
		return nil, &Defect{Lane: store.MainLane, Err: errors.New("the session has no lanes")}
	}
	return names, nil
}
