package op

// StepDescription says what the next step of an operation belongs to: for those
// who tell of it, not for those who run it (spec §5.8).
type StepDescription struct {
	// TurnID is the turn that the step is part of, "" when it is part of none.
	TurnID string
	// StepID and Attempt describe a provider request of a turn.
	StepID  string
	Attempt int64
	// TaskID and Attempt describe an attempt at a summary.
	TaskID string
	// Checkpoint tells a step between turns.
	Checkpoint bool
}

// DescribeStep describes what Next continues a state with.
func DescribeStep(s State) StepDescription {
	switch Next(s) {
	case StepCheckpoint, StepDrain:
		return StepDescription{Checkpoint: true}
	case StepSummarize:
		ready := StructuralOf(s).Generation.(SummaryReady)
		return StepDescription{TaskID: ready.Context.TaskID, Attempt: ready.NextAttempt}
	}
	run, ok := s.(RunState)
	if !ok || Next(s) == StepReconcile {
		return StepDescription{}
	}
	switch phase := run.Phase.(type) {
	case Assistant:
		return describeGeneration(phase.Generation)
	case Tools:
		return StepDescription{TurnID: phase.Batch.TurnID}
	case DeferredPhase:
		poll := phase.Deferred.Poll
		if phase.Deferred.Status == DeferredSuspended {
			poll++
		}
		id := PollTurnID(phase.Deferred.StepID, poll)
		return StepDescription{TurnID: id, StepID: phase.Deferred.StepID, Attempt: poll}
	}
	return StepDescription{}
}

func describeGeneration(g Generation) StepDescription {
	switch g := g.(type) {
	case Ready:
		return StepDescription{TurnID: g.Context.StepID, StepID: g.Context.StepID, Attempt: g.NextAttempt}
	case EffectPending:
		return StepDescription{TurnID: g.Context.StepID}
	case RetryWait:
		return StepDescription{TurnID: g.Context.StepID}
	}
	return StepDescription{}
}
