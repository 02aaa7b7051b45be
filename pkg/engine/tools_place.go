package engine

import (
	"context"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// stage makes an outcome final and places what is ready. It must land even under
// cancellation.
func (b *batch) stage(ctx context.Context, c op.ToolCall, call message.Block, r message.ToolResult, from origin) error {
	p := b.pass
	if err := b.stagePoint(c, call, from); err != nil {
		return err
	}
	result := message.NewToolResult(call.ID, call.Name, r, p.lane.h.opts.Now())
	err := p.lane.settle(ctx, p.operationID, func(ctx context.Context, q store.Queries, t op.Turn) (op.Plan, error) {
		memos, err := q.ScanValues(ctx, op.InvocationMemos(p.operationID, c.ResultEntryID).Address())
		if err != nil {
			return op.Plan{}, err
		}
		o := op.CallOutcome{Result: result, Terminate: r.Terminate}
		for _, m := range memos {
			o.Memos = append(o.Memos, m.Address)
		}
		return op.Stage(t, c.SourceIndex, o)
	})
	if err != nil {
		return err
	}
	return b.materialize(ctx)
}

// origin says where an outcome comes from.
type origin uint8

const (
	unstarted   origin = iota // no effect began
	live                      // a tool that ran in this process
	interrupted               // cancellation or recovery
)

// stagePoint is the breakpoint before staging: an abort there leaves an outcome
// without an effect to the reconciliation, and sends a live result on (spec §4.6).
func (b *batch) stagePoint(c op.ToolCall, call message.Block, from origin) error {
	kind, description, details := "tool.settlement", "Stage a tool result", b.details(c, call)
	switch {
	case from == interrupted || b.pass.gate.Check() != nil:
		return b.pass.hitProtected(kind, description, details)
	case from == live:
		return b.pass.settlementPoint(kind, description, details)
	}
	return b.pass.hit(kind, description, details)
}

// materialize places the outcomes that are ready in source order; none is no
// work.
func (b *batch) materialize(ctx context.Context) error {
	p := b.pass
	t, err := p.current(ctx)
	if err != nil {
		return err
	}
	ready := readyCalls(t)
	if len(ready) == 0 {
		return nil
	}
	breakpoint := p.hit
	if p.gate.Check() != nil {
		breakpoint = p.hitProtected
	}
	if err := breakpoint("tool.materialize", "Place finished tool results", ""); err != nil {
		return err
	}
	for _, c := range ready {
		if err := b.announce(ctx, c); err != nil {
			return err
		}
	}
	return p.lane.settle(ctx, p.operationID, b.placementPlan)
}

func readyCalls(t op.Turn) []op.ToolCall {
	run, _ := t.Run()
	tools, ok := run.Phase.(op.Tools)
	if !ok {
		return nil
	}
	return tools.Batch.ReadyPrefix()
}

// announce emits a result's message lifecycle, before its commit (D28).
func (b *batch) announce(ctx context.Context, c op.ToolCall) error {
	p := b.pass
	content, ok, err := store.Get(ctx, p.lane.h.session, store.Pending(c.ResultEntryID))
	if err != nil || !ok || !p.lane.announceOnce(c.ResultEntryID) {
		return err
	}
	m := message.Message(content.Value.Payload)
	p.lane.h.events.emit(ctx, op.Event{Type: op.EventMessageStart, Lane: p.lane.name, RunID: p.operationID, Message: m})
	p.lane.h.events.emit(ctx, op.Event{Type: op.EventMessageEnd, Lane: p.lane.name, RunID: p.operationID, Message: m, EntryID: c.ResultEntryID})
	return nil
}

// placementPlan dereferences the staged results on the lane line; what another
// settling call has placed meanwhile is no work.
func (b *batch) placementPlan(ctx context.Context, q store.Queries, t op.Turn) (op.Plan, error) {
	ready := readyCalls(t)
	if len(ready) == 0 {
		return op.Plan{}, nil
	}
	lane := b.pass.lane
	var placement op.Placement
	for _, c := range ready {
		content, err := required(ctx, q, lane.name, store.Pending(c.ResultEntryID))
		if err != nil {
			return op.Plan{}, err
		}
		m := message.Message(content.Payload)
		placement.Results = append(placement.Results, m)
		if _, ok := m.Get("usage"); ok {
			placement.UsageIDs = append(placement.UsageIDs, lane.h.session.IDs().NewID())
		}
	}
	args, err := q.ScanValues(ctx, op.StepToolArgs(b.pass.operationID, b.turnID).Address())
	if err != nil {
		return op.Plan{}, err
	}
	for _, a := range args {
		placement.StepArgs = append(placement.StepArgs, a.Address)
	}
	if placement.Configuration, err = required(ctx, q, lane.name, store.LaneConfig(lane.name)); err != nil {
		return op.Plan{}, err
	}
	placement.Answer = b.answer
	placement.All, err = b.placed(ctx, q, t, placement.Results)
	if err != nil {
		return op.Plan{}, err
	}
	return op.Materialize(t, placement)
}

// placed are all results of the batch in source order, for its turn_end event.
func (b *batch) placed(ctx context.Context, q store.Queries, t op.Turn, ready []message.Message) ([]message.Message, error) {
	run, _ := t.Run()
	var ids []string
	for _, c := range run.Phase.(op.Tools).Batch.Calls {
		if c.Status == op.CallCompleted {
			ids = append(ids, c.ResultEntryID)
		}
	}
	entries, err := q.Entries(ctx, ids)
	if err != nil {
		return nil, err
	}
	var all []message.Message
	for _, id := range ids {
		all = append(all, entries[id].Message())
	}
	return append(all, ready...), nil
}
