package scripted

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

// player sends one response as stream events (behaviours §2). Deltas are
// slices of the script's own text: nothing grows with what has been sent.
type player struct {
	ctx    context.Context
	yield  func(message.StreamEvent) bool
	req    effect.Request
	limit  int64                  // the model's output limit in tokens
	answer message.Assistant      // what all messages of the answer have in common
	sent   []message.Block        // the content so far
	began  bool                   // a delta has been sent
	polled message.DeferredHandle // the job that is asked about, if one is
	gone   bool                   // the consumer has stopped
}

func newPlayer(ctx context.Context, m *model, req effect.Request, yield func(message.StreamEvent) bool) *player {
	return &player{
		ctx: ctx, yield: yield, req: req, limit: m.script.maxTokens,
		answer: message.Assistant{API: Name, Provider: Name, Model: m.id, Timestamp: req.Now},
	}
}

// play sends all events of the response.
func (p *player) play(r response) {
	if !wait(p.ctx, r.hang) {
		p.abort()
		return
	}
	if !r.hasContent() {
		switch {
		case r.failure != nil:
			p.fail(*r.failure) // refused before it started
			return
		case r.hang > 0 && r.deferred == nil:
			p.fail(failure{
				message: fmt.Sprintf("request timed out after %v", r.hang),
				info:    message.ErrorInfo{Class: message.ClassTimeout},
			})
			return
		}
	}
	p.start()
	for i, b := range r.blocks() {
		if !p.block(i, b, r) {
			p.abort()
			return
		}
	}
	switch {
	case r.failure != nil:
		p.fail(*r.failure)
	case r.deferred != nil:
		p.answer.Deferred = p.handle(*r.deferred)
		p.done(message.StopDeferred, r.usage)
	default:
		p.done(r.reason(), r.usage)
	}
}

// blocks returns the content of the response in its order.
func (r response) blocks() []message.Block {
	var all []message.Block
	if r.thinking != "" {
		all = append(all, message.Block{Type: message.BlockThinking, Thinking: r.thinking})
	}
	if r.text != "" {
		all = append(all, message.TextBlock(r.text))
	}
	return append(all, r.calls...)
}

func (r response) reason() message.StopReason {
	switch {
	case r.stop != "":
		return r.stop
	case len(r.calls) > 0:
		return message.StopToolUse
	}
	return message.StopStop
}

func (p *player) start() {
	first := p.answer
	first.StopReason = message.StopPending
	p.emit(message.StreamEvent{Type: message.EventStart, Message: first.Message()})
}

// block sends one block and adds it to the content; false when the request was
// cancelled or the consumer has stopped, with what was sent added.
func (p *player) block(index int, b message.Block, r response) bool {
	s := streamed(b)
	p.emit(message.StreamEvent{Type: s.start, ContentIndex: index, Block: s.cut(0)})
	for from := 0; from < len(s.text); {
		delay := time.Duration(0)
		if p.began {
			delay = r.delay
		}
		if p.gone || !wait(p.ctx, delay) {
			p.sent = append(p.sent, s.cut(from))
			return false
		}
		to := chunkEnd(s.text, from, r.chunk)
		p.emit(message.StreamEvent{Type: s.delta, ContentIndex: index, Delta: s.text[from:to]})
		p.began, from = true, to
	}
	p.sent = append(p.sent, b)
	p.emit(message.StreamEvent{Type: s.end, ContentIndex: index, Block: b})
	return !p.gone
}

// stream is how a block is sent.
type stream struct {
	start, delta, end message.EventType
	text              string
	cut               func(n int) message.Block // the block after n bytes of text
}

func streamed(b message.Block) stream {
	switch b.Type {
	case message.BlockThinking:
		return stream{
			message.EventThinkingStart, message.EventThinkingDelta, message.EventThinkingEnd, b.Thinking,
			func(n int) message.Block {
				return message.Block{Type: message.BlockThinking, Thinking: b.Thinking[:n]}
			},
		}
	case message.BlockToolCall:
		return stream{
			message.EventToolCallStart, message.EventToolCallDelta, message.EventToolCallEnd, string(b.Arguments),
			func(n int) message.Block {
				part := b
				part.Arguments = rawjson.Complete(b.Arguments[:n])
				return part
			},
		}
	default:
		return stream{
			message.EventTextStart, message.EventTextDelta, message.EventTextEnd, b.Text,
			func(n int) message.Block { return message.TextBlock(b.Text[:n]) },
		}
	}
}

// done ends the answer well.
func (p *player) done(reason message.StopReason, u usage) {
	a := p.answer
	a.Content, a.StopReason = p.sent, reason
	m := encode(nil, a)
	output := p.limit
	switch {
	case reason != message.StopLength:
		output = message.EstimateTokens(m)
	case p.req.MaxOutput > 0:
		output = p.req.MaxOutput
	}
	a.Usage = u.complete(estimateRequest(p.req), output)
	p.emit(message.StreamEvent{Type: message.EventDone, Reason: reason, Message: encode(m[:0], a)})
}

// encode returns the message of a in the memory of buf, where it fits.
func encode(buf []byte, a message.Assistant) message.Message {
	size := 1 << 10
	for _, b := range a.Content {
		n := len(b.Text) + len(b.Thinking) + len(b.Arguments)
		size += 64 + n + n/8 // room for escapes
	}
	m, _ := a.AppendJSON(slices.Grow(buf, size)) // as Assistant.Message
	return m
}

// fail ends the answer with an error. Of its usage only what the script says
// counts: providers do not bill what they refuse.
func (p *player) fail(f failure) {
	if f.info.Class == "" {
		f.info.Class = message.ClassInvalidRequest
	}
	a := p.answer
	a.Content, a.StopReason, a.ErrorMessage = p.sent, message.StopError, f.message
	a.Usage = f.usage.complete(0, 0)
	a.Diagnostics = message.AppendProviderError(nil, f.info)
	p.emit(message.StreamEvent{Type: message.EventError, Reason: message.StopError, Message: a.Message()})
}

// abort ends the answer of a cancelled request.
func (p *player) abort() {
	a := p.answer
	a.Content, a.StopReason, a.ErrorMessage = p.sent, message.StopAborted, "the request was aborted"
	p.emit(message.StreamEvent{Type: message.EventError, Reason: message.StopAborted, Message: a.Message()})
}

// emit hands an event over, unless the consumer has stopped.
func (p *player) emit(ev message.StreamEvent) {
	if !p.gone {
		p.gone = !p.yield(ev)
	}
}

// handle is the deferred handle of a job (spec §3.2).
func (p *player) handle(j job) json.RawMessage {
	if p.polled.Raw != nil && p.polled.ID() == j.id {
		return p.polled.Raw
	}
	h := rawjson.AppendQuote([]byte(`{"provider":`), Name)
	h = rawjson.AppendQuote(append(h, `,"modelId":`...), p.answer.Model)
	h = rawjson.AppendQuote(append(h, `,"api":`...), Name)
	h = rawjson.AppendQuote(append(h, `,"id":`...), j.id)
	if j.pollAfter != nil {
		h = rawjson.AppendInt(append(h, `,"pollAfterMs":`...), *j.pollAfter)
	}
	return append(h, '}')
}

// chunkEnd returns where a delta of n characters from an index ends. No code
// point is split, an unpaired surrogate of WTF-8 neither.
func chunkEnd(s string, from, n int) int {
	for ; n > 0 && from < len(s); n-- {
		from++
		for from < len(s) && s[from]&0xC0 == 0x80 { // a continuation byte
			from++
		}
	}
	return from
}

// wait lets d pass; false when the context ended first.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 || ctx.Err() != nil {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
