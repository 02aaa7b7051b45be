package op

import (
	"fmt"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// PollTurnID is the durable turn id of one poll (spec §5.5).
func PollTurnID(stepID string, poll int64) string { return fmt.Sprintf("%s:poll:%d", stepID, poll) }

// IntendPoll records that a deferred answer is about to be asked for (spec §3.2).
// A poll whose process is gone never completed: it is replaced under fresh ids at
// the same number, and its frames go.
func IntendPoll(t Turn, responseID, usageID string) (Plan, error) {
	s, d, err := deferredOf(t, "intend poll")
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{}
	if d.Status == DeferredEffectPending {
		plan.Writes = []store.Write{Frames(t.Operation.OperationID, d.ResponseEntryID).Delete()}
	} else {
		d.Poll++
	}
	d.Status, d.ResponseEntryID, d.UsageID = DeferredEffectPending, responseID, usageID
	s.Phase = DeferredPhase{Deferred: d}
	plan.Next = s
	plan.Events = []Event{{Type: EventTurnStart, Lane: t.Lane, RunID: t.Operation.OperationID, TurnID: PollTurnID(d.StepID, d.Poll)}}
	return plan, nil
}

// SettlePoll publishes what a poll answered; source is the handle that was asked
// about. Polls never compact and never retry (spec §3.2, D33).
func SettlePoll(t Turn, r Response, source message.DeferredHandle) (Plan, error) {
	s, d, err := pendingPoll(t, "settle poll")
	if err != nil {
		return Plan{}, err
	}
	m := r.Message
	if m.StopReason() == message.StopAborted && !s.Control.Cancelled() {
		return Plan{}, invalid("settle poll: an aborted response without a requested cancellation")
	}
	p := pollSettlement{turn: t, state: s, deferred: d}
	handle, hasHandle := m.Get("deferred")
	calls := m.ToolCalls()
	switch {
	case s.Control.Cancelled():
		return p.aborted(m)
	case m.StopReason() == message.StopDeferred && hasHandle && source.Equal(message.DeferredHandle{Raw: handle}):
		return p.pending(m, handle)
	case m.StopReason() == message.StopDeferred:
		m, err := restop(m, message.StopError, "the provider answered the poll with another handle")
		if err != nil {
			return Plan{}, err
		}
		return p.failed(m, "deferred_handle_mismatch")
	case m.StopReason() == message.StopError:
		return p.failed(m, "provider_error")
	case len(calls) > 0 && len(r.ResultIDs) != len(calls):
		return Plan{}, invalid("settle poll: %d result ids for %d tool calls", len(r.ResultIDs), len(calls))
	case len(calls) > 0:
		batch := planBatch(d.Configuration, PollTurnID(d.StepID, d.Poll), d.ResponseEntryID, r.ResultIDs)
		return p.as(m, Tools{Batch: batch}, nil), nil
	}
	return p.as(m, p.finish(), p.turnEnd(m)), nil
}

// AbortPoll settles a cancelled poll that no process owns, with what its frames
// hold (spec §3.2).
func AbortPoll(t Turn, m message.Message) (Plan, error) {
	s, d, err := pendingPoll(t, "abort poll")
	if err != nil {
		return Plan{}, err
	}
	if !s.Control.Cancelled() {
		return Plan{}, invalid("abort poll: cancellation was not requested")
	}
	return pollSettlement{turn: t, state: s, deferred: d, recovery: true}.aborted(m)
}

type pollSettlement struct {
	turn     Turn
	state    RunState
	deferred Deferred
	recovery bool
}

func (p pollSettlement) aborted(m message.Message) (Plan, error) {
	m, err := normalize(ClassAborted, m)
	if err != nil {
		return Plan{}, err
	}
	return p.as(m, p.finish(), p.turnEnd(m)), nil
}

func (p pollSettlement) finish() Checkpoint {
	return Checkpoint{Continuation: MayFinish(true), TriggerEntryID: p.deferred.ResponseEntryID}
}

func (p pollSettlement) pending(m message.Message, handle []byte) (Plan, error) {
	d := p.deferred
	d.Status, d.SourceEntryID, d.ResponseEntryID, d.UsageID = DeferredSuspended, d.ResponseEntryID, "", ""
	events := append(p.turnEnd(m), Event{
		Type: EventRunSuspend, Lane: p.turn.Lane, RunID: p.turn.Operation.OperationID, Deferred: handle,
	})
	return p.as(m, DeferredPhase{Deferred: d}, events), nil
}

func (p pollSettlement) failed(m message.Message, code string) (Plan, error) {
	return p.as(m, FailureDrain{
		Error:      Error{Code: code, Message: m.ErrorMessage()},
		Provenance: Provenance{Kind: FromResponse, EntryID: p.deferred.ResponseEntryID},
	}, p.turnEnd(m)), nil
}

func (p pollSettlement) turnEnd(m message.Message) []Event {
	return []Event{{
		Type: EventTurnEnd, Lane: p.turn.Lane, RunID: p.turn.Operation.OperationID,
		TurnID: PollTurnID(p.deferred.StepID, p.deferred.Poll), Message: m, Recovery: p.recovery,
	}}
}

func (p pollSettlement) as(m message.Message, next Phase, after []Event) Plan {
	a := Attribution{Kind: "deferred", Model: p.deferred.Configuration.Model, Attempt: p.deferred.Poll}
	plan := publishResponse(p.turn, p.deferred.ResponseEntryID, p.deferred.UsageID, m, a, p.recovery)
	s := p.state
	s.LatestAssistantEntryID = store.LeafID(p.deferred.ResponseEntryID)
	s.Phase = next
	plan.Next = s
	plan.Events = append(plan.Events, after...)
	return plan
}

func deferredOf(t Turn, doing string) (RunState, Deferred, error) {
	s, ok := t.Run()
	if !ok {
		return RunState{}, Deferred{}, invalid("%s: the operation is no run", doing)
	}
	d, ok := s.Phase.(DeferredPhase)
	if !ok {
		return RunState{}, Deferred{}, invalid("%s: the run is at %s", doing, PointOf(t.State))
	}
	return s, d.Deferred, nil
}

func pendingPoll(t Turn, doing string) (RunState, Deferred, error) {
	s, d, err := deferredOf(t, doing)
	if err == nil && d.Status != DeferredEffectPending {
		err = invalid("%s: no poll is pending", doing)
	}
	return s, d, err
}
