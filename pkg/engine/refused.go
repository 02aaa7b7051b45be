package engine

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

// refusal is why a required hook let an attempt fail, nil where none did; any
// other error is returned (D48).
func refusal(err error) (*HookFailed, error) {
	if failed, ok := errors.AsType[*HookFailed](err); ok {
		return failed, nil
	}
	return nil, err
}

// refusedAnswer is the answer of an attempt that a required hook let fail: an error
// that no repetition helps, since the hook would fail alike. The job of a poll is
// none the worse: it stays pending under the stored handle (D33).
func refusedAnswer(why *HookFailed, req effect.Request, info effect.ModelInfo, polled json.RawMessage) message.StreamEvent {
	note, text := message.ErrorInfo{Class: message.ClassInvalidRequest}, "a required "+why.Error()
	a := message.Assistant{API: info.API, Provider: info.Ref.Provider, Model: info.Ref.ModelID, Timestamp: req.Now}
	if polled == nil {
		a.StopReason, a.ErrorMessage, a.Diagnostics = message.StopError, text, message.AppendProviderError(nil, note)
		return message.StreamEvent{Type: message.EventError, Reason: a.StopReason, Message: a.Message()}
	}
	note.Text = text // the message of a pending answer has no place for it
	a.StopReason, a.Deferred, a.Diagnostics = message.StopDeferred, polled, message.AppendProviderError(nil, note)
	return message.StreamEvent{Type: message.EventDone, Reason: a.StopReason, Message: a.Message()}
}

// refusedEvents is the stream of such an attempt: the provider is not asked.
func refusedEvents(ev message.StreamEvent) effect.Events {
	return func(yield func(message.StreamEvent) bool) { yield(ev) }
}

// payloadHooks are the before_payload hooks of one request.
type payloadHooks struct {
	pass   *pass
	req    effect.Request
	info   effect.ModelInfo
	polled json.RawMessage // the handle of the job that is asked about

	mu      sync.Mutex
	refused *HookFailed
}

// hookPayload has a request show its body to the before_payload hooks, where there
// are any.
func (p *pass) hookPayload(req *effect.Request, info effect.ModelInfo, polled json.RawMessage) *payloadHooks {
	h := &payloadHooks{pass: p, req: *req, info: info, polled: polled}
	if len(p.lane.h.opts.Hooks.BeforePayload) > 0 {
		req.Payload = h.run
	}
	return h
}

// run is what a provider calls with its request body.
func (h *payloadHooks) run(_ context.Context, body json.RawMessage) (json.RawMessage, error) {
	next, err := h.pass.beforePayload(h.info, body)
	if why, other := refusal(err); other == nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.refused = why
	}
	return next, err
}

// guard replaces the end of an answer whose request a required hook refused:
// how a provider words that, and whether it could be repeated, is not up to it.
func (h *payloadHooks) guard(events effect.Events) effect.Events {
	if len(h.pass.lane.h.opts.Hooks.BeforePayload) == 0 {
		return events
	}
	return func(yield func(message.StreamEvent) bool) {
		for ev := range events {
			if ev.Type == message.EventDone || ev.Type == message.EventError {
				h.mu.Lock()
				if h.refused != nil {
					ev = refusedAnswer(h.refused, h.req, h.info, h.polled)
				}
				h.mu.Unlock()
			}
			if !yield(ev) {
				return
			}
		}
	}
}
