package engine

import (
	"context"

	"github.com/drover-run/drover/pkg/engine/effect"
)

// PeekAction returns the action before which a manual drive is parked, waiting
// until there is one; false when no pass runs, or when it ends first (spec §4.2,
// §5.1).
func (l *Lane) PeekAction(ctx context.Context) (effect.Action, bool) {
	l.mu.Lock()
	p := l.active
	l.mu.Unlock()
	if p == nil || l.barrier == nil {
		return effect.Action{}, false
	}
	return l.barrier.Peek(ctx, p.done)
}

// ExecuteAction releases the action that PeekAction would return, and no other.
func (l *Lane) ExecuteAction(ctx context.Context) (effect.Action, bool) {
	if _, ok := l.PeekAction(ctx); !ok {
		return effect.Action{}, false
	}
	return l.barrier.Execute()
}

// RunToCompletion executes actions until the pass ends.
func (l *Lane) RunToCompletion(ctx context.Context) {
	for {
		if _, ok := l.PeekAction(ctx); !ok {
			return
		}
		l.barrier.Execute()
	}
}
