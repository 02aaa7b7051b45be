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
// exposes. A nil barrier lets everything pass (spec §4.2).
type Barrier struct {
	mu     sync.Mutex
	queue  []*parked     // in order of arrival
	arrive chan struct{} // closed and replaced at each arrival
	closed error
}

type parked struct {
	action    Action
	protected bool
	release   chan error
}

// NewBarrier returns a barrier that parks every hit until it is executed.
func NewBarrier() *Barrier { return &Barrier{arrive: make(chan struct{})} }

// Hit parks until the action is executed, and then returns nil; Interrupt and
// Close end it with their error. admit is asked at the moment of parking, so that
// an interruption can not slip in between; nil admits.
func (b *Barrier) Hit(ctx context.Context, a Action, admit func() error) error {
	return b.hit(ctx, a, admit, false)
}

// HitProtected is Hit for cancellation work, which Interrupt leaves parked.
func (b *Barrier) HitProtected(ctx context.Context, a Action, admit func() error) error {
	return b.hit(ctx, a, admit, true)
}

func (b *Barrier) hit(ctx context.Context, a Action, admit func() error, protected bool) error {
	if b == nil {
		return nil
	}
	p, err := b.park(a, admit, protected)
	if err != nil {
		return err
	}
	select {
	case err := <-p.release:
		return err
	case <-ctx.Done():
		b.unpark(p, context.Cause(ctx))
		return <-p.release
	}
}

func (b *Barrier) park(a Action, admit func() error, protected bool) (*parked, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed != nil {
		return nil, b.closed
	}
	if admit != nil {
		if err := admit(); err != nil {
			return nil, err
		}
	}
	p := &parked{action: a, protected: protected, release: make(chan error, 1)}
	b.queue = append(b.queue, p)
	close(b.arrive)
	b.arrive = make(chan struct{})
	return p, nil
}

// unpark releases one parked hit, once.
func (b *Barrier) unpark(p *parked, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.remove(p, err)
}

func (b *Barrier) remove(p *parked, err error) {
	for i, q := range b.queue {
		if q == p {
			b.queue = append(b.queue[:i:i], b.queue[i+1:]...)
			p.release <- err
			return
		}
	}
}

// Peek returns the oldest parked action, waiting until there is one, ended
// closes, or the context ends.
func (b *Barrier) Peek(ctx context.Context, ended <-chan struct{}) (Action, bool) {
	for {
		b.mu.Lock()
		arrive := b.arrive
		if len(b.queue) > 0 {
			a := b.queue[0].action
			b.mu.Unlock()
			return a, true
		}
		b.mu.Unlock()
		select {
		case <-arrive:
		case <-ended:
			return Action{}, false
		case <-ctx.Done():
			return Action{}, false
		}
	}
}

// Execute releases exactly the oldest parked action; false when none is parked.
func (b *Barrier) Execute() (Action, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return Action{}, false
	}
	p := b.queue[0]
	b.remove(p, nil)
	return p.action, true
}

// Interrupt rejects the parked actions that are not protected, so that the code
// behind them does not run.
func (b *Barrier) Interrupt(err error) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range append([]*parked(nil), b.queue...) {
		if !p.protected {
			b.remove(p, err)
		}
	}
}

// Release rejects everything parked with err; later hits park.
func (b *Barrier) Release(err error) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range append([]*parked(nil), b.queue...) {
		b.remove(p, err)
	}
}

// Close rejects everything parked and every later hit with err.
func (b *Barrier) Close(err error) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed == nil {
		b.closed = err
	}
	for _, p := range append([]*parked(nil), b.queue...) {
		b.remove(p, err)
	}
}
