package op

// Point is the flat name of a restart point; derived from a state, never stored.
type Point string

// The restart points of a run.
const (
	PointIdle              Point = "idle"
	PointStarting          Point = "run.starting"
	PointNeedAssistant     Point = "run.checkpoint.need_assistant"
	PointMayFinish         Point = "run.checkpoint.may_finish"
	PointReady             Point = "run.assistant.ready"
	PointEffectPending     Point = "run.assistant.effect_pending"
	PointRetryWait         Point = "run.assistant.retry_wait"
	PointTools             Point = "run.tools"
	PointRunCompaction     Point = "run.compaction"
	PointDeferredWaiting   Point = "run.deferred.suspended"
	PointDeferredPending   Point = "run.deferred.effect_pending"
	PointFailureDrain      Point = "run.failure_drain"
	PointCompaction        Point = "compaction"
	PointNavigation        Point = "navigation.ready_to_commit"
	PointNavigationSummary Point = "navigation.summary"
)

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

// PointOf names where a state stands.
func PointOf(s State) Point {
	switch s := s.(type) {
	case nil:
		return PointIdle
	case RunState:
		return runPoint(s.Phase)
	case CompactionState:
		return PointCompaction
	case NavigationState:
		if s.Structural == nil {
			return PointNavigation
		}
		return PointNavigationSummary
	}
	panic("unreachable: state of unknown kind")
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
		return PointTools
	case InRunCompaction:
		return PointRunCompaction
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

// Safe reports whether a drive may yield here: nothing is under way (spec §4.1).
func (p Point) Safe() bool {
	return p != PointEffectPending && p != PointDeferredPending
}

// Step is the procedure that continues a state (spec §4.1).
type Step uint8

// The steps of a drive pass.
const (
	StepReconcile   Step = iota + 1 // cancellation was requested
	StepRecover                     // an effect whose process is gone
	StepBegin                       // before_run, then the first checkpoint
	StepGenerate                    // open a generation step
	StepRequest                     // make the provider request
	StepRetry                       // wait for, then leave, a retry wait
	StepFinish                      // the terminal transaction
	StepUnsupported                 // a state that this engine cannot continue yet
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
	case PointNeedAssistant:
		return StepGenerate
	case PointReady:
		return StepRequest
	case PointEffectPending:
		return StepRecover
	case PointRetryWait:
		return StepRetry
	case PointMayFinish, PointFailureDrain:
		return StepFinish
	}
	return StepUnsupported
}
