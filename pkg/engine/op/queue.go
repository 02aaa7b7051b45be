package op

import (
	"slices"

	"github.com/drover-run/drover/pkg/store"
)

// Queue names where queued content waits (spec §3.11).
type Queue uint8

// The queues of a lane. Writes are deferred tree writes.
const (
	QueueSteer Queue = iota + 1
	QueueFollowUp
	QueueNextRun
	QueueWrites
)

// Enqueue admits content under its reserved entry id (spec §3.11). Steering and
// follow-ups need a run that is not being cancelled; the caller has checked.
func Enqueue(t Turn, q Queue, item Placed) (Plan, error) {
	plan := Plan{Writes: []store.Write{store.Pending(item.EntryID).Set(item.Content)}}
	if q == QueueNextRun {
		lane := t.LaneState
		lane.PendingNextRun = append(slices.Clone(lane.PendingNextRun), item.EntryID)
		plan.Lane = &lane
		return plan, nil
	}
	s, ok := t.Run()
	if !ok {
		return Plan{}, invalid("enqueue: no run is open")
	}
	if q != QueueWrites && s.Control.Cancelled() {
		return Plan{}, invalid("enqueue: the run is being cancelled")
	}
	list := s.Inbox.list(q)
	*list = append(slices.Clone(*list), item.EntryID)
	plan.Next = s
	if q == QueueWrites {
		plan.Events = []Event{{
			Type: EventWritePending, Lane: t.Lane, RunID: t.Operation.OperationID, EntryID: item.EntryID, EntryType: item.Content.Type,
		}}
	}
	return plan, nil
}

func (i *Inbox) list(q Queue) *[]string {
	switch q {
	case QueueSteer:
		return &i.Steer
	case QueueFollowUp:
		return &i.FollowUp
	}
	return &i.Writes
}

// Withdraw removes a queued item that is still pending, with its content; false
// when no queue holds it (spec §3.11).
func Withdraw(t Turn, entryID string) (Plan, bool) {
	plan := Plan{After: []store.Write{store.Pending(entryID).Delete()}}
	if slices.Contains(t.LaneState.PendingNextRun, entryID) {
		lane := t.LaneState
		lane.PendingNextRun = without(lane.PendingNextRun, []string{entryID})
		plan.Lane = &lane
		return plan, true
	}
	s, ok := t.Run()
	if !ok {
		return Plan{}, false
	}
	for _, q := range []Queue{QueueSteer, QueueFollowUp, QueueWrites} {
		if list := s.Inbox.list(q); slices.Contains(*list, entryID) {
			*list = without(*list, []string{entryID})
			plan.Next = s
			return plan, true
		}
	}
	return Plan{}, false
}

// RequestCancel marks an operation as cancelled; a run's steering and follow-ups
// are drained, their content survives until the terminal transaction (spec
// §3.11, §4.6). An operation that is already cancelled gives an empty plan.
func RequestCancel(t Turn) (Plan, bool) {
	if t.State.Cancel().Cancelled() {
		return Plan{}, false
	}
	control := Control{Status: CancelRequested, RequestedAt: t.Now, DrainedSteer: []string{}, DrainedFollowUp: []string{}}
	switch s := t.State.(type) {
	case RunState:
		control.DrainedSteer, control.DrainedFollowUp = nonNil(s.Inbox.Steer), nonNil(s.Inbox.FollowUp)
		s.Inbox.Steer, s.Inbox.FollowUp = []string{}, []string{}
		s.Control = control
		return Plan{Next: s}, true
	case CompactionState:
		s.Control = control
		return Plan{Next: s}, true
	case NavigationState:
		s.Control = control
		return Plan{Next: s}, true
	}
	panic("unreachable: state of unknown kind")
}

// Item is queued content on its way into the tree. Projects says that a request
// would carry it: every message, and custom entries with a projector.
type Item struct {
	Placed
	Projects bool
}

// Drain places queued content at a checkpoint or failure drain (spec §3.12). Any
// item that projects makes the run owe a turn, which skips the inbox once; under
// cancellation nothing but the inbox changes.
func Drain(t Turn, q Queue, items []Item) (Plan, error) {
	s, ok := t.Run()
	if !ok {
		return Plan{}, invalid("drain: the operation is no run")
	}
	p := placement{lane: t.Lane, runID: t.Operation.OperationID, leaf: t.Leaf}
	var ids []string
	projects := false
	for _, item := range items {
		p.place(item.Placed)
		ids = append(ids, item.EntryID)
		projects = projects || item.Projects
	}
	for _, id := range ids {
		p.writes = append(p.writes, store.Pending(id).Delete())
	}
	p.writes = append(p.writes, store.LaneLeaf(t.Lane).Set(p.leaf))
	list := s.Inbox.list(q)
	*list = without(*list, ids)
	if projects && !s.Control.Cancelled() {
		switch s.Phase.(type) {
		case Checkpoint, FailureDrain:
			s.Phase = Checkpoint{Continuation: NeedAssistant(false), TriggerEntryID: string(p.leaf), SkipInboxOnce: true}
		default:
			return Plan{}, invalid("drain: the run is at %s", PointOf(t.State))
		}
	}
	return Plan{Writes: p.writes, Next: s, Events: p.events}, nil
}

// Extend places the follow-up of a before_run_end hook: born placed, the run owes
// a turn again (spec §3.12).
func Extend(t Turn, item Placed) (Plan, error) {
	s, ok := t.Run()
	if !ok {
		return Plan{}, invalid("extend: the operation is no run")
	}
	c, ok := s.Phase.(Checkpoint)
	if !ok || c.Continuation.Kind != MayFinishKind {
		return Plan{}, invalid("extend: the run is at %s", PointOf(t.State))
	}
	p := placement{lane: t.Lane, runID: t.Operation.OperationID, leaf: t.Leaf}
	p.place(item)
	s.Phase = Checkpoint{Continuation: NeedAssistant(false), TriggerEntryID: item.EntryID, SkipInboxOnce: true}
	return Plan{Writes: append(p.writes, store.LaneLeaf(t.Lane).Set(p.leaf)), Next: s, Events: p.events}, nil
}

// Place puts content directly on an idle lane: born placed (spec §2.2).
func Place(t Turn, item Placed) Plan {
	p := placement{lane: t.Lane, leaf: t.Leaf}
	p.place(item)
	return Plan{Writes: append(p.writes, store.LaneLeaf(t.Lane).Set(p.leaf)), Events: p.events}
}
