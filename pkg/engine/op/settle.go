package op

import (
	"fmt"
	"math"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Class is what a settled response means for its run (spec §3.7).
type Class uint8

// The classes, in the order in which they are tested.
const (
	ClassAborted Class = iota + 1
	ClassOverflow
	ClassUnsupported // deferred answers and tool calls, which this engine does not run yet
	ClassRetry
	ClassFailed
	ClassStop
)

// Classify decides what a response means; the first rule that matches wins (spec
// §3.7). maxDelay is the longest retry-after that is waited for, in ms.
func Classify(control Control, g EffectPending, m message.Message, maxDelay int64) Class {
	switch {
	case control.Cancelled():
		return ClassAborted
	case message.IsOverflow(m, g.ContextWindow, g.IntendedOutputLimit):
		return ClassOverflow
	case m.StopReason() == message.StopDeferred:
		return ClassUnsupported
	case m.StopReason() == message.StopError:
		if message.IsRetryable(m) && g.Attempt < g.Context.RetryPolicy.MaxAttempts && message.ProviderError(m).RetryAfterMs <= maxDelay {
			return ClassRetry
		}
		return ClassFailed
	case m.StopReason() == message.StopToolUse, len(m.ToolCalls()) > 0:
		return ClassUnsupported
	}
	return ClassStop
}

// Settle publishes a finished response and decides what the run does next:
// response, usage and next state land together, the frames go (spec §3.7).
func Settle(t Turn, m message.Message, maxDelay int64) (Plan, error) {
	s, g, err := pendingGeneration(t, "settle")
	if err != nil {
		return Plan{}, err
	}
	if m.StopReason() == message.StopAborted && !s.Control.Cancelled() {
		return Plan{}, invalid("settle: an aborted response without a requested cancellation")
	}
	return settlement{turn: t, state: s, pending: g, maxDelay: maxDelay}.as(Classify(s.Control, g, m, maxDelay), m)
}

// SettleOrphan publishes m, the Interrupted message of a request whose process
// is gone, under the ids that its intent reserved (spec §4.5).
func SettleOrphan(t Turn, m message.Message) (Plan, error) {
	s, g, err := pendingGeneration(t, "settle orphan")
	if err != nil {
		return Plan{}, err
	}
	class := ClassFailed
	switch {
	case s.Control.Cancelled():
		class = ClassAborted
	case g.Attempt < g.Context.RetryPolicy.MaxAttempts:
		class = ClassRetry
	}
	return settlement{turn: t, state: s, pending: g, maxDelay: math.MaxInt64, recovery: true}.as(class, m)
}

func pendingGeneration(t Turn, doing string) (RunState, EffectPending, error) {
	s, g, err := generationOf(t, doing)
	if err != nil {
		return RunState{}, EffectPending{}, err
	}
	pending, ok := g.(EffectPending)
	if !ok {
		return RunState{}, EffectPending{}, invalid("%s: no request is pending at %s", doing, PointOf(t.State))
	}
	return s, pending, nil
}

// interruptedWarning is what a synthetic settlement says (spec §4.5).
const interruptedWarning = "the request was interrupted: this is the latest part of the answer that was saved, newer output may be missing, and whether the provider finished it is unknown"

// Interrupted is what is known of a request whose process is gone: the committed
// partial as an error, zero usage, the outcome unknown (spec §4.5). partial is
// nil when no frame was committed; now is Unix ms.
func Interrupted(partial message.Message, model message.ModelRef, api string, now int64) (message.Message, error) {
	if partial == nil {
		partial = message.Assistant{API: api, Provider: model.Provider, Model: model.ModelID, StopReason: message.StopError, Timestamp: now}.Message()
	}
	zero, err := message.Usage{}.AppendJSON(nil)
	if err != nil {
		return nil, err
	}
	return withFields(partial,
		"usage", zero,
		"stopReason", rawjson.Quote(string(message.StopError)),
		"errorMessage", rawjson.Quote(interruptedWarning))
}

func withFields(m message.Message, pairs ...any) (message.Message, error) {
	var err error
	for i := 0; i < len(pairs); i += 2 {
		if m, err = m.With(pairs[i].(string), pairs[i+1].([]byte)); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// settlement is one settling response on its way to a plan.
type settlement struct {
	turn     Turn
	state    RunState
	pending  EffectPending
	maxDelay int64
	recovery bool
}

func (s settlement) as(class Class, m message.Message) (Plan, error) {
	m, err := normalize(class, m)
	if err != nil {
		return Plan{}, err
	}
	next := s.state
	next.LatestAssistantEntryID = store.LeafID(s.pending.ResponseEntryID)
	next.Phase = s.phase(class, m)
	plan, err := s.publish(m)
	if err != nil {
		return Plan{}, err
	}
	plan.Next = next
	plan.Events = append(plan.Events, s.after(class, m, next.Phase)...)
	return plan, nil
}

// normalize overwrites the stop reason where the class demands it and keeps the
// reason in words (spec §3.7).
func normalize(class Class, m message.Message) (message.Message, error) {
	original := m.StopReason()
	switch class {
	case ClassAborted:
		if original == message.StopAborted {
			return m, nil
		}
		return restop(m, message.StopAborted, fmt.Sprintf("aborted on request; the response had ended with %s", original))
	case ClassOverflow:
		if original == message.StopError {
			return m, nil
		}
		return restop(m, message.StopError, fmt.Sprintf("context window exceeded: the response ended with %s", original))
	case ClassUnsupported:
		what := "tool calls"
		if original == message.StopDeferred {
			what = "a deferred answer"
		}
		return restop(m, message.StopError, "unsupported: the response is "+what)
	}
	return m, nil
}

func restop(m message.Message, reason message.StopReason, why string) (message.Message, error) {
	if was := m.ErrorMessage(); was != "" {
		why = was + " (" + why + ")"
	}
	return withFields(m, "stopReason", rawjson.Quote(string(reason)), "errorMessage", rawjson.Quote(why))
}

func (s settlement) phase(class Class, m message.Message) Phase {
	switch class {
	case ClassAborted, ClassStop:
		return Checkpoint{Continuation: MayFinish(true), TriggerEntryID: s.pending.ResponseEntryID}
	case ClassRetry:
		return Assistant{Generation: RetryWait{
			Context: s.pending.Context, NextAttempt: s.pending.Attempt + 1,
			NotBefore: saturatingAdd(s.turn.Now, s.delay(m)), ErrorMessage: m.ErrorMessage(),
		}}
	}
	return FailureDrain{
		Error:      Error{Code: failureCode(class), Message: s.failureMessage(m)},
		Provenance: Provenance{Kind: FromResponse, EntryID: s.pending.ResponseEntryID},
	}
}

func failureCode(class Class) string {
	switch class {
	case ClassOverflow:
		return "context_overflow"
	case ClassUnsupported:
		return "unsupported"
	}
	return "provider_error"
}

// failureMessage names the delay when only its length made the error final
// (D35).
func (s settlement) failureMessage(m message.Message) string {
	msg := m.ErrorMessage()
	if after := message.ProviderError(m).RetryAfterMs; after > s.maxDelay {
		return fmt.Sprintf("%s (retry after %d s is longer than the longest wait of %d s)", msg, after/1000, s.maxDelay/1000)
	}
	return msg
}

// delay is base·2^(k−1) for attempt k, at least what the provider asked for; it
// saturates (spec §0.7, D35).
func (s settlement) delay(m message.Message) int64 {
	delay := s.pending.Context.RetryPolicy.BaseDelayMs
	for k := int64(1); k < s.pending.Attempt && delay > 0 && delay < MaxSafeInteger; k++ {
		delay = min(delay*2, MaxSafeInteger)
	}
	return max(delay, message.ProviderError(m).RetryAfterMs)
}

// MaxSafeInteger is where delay arithmetic saturates (spec §0.7).
const MaxSafeInteger = 1<<53 - 1

func saturatingAdd(a, b int64) int64 {
	if a > MaxSafeInteger-b {
		return MaxSafeInteger
	}
	return a + b
}

// publish is the part of a settlement that every class shares.
func (s settlement) publish(m message.Message) (Plan, error) {
	id, lane := s.turn.Operation.OperationID, s.turn.Lane
	g := s.pending
	row := store.NewUsage{ID: g.UsageID, EntryID: g.ResponseEntryID}
	if raw, ok := m.Get("usage"); ok {
		row.RawUsage = raw
	}
	plan := Plan{
		Writes: []store.Write{
			store.InsertEntry(store.MessageEntry(g.ResponseEntryID, string(s.turn.Leaf), m)),
			store.LaneLeaf(lane).Set(store.LeafID(g.ResponseEntryID)),
			store.InsertUsage(row),
			Frames(id, g.ResponseEntryID).Delete(),
		},
		Events: []Event{
			{Type: EventEntryAdded, Lane: lane, RunID: id, EntryID: g.ResponseEntryID, Recovery: s.recovery},
			{Type: EventUsage, Lane: lane, EntryID: g.UsageID},
		},
	}
	return plan, nil
}

// after are the retry and turn events of the settlement (D28).
func (s settlement) after(class Class, m message.Message, next Phase) []Event {
	lane, id, g := s.turn.Lane, s.turn.Operation.OperationID, s.pending
	step := g.Context.StepID
	if wait, ok := next.(Assistant); ok {
		retry := wait.Generation.(RetryWait)
		return []Event{{
			Type: EventRetryScheduled, Lane: lane, RunID: id, Step: step, Attempt: retry.NextAttempt,
			MaxAttempts: g.Context.RetryPolicy.MaxAttempts, DelayMs: retry.NotBefore - s.turn.Now,
			ErrorText: m.ErrorMessage(), Recovery: s.recovery,
		}}
	}
	var events []Event
	if g.Attempt > 1 {
		end := Event{Type: EventRetryEnd, Lane: lane, RunID: id, Step: step, Attempt: g.Attempt, Success: class == ClassStop, Recovery: s.recovery}
		if class != ClassStop {
			end.ErrorText = m.ErrorMessage()
		}
		events = append(events, end)
	}
	return append(events, Event{Type: EventTurnEnd, Lane: lane, RunID: id, TurnID: step, Message: m, Recovery: s.recovery})
}
