package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/telemetry"
)

// Event is an observation of §5.5.
type Event = op.Event

// bus delivers events one at a time in the order in which they were enqueued.
// Enqueueing on a lane's line gives them the order of its commits; delivery
// happens off the line, so that a listener may read.
type bus struct {
	line store.Line
	// guard keeps a listener that panics from ending the process.
	guard func(func() error) error
	// spans is what the handling of a lane's events is told below; nil tells nothing.
	spans func(lane string) telemetry.Context

	mu        sync.Mutex
	listeners []*listener
}

type listener struct {
	listen func(op.Event)
	// joined is false until the bus reaches the place at which a watcher joins.
	// Only jobs of the line look at it.
	joined bool
}

func (b *bus) on(listen func(op.Event)) func() {
	return b.add(&listener{listen: listen, joined: true})
}

// join delivers what is enqueued from now on; events that wait for their
// delivery already are none of the watcher's.
func (b *bus) join(listen func(op.Event)) func() {
	l := &listener{listen: listen}
	off := b.add(l) // first, so that nothing enqueued after the job is thought to be unheard
	b.line.Enqueue(func() error {
		l.joined = true
		return nil
	})
	return off
}

func (b *bus) add(l *listener) func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listeners = append(b.listeners, l)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		kept := make([]*listener, 0, len(b.listeners))
		for _, other := range b.listeners {
			if other != l {
				kept = append(kept, other)
			}
		}
		b.listeners = kept
	}
}

func (b *bus) idle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.listeners) == 0
}

func (b *bus) deliver(events []op.Event) {
	b.mu.Lock()
	listeners := b.listeners
	b.mu.Unlock()
	// The fault is told by whatever is next done with the session.
	_ = b.guard(func() error {
		for _, e := range events {
			for _, l := range listeners {
				if l.joined {
					b.tell(l, e)
				}
			}
		}
		return nil
	})
}

// tell has one listener handle one event, in a span of its own (spec §5.8). Updates
// have none: an answer has thousands, which would crowd out what they are a part of.
func (b *bus) tell(l *listener, e op.Event) {
	if b.spans == nil || e.Type == op.EventMessageUpdate || e.Type == op.EventToolUpdate {
		l.listen(e)
		return
	}
	span := b.spans(e.Lane).Start(telemetry.SpanEvent, telemetry.String("pi.event", string(e.Type)))
	failed := errListener
	defer func() { span.End(failed) }()
	l.listen(e)
	failed = nil
}

// errListener is a listener that panicked, which the guard makes a fault.
var errListener = errors.New("the listener panicked")

// enqueue admits events in order without waiting for their delivery.
func (b *bus) enqueue(events []op.Event) *store.Ticket {
	if len(events) == 0 || b.idle() {
		return nil
	}
	return b.line.Enqueue(func() error {
		b.deliver(events)
		return nil
	})
}

// emit delivers one event and waits for it.
func (b *bus) emit(ctx context.Context, e op.Event) {
	if b.idle() {
		return
	}
	// The only errors are a sealed bus and a caller that stopped waiting.
	_ = b.line.Do(ctx, func() error {
		b.deliver([]op.Event{e})
		return nil
	})
}

func await(ctx context.Context, t *store.Ticket) {
	if t != nil {
		_ = t.Wait(ctx)
	}
}
