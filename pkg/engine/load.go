package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// load reads what a transition may look at, together, on the lane line (spec
// §3.4, §4.4).
func (l *Lane) load(ctx context.Context, q store.Queries) (op.Turn, error) {
	return l.recall.load(ctx, q, l.name, l.h.opts.Now())
}

func loadTurn(ctx context.Context, q store.Queries, lane string, now int64) (op.Turn, error) {
	return new(recall).load(ctx, q, lane, now)
}

// recall remembers the decoded form of the values that a lane reads before every
// transition. Storage still answers each time: only the decoding of a write seen
// before is saved. What is handed out is shared and must not be changed, which
// holds for every transition: they are pure.
type recall struct {
	mu        sync.Mutex
	lane      decoded[store.LaneState]
	leaf      decoded[store.LeafID]
	operation decoded[op.Operation]
	state     decoded[op.State]
	config    decoded[store.LaneConfiguration]
}

// configuration is the lane's stored configuration, if it has one.
func (r *recall) configuration(ctx context.Context, q store.Getter, lane string) (store.LaneConfiguration, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.config.get(ctx, q, store.LaneConfig(lane))
}

// configured is the configuration of a lane that must have one.
func (r *recall) configured(ctx context.Context, q store.Getter, lane string) (store.LaneConfiguration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.config.required(ctx, q, lane, store.LaneConfig(lane))
}

func (r *recall) load(ctx context.Context, q store.Queries, lane string, now int64) (op.Turn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := op.Turn{Lane: lane, Now: now}
	state, err := r.lane.required(ctx, q, lane, store.LaneStateOf(lane))
	if err != nil {
		return t, err
	}
	leaf, err := r.leaf.required(ctx, q, lane, store.LaneLeaf(lane))
	if err != nil {
		return t, err
	}
	t.LaneState, t.Leaf = state, leaf
	id := string(state.CurrentOperationID)
	if id == "" {
		return t, nil
	}
	if t.Operation, err = r.operation.required(ctx, q, lane, op.Meta(id)); err != nil {
		return t, err
	}
	t.State, err = r.state.required(ctx, q, lane, op.StateOf(id))
	t.Stored = r.state.stored
	return t, err
}

// committed remembers the operation, the state and the lane value that a plan has
// just stored.
func (r *recall) committed(p op.Plan, operationID, lane string, tx store.Tx, res store.CommitResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.Accepted != nil {
		r.operation.written(op.Meta(operationID).Address(), *p.Accepted, tx, res)
	}
	if p.Next != nil {
		r.state.written(op.StateOf(operationID).Address(), p.Next, tx, res)
	}
	if p.Lane != nil {
		r.lane.written(store.LaneStateOf(lane).Address(), *p.Lane, tx, res)
	}
}

// decoded is one remembered value. No two writes of a session share a seq, so it
// says whether the value is still the stored one.
type decoded[T any] struct {
	seq    int64
	stored json.RawMessage
	value  T
}

// get reads a value, which need not be there.
func (d *decoded[T]) get(ctx context.Context, q store.Getter, v store.Value[T]) (value T, ok bool, err error) {
	if store.Unchanged(ctx, q, v.Address(), d.seq) {
		return d.value, true, nil
	}
	raw, ok, err := q.Value(ctx, v.Address())
	if err != nil || !ok {
		return value, false, err
	}
	if raw.Seq == d.seq {
		return d.value, true, nil
	}
	if value, err = v.Decode(raw); err != nil {
		return value, false, err
	}
	d.seq, d.stored, d.value = raw.Seq, raw.Value, value
	return value, true, nil
}

func (d *decoded[T]) required(ctx context.Context, q store.Getter, lane string, v store.Value[T]) (T, error) {
	value, ok, err := d.get(ctx, q, v)
	return present(lane, v.Address(), ok, err, func() (T, error) { return value, nil })
}

// written remembers a value as the write of its transaction, near the end, set it.
func (d *decoded[T]) written(addr store.Address, value T, tx store.Tx, res store.CommitResult) {
	for i := len(tx) - 1; i >= 0; i-- {
		if tx[i].Address == addr && tx[i].Op == store.OpSet {
			d.seq, d.stored, d.value = res.Seqs[i], tx[i].Value, value
			return
		}
	}
}

// required reads a value that must be there: its absence is a defect, never an
// answer (spec §3.3).
func required[T any](ctx context.Context, q store.Getter, lane string, v store.Value[T]) (T, error) {
	raw, ok, err := q.Value(ctx, v.Address())
	return present(lane, v.Address(), ok, err, func() (T, error) { return v.Decode(raw) })
}

func present[T any](lane string, addr store.Address, ok bool, err error, decode func() (T, error)) (T, error) {
	var x T
	if err == nil && !ok {
		return x, &Defect{Lane: lane, Err: fmt.Errorf("%s is missing", addr)}
	}
	if err == nil {
		x, err = decode()
	}
	if err != nil {
		return x, fmt.Errorf("read %s: %w", addr, err)
	}
	return x, nil
}
