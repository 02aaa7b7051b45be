package engine

import (
	"context"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// reconcile brings a cancelled operation to its end, one commit at a time; it
// starts no ordinary work (spec §4.6).
func (p *pass) reconcile(ctx context.Context, t op.Turn) error {
	run, ok := t.Run()
	if !ok {
		return p.endStructural(ctx)
	}
	switch phase := run.Phase.(type) {
	case op.Assistant:
		if pending, ok := phase.Generation.(op.EffectPending); ok {
			return p.abortOrphan(ctx, t, pending)
		}
	case op.Tools:
		return p.abortTools(ctx, phase.Batch)
	case op.DeferredPhase:
		if phase.Deferred.Status == op.DeferredEffectPending {
			return p.abortPoll(ctx, t, phase.Deferred)
		}
		p.cancelDeferred(ctx, phase.Deferred)
	}
	if len(run.Inbox.Writes) > 0 {
		if err := p.reconcilePoint("Place deferred writes of a cancelled run"); err != nil {
			return err
		}
		return p.lane.settle(ctx, p.operationID, p.drainPlan(op.QueueWrites))
	}
	if err := p.reconcilePoint("End a cancelled run"); err != nil {
		return err
	}
	return p.lane.settle(ctx, p.operationID, p.finishPlan)
}

func (p *pass) reconcilePoint(description string) error {
	return p.hitProtected("cancel.reconcile", description, "")
}

// abortOrphan settles a cancelled request that has no live result.
func (p *pass) abortOrphan(ctx context.Context, t op.Turn, pending op.EffectPending) error {
	m, err := p.interruptedAnswer(ctx, pending.ResponseEntryID, pending.Context.Configuration.Model, t.Now)
	if err != nil {
		return err
	}
	if err := p.reconcilePoint("Settle a cancelled request"); err != nil {
		return err
	}
	p.announceRecovered(ctx, m, pending.ResponseEntryID)
	return p.lane.settle(ctx, p.operationID, func(_ context.Context, _ store.Queries, t op.Turn) (op.Plan, error) {
		return op.SettleOrphan(t, m)
	})
}

// abortPoll settles a cancelled poll that has no live answer, and has its job dropped.
func (p *pass) abortPoll(ctx context.Context, t op.Turn, d op.Deferred) error {
	p.cancelDeferred(ctx, d)
	m, err := p.interruptedAnswer(ctx, d.ResponseEntryID, d.Configuration.Model, t.Now)
	if err != nil {
		return err
	}
	if err := p.reconcilePoint("Settle a cancelled poll"); err != nil {
		return err
	}
	p.announceRecovered(ctx, m, d.ResponseEntryID)
	return p.lane.settle(ctx, p.operationID, func(_ context.Context, _ store.Queries, t op.Turn) (op.Plan, error) {
		return op.AbortPoll(t, m)
	})
}

// abortTools stages what is left of a cancelled batch: planned calls never ran,
// pending ones were interrupted; both never will.
func (p *pass) abortTools(ctx context.Context, state op.ToolBatch) error {
	b, err := p.openBatch(ctx, state)
	if err != nil {
		return err
	}
	for _, c := range state.Calls {
		call := b.calls[c.SourceIndex]
		switch c.Status {
		case op.CallPlanned:
			err = b.stage(ctx, c, call, *aborted(), interrupted)
		case op.CallEffectPending:
			err = b.interrupt(ctx, c, call)
		}
		if err != nil {
			return err
		}
	}
	return b.materialize(ctx)
}

// cancelDeferred asks the provider once, as a courtesy, to drop a job; nothing
// depends on the answer (spec §4.6).
func (p *pass) cancelDeferred(ctx context.Context, d op.Deferred) {
	model, err := p.lane.h.opts.Models.Resolve(d.Configuration.Model)
	if err != nil {
		return
	}
	deferred, ok := model.(effect.DeferredModel)
	if !ok {
		return
	}
	source, err := deferredSource(ctx, p.lane.h.session, p.lane.name, d)
	if err != nil || p.hitProtected("deferred.cancel", "Ask the provider to drop a deferred job", "") != nil {
		return
	}
	_ = deferred.Cancel(p.lane.h.closing, source.handle)
}

// endStructural ends a cancelled compaction or navigation without publishing
// anything.
func (p *pass) endStructural(ctx context.Context) error {
	if err := p.reconcilePoint("End a cancelled operation"); err != nil {
		return err
	}
	return p.lane.settle(ctx, p.operationID, func(ctx context.Context, q store.Queries, t op.Turn) (op.Plan, error) {
		t, err := withLeftovers(ctx, q, t)
		if err != nil {
			return op.Plan{}, err
		}
		return op.EndStructural(t)
	})
}

// interruptedAnswer is the synthetic answer of a request that no process owns.
func (p *pass) interruptedAnswer(ctx context.Context, responseID string, model message.ModelRef, now int64) (message.Message, error) {
	partial, err := reduceFrames(ctx, p.lane.h.session, p.operationID, responseID)
	if err != nil {
		return nil, err
	}
	return op.Interrupted(partial, model, p.api(model), now)
}

// announceRecovered emits the lifecycle of a synthetic settlement (spec §5.5).
func (p *pass) announceRecovered(ctx context.Context, m message.Message, entryID string) {
	for _, e := range []op.Event{{Type: op.EventMessageStart, Message: m}, {Type: op.EventMessageEnd, Message: m, EntryID: entryID}} {
		e.Lane, e.RunID, e.Recovery = p.lane.name, p.operationID, true
		p.lane.h.events.emit(ctx, e)
	}
}
