package engine

import (
	"context"

	"github.com/drover-run/drover/pkg/engine/effect"
)

// PeekAction returns the breakpoint at which a manual drive is parked, waiting
// until it is; false when no drive runs or it has ended (spec §4.2, §5.1).
func (l *Lane) PeekAction(ctx context.Context) (effect.Action, bool) {
	p := l.activePass()
	if p == nil || l.barrier == nil {
		return effect.Action{}, false
	}
	return l.barrier.Peek(ctx, p.done)
}

// ExecuteAction releases exactly the parked breakpoint.
func (l *Lane) ExecuteAction() (effect.Action, bool) {
	if l.barrier == nil {
		return effect.Action{}, false
	}
	return l.barrier.Execute()
}

// RunToCompletion releases every breakpoint until the drive ends.
func (l *Lane) RunToCompletion(ctx context.Context) {
	for {
		if _, ok := l.PeekAction(ctx); !ok {
			return
		}
		l.ExecuteAction()
	}
}
