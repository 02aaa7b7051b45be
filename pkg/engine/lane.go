package engine

import (
	"context"
	"sync"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// Lane is a named cursor into the session's tree that runs at most one operation
// (spec §5.1).
type Lane struct {
	h       *Harness
	name    string
	barrier *effect.Barrier // nil unless drives are manual
	accepts chan struct{}   // holds one token while a request is being accepted
	recall  recall

	mu        sync.Mutex
	active    *pass           // the drive pass of this process
	pending   map[string]bool // reserved ids whose effect this process runs
	draft     *draft          // of the latest live stream
	running   []RunningTool   // live tool calls
	announced map[string]bool // results whose message lifecycle was emitted
	missing   *op.Missing     // why the last pass waits for identities
	idle      []chan struct{} // waiters for an idle lane
	callback  bool            // an idle callback owns the lane
}

func newLane(h *Harness, name string) *Lane {
	l := &Lane{h: h, name: name, accepts: make(chan struct{}, 1), announced: make(map[string]bool)}
	if h.opts.Manual {
		l.barrier = effect.NewBarrier()
	}
	return l
}

// Name is the lane's permanent name.
func (l *Lane) Name() string { return l.name }

// restore checks that the values exist from which the lane is projected (spec
// §4.4).
func (l *Lane) restore(ctx context.Context, q store.Queries) (op.Turn, error) {
	t, err := l.load(ctx, q)
	if err != nil {
		return t, err
	}
	_, configured, err := store.Get(ctx, q, store.LaneConfig(l.name))
	if err == nil && !configured && (l.name != store.MainLane || t.State != nil) {
		_, err = required(ctx, q, l.name, store.LaneConfig(l.name))
	}
	return t, err
}

// stop closes the lane's gate and barrier (spec §4.7).
func (l *Lane) stop(reason error) {
	p := l.activePass()
	l.barrier.Close(reason)
	if p != nil {
		p.gate.Close(reason)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wake()
}

func (l *Lane) activePass() *pass {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.active
}

func (l *Lane) setActive(p *pass) {
	l.h.passes.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active, l.missing = p, nil
}

// resultOf is the end that a pass saw committed, nil before.
func (l *Lane) resultOf(p *pass) *op.LaneLastResult {
	l.mu.Lock()
	defer l.mu.Unlock()
	return p.result
}

func (l *Lane) dropActive(p *pass) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active != p {
		return
	}
	l.active, l.draft, l.running = nil, nil, nil
	l.missing = p.outcome.Missing
	l.wake()
}

// wake lets everybody who waits for the lane look again; the lock is held.
func (l *Lane) wake() {
	for _, ch := range l.idle {
		close(ch)
	}
	l.idle = nil
}

// owns reports whether an effect is still pending; it runs on the lane line,
// where the answer cannot change.
func (l *Lane) owns(reservedID string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pending[reservedID]
}

// announceOnce reports whether a result's lifecycle is still to be emitted:
// parallel calls may find the same ready prefix.
func (l *Lane) announceOnce(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.announced[id] {
		return false
	}
	l.announced[id] = true
	return true
}

// Configuration is the lane's current configuration: the seed while main has
// none yet.
func (l *Lane) Configuration(ctx context.Context) (store.LaneConfiguration, error) {
	cfg, ok, err := l.recall.configuration(ctx, l.h.session, l.name)
	if err != nil || ok {
		return cfg, err
	}
	return l.h.opts.Seed, nil
}
