package engine

import (
	"context"
	"errors"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// errAgain abandons a decision whose ground has moved: the loop looks again.
var errAgain = errors.New("state has moved")

// checkpoint is the procedure between turns (spec §3.12). skipInboxOnce is looked
// at once, on entering (D30).
func (p *pass) checkpoint(ctx context.Context, t op.Turn) error {
	run, _ := t.Run()
	c := run.Phase.(op.Checkpoint)
	if !c.SkipInboxOnce {
		if _, err := p.drain(ctx, op.QueueWrites, "checkpoint.write"); err != nil {
			return err
		}
		if _, err := p.drain(ctx, op.QueueSteer, "checkpoint.steer"); err != nil {
			return err
		}
	}
	compacting, err := p.threshold(ctx)
	if err != nil || compacting {
		return err
	}
	t, err = p.current(ctx)
	if err != nil {
		return err
	}
	run, _ = t.Run()
	if run.Phase.(op.Checkpoint).Continuation.Kind == op.NeedAssistantKind {
		return p.startStep(ctx)
	}
	drained, err := p.drain(ctx, op.QueueFollowUp, "checkpoint.follow_up")
	if err != nil || drained {
		return err
	}
	return p.end(ctx)
}

// drain places what a queue holds, all of it or the oldest by the run's mode;
// false when it is empty.
func (p *pass) drain(ctx context.Context, q op.Queue, kind string) (bool, error) {
	t, err := p.current(ctx)
	if err != nil {
		return false, err
	}
	run, _ := t.Run()
	if len(eligible(run, q)) == 0 {
		return false, nil
	}
	if err := p.hit(kind, "Place what waits in the queue", ""); err != nil {
		return false, err
	}
	return true, p.lane.proceed(ctx, p.operationID, p.drainPlan(q))
}

func (p *pass) drainPlan(q op.Queue) planFunc {
	return func(ctx context.Context, r store.Queries, t op.Turn) (op.Plan, error) {
		run, _ := t.Run()
		var items []op.Item
		for _, id := range eligible(run, q) {
			content, err := required(ctx, r, p.lane.name, store.Pending(id))
			if err != nil {
				return op.Plan{}, err
			}
			projects, err := p.projects(id, content)
			if err != nil {
				return op.Plan{}, err
			}
			items = append(items, op.Item{Placed: op.Placed{EntryID: id, Content: content}, Projects: projects})
		}
		if len(items) == 0 {
			return op.Plan{}, nil
		}
		return op.Drain(t, q, items)
	}
}

// projects reports whether a request would carry the content.
func (p *pass) projects(id string, content store.PendingEntry) (bool, error) {
	n := content.Entry(id, "")
	e := store.Entry{Structure: store.Structure{ID: id, Type: n.Type, CustomType: n.CustomType}, Payload: n.Payload}
	projects, err := op.Projects(e, p.lane.h.opts.Projectors)
	return projects, p.lane.trusted(err)
}

func eligible(run op.RunState, q op.Queue) []string {
	ids, mode := run.Inbox.Writes, op.QueueAll
	switch q {
	case op.QueueSteer:
		ids, mode = run.Inbox.Steer, run.Settings.SteeringMode
	case op.QueueFollowUp:
		ids, mode = run.Inbox.FollowUp, run.Settings.FollowUpMode
	}
	if mode == op.QueueOne && len(ids) > 1 {
		return ids[:1]
	}
	return ids
}

// threshold looks at the context size once per boundary and opens a compaction
// when it is due (spec §3.9, §3.12).
func (p *pass) threshold(ctx context.Context) (bool, error) {
	t, err := p.current(ctx)
	if err != nil {
		return false, err
	}
	run, _ := t.Run()
	c := run.Phase.(op.Checkpoint)
	if c.ThresholdCheckedTriggerEntryID == c.TriggerEntryID || !run.Settings.Compaction.Enabled {
		return false, nil
	}
	cfg, err := p.lane.Configuration(ctx)
	if err != nil {
		return false, err
	}
	model, err := p.lane.h.opts.Models.Resolve(cfg.Model)
	if err != nil {
		return false, nil // the request that follows says what is missing
	}
	window := model.Info().ContextWindow
	messages, err := p.lane.context(ctx, t.Leaf)
	if err != nil {
		return false, err
	}
	if !run.Settings.Compaction.Due(message.ContextTokens(messages), window) {
		return false, nil
	}
	if err := p.hit("checkpoint.threshold", "Compact: the context is over its threshold", ""); err != nil {
		return false, err
	}
	err = p.lane.proceed(ctx, p.operationID, func(ctx context.Context, q store.Queries, t op.Turn) (op.Plan, error) {
		prepared, err := p.lane.prepareCompaction(ctx, q, t.Leaf, run.Settings.Compaction.Capped(window))
		if err != nil {
			return op.Plan{}, err
		}
		return op.MarkThreshold(t, prepared)
	})
	if err != nil {
		return false, err
	}
	t, err = p.current(ctx)
	return err == nil && op.StructuralOf(t.State) != nil, err
}

// end is a normal finish boundary: the before_run_end hooks may extend the run,
// otherwise its terminal transaction ends it (spec §3.12).
func (p *pass) end(ctx context.Context) error {
	followUp, err := p.beforeRunEnd(func() ([]message.Message, error) {
		t, err := p.current(ctx)
		if err != nil {
			return nil, err
		}
		return p.lane.context(ctx, t.Leaf)
	})
	if err != nil {
		return err
	}
	if followUp == "" {
		return p.finish(ctx)
	}
	item := op.PlaceMessage(p.lane.h.session.IDs().NewID(), message.NewUser(followUp, nil, p.lane.h.opts.Now()))
	return p.lane.proceed(ctx, p.operationID, func(_ context.Context, _ store.Queries, t op.Turn) (op.Plan, error) {
		if run, _ := t.Run(); !run.Inbox.Empty() {
			return op.Plan{}, errAgain // no finish boundary any more: the follow-up is stale
		}
		return op.Extend(t, item)
	})
}

// finish commits the terminal transaction of a run, unless something came in
// meanwhile.
func (p *pass) finish(ctx context.Context) error {
	if err := p.hit("checkpoint.finish", "End the run", ""); err != nil {
		return err
	}
	return p.lane.proceed(ctx, p.operationID, func(ctx context.Context, q store.Queries, t op.Turn) (op.Plan, error) {
		if run, _ := t.Run(); !run.Inbox.Empty() {
			return op.Plan{}, errAgain
		}
		return p.finishPlan(ctx, q, t)
	})
}

// finishPlan completes op.Finish with the leftovers and the final message.
func (p *pass) finishPlan(ctx context.Context, q store.Queries, t op.Turn) (op.Plan, error) {
	t, err := withLeftovers(ctx, q, t)
	if err != nil {
		return op.Plan{}, err
	}
	plan, err := op.Finish(t)
	if err != nil {
		return op.Plan{}, err
	}
	outcome, err := hydrate(ctx, q, *plan.Result)
	if err != nil {
		return op.Plan{}, err
	}
	if outcome.FinalEntryID != "" {
		plan.Events[len(plan.Events)-1].Message = outcome.FinalMessage
	}
	p.planned, p.hydrated = plan.Result, outcome
	return plan, nil
}

// withLeftovers lists the values that a terminal transaction must delete.
func withLeftovers(ctx context.Context, q store.Queries, t op.Turn) (op.Turn, error) {
	for _, prefix := range op.Owned(t.Operation.OperationID) {
		values, err := q.ScanValues(ctx, prefix)
		if err != nil {
			return t, err
		}
		for _, v := range values {
			t.Leftovers = append(t.Leftovers, v.Address)
		}
	}
	return t, nil
}

// failureDrain applies what still waits; input that projects revives the run,
// without any it ends as failed (spec §3.12).
func (p *pass) failureDrain(ctx context.Context) error {
	for _, q := range []struct {
		queue op.Queue
		kind  string
	}{{op.QueueWrites, "checkpoint.write"}, {op.QueueSteer, "checkpoint.steer"}, {op.QueueFollowUp, "checkpoint.follow_up"}} {
		if _, err := p.drain(ctx, q.queue, q.kind); err != nil {
			return err
		}
		t, err := p.current(ctx)
		if err != nil {
			return err
		}
		if op.PointOf(t.State) != op.PointFailureDrain {
			return nil
		}
	}
	return p.finish(ctx)
}
