package enginetest

import (
	"context"
	"iter"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

// Deferring is a Model that may answer later.
type Deferring struct {
	*Model
	// PollReply gives the answer to a poll.
	PollReply func(handle message.DeferredHandle, req effect.Request) Reply
	// Dropped is told of every job that was to be dropped; nil ignores it.
	Dropped func(handle message.DeferredHandle) error
}

// Defer makes the world's first model one that may answer later.
func (w *World) Defer(poll func(message.DeferredHandle, effect.Request) Reply) *Deferring {
	d := &Deferring{Model: w.Model, PollReply: poll}
	w.Models.Add(d)
	return d
}

// Poll answers a poll.
func (d *Deferring) Poll(ctx context.Context, handle message.DeferredHandle, req effect.Request) iter.Seq[message.StreamEvent] {
	return d.play(ctx, 0, req, func() Reply { return d.PollReply(handle, req) })
}

// Cancel drops a job.
func (d *Deferring) Cancel(_ context.Context, handle message.DeferredHandle) (err error) {
	d.pace.world.Effect("cancel", func() {
		if d.Dropped != nil {
			err = d.Dropped(handle)
		}
	})
	return err
}
