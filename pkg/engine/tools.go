package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// batch is one live pass over a tool batch: what the procedure holds on to while
// its calls run (spec §3.8, §5.7).
type batch struct {
	pass   *pass
	turnID string
	answer message.Message
	calls  []message.Block
	tools  map[string]effect.Tool // the captured active tools
}

// tools runs a tool batch: orphans first, then every planned call, each outcome
// staged the moment it is final and placed in source order (spec §3.8).
func (p *pass) tools(ctx context.Context, t op.Turn) (*DriveOutcome, error) {
	run, _ := t.Run()
	state := run.Phase.(op.Tools).Batch
	b, err := p.openBatch(ctx, state)
	if err != nil {
		return nil, err
	}
	missing := b.bind(state)
	if err := b.materialize(ctx); err != nil {
		return nil, err
	}
	if missing != nil {
		if err := b.recoverUnbound(ctx, state); err != nil {
			return nil, err
		}
		return p.missing(ctx, missing)
	}
	if run.Settings.ToolExecution == op.Sequential {
		return nil, b.sequential(ctx, state)
	}
	return nil, b.parallel(ctx, state)
}

func (p *pass) openBatch(ctx context.Context, state op.ToolBatch) (*batch, error) {
	entries, err := p.lane.h.session.Entries(ctx, []string{state.AssistantEntryID})
	if err != nil {
		return nil, err
	}
	answer := entries[state.AssistantEntryID].Message()
	calls := answer.ToolCalls()
	if len(calls) != len(state.Calls) {
		return nil, &Defect{Lane: p.lane.name, Err: fmt.Errorf("answer %s has %d tool calls, its batch %d", state.AssistantEntryID, len(calls), len(state.Calls))}
	}
	return &batch{pass: p, turnID: state.TurnID, answer: answer, calls: calls}, nil
}

// bind resolves the captured active tools before any call starts; what is missing
// suspends the batch when a call would need it (spec §4.4, D31).
func (b *batch) bind(state op.ToolBatch) *MissingIdentities {
	b.tools = make(map[string]effect.Tool)
	missing := &MissingIdentities{Lane: b.pass.lane.name}
	for _, name := range state.Configuration.ActiveToolNames {
		if tool, ok := b.pass.lane.h.opts.Tools.Lookup(name); ok {
			b.tools[name] = tool
		} else {
			missing.Missing.Tools = append(missing.Missing.Tools, name)
		}
	}
	if len(missing.Missing.Tools) == 0 {
		return nil
	}
	for _, c := range state.Calls {
		if c.Status == op.CallPlanned && b.answer.StopReason() != message.StopLength {
			return missing
		}
		if c.Status == op.CallEffectPending && c.Replay == op.ReplaySafe && b.tools[b.calls[c.SourceIndex].Name] == nil {
			return missing
		}
	}
	return nil
}

// recoverUnbound settles in source order the interrupted calls that need no tool,
// up to the first that does (spec §4.4, §5.7).
func (b *batch) recoverUnbound(ctx context.Context, state op.ToolBatch) error {
	for _, c := range state.Calls {
		if c.Status != op.CallEffectPending {
			continue
		}
		if c.Replay == op.ReplaySafe && b.tools[b.calls[c.SourceIndex].Name] == nil {
			return nil
		}
		if c.Replay == op.ReplaySafe {
			continue // may run again once the batch is bound
		}
		if err := b.interrupt(ctx, c, b.calls[c.SourceIndex]); err != nil {
			return err
		}
	}
	return nil
}

// sequential runs one call at a time, to its placement.
func (b *batch) sequential(ctx context.Context, state op.ToolBatch) error {
	for _, c := range state.Calls {
		e, err := b.start(ctx, c)
		if err != nil {
			return err
		}
		if e == nil {
			continue
		}
		if err := e.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// parallel starts the calls in one pass in source order: a call is cleared when
// the effect of the one before it has been admitted (spec §3.8, §5.7). From there
// on each settles on its own. An error stops further starts; what has started
// always settles.
func (b *batch) parallel(ctx context.Context, state op.ToolBatch) error {
	ends := make(chan error, len(state.Calls))
	running := 0
	var errs []error
	for _, c := range state.Calls {
		e, err := b.start(ctx, c)
		if err != nil {
			errs = append(errs, err)
			break
		}
		if e != nil {
			running++
			e.begin(ctx, ends)
		}
	}
	for range running {
		errs = append(errs, <-ends)
	}
	return firstError(errs)
}

// firstError prefers what ends the pass to what an abort explains.
func firstError(errs []error) error {
	var first error
	for _, err := range errs {
		var abort *effect.AbortRequested
		switch {
		case err == nil:
		case !errors.As(err, &abort) && !errors.Is(err, errCancelled):
			return err
		case first == nil:
			first = err
		}
	}
	return first
}

// start brings a call to the point where its effect may run, and returns what
// runs and settles it; nil when nothing is left to do but placement.
func (b *batch) start(ctx context.Context, c op.ToolCall) (*execution, error) {
	call := b.calls[c.SourceIndex]
	switch c.Status {
	case op.CallPlanned:
		return b.clear(ctx, c, call)
	case op.CallEffectPending:
		return b.adoptOrphan(ctx, c, call)
	}
	return nil, nil
}

// clear prepares a planned call: lookup, arguments, before_tool, then the intent.
// What cannot run is staged at once, without an effect.
func (b *batch) clear(ctx context.Context, c op.ToolCall, call message.Block) (*execution, error) {
	tool, args, immediate, err := b.prepare(call)
	if err != nil {
		return nil, err
	}
	if immediate != nil {
		return nil, b.stage(ctx, c, call, *immediate, unstarted)
	}
	if err := b.pass.hit("tool.intent", "Record the intent to run a tool", b.details(c, call)); err != nil {
		return nil, err
	}
	replay := op.ReplayNever
	if tool.ReplaySafe() {
		replay = op.ReplaySafe
	}
	err = b.pass.lane.proceed(ctx, b.pass.operationID, func(_ context.Context, _ store.Queries, t op.Turn) (op.Plan, error) {
		return op.Clear(t, c.SourceIndex, args, replay)
	})
	if err != nil {
		return nil, err
	}
	return &execution{batch: b, planned: c, call: call, tool: tool, args: args}, nil
}

// prepare finds the tool and its effective arguments, or the synthetic result of
// a call that cannot run.
func (b *batch) prepare(call message.Block) (effect.Tool, json.RawMessage, *message.ToolResult, error) {
	if b.answer.StopReason() == message.StopLength {
		return nil, nil, synthetic("length", "the answer was cut off by its output limit, so these arguments may be incomplete; the call was not run"), nil
	}
	tool, ok := b.tools[call.Name]
	if !ok {
		return nil, nil, synthetic("unknown_tool", fmt.Sprintf("there is no tool named %q", call.Name)), nil
	}
	args, err := tool.Prepare(call.Arguments)
	if err != nil {
		return nil, nil, synthetic("invalid_arguments", "invalid arguments: "+err.Error()), nil
	}
	decision, err := b.pass.beforeTool(call, args)
	if err != nil {
		return nil, nil, nil, err
	}
	if decision.Block != "" {
		r := synthetic("blocked", "blocked: "+decision.Block)
		r.Terminate = decision.Terminate
		return nil, nil, r, nil
	}
	if string(decision.Args) != string(args) {
		if args, err = tool.Prepare(decision.Args); err != nil {
			return nil, nil, synthetic("invalid_arguments", "a hook gave invalid arguments: "+err.Error()), nil
		}
	}
	return tool, args, nil, nil
}

// adoptOrphan settles a call whose process is gone: a safe one runs again with
// its stored arguments, any other is interrupted (spec §4.5).
func (b *batch) adoptOrphan(ctx context.Context, c op.ToolCall, call message.Block) (*execution, error) {
	tool := b.tools[call.Name]
	if c.Replay != op.ReplaySafe || tool == nil || !tool.ReplaySafe() {
		return nil, b.interrupt(ctx, c, call)
	}
	args, err := required(ctx, b.pass.lane.h.session, b.pass.lane.name, op.ToolArgsOf(b.pass.operationID, b.turnID, c.SourceIndex))
	if err != nil {
		return nil, err
	}
	err = b.pass.lane.proceed(ctx, b.pass.operationID, func(_ context.Context, _ store.Queries, t op.Turn) (op.Plan, error) {
		return op.Restart(t, c.SourceIndex)
	})
	if err != nil {
		return nil, err
	}
	return &execution{batch: b, planned: c, call: call, tool: tool, args: args, recovery: true}, nil
}

// interrupt stages the result of a call that may have run and never will again,
// with its latest checkpoint.
func (b *batch) interrupt(ctx context.Context, c op.ToolCall, call message.Block) error {
	if err := b.pass.hitProtected("tool.recover_interruption", "Settle an interrupted tool call", b.details(c, call)); err != nil {
		return err
	}
	checkpoint, ok, err := store.Get(ctx, b.pass.lane.h.session, op.ToolOutput(b.pass.operationID, c.ResultEntryID))
	if err != nil {
		return err
	}
	r := synthetic("interrupted", "this call was interrupted and was not run again: what precedes is the latest saved progress, newer output may be missing, and whether it finished is unknown")
	if ok {
		r = withCheckpoint(*r, checkpoint.Value)
	}
	return b.stage(ctx, c, call, *r, interrupted)
}

// details identify a call without its content (spec §5.7).
func (b *batch) details(c op.ToolCall, call message.Block) string {
	type info struct {
		OperationID string `json:"operationId"`
		TurnID      string `json:"turnId"`
		SourceIndex int    `json:"sourceIndex"`
		ToolCallID  string `json:"toolCallId"`
		ToolName    string `json:"toolName"`
	}
	raw, _ := json.Marshal(info{b.pass.operationID, b.turnID, c.SourceIndex, call.ID, call.Name})
	return string(raw)
}

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
