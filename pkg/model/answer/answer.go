// Package answer builds the stream events of one answer from calls that know no
// provider: blocks, usage, an end. It owns what all providers must do alike, so
// that none of them does it by itself: legal event order, cut streams, aborts,
// the classes of errors (spec §3.7, D35).
package answer

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/drover-run/drover/internal/secret"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
)

// Base is what all answers of one model have in common.
type Base struct {
	Provider, API, Model string
	// Address is where requests go; error messages name its host.
	Address string
	Prices  model.Prices
}

// Stream returns the events of the answer that run builds. run is called once,
// on the consumer's goroutine, when the sequence is first consumed; its context
// ends with ctx, and when the consumer stops. Exactly one done or error event
// ends the sequence:
//   - done when run said so, whatever it returned: what follows an answer's end
//     cannot take the answer back;
//   - else error with reason aborted when ctx has ended;
//   - else error with what run returned and the content so far. Without an
//     error the stream was cut off.
func Stream(ctx context.Context, req effect.Request, base Base, run func(context.Context, *Builder) error) effect.Events {
	return stream(ctx, req, base, message.DeferredHandle{}, run)
}

// Poll is Stream for a question about a deferred job. One that could not be
// answered ends as deferred with handle, byte for byte, and a note of why (D33):
// only an answer about the job itself settles it.
func Poll(ctx context.Context, req effect.Request, base Base, handle message.DeferredHandle, run func(context.Context, *Builder) error) effect.Events {
	return stream(ctx, req, base, handle, run)
}

func stream(ctx context.Context, req effect.Request, base Base, handle message.DeferredHandle, run func(context.Context, *Builder) error) effect.Events {
	return func(yield func(message.StreamEvent) bool) {
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		b := &Builder{
			req: req, base: base, yield: yield, stop: cancel,
			answer: message.Assistant{Provider: base.Provider, API: base.API, Model: base.Model, Timestamp: req.Now},
		}
		err := ctx.Err()
		if err == nil {
			err = run(inner, b)
		}
		switch {
		case b.reason != "":
			b.finish()
		case ctx.Err() != nil:
			b.abort()
		default:
			if err == nil {
				err = io.ErrUnexpectedEOF
			}
			b.fail(err, handle)
		}
	}
}

// Builder takes what a provider says of its answer. It is used by run only.
type Builder struct {
	req     effect.Request
	base    Base
	yield   func(message.StreamEvent) bool
	stop    context.CancelFunc
	gone    bool // the consumer has stopped
	answer  message.Assistant
	began   bool
	blocks  []*Block // those that have started, in index order
	calls   int
	usage   message.Usage
	reason  message.StopReason // how it ended, once it has
	secrets secret.Set
}

// Start begins the answer; what is empty stays unsaid. Called again it only
// fills in what was not known before.
func (b *Builder) Start(responseID, responseModel string) {
	if responseID != "" {
		b.answer.ResponseID = responseID
	}
	if responseModel != "" && responseModel != b.answer.Model {
		b.answer.ResponseModel = responseModel
	}
	if b.began {
		return
	}
	b.began = true
	first := b.answer
	first.StopReason = message.StopPending
	b.emit(message.StreamEvent{Type: message.EventStart, Message: first.Message()})
}

// Usage sets what the request has used so far. Counts that nobody can have used are 0;
// a missing total is made, the cost always.
func (b *Builder) Usage(u message.Usage) {
	for _, n := range []*int64{&u.Input, &u.Output, &u.CacheRead, &u.CacheWrite, &u.TotalTokens, u.CacheWrite1h, u.Reasoning} {
		if n != nil && (*n < 0 || *n > message.MaxCount) {
			*n = 0
		}
	}
	if u.TotalTokens == 0 {
		u.TotalTokens = u.Input + u.Output + u.CacheRead + u.CacheWrite
	}
	u.Cost = b.base.Prices.Cost(u)
	b.usage = u
}

// Done says that the answer has ended, and how the provider words that. The
// event follows when run returns, so that usage may still come. An answer with
// tool calls does not stop but asks for tools, and only such a one does.
func (b *Builder) Done(reason message.StopReason, raw string) {
	b.reason, b.answer.RawStopReason = reason, raw
}

// Stopped keeps how the provider words the end of an answer that is an error.
func (b *Builder) Stopped(raw string) { b.answer.RawStopReason = raw }

// Prices replaces what the answer's tokens cost; it counts for usage that comes
// later.
func (b *Builder) Prices(p model.Prices) { b.base.Prices = p }

// Deferred says that the provider will answer later.
func (b *Builder) Deferred(handle message.DeferredHandle) {
	b.reason, b.answer.Deferred = message.StopDeferred, handle.Raw
}

// Ended tells whether Done or Deferred has been called.
func (b *Builder) Ended() bool { return b.reason != "" }

// Secret keeps a text out of all error messages, unless it is too short to be one.
func (b *Builder) Secret(s string) { b.secrets.Add(s) }

// Key returns the secret of a request to the endpoint, "" when none is needed,
// and keeps it out of all error messages, and with it what headers of the
// endpoint keep secret. Its error is run's to return.
func (b *Builder) Key(ctx context.Context, e model.Endpoint) (string, error) {
	for name, value := range e.Headers {
		b.secrets.AddHeader(name, value)
	}
	if e.Key == nil {
		return "", nil
	}
	key, err := e.Key(ctx)
	if err != nil {
		return "", &Refusal{Class: message.ClassAuth, Text: "the key cannot be read: " + err.Error(), unasked: true}
	}
	b.Secret(key)
	return key, nil
}

// Body passes a request body through the request's payload hooks.
func (b *Builder) Body(ctx context.Context, body []byte) ([]byte, error) {
	if b.req.Payload == nil {
		return body, nil
	}
	return b.req.Payload(ctx, body)
}

// Response tells status and headers of the response before its body is read.
// Cookies stay here.
func (b *Builder) Response(status int, header http.Header) {
	if b.req.OnResponse == nil {
		return
	}
	headers := make(map[string]string, len(header))
	for _, name := range slices.Sorted(maps.Keys(header)) {
		if name != "Set-Cookie" {
			headers[strings.ToLower(name)] = strings.Join(header[name], ", ")
		}
	}
	b.req.OnResponse(message.ResponseMetadata{Status: status, Headers: headers})
}

// emit hands an event over, unless the consumer has stopped.
func (b *Builder) emit(ev message.StreamEvent) {
	if b.gone {
		return
	}
	if !b.yield(ev) {
		b.gone = true
		b.stop()
	}
}

// finish ends the answer well.
func (b *Builder) finish() {
	if b.reason != message.StopDeferred {
		b.Start("", "")
		for _, k := range b.blocks {
			k.End()
		}
	}
	switch {
	case b.calls > 0 && b.reason == message.StopStop:
		b.reason = message.StopToolUse
	case b.calls == 0 && b.reason == message.StopToolUse:
		b.reason = message.StopStop
	}
	b.answer.StopReason, b.answer.Usage = b.reason, b.usage
	b.emit(message.StreamEvent{Type: message.EventDone, Reason: b.reason, Late: b.encode})
}

// abort ends the answer of a cancelled request.
func (b *Builder) abort() {
	b.end(message.StopAborted, "the request was aborted")
}

// fail ends the answer with an error, or leaves a job pending that the error
// says nothing of.
func (b *Builder) fail(err error, handle message.DeferredHandle) {
	r := refusal(err)
	info := message.ErrorInfo{Status: r.Status, Class: r.Class, RetryAfterMs: r.RetryAfterMs, Unsent: r.unsent}
	pending := handle.Raw != nil && r.leavesJob(handle.ID())
	if pending {
		info.Text = b.sentence(r)
	}
	b.answer.Diagnostics = message.AppendProviderError(nil, info)
	if pending {
		b.Deferred(handle)
		b.blocks = nil
		b.finish()
		return
	}
	b.end(message.StopError, b.sentence(r))
}

func (b *Builder) end(reason message.StopReason, text string) {
	for _, k := range b.blocks {
		k.flush()
	}
	b.answer.StopReason, b.answer.ErrorMessage, b.answer.Usage = reason, text, b.usage
	b.emit(message.StreamEvent{Type: message.EventError, Reason: reason, Late: b.encode})
}

// encode is the message with its content, made in memory of the right size: a
// growing one would hold a long answer twice (D41). Nothing is added after it.
func (b *Builder) encode() message.Message {
	size := 1 << 10
	b.answer.Content = make([]message.Block, len(b.blocks))
	for i, k := range b.blocks {
		c := k.content()
		b.answer.Content[i] = c
		n := len(c.Text) + len(c.Thinking) + len(c.Arguments)
		size += 256 + n + n/8 + len(c.TextSignature) + len(c.ThinkingSignature) + len(c.ThoughtSignature)
	}
	m, _ := b.answer.AppendJSON(make([]byte, 0, size)) // as Assistant.Message
	return m
}
