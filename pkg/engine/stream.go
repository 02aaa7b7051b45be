package engine

import (
	"context"
	"errors"
	"runtime/debug"

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
	span := p.requestSpan(model)
	var final message.Message
	defer func() { endRequest(span, final) }()
	s := &stream{
		pass: p, draft: draft{responseID: req.ResponseEntryID},
		frames: frames{lane: p.lane, responseID: req.ResponseEntryID, list: op.Frames(p.operationID, req.ResponseEntryID)},
	}
	p.lane.setDraft(&s.draft)
	for ev := range events {
		if !s.event(ctx, ev) {
			break
		}
	}
	if err := s.frames.drain(ctx); err != nil {
		return nil, err
	}
	if err := p.closed(); err != nil {
		return nil, err
	}
	s.finish()
	var err error
	if final, err = s.settled(req, model); err != nil {
		return nil, err
	}
	if final, err = noted(final, req); err != nil {
		return nil, err
	}
	if final, err = p.responded(final, *meta); err != nil {
		return nil, err
	}
	s.ended(ctx, final)
	collectBefore(len(final))
	return final, nil
}

// noted adds to an answer what its request could not ask for as it was to.
func noted(m message.Message, req effect.Request) (message.Message, error) {
	var err error
	if req.Wanted != "" && req.Wanted != req.Thinking {
		if m, err = message.NoteThinking(m, req.Wanted, req.Thinking); err != nil {
			return nil, err
		}
	}
	if req.OmittedImages > 0 {
		return message.NoteImages(m, req.OmittedImages)
	}
	return m, nil
}

// hugeText is the size in bytes from which a text is worth a collection.
const hugeText = 4 << 20

// collectBefore gives up what an answer grew from before the next copies of its
// text are made: the collector would let a heap of such copies double first, and keep
// what is free then from those that the storage makes outside of it (D41). It takes a
// small part of the time that so long a text does.
func collectBefore(size int) {
	if size >= hugeText {
		debug.FreeOSMemory()
	}
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
	draft   draft
	started bool
	last    message.StreamEvent // the end, until final is made of it
	final   message.Message
	broken  error // how the provider contradicted itself
}

// event takes one event in; false ends the stream. What contradicts the events
// before it never becomes a frame: no later drive could read the list.
func (s *stream) event(ctx context.Context, ev message.StreamEvent) bool {
	if ev.Type == message.EventDone || ev.Type == message.EventError {
		s.last = ev
		return false
	}
	s.started = s.started || ev.Type == message.EventStart
	s.broken = s.pass.lane.reveal(ctx, func() op.Event { return s.told(ev) }, func() error {
		if err := s.draft.growing.AddEvent(ev); err != nil {
			return err
		}
		if ev.Block.Type != "" {
			s.frames.putBlock(ev)
		} else if frame, ok := message.FrameOf(ev); ok {
			s.frames.put(frame)
		}
		return nil
	})
	return s.broken == nil
}

// finish takes the final message in. That waits until the frames are durable: until then
// they and what they were made of are there as well (D41).
func (s *stream) finish() {
	s.final, s.last = s.last.Final(), message.StreamEvent{}
}

func (s *stream) told(ev message.StreamEvent) op.Event {
	e := op.Event{Type: op.EventMessageUpdate, Lane: s.pass.lane.name, RunID: s.pass.operationID, Stream: &ev, Partial: s.partial}
	if ev.Type == message.EventStart {
		e = op.Event{Type: op.EventMessageStart, Lane: e.Lane, RunID: e.RunID, Message: ev.Message}
	}
	return e
}

// ended tells the final message; one that was never streamed starts here, too.
func (s *stream) ended(ctx context.Context, final message.Message) {
	l := s.pass.lane
	became := func() error {
		s.draft.end(final)
		return nil
	}
	e := op.Event{Type: op.EventMessageStart, Lane: l.name, RunID: s.pass.operationID, Message: final}
	tell := func() op.Event { return e }
	if !s.started {
		_ = l.reveal(ctx, tell, became)
	}
	e.Type, e.EntryID = op.EventMessageEnd, s.draft.responseID
	_ = l.reveal(ctx, tell, became)
}

func (s *stream) partial() message.Message {
	s.pass.lane.mu.Lock()
	defer s.pass.lane.mu.Unlock()
	return s.draft.message()
}

// settled is the message that the stream ended with, made whole where a provider
// broke its contract: then it is an error with what came in before (spec §4.8,
// §9.1).
func (s *stream) settled(req effect.Request, model effect.Model) (message.Message, error) {
	m, broken := s.final, s.complaint()
	if broken == "" {
		return m, nil
	}
	m, err := m.With("stopReason", rawjson.Quote(string(message.StopError)))
	if err != nil || m.Role() != message.RoleAssistant || message.Validate(m) != nil {
		if m, err = s.soFar(req, model).With("stopReason", rawjson.Quote(string(message.StopError))); err != nil {
			return nil, err
		}
	}
	return m.With("errorMessage", rawjson.Quote(broken))
}

// soFar is the partial message, an empty one before the stream's start.
func (s *stream) soFar(req effect.Request, model effect.Model) message.Message {
	if m := s.partial(); m != nil {
		return m
	}
	info := model.Info()
	return message.Assistant{API: info.API, Provider: info.Ref.Provider, Model: info.Ref.ModelID, Timestamp: req.Now}.Message()
}

// complaint says how the provider broke its contract, "" when it did not.
func (s *stream) complaint() string {
	switch {
	case s.broken != nil:
		return "the provider's stream ended early, where it contradicted itself: " + s.broken.Error()
	case s.final == nil:
		return "the provider's stream ended early"
	case s.final.StopReason() == message.StopAborted && s.pass.gate.Context().Err() == nil:
		return "the provider reported an abort that nobody asked for"
	case s.final.StopReason() == message.StopPending:
		return "the provider's stream ended early: the answer is still pending"
	case s.final.Role() != message.RoleAssistant:
		return "the provider's answer is no assistant message"
	}
	if err := message.Validate(s.final); err != nil {
		return "the provider's answer is not valid: " + err.Error()
	}
	return ""
}

// frames appends the frames of one response in provider order (spec §3.7).
type frames struct {
	lane       *Lane
	responseID string
	list       store.List[message.Frame]
	latest     *store.Ticket
}

// put enqueues one append and returns at once: the lane line keeps the order, and
// a failed append faults the whole harness.
func (f *frames) put(frame message.Frame) {
	f.latest = f.lane.h.session.Enqueue(f.lane.name, func(m *store.Mutator) error {
		return f.append(m, frame)
	})
}

// putBlock is put for an event with a block, which waits as it is: its text is the
// draft's own, and may be the whole answer, of which a frame is a copy (D41).
func (f *frames) putBlock(ev message.StreamEvent) {
	f.latest = f.lane.h.session.Enqueue(f.lane.name, func(m *store.Mutator) error {
		collectBefore(len(ev.Block.Text) + len(ev.Block.Thinking) + len(ev.Block.Arguments))
		frame, _ := message.FrameOf(ev) // the draft has accepted it: it has a frame
		return f.append(m, frame)
	})
}

func (f *frames) append(m *store.Mutator, frame message.Frame) error {
	if !f.lane.owns(f.responseID) {
		return errOperationEnded
	}
	_, err := m.Commit(store.Tx{f.list.Append(frame)})
	return err
}

// drain waits for the latest append, which implies every earlier one.
func (f *frames) drain(ctx context.Context) error {
	if f.latest == nil {
		return nil
	}
	return f.latest.Wait(ctx)
}
