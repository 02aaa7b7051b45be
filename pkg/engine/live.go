package engine

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// reveal changes what a snapshot shows of live work and enqueues the event that
// tells it, in one step: a watcher has every change either in its snapshot or as
// an event, never both (spec §5.4). It returns once the event is delivered; a
// change that fails tells nothing. The event is only made when somebody listens.
func (l *Lane) reveal(ctx context.Context, tell func() op.Event, change func() error) error {
	delivery, err := l.revealLater(tell, change)
	await(ctx, delivery)
	return err
}

func (l *Lane) revealLater(tell func() op.Event, change func() error) (*store.Ticket, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := change(); err != nil || l.h.events.idle() {
		return nil, err
	}
	return l.h.events.enqueue([]op.Event{tell()}), nil
}

// draft is an answer while it arrives (spec §5.4).
type draft struct {
	responseID string
	growing    message.Reducer
	final      message.Message // once the stream has ended
}

// message is the newest that is known of the answer, nil before its start.
func (d *draft) message() message.Message {
	if d.final != nil {
		return d.final
	}
	m, _ := d.growing.Message()
	return m
}

// end makes the message final; what it grew from is given up (D41).
func (d *draft) end(final message.Message) {
	d.final, d.growing = final, message.Reducer{}
}

func (l *Lane) setDraft(d *draft) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draft = d
}

// RunningTool is a tool call whose effect may be under way (spec §5.4).
type RunningTool struct {
	InvocationID string
	ToolCallID   string
	ToolName     string
	Args         json.RawMessage
	Partial      json.RawMessage // latest update or durable checkpoint
}

// toolStarted, toolProgress and toolEnded run with the lock held.
func (l *Lane) toolStarted(id string, call message.Block, args json.RawMessage) {
	l.running = append(l.running, RunningTool{InvocationID: id, ToolCallID: call.ID, ToolName: call.Name, Args: args})
}

func (l *Lane) toolProgress(id string, partial json.RawMessage) {
	for i := range l.running {
		if l.running[i].InvocationID == id {
			l.running[i].Partial = partial
		}
	}
}

func (l *Lane) toolEnded(id string) {
	l.running = slices.DeleteFunc(l.running, func(r RunningTool) bool { return r.InvocationID == id })
}
