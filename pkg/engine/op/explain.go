package op

import "fmt"

// Effect says what a step does to the outside world.
type Effect string

// The effects of a step: none touches nothing outside, new starts something that
// was not started before, repeats starts again what may have happened already,
// unknown settles what may have happened, without repeating it.
const (
	EffectNone    Effect = "none"
	EffectNew     Effect = "new"
	EffectRepeats Effect = "repeats"
	EffectUnknown Effect = "unknown"
)

// NextStep is one step that a drive would take, named by its breakpoint.
type NextStep struct {
	Kind        string         `json:"kind"`
	Description string         `json:"description"`
	Effect      Effect         `json:"effect"`
	Details     map[string]any `json:"details,omitempty"`
}

// Explain lists what a drive would do next from a state, the first step first.
func Explain(s State) []NextStep {
	if s.Cancel().Cancelled() {
		return explainCancelled(s)
	}
	request := NextStep{"assistant.request", "Request the assistant's answer", EffectNew, nil}
	switch Next(s) {
	case StepBegin:
		return []NextStep{{"run.begin", "Complete the run's initial context", EffectNone, nil}, request}
	case StepCheckpoint:
		return explainCheckpoint(s.(RunState), request)
	case StepRequest:
		return []NextStep{{"assistant.intent", "Record the intent to request an answer", EffectNone, nil}, request}
	case StepRecover:
		return []NextStep{{"recovery.settlement", "Settle an interrupted request as an error with what was saved of it", EffectUnknown, nil}}
	case StepRetry:
		return []NextStep{{"retry.sleep", "Wait before the next attempt", EffectNone, nil}, request}
	case StepTools:
		return explainTools(s.(RunState).Phase.(Tools).Batch)
	case StepPoll:
		return []NextStep{{"deferred.fetch", "Ask for the deferred answer, when a poll is permitted", EffectRepeats, nil}}
	case StepDecide, StepSummarize:
		return []NextStep{{"structural.request", "Request a summary", EffectNew, nil}, {"structural.publish", "Publish the summary", EffectNone, nil}}
	case StepSummaryOrphan:
		return []NextStep{{"recovery.settlement", "Give up an interrupted summary", EffectUnknown, nil}}
	case StepSummaryRetry:
		return []NextStep{{"retry.sleep", "Wait before the next attempt", EffectNone, nil}, {"structural.request", "Request a summary", EffectNew, nil}}
	case StepDrain:
		return []NextStep{{"checkpoint.finish", "End the run as failed, unless something waits in its queues", EffectNone, nil}}
	case StepNavigate:
		return []NextStep{{"navigation.commit", "Move the lane", EffectNone, nil}}
	}
	panic("unreachable: step of unknown kind")
}

func explainCheckpoint(s RunState, request NextStep) []NextStep {
	var steps []NextStep
	for _, q := range []struct {
		kind string
		ids  []string
	}{{"checkpoint.write", s.Inbox.Writes}, {"checkpoint.steer", s.Inbox.Steer}, {"checkpoint.follow_up", s.Inbox.FollowUp}} {
		if len(q.ids) > 0 {
			steps = append(steps, NextStep{q.kind, "Place what waits in the queue", EffectNone, map[string]any{"entryIds": q.ids}})
		}
	}
	if s.Phase.(Checkpoint).Continuation.Kind == NeedAssistantKind {
		return append(steps, NextStep{"assistant.intent", "Record the intent to request an answer", EffectNone, nil}, request)
	}
	return append(steps, NextStep{"checkpoint.finish", "End the run", EffectNone, nil})
}

func explainTools(b ToolBatch) []NextStep {
	var steps []NextStep
	for _, c := range b.Calls {
		details := map[string]any{"sourceIndex": c.SourceIndex, "resultEntryId": c.ResultEntryID}
		switch {
		case c.Status == CallOutcomeReady:
			steps = append(steps, NextStep{"tool.materialize", "Place a finished tool result", EffectNone, details})
		case c.Status == CallEffectPending && c.Replay == ReplaySafe:
			steps = append(steps, NextStep{"tool.execute", "Run an interrupted call again: its tool is declared safe to repeat", EffectRepeats, details})
		case c.Status == CallEffectPending:
			steps = append(steps, NextStep{"tool.recover_interruption", "Settle an interrupted call as unknown, without running it again", EffectUnknown, details})
		case c.Status == CallPlanned:
			steps = append(steps, NextStep{"tool.execute", "Run a tool", EffectNew, details})
		}
	}
	return steps
}

func explainCancelled(s State) []NextStep {
	var steps []NextStep
	if run, ok := s.(RunState); ok {
		for range PendingEffects(s) {
			steps = append(steps, NextStep{"cancel.reconcile", "Settle an interrupted effect as aborted", EffectUnknown, nil})
		}
		if d, ok := run.Phase.(DeferredPhase); ok && d.Deferred.Status == DeferredSuspended {
			steps = append(steps, NextStep{"deferred.cancel", "Ask the provider to drop the deferred job", EffectNew, nil})
		}
	}
	return append(steps, NextStep{"cancel.reconcile", fmt.Sprintf("End the cancelled %s", KindOf(s)), EffectNone, nil})
}
