package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// consume reads a provider's stream to its end: every event becomes a frame that
// is appended without waiting, then an observation that is awaited (spec §3.7).
// It returns the final message once every frame is durable and the
// after_response hooks have seen it.
func (p *pass) consume(ctx context.Context, events effect.Events, req effect.Request, model effect.Model, meta *message.ResponseMetadata) (message.Message, error) {
	s := &stream{pass: p, frames: frames{lane: p.lane, operationID: p.operationID, responseID: req.ResponseEntryID}}
	p.lane.setDraft(&s.draft)
	for ev := range events {
		if err := s.event(ctx, ev); err != nil {
			return nil, err
		}
	}
	if err := s.frames.drain(ctx); err != nil {
		return nil, err
	}
	if err := p.closed(); err != nil {
		return nil, err
	}
	final, err := s.settled(req, model)
	if err != nil {
		return nil, err
	}
	if final, err = p.responded(final, *meta); err != nil {
		return nil, err
	}
	if !s.started {
		p.lane.h.events.emit(ctx, op.Event{Type: op.EventMessageStart, Lane: p.lane.name, RunID: p.operationID, Message: final})
	}
	p.lane.h.events.emit(ctx, op.Event{Type: op.EventMessageEnd, Lane: p.lane.name, RunID: p.operationID, Message: final, EntryID: req.ResponseEntryID})
	return final, nil
}

// responded runs after_response; an abort that comes first leaves the raw
// response to be settled under cancellation (spec §4.6).
func (p *pass) responded(final message.Message, meta message.ResponseMetadata) (message.Message, error) {
	changed, err := p.afterResponse(final, meta)
	var abort *effect.AbortRequested
	if errors.As(err, &abort) {
		p.interrupted(err)
		return final, nil
	}
	return changed, err
}

// closed reports a harness that was closed or faulted while an effect ran: what
// came in after that must not be committed (spec §4.7).
func (p *pass) closed() error {
	err := p.gate.Check()
	var abort *effect.AbortRequested
	if errors.As(err, &abort) {
		p.interrupted(err)
		return nil
	}
	return err
}

// stream is one response while it arrives.
type stream struct {
	pass    *pass
	frames  frames
	draft   message.Reducer
	started bool
	final   message.Message
}

func (s *stream) event(ctx context.Context, ev message.StreamEvent) error {
	if ev.Type == message.EventDone || ev.Type == message.EventError {
		s.final = ev.Message
		return nil
	}
	if frame, ok := message.FrameOf(ev); ok {
		s.frames.put(frame)
	}
	l := s.pass.lane
	l.mu.Lock()
	err := s.draft.AddEvent(ev)
	l.mu.Unlock()
	if err != nil {
		return fmt.Errorf("provider stream: %w", err)
	}
	out := op.Event{Type: op.EventMessageUpdate, Lane: l.name, RunID: s.pass.operationID, Stream: &ev, Partial: s.partial}
	if ev.Type == message.EventStart {
		s.started = true
		out = op.Event{Type: op.EventMessageStart, Lane: l.name, RunID: s.pass.operationID, Message: ev.Message}
	}
	l.h.events.emit(ctx, out)
	return nil
}

func (s *stream) partial() message.Message {
	s.pass.lane.mu.Lock()
	defer s.pass.lane.mu.Unlock()
	m, _ := s.draft.Message()
	return m
}

// settled is the message that the stream ended with, made whole where a provider
// broke its contract: a stream that just stopped, or an abort that nobody asked
// for, is an error (spec §9.1).
func (s *stream) settled(req effect.Request, model effect.Model) (message.Message, error) {
	m, broken := s.final, ""
	switch {
	case m == nil:
		broken = "the provider's stream ended early"
	case m.StopReason() == message.StopAborted && s.pass.gate.Context().Err() == nil:
		broken = "the provider reported an abort that nobody asked for"
	case m.StopReason() == message.StopPending:
		broken = "the provider's stream ended early: the answer is still pending"
	}
	if broken == "" {
		return m, nil
	}
	if m == nil {
		m = s.partial()
	}
	if m == nil {
		info := model.Info()
		m = message.Assistant{API: info.API, Provider: info.Ref.Provider, Model: info.Ref.ModelID, StopReason: message.StopError, Timestamp: req.Now}.Message()
	}
	m, err := m.With("stopReason", rawjson.Quote(string(message.StopError)))
	if err != nil {
		return nil, err
	}
	return m.With("errorMessage", rawjson.Quote(broken))
}

// frames appends the frames of one response in provider order (spec §3.7).
type frames struct {
	lane        *Lane
	operationID string
	responseID  string
	latest      *store.Ticket
}

// put enqueues one append and returns at once: the lane line keeps the order, and
// a failed append faults the whole harness.
func (f *frames) put(frame message.Frame) {
	f.latest = f.lane.h.session.Enqueue(f.lane.name, func(m *store.Mutator) error {
		if !f.lane.owns(f.responseID) {
			return errOperationEnded
		}
		_, err := m.Commit(store.Tx{op.Frames(f.operationID, f.responseID).Append(frame)})
		return err
	})
}

// drain waits for the latest append, which implies every earlier one.
func (f *frames) drain(ctx context.Context) error {
	if f.latest == nil {
		return nil
	}
	return f.latest.Wait(ctx)
}
