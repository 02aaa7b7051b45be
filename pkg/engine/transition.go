package engine

import (
	"context"
	"errors"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// errOperationEnded is how a task learns that its operation's terminal
// transaction has already committed (spec §4.9).
var errOperationEnded = errors.New("operation has ended")

// errCancelled stops ordinary work whose operation was asked to cancel.
var errCancelled = errors.New("cancellation was requested")

// planFunc decides on the lane line: it may read, must not write.
type planFunc func(context.Context, store.Queries, op.Turn) (op.Plan, error)

// proceed runs an ordinary transition of an operation: a requested cancellation
// stops it first.
func (l *Lane) proceed(ctx context.Context, operationID string, plan planFunc) error {
	return l.transition(ctx, func(ctx context.Context, q store.Queries, t op.Turn) (op.Plan, error) {
		if err := fence(t, operationID); err != nil {
			return op.Plan{}, err
		}
		if t.State.Cancel().Cancelled() {
			return op.Plan{}, errCancelled
		}
		return plan(ctx, q, t)
	})
}

// settle runs a transition that must land even under cancellation. It first
// makes sure that the session file is still the one it opened (D12).
func (l *Lane) settle(ctx context.Context, operationID string, plan planFunc) error {
	if err := l.h.session.Check(ctx); err != nil {
		return err
	}
	return l.transition(ctx, func(ctx context.Context, q store.Queries, t op.Turn) (op.Plan, error) {
		if err := fence(t, operationID); err != nil {
			return op.Plan{}, err
		}
		return plan(ctx, q, t)
	})
}

func fence(t op.Turn, operationID string) error {
	if t.State == nil || t.Operation.OperationID != operationID {
		return errOperationEnded
	}
	return nil
}

// transition is the one door: on the lane line it loads the turn, asks for a
// plan, commits it once, and queues its events in commit order (spec §3.4). It
// returns when the events have been delivered.
func (l *Lane) transition(ctx context.Context, plan planFunc) error {
	_, err := decide(ctx, l, func(ctx context.Context, q store.Queries, t op.Turn) (op.Plan, struct{}, error) {
		p, err := plan(ctx, q, t)
		return p, struct{}{}, err
	})
	return err
}

// decide is transition for a plan that also finds something out.
func decide[T any](ctx context.Context, l *Lane, plan func(context.Context, store.Queries, op.Turn) (op.Plan, T, error)) (T, error) {
	type found struct {
		x        T
		delivery *store.Ticket
	}
	f, err := onLine(ctx, l, func(m *store.Mutator) (found, error) {
		turn, err := l.load(ctx, m)
		if err != nil {
			return found{}, err
		}
		p, x, err := plan(ctx, m, turn)
		if err != nil {
			return found{}, l.defect(err)
		}
		delivery, err := l.commit(m, turn, p)
		return found{x, delivery}, err
	})
	await(ctx, f.delivery)
	return f.x, err
}

// onLine runs a job on the lane's line and hands over what it found. A caller
// whose context ends gets nothing of a job that then still runs: only without an
// error has the job ended, and may what it found be looked at.
func onLine[T any](ctx context.Context, l *Lane, job func(*store.Mutator) (T, error)) (T, error) {
	var found T
	err := l.h.session.Mutate(ctx, l.name, func(m *store.Mutator) (err error) {
		found, err = job(m)
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return found, nil
}

// defect marks what op calls invalid as a broken invariant of this lane.
func (l *Lane) defect(err error) error {
	var invalid *op.Invalid
	if errors.As(err, &invalid) {
		return &Defect{Lane: l.name, Err: err}
	}
	return err
}

func (l *Lane) commit(m *store.Mutator, t op.Turn, p op.Plan) (*store.Ticket, error) {
	id := t.Operation.OperationID
	if p.Lane != nil && p.Lane.CurrentOperationID != "" {
		id = string(p.Lane.CurrentOperationID)
	}
	tx := p.Tx(id, l.name)
	if len(tx) == 0 {
		return l.h.events.enqueue(p.Events), nil
	}
	res, err := m.Commit(tx)
	if err != nil {
		var invalid *store.InvalidWrite
		if errors.As(err, &invalid) {
			return nil, &Defect{Lane: l.name, Err: err}
		}
		return nil, err
	}
	l.recall.committed(p, id, l.name, tx, res)
	l.observe(t, p)
	return l.h.events.enqueue(completed(p.Events, tx, res)), nil
}

// observe keeps the process-local fence of frame appends in step with the
// committed state; it runs on the lane line.
func (l *Lane) observe(t op.Turn, p op.Plan) {
	if p.Result != nil {
		l.ended(p.Result)
		return
	}
	state := p.Next
	if state == nil {
		// What is pending since before this process began may be taken over.
		state = t.State
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = op.PendingEffects(state)
}

// ended takes note of a terminal transaction. Whoever committed it, the pass of
// its operation has nothing left to do: its gate and its breakpoint close, and
// its effects are told to stop (spec §4.9).
func (l *Lane) ended(result *op.LaneLastResult) {
	l.mu.Lock()
	active := l.active
	if active != nil && active.operationID == result.OperationID {
		active.result = result
	} else {
		active = nil
	}
	l.pending = nil
	clear(l.announced)
	l.wake()
	l.mu.Unlock()
	if active != nil {
		active.gate.Close(errOperationEnded)
		l.barrier.Release(errOperationEnded)
	}
}

// completed fills in what only the commit knows: the stored entries and rows.
func completed(events []op.Event, tx store.Tx, res store.CommitResult) []op.Event {
	for i, e := range events {
		switch e.Type {
		case op.EventEntryAdded, op.EventCompactionEnd, op.EventNavigationEnd:
			events[i].Entry = committedEntry(e.EntryID, tx, res)
		case op.EventUsage:
			events[i].Usage = committedUsage(e.EntryID, tx, res)
			events[i].Totals = res.Stats.Usage
		}
	}
	return events
}

func committedEntry(id string, tx store.Tx, res store.CommitResult) *store.Entry {
	for i, w := range tx {
		if w.Kind == store.KindEntry && w.Entry.ID == id {
			e := w.Entry
			return &store.Entry{
				Structure: store.Structure{
					ID: e.ID, ParentID: e.ParentID, Seq: res.Seqs[i], Timestamp: res.Timestamp,
					Type: e.Type, CustomType: e.CustomType,
				},
				Payload: e.Payload,
			}
		}
	}
	return nil
}

func committedUsage(id string, tx store.Tx, res store.CommitResult) *store.UsageRow {
	for i, w := range tx {
		if w.Kind != store.KindUsage || w.Usage.ID != id {
			continue
		}
		u := w.Usage
		row := &store.UsageRow{ID: u.ID, Seq: res.Seqs[i], EntryID: u.EntryID, Adjustment: u.Adjustment, Usage: u.RawUsage, Details: u.Details}
		if row.Usage == nil {
			row.Usage, _ = u.Usage.AppendJSON(nil)
		}
		return row
	}
	return nil
}
