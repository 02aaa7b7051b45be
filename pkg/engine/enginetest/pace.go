package enginetest

import (
	"context"
	"strings"
	"sync"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Pace says when the frames of a stream become durable. The engine does not
// wait for them, so that every order is legal; a trace needs one. Where several
// lanes stream at once only Free will do.
type Pace uint8

const (
	// Lockstep commits the frames of an event before the provider's next one.
	Lockstep Pace = iota
	// Late commits all frames of a stream after its last event.
	Late
	// Free commits frames whenever their turn comes.
	Free
)

// pace holds frame commits back as its mode says. It is told about the stream by
// the model and about commits by the backend that it decorates.
type pace struct {
	mode  Pace
	world *World

	mu      sync.Mutex
	allowed int           // frames that may be committed
	done    int           // frames that were committed
	sent    int           // events that make a frame
	silent  bool          // the request is for a summary, whose stream has no frames
	moved   chan struct{} // closed and replaced when a number changes
}

func newPace(w *World) *pace {
	return &pace{world: w, moved: make(chan struct{})}
}

func (p *pace) request(n int, req effect.Request) {
	p.world.Trace.Add("request %d: answer %s, %d messages, at most %d tokens", n, entryName(req.ResponseEntryID), len(req.Messages), req.MaxOutput)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allowed, p.done, p.sent, p.silent = 0, 0, 0, isSummary(req)
}

// isSummary reports whether a request is for a summary of a conversation.
func isSummary(req effect.Request) bool {
	return len(req.Messages) == 1 && strings.Contains(req.Messages[0].Text(), "<conversation>")
}

// event is told what the provider sends next.
func (p *pace) event(ev message.StreamEvent) {
	if !p.world.Quiet {
		p.world.Trace.Add("  stream %s%s", ev.Type, streamText(ev))
	}
	if _, ok := message.FrameOf(ev); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.silent {
			p.sent++
		}
	}
}

// wait lets the frames of the events so far become durable; a frame that fails
// ends the request's context.
func (p *pace) wait(ctx context.Context) {
	if p.mode != Lockstep {
		return
	}
	p.mu.Lock()
	p.allow(p.sent)
	for p.done < p.sent && ctx.Err() == nil {
		moved := p.moved
		p.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
		}
		p.mu.Lock()
	}
	p.mu.Unlock()
}

// over ends a stream: whatever waits may go.
func (p *pace) over() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allow(p.sent)
}

func (p *pace) allow(n int) {
	p.allowed = n
	p.move()
}

func (p *pace) move() {
	close(p.moved)
	p.moved = make(chan struct{})
}

// paced is a backend whose frame commits keep a pace.
type paced struct {
	store.Backend
	pace *pace
}

func (b paced) Commit(ctx context.Context, tx store.Tx) (store.CommitResult, error) {
	if b.pace.mode == Free || !isFrame(tx) {
		return b.Backend.Commit(ctx, tx)
	}
	p := b.pace
	p.mu.Lock()
	for p.done >= p.allowed {
		moved := p.moved
		p.mu.Unlock()
		<-moved
		p.mu.Lock()
	}
	p.mu.Unlock()
	res, err := b.Backend.Commit(ctx, tx)
	if err == nil {
		p.mu.Lock()
		p.done++
		p.move()
		p.mu.Unlock()
	}
	return res, err
}

func isFrame(tx store.Tx) bool {
	return len(tx) == 1 && tx[0].Kind == store.KindList && tx[0].Op == store.OpAppend && strings.HasSuffix(tx[0].Address.Namespace, ".assistant_frame")
}
