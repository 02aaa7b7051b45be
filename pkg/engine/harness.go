package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/telemetry"
)

// Harness drives the lanes of one open session (spec §5.2). Its methods are safe
// for concurrent use.
type Harness struct {
	opts    Options
	session *store.Session
	events  bus
	passes  sync.WaitGroup
	// closing ends with the harness; cancellation cleanup runs under it.
	closing context.Context
	stop    context.CancelCauseFunc
	started sync.Map // the names of the tools that were ready once

	mu     sync.Mutex
	lanes  map[string]*Lane
	sealed error // why nothing more is admitted
}

// New restores every lane of the session without starting anything: per lane
// five lookups, no history, no walk (spec §4.4). Main gets the seed as its
// configuration with its first accepted operation, so that a refused one leaves
// no trace (D40).
func New(ctx context.Context, o Options) (*Harness, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	h := &Harness{opts: o, session: o.Session, lanes: make(map[string]*Lane)}
	h.events.guard = o.Session.Guard
	h.closing, h.stop = context.WithCancelCause(context.Background())
	leaves, err := store.Scan(ctx, o.Session, store.LaneLeaves())
	if err != nil {
		return nil, fmt.Errorf("restore lanes: %w", err)
	}
	for _, leaf := range leaves {
		l := newLane(h, leaf.Address.Key)
		if _, err := l.restore(ctx, o.Session); err != nil {
			return nil, err
		}
		h.lanes[l.name] = l
	}
	if h.lanes[store.MainLane] == nil {
		return nil, &Defect{Lane: store.MainLane, Err: &store.Corrupt{Offset: -1, Msg: "the session has no main lane"}}
	}
	o.Session.OnFault(h.fault)
	if !telemetry.Off(o.Telemetry) {
		o.Session.Trace(h.spanParent)
		h.events.spans = h.spanParent
	}
	return h, nil
}

// Session is the session that the harness drives.
func (h *Harness) Session() *store.Session { return h.session }

// Lane returns a lane of the session; it never creates one.
func (h *Harness) Lane(name string) (*Lane, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l, ok := h.lanes[name]; ok {
		return l, nil
	}
	return nil, &LaneNotFound{Lane: name, Known: h.laneNames()}
}

func (h *Harness) laneNames() []string {
	names := make([]string, 0, len(h.lanes))
	for name := range h.lanes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Lanes returns every lane, by name.
func (h *Harness) Lanes() []*Lane {
	h.mu.Lock()
	defer h.mu.Unlock()
	lanes := make([]*Lane, 0, len(h.lanes))
	for _, name := range h.laneNames() {
		lanes = append(lanes, h.lanes[name])
	}
	return lanes
}

// On delivers every later event to listen, in order and one at a time; the
// procedure that caused an event waits for its delivery. The listener may read,
// but must not change the session (spec §5.5). The result stops it.
func (h *Harness) On(listen func(op.Event)) (off func()) { return h.events.on(listen) }

// Close is a controlled crash (spec §4.7): nothing more is admitted, running
// effects are told to stop, admitted commits drain, the session is given up.
// Open operations stay resumable; nothing is written to say so.
func (h *Harness) Close() error {
	h.seal(store.ErrClosed)
	err := h.session.Close()
	h.passes.Wait()
	<-h.events.line.Seal(store.ErrClosed)
	return err
}

// seal refuses new work and stops what runs. The first reason wins.
func (h *Harness) seal(reason error) {
	h.mu.Lock()
	if h.sealed == nil {
		h.sealed = reason
	}
	reason = h.sealed
	lanes := make([]*Lane, 0, len(h.lanes))
	for _, l := range h.lanes {
		lanes = append(lanes, l)
	}
	h.mu.Unlock()
	h.stop(reason)
	for _, l := range lanes {
		l.stop(reason)
	}
}

func (h *Harness) admission() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sealed
}

// fault ends everything after a commit that failed or a panic (spec §4.8).
func (h *Harness) fault(err error) {
	h.seal(err)
	h.events.enqueue([]op.Event{{Type: op.EventFault, Code: "fault", ErrorText: err.Error()}})
}

// CreateLane creates a lane at an entry, or before the first one, with the
// harness's seed as its configuration (spec §5.2). It refuses with
// *store.LaneExists, *store.InvalidLane or *store.UnknownTarget.
func (h *Harness) CreateLane(ctx context.Context, name string, at store.LeafID, c Configure) (*Lane, error) {
	if err := h.admission(); err != nil {
		return nil, err
	}
	if _, err := h.session.CreateLane(ctx, name, string(at), c.apply(h.opts.Seed)); err != nil {
		return nil, err
	}
	l := newLane(h, name)
	h.mu.Lock()
	h.lanes[name] = l // a watcher has the lane in its snapshot or as an event
	delivery := h.events.enqueue([]op.Event{{Type: op.EventLaneCreated, Lane: name, TargetID: at}})
	h.mu.Unlock()
	await(ctx, delivery)
	return l, nil
}
