package op

import "github.com/drover-run/drover/pkg/store"

// StepStart is what a generation step captures besides the stream options of its
// run.
type StepStart struct {
	StepID        string
	Configuration store.LaneConfiguration
	RetryPolicy   RetryPolicy
}

// StartStep opens a generation step at a checkpoint that owes a turn (spec §3.7,
// first row).
func StartStep(t Turn, start StepStart) (Plan, error) {
	s, ok := t.Run()
	if !ok {
		return Plan{}, invalid("start step: the operation is no run")
	}
	c, ok := s.Phase.(Checkpoint)
	if !ok || c.Continuation.Kind != NeedAssistantKind {
		return Plan{}, invalid("start step: no turn is owed at %s", PointOf(t.State))
	}
	s.Phase = Assistant{Generation: Ready{
		Context: GenerationContext{
			StepID: start.StepID, TriggerEntryID: c.TriggerEntryID, Configuration: start.Configuration,
			StreamOptions: s.Settings.StreamOptions, RetryPolicy: start.RetryPolicy,
			OverflowRecoveryUsed: c.Continuation.OverflowRecoveryUsed,
		},
		NextAttempt: 1,
	}}
	return Plan{Next: s, Events: []Event{{
		Type: EventTurnStart, Lane: t.Lane, RunID: t.Operation.OperationID, TurnID: start.StepID,
	}}}, nil
}

// Reservation is what a request intent promises: the ids of its answer and its
// usage row, and the limits it was prepared with, in tokens.
type Reservation struct {
	ResponseEntryID string
	UsageID         string
	IntendedOutput  int64
	ContextWindow   int64
}

// Intend records that a request is about to be made (spec §3.7, second row).
func Intend(t Turn, r Reservation) (Plan, error) {
	s, g, err := generationOf(t, "intend")
	if err != nil {
		return Plan{}, err
	}
	ready, ok := g.(Ready)
	if !ok {
		return Plan{}, invalid("intend: the generation is at %s", PointOf(t.State))
	}
	s.Phase = Assistant{Generation: EffectPending{
		Context: ready.Context, Attempt: ready.NextAttempt, ResponseEntryID: r.ResponseEntryID, UsageID: r.UsageID,
		IntendedOutputLimit: r.IntendedOutput, ContextWindow: r.ContextWindow,
	}}
	plan := Plan{Next: s}
	if ready.NextAttempt > 1 {
		plan.Events = []Event{{
			Type: EventRetryStart, Lane: t.Lane, RunID: t.Operation.OperationID,
			Step: ready.Context.StepID, Attempt: ready.NextAttempt,
		}}
	}
	return plan, nil
}

// RetryDue leaves a retry wait whose time has come (spec §3.7, last row).
func RetryDue(t Turn) (Plan, error) {
	s, g, err := generationOf(t, "retry")
	if err != nil {
		return Plan{}, err
	}
	wait, ok := g.(RetryWait)
	if !ok {
		return Plan{}, invalid("retry: the generation is at %s", PointOf(t.State))
	}
	if t.Now < wait.NotBefore {
		return Plan{}, invalid("retry: %d is before %d", t.Now, wait.NotBefore)
	}
	s.Phase = Assistant{Generation: Ready{Context: wait.Context, NextAttempt: wait.NextAttempt}}
	return Plan{Next: s}, nil
}

func generationOf(t Turn, doing string) (RunState, Generation, error) {
	s, ok := t.Run()
	if !ok {
		return RunState{}, nil, invalid("%s: the operation is no run", doing)
	}
	a, ok := s.Phase.(Assistant)
	if !ok {
		return RunState{}, nil, invalid("%s: the run is at %s", doing, PointOf(t.State))
	}
	return s, a.Generation, nil
}
