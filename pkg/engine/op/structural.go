package op

import (
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// StructuralOf is the summary work of a state, nil when it has none.
func StructuralOf(s State) *Structural {
	switch s := s.(type) {
	case CompactionState:
		return &s.Structural
	case NavigationState:
		return s.Structural
	case RunState:
		if c, ok := s.Phase.(InRunCompaction); ok {
			return &c.Structural
		}
	}
	return nil
}

// withStructural replaces the summary work of a state.
func withStructural(s State, next Structural) State {
	switch s := s.(type) {
	case CompactionState:
		s.Structural = next
		return s
	case NavigationState:
		s.Structural = &next
		return s
	case RunState:
		c := s.Phase.(InRunCompaction)
		c.Structural = next
		s.Phase = c
		return s
	}
	panic("unreachable: state without summary work")
}

func generating(t Turn, doing string) (Structural, error) {
	s := StructuralOf(t.State)
	if s == nil {
		return Structural{}, invalid("%s: no summary is under way at %s", doing, PointOf(t.State))
	}
	return *s, nil
}

func move(t Turn, s Structural, g SummaryGeneration, writes ...store.Write) Plan {
	s.Generation = g
	return Plan{Writes: writes, Next: withStructural(t.State, s)}
}

// Generate selects generation; the decision hook never runs again (spec §3.9).
func Generate(t Turn, c SummaryContext) (Plan, error) {
	s, err := generating(t, "generate")
	if err != nil {
		return Plan{}, err
	}
	if s.Generation != nil {
		return Plan{}, invalid("generate: the decision has been made")
	}
	return move(t, s, SummaryReady{Context: c, NextAttempt: 1}), nil
}

// Attempt starts the next attempt of a summary.
func Attempt(t Turn) (Plan, error) {
	s, err := generating(t, "attempt")
	if err != nil {
		return Plan{}, err
	}
	ready, ok := s.Generation.(SummaryReady)
	if !ok {
		return Plan{}, invalid("attempt: the summary is at %s", PointOf(t.State))
	}
	plan := move(t, s, SummaryEffectPending{Context: ready.Context, Attempt: ready.NextAttempt, UsageIDs: []string{}})
	if ready.NextAttempt > 1 {
		plan.Events = []Event{{
			Type: EventRetryStart, Lane: t.Lane, RunID: t.Operation.OperationID, Step: ready.Context.TaskID, Attempt: ready.NextAttempt,
		}}
	}
	return plan, nil
}

func pendingSummary(t Turn, doing string) (Structural, SummaryEffectPending, error) {
	s, err := generating(t, doing)
	if err != nil {
		return s, SummaryEffectPending{}, err
	}
	p, ok := s.Generation.(SummaryEffectPending)
	if !ok {
		return s, p, invalid("%s: the summary is at %s", doing, PointOf(t.State))
	}
	return s, p, nil
}

// Ask records the intent of one nested request (spec §3.2).
func Ask(t Turn, r SummaryRequest) (Plan, error) {
	s, p, err := pendingSummary(t, "ask")
	if err != nil {
		return Plan{}, err
	}
	if p.Request != nil {
		return Plan{}, invalid("ask: request %d is still open", p.Request.Index)
	}
	p.Request = &r
	return move(t, s, p), nil
}

// Answered books the usage of the nested request that returned, and how its
// response ended (spec §3.9).
func Answered(t Turn, usage []byte, outcome message.StopReason) (Plan, error) {
	s, p, err := pendingSummary(t, "answered")
	if err != nil {
		return Plan{}, err
	}
	if p.Request == nil {
		return Plan{}, invalid("answered: no request is open")
	}
	id := p.Request.UsageID
	p.UsageIDs = append(append([]string{}, p.UsageIDs...), id)
	p.Request = nil
	a := Attribution{Kind: string(p.Context.Kind), Model: p.Context.Configuration.Model, Attempt: p.Attempt, Outcome: string(outcome)}
	plan := move(t, s, p, store.InsertUsage(store.NewUsage{ID: id, RawUsage: usage, Details: a.details(t)}))
	plan.Events = []Event{{Type: EventUsage, Lane: t.Lane, EntryID: id}}
	return plan, nil
}

// SummaryFailed is a failed attempt: it waits for the next one while the policy
// allows it, otherwise the whole task fails (spec §3.9). retryAfter is in ms.
func SummaryFailed(t Turn, e Error, retryable bool, retryAfter int64) (Plan, error) {
	s, p, err := pendingSummary(t, "summary failed")
	if err != nil {
		return Plan{}, err
	}
	if !retryable || p.Attempt >= p.Context.RetryPolicy.MaxAttempts {
		plan, err := failTask(t, s, e)
		if err == nil && p.Attempt > 1 {
			end := Event{Type: EventRetryEnd, Lane: t.Lane, RunID: t.Operation.OperationID, Step: s.TaskID, Attempt: p.Attempt, ErrorText: e.Message}
			plan.Events = append([]Event{end}, plan.Events...)
		}
		return plan, err
	}
	delay := max(backoff(p.Context.RetryPolicy, p.Attempt), retryAfter)
	wait := SummaryRetryWait{
		Context: p.Context, NextAttempt: p.Attempt + 1, NotBefore: saturatingAdd(t.Now, delay), ErrorMessage: e.Message,
	}
	plan := move(t, s, wait)
	plan.Events = []Event{{
		Type: EventRetryScheduled, Lane: t.Lane, RunID: t.Operation.OperationID, Step: s.TaskID, Attempt: wait.NextAttempt,
		MaxAttempts: p.Context.RetryPolicy.MaxAttempts, DelayMs: delay, ErrorText: e.Message,
	}}
	return plan, nil
}

// SummaryOrphan gives up an attempt whose process is gone, wholly: a later one
// starts while the policy allows it (spec §4.5).
func SummaryOrphan(t Turn) (Plan, error) {
	s, p, err := pendingSummary(t, "summary orphan")
	if err != nil {
		return Plan{}, err
	}
	if p.Attempt >= p.Context.RetryPolicy.MaxAttempts {
		return failTask(t, s, Error{Code: "interrupted", Message: "the summary was interrupted and no attempt is left"})
	}
	return move(t, s, SummaryReady{Context: p.Context, NextAttempt: p.Attempt + 1}), nil
}

// SummaryRetryDue leaves a retry wait whose time has come.
func SummaryRetryDue(t Turn) (Plan, error) {
	s, err := generating(t, "summary retry")
	if err != nil {
		return Plan{}, err
	}
	wait, ok := s.Generation.(SummaryRetryWait)
	if !ok || t.Now < wait.NotBefore {
		return Plan{}, invalid("summary retry: not due at %s", PointOf(t.State))
	}
	return move(t, s, SummaryReady{Context: wait.Context, NextAttempt: wait.NextAttempt}), nil
}

// failTask ends a summary that cannot succeed: a standalone operation fails, a
// run drains (spec §3.9).
func failTask(t Turn, s Structural, e Error) (Plan, error) {
	run, ok := t.Run()
	if !ok {
		return endStructural(t, Failed, &e, nil), nil
	}
	c := run.Phase.(InRunCompaction)
	run.Phase = FailureDrain{Error: e, Provenance: Provenance{Kind: FromStructural, TaskID: s.TaskID}}
	return Plan{Next: run, Events: []Event{{
		Type: EventCompactionEnd, Lane: t.Lane, RunID: t.Operation.OperationID, Reason: c.Reason, Outcome: Failed, Error: &e,
	}}}, nil
}

// Decline is a decision hook that wants no summary (spec §3.9).
func Decline(t Turn) (Plan, error) {
	s, err := generating(t, "decline")
	if err != nil {
		return Plan{}, err
	}
	if s.Generation != nil {
		return Plan{}, invalid("decline: the decision has been made")
	}
	run, ok := t.Run()
	if !ok {
		return endStructural(t, Declined, nil, nil), nil
	}
	c := run.Phase.(InRunCompaction)
	ended := Event{Type: EventCompactionEnd, Lane: t.Lane, RunID: t.Operation.OperationID, Reason: c.Reason, Outcome: Declined}
	if c.Reason == ReasonThreshold {
		run.Phase = c.ResumeAfter
		return Plan{Next: run, Events: []Event{ended}}, nil
	}
	run.Phase = FailureDrain{
		Error:      Error{Code: "compaction_declined", Message: "the context does not fit and its compaction was declined"},
		Provenance: Provenance{Kind: FromStructural, TaskID: s.TaskID},
	}
	return Plan{Next: run, Events: []Event{ended}}, nil
}

// MarkThreshold remembers that a boundary was looked at; with a preparation it
// also opens the compaction (spec §3.9, §3.12).
func MarkThreshold(t Turn, p *Prepared) (Plan, error) {
	s, ok := t.Run()
	if !ok {
		return Plan{}, invalid("threshold: the operation is no run")
	}
	c, ok := s.Phase.(Checkpoint)
	if !ok {
		return Plan{}, invalid("threshold: the run is at %s", PointOf(t.State))
	}
	c.ThresholdCheckedTriggerEntryID = c.TriggerEntryID
	if p == nil {
		s.Phase = c
		return Plan{Next: s}, nil
	}
	s.Phase = InRunCompaction{Reason: ReasonThreshold, Structural: Structural{TaskID: p.TaskID}, ResumeAfter: c}
	return Plan{
		Writes: []store.Write{PreparationOf(t.Operation.OperationID, p.TaskID).Set(p.Value)},
		Next:   s,
		Events: []Event{{Type: EventCompactionStart, Lane: t.Lane, RunID: t.Operation.OperationID, Reason: ReasonThreshold}},
	}, nil
}
