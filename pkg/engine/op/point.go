package op

// Point is the flat name of a restart point; derived from a state, never stored.
type Point string

// The restart points. A summary has the same five wherever it stands.
const (
	PointIdle            Point = "idle"
	PointStarting        Point = "run.starting"
	PointNeedAssistant   Point = "run.checkpoint.need_assistant"
	PointMayFinish       Point = "run.checkpoint.may_finish"
	PointReady           Point = "run.assistant.ready"
	PointEffectPending   Point = "run.assistant.effect_pending"
	PointRetryWait       Point = "run.assistant.retry_wait"
	PointTools           Point = "run.tools"
	PointToolsPending    Point = "run.tools.effect_pending"
	PointDeferredWaiting Point = "run.deferred.suspended"
	PointDeferredPending Point = "run.deferred.effect_pending"
	PointFailureDrain    Point = "run.failure_drain"
	PointNavigation      Point = "navigation.ready_to_commit"
)

// The parents of summary points.
const (
	inRunCompaction      = "run.compaction"
	standaloneCompaction = "compaction"
	navigationSummary    = "navigation.summary"
)

// PointOf names where a state stands.
func PointOf(s State) Point {
	switch s := s.(type) {
	case nil:
		return PointIdle
	case RunState:
		return runPoint(s.Phase)
	case CompactionState:
		return summaryPoint(standaloneCompaction, s.Structural)
	case NavigationState:
		if s.Structural == nil {
			return PointNavigation
		}
		return summaryPoint(navigationSummary, *s.Structural)
	}
	panic("unreachable: state of unknown kind")
}

// KindOf is the operation kind that a state belongs to, "" for none.
func KindOf(s State) Kind {
	switch s.(type) {
	case RunState:
		return KindRun
	case CompactionState:
		return KindCompaction
	case NavigationState:
		return KindNavigation
	}
	return ""
}

func runPoint(p Phase) Point {
	switch p := p.(type) {
	case Starting:
		return PointStarting
	case Checkpoint:
		if p.Continuation.Kind == NeedAssistantKind {
			return PointNeedAssistant
		}
		return PointMayFinish
	case Assistant:
		return generationPoint(p.Generation)
	case Tools:
		for _, c := range p.Batch.Calls {
			if c.Status == CallEffectPending {
				return PointToolsPending
			}
		}
		return PointTools
	case InRunCompaction:
		return summaryPoint(inRunCompaction, p.Structural)
	case DeferredPhase:
		if p.Deferred.Status == DeferredEffectPending {
			return PointDeferredPending
		}
		return PointDeferredWaiting
	case FailureDrain:
		return PointFailureDrain
	}
	panic("unreachable: phase of unknown kind")
}

func generationPoint(g Generation) Point {
	switch g.(type) {
	case Ready:
		return PointReady
	case EffectPending:
		return PointEffectPending
	case RetryWait:
		return PointRetryWait
	}
	panic("unreachable: generation of unknown status")
}

func summaryPoint(parent string, s Structural) Point {
	return Point(parent + "." + summaryStatus(s))
}

func summaryStatus(s Structural) string {
	switch s.Generation.(type) {
	case nil:
		return "deciding"
	case SummaryReady:
		return "ready"
	case SummaryEffectPending:
		return "effect_pending"
	case SummaryRetryWait:
		return "retry_wait"
	}
	panic("unreachable: summary of unknown status")
}

// Safe reports whether a drive may yield at a state: no effect is under way
// (spec §4.1).
func Safe(s State) bool {
	switch PointOf(s) {
	case PointEffectPending, PointDeferredPending, PointToolsPending:
		return false
	}
	structural := StructuralOf(s)
	return structural == nil || summaryStatus(*structural) != "effect_pending"
}

// RetryAt is when the next attempt of a waiting operation is due, Unix ms; false
// when it waits for none.
func RetryAt(s State) (int64, bool) {
	if structural := StructuralOf(s); structural != nil {
		wait, ok := structural.Generation.(SummaryRetryWait)
		return wait.NotBefore, ok
	}
	run, _ := s.(RunState)
	a, _ := run.Phase.(Assistant)
	wait, ok := a.Generation.(RetryWait)
	return wait.NotBefore, ok
}

// Step is the procedure that continues a state (spec §4.1).
type Step uint8

// The steps of a drive pass.
const (
	StepReconcile     Step = iota + 1 // cancellation was requested
	StepRecover                       // a request whose process is gone
	StepBegin                         // before_run, then the first checkpoint
	StepCheckpoint                    // the checkpoint procedure
	StepRequest                       // make the provider request
	StepRetry                         // wait for, then leave, a retry wait
	StepTools                         // the tool batch
	StepPoll                          // ask for a deferred answer, with a permit
	StepDecide                        // the decision hook of a summary
	StepSummarize                     // one attempt at a summary
	StepSummaryOrphan                 // an attempt whose process is gone
	StepSummaryRetry                  // the retry wait of a summary
	StepDrain                         // failure drain
	StepNavigate                      // the navigation's commit
)

// Next maps a state to the step that continues it. An effect_pending state
// reaches Next only when nobody in this process owns its effect: the procedure
// that owns it never returns to dispatch in between (spec §4.1).
func Next(s State) Step {
	if s.Cancel().Cancelled() {
		return StepReconcile
	}
	switch PointOf(s) {
	case PointStarting:
		return StepBegin
	case PointNeedAssistant, PointMayFinish:
		return StepCheckpoint
	case PointReady:
		return StepRequest
	case PointEffectPending:
		return StepRecover
	case PointRetryWait:
		return StepRetry
	case PointTools, PointToolsPending:
		return StepTools
	case PointDeferredWaiting, PointDeferredPending:
		return StepPoll
	case PointFailureDrain:
		return StepDrain
	case PointNavigation:
		return StepNavigate
	}
	return summaryStep(*StructuralOf(s))
}

func summaryStep(s Structural) Step {
	switch s.Generation.(type) {
	case nil:
		return StepDecide
	case SummaryReady:
		return StepSummarize
	case SummaryEffectPending:
		return StepSummaryOrphan
	case SummaryRetryWait:
		return StepSummaryRetry
	}
	panic("unreachable: summary of unknown status")
}
