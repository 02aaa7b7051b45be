package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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
	missing := b.bind(state, b.startTools())
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

// startTools starts the called tools that have to be: what they declare decides whether
// an interrupted call runs again. It returns what is not there in this process, as
// if it were not registered. One that was there before fails its calls, no more (D47).
func (b *batch) startTools() *MissingIdentities {
	var names []string
	for _, c := range b.calls {
		if !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	lane := b.pass.lane
	failed, ok := errors.AsType[*MissingIdentities](lane.startTools(b.pass.gate.Context(), names))
	if !ok {
		return &MissingIdentities{Lane: lane.name}
	}
	failed.Missing.Tools = slices.DeleteFunc(failed.Missing.Tools, func(name string) bool {
		_, before := lane.h.started.Load(name)
		return before
	})
	if len(failed.Missing.Tools) == 0 {
		failed.Err = nil
	}
	return failed
}

// bind resolves the captured active tools before any call starts; what is missing,
// or was not started, suspends the batch when a call would need it (spec §4.4, D31).
func (b *batch) bind(state op.ToolBatch, missing *MissingIdentities) *MissingIdentities {
	b.tools = make(map[string]effect.Tool)
	unstarted := slices.Clone(missing.Missing.Tools)
	for _, name := range state.Configuration.ActiveToolNames {
		if slices.Contains(unstarted, name) {
			continue
		}
		if tool, ok := b.pass.lane.h.opts.Tools.Lookup(name); ok {
			b.tools[name] = tool
		} else {
			missing.LackTool(name, b.pass.lane.h.opts.Tools)
		}
	}
	if len(missing.Missing.Tools) == 0 {
		return nil
	}
	for _, c := range state.Calls {
		if c.Status == op.CallPlanned && b.answer.StopReason() != message.StopLength {
			return missing
		}
		if c.Status == op.CallEffectPending && c.Repeatable() && b.tools[b.calls[c.SourceIndex].Name] == nil {
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
		if c.Repeatable() && b.tools[b.calls[c.SourceIndex].Name] == nil {
			return nil
		}
		if c.Repeatable() {
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
	tool, args, immediate, err := b.prepare(c.SourceIndex)
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
func (b *batch) prepare(source int) (effect.Tool, json.RawMessage, *message.ToolResult, error) {
	call := b.calls[source]
	if b.answer.StopReason() == message.StopLength {
		return nil, nil, synthetic("length", "the answer was cut off by its output limit, so these arguments may be incomplete; the call was not run"), nil
	}
	if call.ArgumentsError != "" {
		return nil, nil, synthetic("invalid_arguments", "invalid arguments: "+call.ArgumentsError+"; the call was not run"), nil
	}
	if b.repeated(source) {
		return nil, nil, synthetic("repeated_call", fmt.Sprintf("an earlier call of this answer is the same, id %q included: this one was not run once more", call.ID)), nil
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

// repeated reports a call that an earlier one of the answer equals, id included: it was
// sent twice. Calls that share no more than their id are several, of a model or server
// that does not number them (spec §3.8).
func (b *batch) repeated(source int) bool {
	call := b.calls[source]
	return call.ID != "" && slices.ContainsFunc(b.calls[:source], func(c message.Block) bool {
		return c.ID == call.ID && c.Name == call.Name && bytes.Equal(c.Arguments, call.Arguments)
	})
}

// adoptOrphan settles a call whose process is gone: a safe one runs again with
// its stored arguments, any other is interrupted (spec §4.5), and so is one that
// was started too often (D31).
func (b *batch) adoptOrphan(ctx context.Context, c op.ToolCall, call message.Block) (*execution, error) {
	tool := b.tools[call.Name]
	if !c.Repeatable() || tool == nil || !tool.ReplaySafe() {
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
	if ok && !b.pass.guarded(call.Name) {
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
