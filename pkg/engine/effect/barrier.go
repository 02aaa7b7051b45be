package effect

import (
	"context"
	"encoding/json"
	"sync"
)

// Action describes one breakpoint: the public ActionInfo (spec §4.2, D43).
type Action struct {
	Kind        string          `json:"kind"`
	Description string          `json:"description"`
	Details     json.RawMessage `json:"details,omitempty"`
}

// Barrier parks an operation in front of code whose boundary a manual drive
// exposes. Its zero value lets everything pass (spec §4.2).
type Barrier struct {
	manual bool

	mu     sync.Mutex
	parked *parked
	arrive chan struct{} // closed and replaced at each arrival
	closed error
}

type parked struct {
	action  Action
	release chan error
}

// NewManualBarrier returns a barrier that parks every hit until it is executed.
func NewManualBarrier() *Barrier {
	return &Barrier{manual: true, arrive: make(chan struct{})}
}

// Hit returns at once unless the barrier is manual. A parked hit returns nil when
// it is executed, the error of Interrupt or Close otherwise.
func (b *Barrier) Hit(ctx context.Context, a Action) error {
	if b == nil || !b.manual {
		return nil
	}
	b.mu.Lock()
	if b.closed != nil {
		err := b.closed
		b.mu.Unlock()
		return err
	}
	p := &parked{action: a, release: make(chan error, 1)}
	b.parked = p
	close(b.arrive)
	b.arrive = make(chan struct{})
	b.mu.Unlock()
	select {
	case err := <-p.release:
		return err
	case <-ctx.Done():
		b.unpark(p, context.Cause(ctx))
		return <-p.release
	}
}

// unpark ends a parked hit; false when another call was first.
func (b *Barrier) unpark(p *parked, err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.parked != p {
		return false
	}
	b.parked = nil
	p.release <- err
	return true
}

// Peek returns the parked action, waiting until there is one, ended closes, or
// the context ends.
func (b *Barrier) Peek(ctx context.Context, ended <-chan struct{}) (Action, bool) {
	for {
		b.mu.Lock()
		p, arrive := b.parked, b.arrive
		b.mu.Unlock()
		if p != nil {
			return p.action, true
		}
		select {
		case <-arrive:
		case <-ended:
			return Action{}, false
		case <-ctx.Done():
			return Action{}, false
		}
	}
}

// Execute releases exactly the parked action; false when none is parked.
func (b *Barrier) Execute() (Action, bool) {
	b.mu.Lock()
	p := b.parked
	b.mu.Unlock()
	if p == nil || !b.unpark(p, nil) {
		return Action{}, false
	}
	return p.action, true
}

// Interrupt rejects the parked action, so that the code behind it does not run.
func (b *Barrier) Interrupt(err error) {
	if b == nil {
		return
	}
	b.mu.Lock()
	p := b.parked
	b.mu.Unlock()
	if p != nil {
		b.unpark(p, err)
	}
}

// Close rejects the parked action and every later hit with err.
func (b *Barrier) Close(err error) {
	if b == nil {
		return
	}
	b.mu.Lock()
	if b.closed == nil {
		b.closed = err
	}
	b.mu.Unlock()
	b.Interrupt(err)
}
