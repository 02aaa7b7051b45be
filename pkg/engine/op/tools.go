package op

import (
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// planBatch plans one call per reserved result id, in source order.
func planBatch(cfg store.LaneConfiguration, turnID, assistantID string, resultIDs []string) ToolBatch {
	calls := make([]ToolCall, len(resultIDs))
	for i, id := range resultIDs {
		calls[i] = ToolCall{Status: CallPlanned, SourceIndex: i, ResultEntryID: id}
	}
	return ToolBatch{AssistantEntryID: assistantID, Configuration: cfg, TurnID: turnID, Calls: calls}
}

// Clear records that one planned call is about to run with exactly these
// arguments (spec §3.8, first row).
func Clear(t Turn, index int, args []byte, replay Replay) (Plan, error) {
	s, batch, err := batchOf(t, "clear", index)
	if err != nil {
		return Plan{}, err
	}
	call := batch.Calls[index]
	if call.Status != CallPlanned {
		return Plan{}, invalid("clear: call %d is already %s", index, call.Status)
	}
	call.Status, call.Replay, call.Executions = CallEffectPending, replay, 1
	s.Phase = Tools{Batch: batch.with(call)}
	return Plan{
		Writes: []store.Write{ToolArgsOf(t.Operation.OperationID, batch.TurnID, index).Set(args)},
		Next:   s,
	}, nil
}

// Restart takes ownership of a call whose process is gone and that may run
// again: its stale checkpoint goes, its arguments and memos stay (spec §4.5), and
// the new start is counted (D31).
func Restart(t Turn, index int) (Plan, error) {
	s, batch, err := batchOf(t, "restart", index)
	if err != nil {
		return Plan{}, err
	}
	call := batch.Calls[index]
	if call.Status != CallEffectPending || !call.Repeatable() {
		return Plan{}, invalid("restart: call %d is %s with replay %s, started %d times", index, call.Status, call.Replay, call.Executions)
	}
	call.Executions++
	s.Phase = Tools{Batch: batch.with(call)}
	return Plan{Writes: []store.Write{ToolOutput(t.Operation.OperationID, call.ResultEntryID).Delete()}, Next: s}, nil
}

// Outcome is the final result of one call. Memos are the invocation's memo
// addresses, which die with it.
type CallOutcome struct {
	Result    message.Message
	Terminate bool
	Memos     []store.Address
}

// Stage makes one call final: its complete result is durable and it can never
// run again (spec §3.8). A planned call is staged without an effect.
func Stage(t Turn, index int, o CallOutcome) (Plan, error) {
	s, batch, err := batchOf(t, "stage", index)
	if err != nil {
		return Plan{}, err
	}
	call := batch.Calls[index]
	if call.Status != CallPlanned && call.Status != CallEffectPending {
		return Plan{}, invalid("stage: call %d is already %s", index, call.Status)
	}
	id := t.Operation.OperationID
	writes := []store.Write{
		store.Pending(call.ResultEntryID).Set(store.PendingEntry{Type: store.TypeMessage, Payload: []byte(o.Result)}),
	}
	if call.Status == CallEffectPending {
		writes = append(writes, ToolOutput(id, call.ResultEntryID).Delete())
		for _, a := range o.Memos {
			writes = append(writes, store.NewValue[[]byte](a.Namespace, a.Key).Delete())
		}
	}
	// A cancelled run ends as such, not by its tools (spec §4.6).
	call.Status, call.Replay, call.Executions, call.Terminate = CallOutcomeReady, "", 0, o.Terminate && !s.Control.Cancelled()
	s.Phase = Tools{Batch: batch.with(call)}
	return Plan{Writes: writes, Next: s}, nil
}

// ReadyPrefix gives the calls that can be placed now: the outcome-ready ones
// directly after the completed prefix (spec §3.8).
func (b ToolBatch) ReadyPrefix() []ToolCall {
	var ready []ToolCall
	for _, c := range b.Calls {
		switch {
		case c.Status == CallCompleted && len(ready) == 0:
		case c.Status == CallOutcomeReady:
			ready = append(ready, c)
		default:
			return ready
		}
	}
	return ready
}

// Placement is what the materialization of a ready prefix needs: the staged
// results, one per call of ReadyPrefix, and fresh ids for the usage rows of
// those that report usage.
type Placement struct {
	Results  []message.Message
	UsageIDs []string
	// StepArgs are the argument addresses of the batch, deleted with its last
	// call.
	StepArgs []store.Address
	// Configuration is the lane's, for tools that a result adds (D38).
	Configuration store.LaneConfiguration
	// Answer is the assistant message of the batch and All its results in source
	// order, for the turn_end event; needed with the last call only.
	Answer message.Message
	All    []message.Message
}

// Materialize places the ready prefix in source order; the batch's last call
// also decides what the run owes next (spec §3.8).
func Materialize(t Turn, p Placement) (Plan, error) {
	s, batch, err := batchOf(t, "materialize", 0)
	if err != nil {
		return Plan{}, err
	}
	ready := batch.ReadyPrefix()
	if len(ready) == 0 || len(p.Results) != len(ready) {
		return Plan{}, invalid("materialize: %d results for %d ready calls", len(p.Results), len(ready))
	}
	m := materialization{turn: t, batch: batch, placement: p, leaf: t.Leaf}
	m.place(ready)
	plan := Plan{Writes: m.writes(), Events: m.events}
	s.Phase = Tools{Batch: m.batch}
	if m.batch.done() {
		for _, a := range p.StepArgs {
			plan.Writes = append(plan.Writes, store.NewValue[[]byte](a.Namespace, a.Key).Delete())
		}
		s.Phase = m.batch.after(string(m.leaf))
		plan.Events = append(plan.Events, Event{
			Type: EventTurnEnd, Lane: t.Lane, RunID: t.Operation.OperationID, TurnID: batch.TurnID, Message: p.Answer, Results: p.All,
		})
	}
	plan.Next = s
	return plan, nil
}

type materialization struct {
	turn      Turn
	batch     ToolBatch
	placement Placement
	leaf      store.LeafID

	entries, pending, usage []store.Write
	added                   []string
	events, usageEvents     []Event
}

func (m *materialization) place(ready []ToolCall) {
	id := m.turn.Operation.OperationID
	usageID := 0
	for i, call := range ready {
		result := m.placement.Results[i]
		m.entries = append(m.entries, store.InsertEntry(resultEntry(call, string(m.leaf), result)))
		m.pending = append(m.pending, store.Pending(call.ResultEntryID).Delete())
		m.leaf = store.LeafID(call.ResultEntryID)
		if raw, ok := result.Get("usage"); ok && usageID < len(m.placement.UsageIDs) {
			row := m.placement.UsageIDs[usageID]
			usageID++
			m.usage = append(m.usage, store.InsertUsage(store.NewUsage{ID: row, EntryID: call.ResultEntryID, RawUsage: raw}))
			m.usageEvents = append(m.usageEvents, Event{Type: EventUsage, Lane: m.turn.Lane, EntryID: row})
		}
		m.added = append(m.added, addedTools(result)...)
		m.events = append(m.events, Event{Type: EventEntryAdded, Lane: m.turn.Lane, RunID: id, EntryID: call.ResultEntryID})
		call.Status = CallCompleted
		m.batch = m.batch.with(call)
	}
	m.events = append(m.events, m.usageEvents...)
}

func (m *materialization) writes() []store.Write {
	w := append(append(m.entries, m.pending...), m.usage...)
	w = append(w, store.LaneLeaf(m.turn.Lane).Set(m.leaf))
	if cfg, changed := withTools(m.placement.Configuration, m.added); changed {
		w = append(w, store.LaneConfig(m.turn.Lane).Set(cfg))
	}
	return w
}

// resultEntry is the entry of a tool result; terminate is orchestration that the
// message has no field for (spec §2.1).
func resultEntry(call ToolCall, parent string, result message.Message) store.NewEntry {
	e := store.MessageEntry(call.ResultEntryID, parent, result)
	if call.Terminate {
		e.Payload = append(e.Payload[:len(e.Payload)-1], `,"terminate":true}`...)
	}
	return e
}

// done reports whether every call is in the tree.
func (b ToolBatch) done() bool {
	for _, c := range b.Calls {
		if c.Status != CallCompleted {
			return false
		}
	}
	return true
}

// after is the checkpoint behind a complete batch.
func (b ToolBatch) after(trigger string) Checkpoint {
	for _, c := range b.Calls {
		if !c.Terminate {
			return Checkpoint{Continuation: NeedAssistant(false), TriggerEntryID: trigger}
		}
	}
	return Checkpoint{Continuation: MayFinish(false), TriggerEntryID: trigger}
}

// with replaces one call in a copy of the batch.
func (b ToolBatch) with(call ToolCall) ToolBatch {
	b.Calls = append([]ToolCall(nil), b.Calls...)
	b.Calls[call.SourceIndex] = call
	return b
}

func batchOf(t Turn, doing string, index int) (RunState, ToolBatch, error) {
	s, ok := t.Run()
	if !ok {
		return RunState{}, ToolBatch{}, invalid("%s: the operation is no run", doing)
	}
	tools, ok := s.Phase.(Tools)
	if !ok {
		return RunState{}, ToolBatch{}, invalid("%s: the run is at %s", doing, PointOf(t.State))
	}
	if index < 0 || index >= len(tools.Batch.Calls) {
		return RunState{}, ToolBatch{}, invalid("%s: the batch has no call %d", doing, index)
	}
	return s, tools.Batch, nil
}
