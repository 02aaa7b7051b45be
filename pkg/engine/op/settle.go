package op

import (
	"encoding/json"
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
	ClassDeferred
	ClassBadHandle // deferred without a valid handle
	ClassTools
	ClassRetry
	ClassFailed
	ClassStop
)

// succeeded reports whether a response of the class is an answer.
func (c Class) succeeded() bool { return c == ClassStop || c == ClassTools || c == ClassDeferred }

// Response is a finished answer on its way into the tree, with what its
// settlement may need.
type Response struct {
	Message message.Message
	// API is the wire protocol of the model that answered; a deferred handle must
	// name it.
	API string
	// ResultIDs are the reserved result ids, one per tool call in source order.
	ResultIDs []string
	// Preparation is the compaction that an overflow would lead to, nil when there
	// is nothing to compact.
	Preparation *Prepared
	// MaxDelayMs is the longest retry-after that is waited for (D35).
	MaxDelayMs int64
}

// Prepared is a structural preparation with the id of its task.
type Prepared struct {
	TaskID string
	Value  json.RawMessage
}

// Classify decides what a response means; the first rule that matches wins (spec
// §3.7).
func Classify(control Control, g EffectPending, r Response) Class {
	m := r.Message
	switch {
	case control.Cancelled():
		return ClassAborted
	case message.IsOverflow(m, g.ContextWindow, g.IntendedOutputLimit):
		return ClassOverflow
	case m.StopReason() == message.StopDeferred:
		if _, ok := validHandle(m, g.Context.Configuration.Model, r.API); ok {
			return ClassDeferred
		}
		return ClassBadHandle
	case m.StopReason() == message.StopError:
		if message.IsRetryable(m) && g.Attempt < g.Context.RetryPolicy.MaxAttempts && message.ProviderError(m).RetryAfterMs <= r.MaxDelayMs {
			return ClassRetry
		}
		return ClassFailed
	case len(m.ToolCalls()) > 0:
		return ClassTools
	}
	return ClassStop
}

// validHandle reads the handle of a deferred response that its captured model
// can be asked about (spec §3.2).
func validHandle(m message.Message, model message.ModelRef, api string) (message.DeferredHandle, bool) {
	raw, ok := m.Get("deferred")
	if !ok {
		return message.DeferredHandle{}, false
	}
	h, err := message.ParseDeferredHandle(raw)
	return h, err == nil && h.Valid(model, api)
}

// Settle publishes a finished response and decides what the run does next:
// response, usage and next state land together, the frames go (spec §3.7).
func Settle(t Turn, r Response) (Plan, error) {
	s, g, err := pendingGeneration(t, "settle")
	if err != nil {
		return Plan{}, err
	}
	if r.Message.StopReason() == message.StopAborted && !s.Control.Cancelled() {
		return Plan{}, invalid("settle: an aborted response without a requested cancellation")
	}
	class := Classify(s.Control, g, r)
	if class == ClassTools && len(r.ResultIDs) != len(r.Message.ToolCalls()) {
		return Plan{}, invalid("settle: %d result ids for %d tool calls", len(r.ResultIDs), len(r.Message.ToolCalls()))
	}
	return settlement{turn: t, state: s, pending: g, response: r}.as(class, r.Message)
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
	r := Response{Message: m, MaxDelayMs: math.MaxInt64}
	return settlement{turn: t, state: s, pending: g, response: r, recovery: true}.as(class, m)
}

// SettleAdopted publishes, for a request whose process is gone, the deferred
// answer that its submission had got (D34); the ids are the ones that its intent
// reserved.
func SettleAdopted(t Turn, r Response) (Plan, error) {
	s, g, err := pendingGeneration(t, "settle adopted")
	if err != nil {
		return Plan{}, err
	}
	class := Classify(s.Control, g, r)
	if class != ClassDeferred && class != ClassAborted {
		return Plan{}, invalid("settle adopted: the response is not deferred")
	}
	return settlement{turn: t, state: s, pending: g, response: r, recovery: true}.as(class, r.Message)
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
	response Response
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
	a := Attribution{Kind: "assistant", Model: s.pending.Context.Configuration.Model, Attempt: s.pending.Attempt}
	plan := publishResponse(s.turn, s.pending.ResponseEntryID, s.pending.UsageID, m, a, s.recovery)
	plan.Next = next
	if c, ok := next.Phase.(InRunCompaction); ok {
		id := s.turn.Operation.OperationID
		plan.Writes = append(plan.Writes, PreparationOf(id, c.Structural.TaskID).Set(s.response.Preparation.Value))
	}
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
	case ClassBadHandle:
		return restop(m, message.StopError, "the deferred answer has no handle that this model can be asked about")
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
	case ClassTools:
		return Tools{Batch: planBatch(s.pending.Context.Configuration, s.pending.Context.StepID, s.pending.ResponseEntryID, s.response.ResultIDs)}
	case ClassDeferred:
		return DeferredPhase{Deferred: Deferred{
			Status: DeferredSuspended, StepID: s.pending.Context.StepID, SourceEntryID: s.pending.ResponseEntryID,
			Configuration: s.pending.Context.Configuration, StreamOptions: s.pending.Context.StreamOptions,
		}}
	case ClassOverflow:
		if p := s.response.Preparation; p != nil && !s.pending.Context.OverflowRecoveryUsed {
			return InRunCompaction{
				Reason: ReasonOverflow, Structural: Structural{TaskID: p.TaskID},
				ResumeAfter: Checkpoint{Continuation: NeedAssistant(true), TriggerEntryID: s.pending.Context.TriggerEntryID},
			}
		}
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
	case ClassBadHandle:
		return "invalid_deferred_handle"
	}
	return "provider_error"
}

// failureMessage names the delay when only its length made the error final
// (D35).
func (s settlement) failureMessage(m message.Message) string {
	msg := m.ErrorMessage()
	if after := message.ProviderError(m).RetryAfterMs; after > s.response.MaxDelayMs {
		return fmt.Sprintf("%s (retry after %d s is longer than the longest wait of %d s)", msg, after/1000, s.response.MaxDelayMs/1000)
	}
	return msg
}

// delay is base·2^(k−1) for attempt k, at least what the provider asked for; it
// saturates (spec §0.7, D35).
func (s settlement) delay(m message.Message) int64 {
	return max(backoff(s.pending.Context.RetryPolicy, s.pending.Attempt), message.ProviderError(m).RetryAfterMs)
}

func backoff(p RetryPolicy, attempt int64) int64 {
	delay := p.BaseDelayMs
	for k := int64(1); k < attempt && delay > 0 && delay < MaxSafeInteger; k++ {
		delay = min(delay*2, MaxSafeInteger)
	}
	return delay
}

// MaxSafeInteger is where delay arithmetic saturates (spec §0.7).
const MaxSafeInteger = 1<<53 - 1

func saturatingAdd(a, b int64) int64 {
	if a > MaxSafeInteger-b {
		return MaxSafeInteger
	}
	return a + b
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
		end := Event{Type: EventRetryEnd, Lane: lane, RunID: id, Step: step, Attempt: g.Attempt, Success: class.succeeded(), Recovery: s.recovery}
		if !end.Success {
			end.ErrorText = m.ErrorMessage()
		}
		events = append(events, end)
	}
	if class == ClassTools {
		return events
	}
	events = append(events, Event{Type: EventTurnEnd, Lane: lane, RunID: id, TurnID: step, Message: m, Recovery: s.recovery})
	switch p := next.(type) {
	case DeferredPhase:
		handle, _ := m.Get("deferred")
		events = append(events, Event{Type: EventRunSuspend, Lane: lane, RunID: id, Deferred: handle})
	case InRunCompaction:
		events = append(events, Event{Type: EventCompactionStart, Lane: lane, RunID: id, Reason: p.Reason})
	}
	return events
}
