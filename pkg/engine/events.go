package engine

import (
	"context"
	"sync"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// Event is an observation of §5.5.
type Event = op.Event

// bus delivers events one at a time in the order in which they were enqueued.
// Enqueueing on a lane's line gives them the order of its commits; delivery
// happens off the line, so that a listener may read.
type bus struct {
	line store.Line

	mu        sync.Mutex
	listeners []*listener
}

type listener struct{ listen func(op.Event) }

func (b *bus) on(listen func(op.Event)) func() {
	l := &listener{listen}
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
	for _, e := range events {
		for _, l := range listeners {
			l.listen(e)
		}
	}
}

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
