package engine

import (
	"context"
	"sync"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Lane is a named cursor into the session's tree that runs at most one operation
// (spec §5.1).
type Lane struct {
	h       *Harness
	name    string
	barrier *effect.Barrier
	accepts chan struct{} // holds one token while a request is being accepted

	mu      sync.Mutex
	active  *pass            // the drive pass of this process
	pending string           // reserved id of the response that this process requests
	draft   *message.Reducer // of the live stream
	missing *op.Missing      // why the last pass waits for identities
}

func newLane(h *Harness, name string) *Lane {
	l := &Lane{h: h, name: name, accepts: make(chan struct{}, 1)}
	if h.opts.Manual {
		l.barrier = effect.NewManualBarrier()
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
	l.mu.Lock()
	p := l.active
	l.mu.Unlock()
	l.barrier.Close(reason)
	if p != nil {
		p.gate.Close(reason)
	}
}

// Configuration is the lane's current configuration: the seed while main has
// none yet.
func (l *Lane) Configuration(ctx context.Context) (store.LaneConfiguration, error) {
	got, ok, err := store.Get(ctx, l.h.session, store.LaneConfig(l.name))
	if err != nil || ok {
		return got.Value, err
	}
	return l.h.opts.Seed, nil
}

// Configure changes parts of a lane's configuration; what is nil stays.
type Configure struct {
	Model           *message.ModelRef
	ThinkingLevel   *message.ThinkingLevel
	ActiveToolNames *[]string
}

func (c Configure) apply(cfg store.LaneConfiguration) store.LaneConfiguration {
	if c.Model != nil {
		cfg.Model = *c.Model
	}
	if c.ThinkingLevel != nil {
		cfg.ThinkingLevel = *c.ThinkingLevel
	}
	if c.ActiveToolNames != nil {
		cfg.ActiveToolNames = append([]string{}, *c.ActiveToolNames...)
	}
	return cfg
}

// Configure replaces the lane's configuration; an open operation keeps what its
// steps captured (spec §2.3, §5.1).
func (l *Lane) Configure(ctx context.Context, c Configure) error {
	delivery, err := onLine(ctx, l, func(m *store.Mutator) (*store.Ticket, error) { return l.configure(ctx, m, c) })
	await(ctx, delivery)
	return err
}

func (l *Lane) configure(ctx context.Context, m *store.Mutator, c Configure) (*store.Ticket, error) {
	current, configured, err := store.Get(ctx, m, store.LaneConfig(l.name))
	if err != nil {
		return nil, err
	}
	previous := l.h.opts.Seed
	if configured {
		previous = current.Value
	}
	next := c.apply(previous)
	if configured && sameConfiguration(previous, next) {
		return nil, nil
	}
	if _, err := m.Commit(store.Tx{store.LaneConfig(l.name).Set(next)}); err != nil {
		return nil, err
	}
	return l.h.events.enqueue(configEvents(l.name, previous, next)), nil
}
