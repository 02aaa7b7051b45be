package op_test

import (
	"testing"

	"github.com/drover-run/drover/pkg/engine/op"
)

// points is the whole catalogue: what a restart point is called is how a state
// stands there, whether a drive may yield, and what continues it (§4.1). A new
// point fails TestPoints until it has a line.
var points = []struct {
	point op.Point
	kind  op.Kind
	safe  bool
	next  op.Step
}{
	{op.PointStarting, op.KindRun, true, op.StepBegin},
	{op.PointNeedAssistant, op.KindRun, true, op.StepCheckpoint},
	{op.PointMayFinish, op.KindRun, true, op.StepCheckpoint},
	{op.PointReady, op.KindRun, true, op.StepRequest},
	{op.PointEffectPending, op.KindRun, false, op.StepRecover},
	{op.PointRetryWait, op.KindRun, true, op.StepRetry},
	{op.PointTools, op.KindRun, true, op.StepTools},
	{op.PointToolsPending, op.KindRun, false, op.StepTools},
	{"run.compaction.deciding", op.KindRun, true, op.StepDecide},
	{"run.compaction.ready", op.KindRun, true, op.StepSummarize},
	{"run.compaction.effect_pending", op.KindRun, false, op.StepSummaryOrphan},
	{"run.compaction.retry_wait", op.KindRun, true, op.StepSummaryRetry},
	{op.PointDeferredWaiting, op.KindRun, true, op.StepPoll},
	{op.PointDeferredPending, op.KindRun, false, op.StepPoll},
	{op.PointFailureDrain, op.KindRun, true, op.StepDrain},
	{"compaction.deciding", op.KindCompaction, true, op.StepDecide},
	{"compaction.ready", op.KindCompaction, true, op.StepSummarize},
	{"compaction.effect_pending", op.KindCompaction, false, op.StepSummaryOrphan},
	{"compaction.retry_wait", op.KindCompaction, true, op.StepSummaryRetry},
	{op.PointNavigation, op.KindNavigation, true, op.StepNavigate},
	{"navigation.summary.deciding", op.KindNavigation, true, op.StepDecide},
	{"navigation.summary.ready", op.KindNavigation, true, op.StepSummarize},
	{"navigation.summary.effect_pending", op.KindNavigation, false, op.StepSummaryOrphan},
	{"navigation.summary.retry_wait", op.KindNavigation, true, op.StepSummaryRetry},
}

func TestPoints(t *testing.T) {
	states := everyState()
	if len(states) != len(points) {
		t.Errorf("%d states for %d points", len(states), len(points))
	}
	for _, tt := range points {
		t.Run(string(tt.point), func(t *testing.T) {
			s, ok := states[tt.point]
			if !ok {
				t.Fatal("no state stands here")
			}
			if got := op.PointOf(s); got != tt.point {
				t.Errorf("the state stands at %s", got)
			}
			if got := op.KindOf(s); got != tt.kind {
				t.Errorf("kind %q, want %q", got, tt.kind)
			}
			if got := op.Safe(s); got != tt.safe {
				t.Errorf("safe %t, want %t", got, tt.safe)
			}
			if got := op.Next(s); got != tt.next {
				t.Errorf("step %d, want %d", got, tt.next)
			}
			if got := op.Next(cancelledState(s)); got != op.StepReconcile {
				t.Errorf("under cancellation: step %d, want %d", got, op.StepReconcile)
			}
		})
	}
	if got := op.PointOf(nil); got != op.PointIdle {
		t.Errorf("no state stands at %s", got)
	}
	if got := op.KindOf(nil); got != "" {
		t.Errorf("no state is a %s", got)
	}
}

func cancelledState(s op.State) op.State {
	switch s := s.(type) {
	case op.RunState:
		s.Control = cancelled
		return s
	case op.CompactionState:
		s.Control = cancelled
		return s
	case op.NavigationState:
		s.Control = cancelled
		return s
	}
	panic("unreachable: state of unknown kind")
}
