package enginetest

import (
	"context"
	"iter"
	"strings"
	"sync"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

// Ref is the model that every world starts with.
var Ref = message.ModelRef{Provider: "acme", ModelID: "one"}

// Model is a model whose answers are code. It stands for the provider: it lives
// on when a harness dies.
type Model struct {
	// Reply gives the answer to the n-th request of its life, counted from 1.
	Reply     func(n int, req effect.Request) Reply
	ModelInfo effect.ModelInfo
	// Keeps says that an aborted answer keeps the text that was sent.
	Keeps bool

	pace *pace

	mu       sync.Mutex
	requests []effect.Request
	hanging  chan struct{}
}

// Info tells what the engine needs to know.
func (m *Model) Info() effect.ModelInfo { return m.ModelInfo }

// Requests returns what was asked so far.
func (m *Model) Requests() []effect.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]effect.Request(nil), m.requests...)
}

// Hanging receives once for every stream that hangs, its frames being told.
func (m *Model) Hanging() <-chan struct{} { return m.hanging }

// hang waits for the end of a request that hangs.
func (m *Model) hang(ctx context.Context) {
	m.pace.wait(ctx)
	select {
	case m.hanging <- struct{}{}:
		<-ctx.Done()
	case <-ctx.Done():
	}
}

// Stream answers a request.
func (m *Model) Stream(ctx context.Context, req effect.Request) iter.Seq[message.StreamEvent] {
	m.mu.Lock()
	m.requests = append(m.requests, req)
	n := len(m.requests)
	m.mu.Unlock()
	return m.play(ctx, n, req, func() Reply { return m.Reply(n, req) })
}

// play sends an answer, unless the process dies of asking for it.
func (m *Model) play(ctx context.Context, n int, req effect.Request, answer func() Reply) iter.Seq[message.StreamEvent] {
	life := m.pace.world.life
	died, alive := life.effect("request")
	if !alive {
		return func(func(message.StreamEvent) bool) {}
	}
	reply := answer()
	m.pace.request(n, req)
	events, final := reply.events(m.ModelInfo, req.Now)
	return func(yield func(message.StreamEvent) bool) {
		defer m.pace.over()
		var sent strings.Builder
		for i, ev := range events {
			m.pace.wait(ctx)
			if i < final && ctx.Err() != nil {
				died()
				yield(m.aborted(req.Now, sent.String()))
				return
			}
			last := i+1 < len(events) && ev.Delta != "" && events[i+1].Delta == ""
			if reply.Midway != nil && (last || i == final) {
				reply.Midway()
				reply.Midway = nil
			}
			if reply.Pause != nil && last {
				select {
				case <-reply.Pause:
				case <-ctx.Done():
				}
			}
			if ev.Type == message.EventTextDelta {
				sent.WriteString(ev.Delta)
			}
			m.pace.event(ev)
			if i >= final {
				died()
			}
			if !yield(ev) {
				return
			}
		}
		if !reply.Hang {
			died()
			return
		}
		m.hang(ctx)
		died()
		yield(m.aborted(req.Now, sent.String()))
	}
}

func (m *Model) aborted(now int64, sent string) message.StreamEvent {
	a := message.Assistant{
		API: m.ModelInfo.API, Provider: m.ModelInfo.Ref.Provider, Model: m.ModelInfo.Ref.ModelID,
		StopReason: message.StopAborted, ErrorMessage: "aborted", Timestamp: now,
	}
	if m.Keeps && sent != "" {
		a.Content = []message.Block{message.TextBlock(sent)}
	}
	return message.StreamEvent{Type: message.EventError, Reason: message.StopAborted, Message: a.Message()}
}

// Sequence answers with the replies in turn and repeats the last.
func Sequence(replies ...Reply) func(int, effect.Request) Reply {
	return func(n int, _ effect.Request) Reply { return replies[min(n, len(replies))-1] }
}

// Models is a registry from which models can be taken away. What it resolves is
// strict: a request that no provider would take fails the test.
type Models struct {
	complain func(format string, args ...any)

	mu     sync.Mutex
	models map[message.ModelRef]effect.Model
	broken error
}

// Add registers a model under its own reference.
func (r *Models) Add(m effect.Model) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.models == nil {
		r.models = make(map[message.ModelRef]effect.Model)
	}
	r.models[m.Info().Ref] = m
}

// Remove takes a model away.
func (r *Models) Remove(ref message.ModelRef) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.models, ref)
}

// Fail makes every look-up fail; nil mends it.
func (r *Models) Fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = err
}

// Resolve finds a model.
func (r *Models) Resolve(ref message.ModelRef) (effect.Model, error) {
	return Strict(lookup{r}, r.complain).Resolve(ref)
}

// lookup is the registry itself.
type lookup struct{ *Models }

func (r lookup) Resolve(ref message.ModelRef) (effect.Model, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		return nil, r.broken
	}
	m, ok := r.models[ref]
	if !ok {
		return nil, &effect.UnknownModel{Ref: ref}
	}
	return m, nil
}
