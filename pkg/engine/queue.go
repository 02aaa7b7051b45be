package engine

import (
	"context"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Queued is a message to queue; EntryID is minted when it is empty, and a caller
// that repeats its request with the same one is answered as the first time (D25).
type Queued struct {
	EntryID string
	Text    string
	Images  []message.Block
	Message message.Message // instead of Text and Images
}

// Steer queues a message for the next checkpoint of the open run (spec §3.11).
// Without a run, or with one that is being cancelled, it is *NoActiveRun.
func (l *Lane) Steer(ctx context.Context, q Queued) (string, error) {
	return l.enqueue(ctx, op.QueueSteer, q)
}

// FollowUp queues a message for when the open run would end (spec §3.11).
func (l *Lane) FollowUp(ctx context.Context, q Queued) (string, error) {
	return l.enqueue(ctx, op.QueueFollowUp, q)
}

// NextRun queues a message for the lane's next run; it never starts one (spec
// §3.11).
func (l *Lane) NextRun(ctx context.Context, q Queued) (string, error) {
	return l.enqueue(ctx, op.QueueNextRun, q)
}

func (l *Lane) enqueue(ctx context.Context, queue op.Queue, q Queued) (string, error) {
	if err := l.h.admission(); err != nil {
		return "", err
	}
	m := q.Message
	if m == nil {
		if q.Text == "" && len(q.Images) == 0 {
			return "", &InvalidMessage{Lane: l.name, Reason: "there is nothing to send: the message is empty"}
		}
		m = message.NewUser(q.Text, q.Images, l.h.opts.Now())
	}
	m, err := l.checkMessage(m)
	if err != nil {
		return "", err
	}
	id := q.EntryID
	if id == "" {
		id = l.h.session.IDs().NewID()
	}
	err = l.transition(ctx, func(ctx context.Context, r store.Queries, t op.Turn) (op.Plan, error) {
		if known, err := l.known(ctx, r, id); err != nil || known {
			return op.Plan{}, err
		}
		if _, ok := t.Run(); queue != op.QueueNextRun && (!ok || t.State.Cancel().Cancelled()) {
			return op.Plan{}, &NoActiveRun{Lane: l.name}
		}
		plan, err := op.Enqueue(t, queue, op.PlaceMessage(id, m))
		if err != nil {
			return plan, err
		}
		return l.withQueueUpdate(ctx, r, t, plan, map[string]message.Message{id: m})
	})
	return id, err
}

// known reports whether an id is already pending or placed.
func (l *Lane) known(ctx context.Context, r store.Queries, id string) (bool, error) {
	if _, ok, err := store.Get(ctx, r, store.Pending(id)); err != nil || ok {
		return ok, err
	}
	entries, err := r.Entries(ctx, []string{id})
	return len(entries) > 0, err
}

// CancelResult says what became of a queued item (spec §3.11).
type CancelResult string

// The answers of CancelQueued.
const (
	CancelledItem   CancelResult = "cancelled"
	AlreadyConsumed CancelResult = "already_consumed"
	ItemNotFound    CancelResult = "not_found"
)

// CancelQueued withdraws a queued item before it is placed; its content is gone
// then, never having touched the tree (spec §3.11).
func (l *Lane) CancelQueued(ctx context.Context, entryID string) (CancelResult, error) {
	return decide(ctx, l, func(ctx context.Context, r store.Queries, t op.Turn) (op.Plan, CancelResult, error) {
		if plan, ok := op.Withdraw(t, entryID); ok {
			plan, err := l.withQueueUpdate(ctx, r, t, plan, nil)
			return plan, CancelledItem, err
		}
		entries, err := r.Entries(ctx, []string{entryID})
		if len(entries) > 0 {
			return op.Plan{}, AlreadyConsumed, err
		}
		return op.Plan{}, ItemNotFound, err
	})
}

// withQueueUpdate adds the queue_update event of the queues as the plan leaves
// them; fresh is content that is not stored yet.
func (l *Lane) withQueueUpdate(ctx context.Context, r store.Queries, t op.Turn, plan op.Plan, fresh map[string]message.Message) (op.Plan, error) {
	run, _ := t.Run()
	if next, ok := plan.Next.(op.RunState); ok {
		run = next
	}
	lane := t.LaneState
	if plan.Lane != nil {
		lane = *plan.Lane
	}
	var body []byte
	for _, queue := range []struct {
		name string
		ids  []string
	}{{"steer", run.Inbox.Steer}, {"followUp", run.Inbox.FollowUp}, {"nextRun", lane.PendingNextRun}} {
		items, err := l.items(ctx, r, queue.ids, fresh)
		if err != nil {
			return plan, err
		}
		body = append(append(append(body, `,"`...), queue.name...), `":`...)
		body = appendQueue(body, items)
	}
	plan.Events = append(plan.Events, op.Event{Type: op.EventQueueUpdate, Lane: l.name, Body: body})
	return plan, nil
}

func (l *Lane) items(ctx context.Context, r store.Queries, ids []string, fresh map[string]message.Message) ([]QueuedItem, error) {
	items := make([]QueuedItem, 0, len(ids))
	for _, id := range ids {
		if m, ok := fresh[id]; ok {
			items = append(items, QueuedItem{id, m})
			continue
		}
		content, err := required(ctx, r, l.name, store.Pending(id))
		if err != nil {
			return nil, err
		}
		items = append(items, QueuedItem{id, message.Message(content.Payload)})
	}
	return items, nil
}

// Append writes content to the lane's tree: at once on an idle lane, at the next
// checkpoint of an open run; a structural operation is waited for (spec §3.11).
// It returns the entry id, reserved when the write waits, and whether it does.
func (l *Lane) Append(ctx context.Context, entryID string, content store.PendingEntry) (id string, queued bool, err error) {
	if content, err = l.checkContent(content); err != nil {
		return "", false, err
	}
	if id = entryID; id == "" {
		id = l.h.session.IDs().NewID()
	}
	for {
		how, err := decide(ctx, l, func(ctx context.Context, r store.Queries, t op.Turn) (op.Plan, appended, error) {
			return l.appendPlan(ctx, r, t, op.Placed{EntryID: id, Content: content})
		})
		if err != nil || how != mustWait {
			return id, how == writeWaits, err
		}
		if err := l.WaitForIdle(ctx); err != nil {
			return id, false, err
		}
	}
}

// appended says what became of an append.
type appended uint8

const (
	placedNow  appended = iota // in the tree
	writeWaits                 // for a checkpoint of the open run
	mustWait                   // a structural operation holds the lane
)

func (l *Lane) appendPlan(ctx context.Context, r store.Queries, t op.Turn, item op.Placed) (op.Plan, appended, error) {
	if known, err := l.known(ctx, r, item.EntryID); err != nil || known {
		return op.Plan{}, placedNow, err
	}
	if t.State == nil {
		return op.Place(t, item), placedNow, nil
	}
	if _, ok := t.Run(); ok {
		plan, err := op.Enqueue(t, op.QueueWrites, item)
		return plan, writeWaits, err
	}
	if l.activePass() == nil {
		return op.Plan{}, mustWait, &LaneBusy{Lane: l.name, OperationID: t.Operation.OperationID, Kind: t.Operation.Intent.Kind}
	}
	return op.Plan{}, mustWait, nil
}

func (l *Lane) checkContent(content store.PendingEntry) (store.PendingEntry, error) {
	if content.Type == store.TypeMessage {
		m, err := l.checkMessage(message.Message(content.Payload))
		if err != nil {
			return content, err
		}
		content.Payload = []byte(m)
		return content, nil
	}
	if content.CustomType == "" {
		return content, &InvalidMessage{Lane: l.name, Reason: "a custom entry needs a type"}
	}
	if content.Payload != nil {
		compact, err := rawjson.Compact(nil, content.Payload)
		if err != nil {
			return content, &InvalidMessage{Lane: l.name, Reason: "data is no JSON: " + err.Error()}
		}
		content.Payload = compact
	}
	return content, nil
}

// RecordUsage adds a reconciliation row to the ledger (spec §1.6, §5.1).
func (l *Lane) RecordUsage(ctx context.Context, u store.NewUsage) (string, error) {
	if u.ID == "" {
		u.ID = l.h.session.IDs().NewID()
	}
	u.Adjustment = true
	err := l.transition(ctx, func(context.Context, store.Queries, op.Turn) (op.Plan, error) {
		return op.Plan{
			Writes: []store.Write{store.InsertUsage(u)},
			Events: []op.Event{{Type: op.EventUsage, Lane: l.name, EntryID: u.ID}},
		}, nil
	})
	return u.ID, err
}
