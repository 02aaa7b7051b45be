package effect

import (
	"context"
	"sync"
)

// AbortRequested is how an abort that came first stops ordinary work (spec
// §4.1). Settled closes once the cancellation is durable or known to be void.
type AbortRequested struct{ Settled <-chan struct{} }

func (e *AbortRequested) Error() string { return "abort requested" }

// Gate orders the start of effects against an abort and owns the context that
// every started effect runs under (spec §4.2).
type Gate struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	aborting *AbortRequested
	closed   error
}

// NewGate returns an open gate below parent.
func NewGate(parent context.Context) *Gate {
	ctx, cancel := context.WithCancelCause(parent)
	return &Gate{ctx: ctx, cancel: cancel}
}

// Context is the context of every effect of the pass.
func (g *Gate) Context() context.Context { return g.ctx }

// Admit is the only way an effect starts: the check is the admission, and start
// follows it with nothing between. An abort before it invokes nothing; a later
// one reaches start through its context.
func Admit[T any](g *Gate, start func(context.Context) (T, error)) (T, error) {
	if err := g.Check(); err != nil {
		var zero T
		return zero, err
	}
	return start(g.ctx)
}

// Check reports why nothing may start: an abort that came first, or a close.
func (g *Gate) Check() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed != nil {
		return g.closed
	}
	if g.aborting != nil {
		return g.aborting
	}
	return nil
}

// Closed reports why nothing may go on at all, an abort's own work included: nil
// while it may.
func (g *Gate) Closed() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// BeginAbort refuses every later start. settled must close once the cancellation
// is durable or void.
func (g *Gate) BeginAbort(settled <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.aborting == nil && g.closed == nil {
		g.aborting = &AbortRequested{Settled: settled}
	}
}

// Signal cancels running effects. Call it only after the marker is durable.
func (g *Gate) Signal() { g.cancel(&AbortRequested{}) }

// Close refuses every later start with err and cancels running effects. The
// first close wins.
func (g *Gate) Close(err error) {
	g.mu.Lock()
	if g.closed == nil {
		g.closed = err
	}
	err = g.closed
	g.mu.Unlock()
	g.cancel(err)
}
