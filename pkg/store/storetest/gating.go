package storetest

import (
	"context"
	"errors"
	"sync"

	"github.com/drover-run/drover/pkg/store"
)

// ErrDiscarded is what a commit returns that Gating.Discard dropped.
var ErrDiscarded = errors.New("commit was discarded")

// Gating is a Backend whose commits wait until the test lets them through. They
// wait on channels, so that a synctest bubble counts them as blocked.
type Gating struct {
	store.Backend

	arrivals chan *parked
	open     chan struct{}
	once     sync.Once
}

type parked struct {
	release chan error
	done    chan struct{}
}

// NewGating parks the commits of b.
func NewGating(b store.Backend) *Gating {
	return &Gating{Backend: b, arrivals: make(chan *parked), open: make(chan struct{})}
}

// Commit waits for Next, Discard or Open.
func (g *Gating) Commit(ctx context.Context, tx store.Tx) (store.CommitResult, error) {
	p := &parked{release: make(chan error), done: make(chan struct{})}
	defer close(p.done)
	select {
	case <-g.open:
	case g.arrivals <- p:
		if err := <-p.release; err != nil {
			return store.CommitResult{}, err
		}
	}
	return g.Backend.Commit(ctx, tx)
}

// Next waits for the next n commits to arrive and lets each through in turn. It
// returns when the last has returned to its caller.
func (g *Gating) Next(n int) {
	for range n {
		p := <-g.arrivals
		p.release <- nil
		<-p.done
	}
}

// Discard fails every commit that waits now with ErrDiscarded; none of them
// reaches the store. It returns how many there were.
func (g *Gating) Discard() int {
	for n := 0; ; n++ {
		select {
		case p := <-g.arrivals:
			p.release <- ErrDiscarded
			<-p.done
		default:
			return n
		}
	}
}

// Open lets every commit through from now on.
func (g *Gating) Open() { g.once.Do(func() { close(g.open) }) }
