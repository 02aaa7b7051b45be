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

// Explain lists what a drive at a time, Unix ms, would do next from a state, the
// first step first, as far as the state tells.
func Explain(s State, now int64) []NextStep {
	if s.Cancel().Cancelled() {
		return explainCancelled(s)
	}
	switch Next(s) {
	case StepBegin:
		begin := NextStep{"run.begin", "Complete the run's initial context", EffectNone, nil}
		return append([]NextStep{begin}, explainBoundary(s.(RunState).Inbox, Checkpoint{Continuation: NeedAssistant(false)})...)
	case StepCheckpoint:
		run := s.(RunState)
		return explainBoundary(run.Inbox, run.Phase.(Checkpoint))
	case StepRequest:
		return explainRequest()
	case StepRecover:
		return []NextStep{{"recovery.settlement", "Settle an interrupted request as an error with what was saved of it", EffectUnknown, nil}}
	case StepRetry:
		return append(explainSleep(s, now), explainRequest()...)
	case StepTools:
		return explainTools(s.(RunState))
	case StepPoll:
		return []NextStep{
			{"deferred.intent", "Record the intent to ask for the deferred answer, when a poll is permitted", EffectNone, nil},
			{"deferred.fetch", "Ask for the deferred answer", EffectRepeats, nil},
		}
	case StepDecide, StepSummarize:
		return explainSummary(s)
	case StepSummaryOrphan:
		return []NextStep{{"recovery.settlement", "Give up an interrupted summary", EffectUnknown, nil}}
	case StepSummaryRetry:
		return append(explainSleep(s, now), explainSummary(s)...)
	case StepDrain:
		run := s.(RunState)
		steps := append(explainQueues(run.Inbox, false), explainQueue("checkpoint.follow_up", run.Inbox.FollowUp)...)
		return append(steps, NextStep{"checkpoint.finish", "End the run as failed, unless something waits in its queues", EffectNone, nil})
	case StepNavigate:
		return []NextStep{{"navigation.commit", "Move the lane", EffectNone, nil}}
	}
	panic("unreachable: step of unknown kind")
}

func explainRequest() []NextStep {
	return []NextStep{
		{"assistant.intent", "Record the intent to request an answer", EffectNone, nil},
		{"assistant.request", "Request the assistant's answer", EffectNew, nil},
	}
}

// explainSleep is the wait of a retry that is not due yet.
func explainSleep(s State, now int64) []NextStep {
	if notBefore, ok := RetryAt(s); ok && notBefore <= now {
		return nil
	}
	return []NextStep{{"retry.sleep", "Wait before the next attempt", EffectNone, nil}}
}

func explainSummary(s State) []NextStep {
	steps := []NextStep{
		{"structural.intent", "Record the intent to summarize", EffectNone, nil},
		{"structural.request", "Request a summary", EffectNew, nil},
		{"structural.publish", "Publish the summary", EffectNone, nil},
	}
	if run, ok := s.(RunState); ok {
		return append(steps, explainBoundary(run.Inbox, run.Phase.(InRunCompaction).ResumeAfter)...)
	}
	return steps
}

// explainBoundary is a checkpoint and what follows it.
func explainBoundary(in Inbox, c Checkpoint) []NextStep {
	steps := explainQueues(in, c.SkipInboxOnce)
	steered := len(in.Steer) > 0 && !c.SkipInboxOnce
	if c.Continuation.Kind == NeedAssistantKind || steered {
		return append(steps, explainRequest()...)
	}
	if len(in.FollowUp) > 0 {
		return append(append(steps, explainQueue("checkpoint.follow_up", in.FollowUp)...), explainRequest()...)
	}
	return append(steps, NextStep{"checkpoint.finish", "End the run, unless what was placed before wants an answer", EffectNone, nil})
}

// explainQueues are the queues that every boundary looks at.
func explainQueues(in Inbox, skip bool) []NextStep {
	if skip {
		return nil
	}
	return append(explainQueue("checkpoint.write", in.Writes), explainQueue("checkpoint.steer", in.Steer)...)
}

func explainQueue(kind string, ids []string) []NextStep {
	if len(ids) == 0 {
		return nil
	}
	return []NextStep{{kind, "Place what waits in the queue", EffectNone, map[string]any{"entryIds": ids}}}
}

// explainTools goes through the calls in source order, as a batch starts them: an
// outcome that waits for the one before it is placed with that one.
func explainTools(run RunState) []NextStep {
	b := run.Phase.(Tools).Batch
	place := NextStep{"tool.materialize", "Place finished tool results", EffectNone, nil}
	var steps []NextStep
	if len(b.ReadyPrefix()) > 0 {
		steps = append(steps, place)
	}
	open, ends := false, true
	for _, c := range b.Calls {
		details := map[string]any{"sourceIndex": c.SourceIndex, "resultEntryId": c.ResultEntryID}
		ends = ends && c.Terminate
		switch {
		case c.Status == CallPlanned:
			steps = append(steps, NextStep{"tool.intent", "Record the intent to run a tool", EffectNone, details},
				NextStep{"tool.execute", "Run a tool", EffectNew, details})
		case c.Status == CallEffectPending && c.Repeatable():
			steps = append(steps, NextStep{"tool.execute", "Run an interrupted call again: its tool is declared safe to repeat", EffectRepeats, details})
		case c.Status == CallEffectPending:
			steps = append(steps, NextStep{"tool.recover_interruption", "Settle an interrupted call as unknown, without running it again", EffectUnknown, details})
		default:
			continue
		}
		open = true
	}
	if open {
		steps = append(steps, place)
	}
	after := Checkpoint{Continuation: NeedAssistant(false)}
	if ends {
		after.Continuation = MayFinish(false)
	}
	return append(steps, explainBoundary(run.Inbox, after)...)
}

// explainCancelled is the reconciliation of a cancelled operation (spec §4.6).
func explainCancelled(s State) []NextStep {
	var steps []NextStep
	run, _ := s.(RunState)
	switch phase := run.Phase.(type) {
	case Assistant:
		if _, pending := phase.Generation.(EffectPending); pending {
			steps = append(steps, NextStep{"cancel.reconcile", "Settle an interrupted request as aborted", EffectUnknown, nil})
		}
	case Tools:
		steps = explainAbortedTools(phase.Batch)
	case DeferredPhase:
		steps = append(steps, NextStep{"deferred.cancel", "Ask the provider to drop the deferred job", EffectNew, nil})
		if phase.Deferred.Status == DeferredEffectPending {
			steps = append(steps, NextStep{"cancel.reconcile", "Settle an interrupted poll as aborted", EffectUnknown, nil})
		}
	}
	if len(run.Inbox.Writes) > 0 {
		steps = append(steps, NextStep{"cancel.reconcile", "Place deferred writes", EffectNone, map[string]any{"entryIds": run.Inbox.Writes}})
	}
	return append(steps, NextStep{"cancel.reconcile", fmt.Sprintf("End the cancelled %s", KindOf(s)), EffectNone, nil})
}

func explainAbortedTools(b ToolBatch) []NextStep {
	var steps []NextStep
	for _, c := range b.Calls {
		details := map[string]any{"sourceIndex": c.SourceIndex, "resultEntryId": c.ResultEntryID}
		switch c.Status {
		case CallPlanned:
			steps = append(steps, NextStep{"tool.settlement", "Settle a call as aborted that was never run", EffectNone, details})
		case CallEffectPending:
			steps = append(steps, NextStep{"tool.recover_interruption", "Settle an interrupted call as unknown, without running it again", EffectUnknown, details})
		}
	}
	return append(steps, NextStep{"tool.materialize", "Place finished tool results", EffectNone, nil})
}
