package enginetest

import (
	"encoding/json"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

// Reply is one answer of a Model. The zero value is an empty answer that stops.
type Reply struct {
	// Chunks are the deltas of one text block.
	Chunks   []string
	Thinking string // of one block before the text, in one delta
	// Calls are the tool calls after the text, each with its arguments in one delta.
	Calls []message.Block
	// Deferred is the handle of an answer that comes later.
	Deferred json.RawMessage
	Stop     message.StopReason
	Usage    *message.Usage // nil: 10 in, 1 out per chunk

	// Error makes the answer an error with this text; Note says what the client
	// knew of it (D35).
	Error string
	Note  message.ErrorInfo
	// Bare leaves everything but the terminal event out.
	Bare bool

	// Midway runs before the last chunk; without chunks, before the answer ends.
	Midway func()
	// Pause is received from before the last chunk, when it is set.
	Pause <-chan struct{}
	// Hang waits for the end of the request's context after the chunks and then
	// reports an abort, as a cooperative provider does.
	Hang bool
	// Vanish ends the stream after the chunks, without a terminal event.
	Vanish bool
	// Events replaces everything above.
	Events []message.StreamEvent
}

// Call is one tool call of an answer.
func Call(id, name, arguments string) message.Block {
	return message.Block{Type: message.BlockToolCall, ID: id, Name: name, Arguments: json.RawMessage(arguments)}
}

// Ask is an answer that calls tools.
func Ask(calls ...message.Block) Reply { return Reply{Calls: calls} }

// Say is an answer of one chunk per text.
func Say(chunks ...string) Reply { return Reply{Chunks: chunks} }

// Fail is an error without content.
func Fail(text string) Reply { return Reply{Error: text, Bare: true} }

// Refuse is an error with a typed status and a retry-after in ms.
func Refuse(text string, status int, retryAfterMs int64) Reply {
	return Reply{Error: text, Bare: true, Note: message.ErrorInfo{Known: true, Status: status, RetryAfterMs: retryAfterMs}}
}

// events are the reply's stream events; final is where its terminal one starts.
func (r Reply) events(info effect.ModelInfo, now int64) (events []message.StreamEvent, final int) {
	if r.Events != nil {
		return r.Events, len(r.Events)
	}
	base := message.Assistant{API: info.API, Provider: info.Ref.Provider, Model: info.Ref.ModelID, StopReason: message.StopPending, Timestamp: now}
	if !r.Bare {
		events = append(events, message.StreamEvent{Type: message.EventStart, Message: base.Message()})
		events = append(events, r.blocks(&base)...)
	}
	final = len(events)
	if r.Vanish || r.Hang {
		return events, final
	}
	base.Usage, base.StopReason, base.ErrorMessage = r.usage(), r.stop(), r.Error
	if r.Deferred != nil {
		base.Deferred = r.Deferred
	}
	if r.Note.Known {
		base.Diagnostics = message.AppendProviderError(nil, r.Note)
	}
	terminal := message.EventDone
	if base.StopReason == message.StopError || base.StopReason == message.StopAborted {
		terminal = message.EventError
	}
	return append(events, message.StreamEvent{Type: terminal, Reason: base.StopReason, Message: base.Message()}), final
}

func (r Reply) blocks(a *message.Assistant) (events []message.StreamEvent) {
	block := func(kind message.BlockType, start, delta, end message.EventType, chunks ...string) {
		i, b := len(a.Content), message.Block{Type: kind}
		events = append(events, message.StreamEvent{Type: start, ContentIndex: i, Block: b})
		text := []byte(nil)
		for _, c := range chunks {
			text = rawjson.AppendJoin(text, c)
			events = append(events, message.StreamEvent{Type: delta, ContentIndex: i, Delta: c})
		}
		if kind == message.BlockThinking {
			b.Thinking = string(text)
		} else {
			b.Text = string(text)
		}
		a.Content = append(a.Content, b)
		if !r.Vanish && !r.Hang {
			events = append(events, message.StreamEvent{Type: end, ContentIndex: i, Block: b})
		}
	}
	if r.Thinking != "" {
		block(message.BlockThinking, message.EventThinkingStart, message.EventThinkingDelta, message.EventThinkingEnd, r.Thinking)
	}
	if len(r.Chunks) > 0 {
		block(message.BlockText, message.EventTextStart, message.EventTextDelta, message.EventTextEnd, r.Chunks...)
	}
	for _, call := range r.Calls {
		events = append(events, callEvents(call, len(a.Content))...)
		a.Content = append(a.Content, call)
	}
	return events
}

func callEvents(call message.Block, index int) []message.StreamEvent {
	open := call
	open.Arguments = json.RawMessage("{}")
	return []message.StreamEvent{
		{Type: message.EventToolCallStart, ContentIndex: index, Block: open},
		{Type: message.EventToolCallDelta, ContentIndex: index, Delta: string(call.Arguments)},
		{Type: message.EventToolCallEnd, ContentIndex: index, Block: call},
	}
}

func (r Reply) usage() message.Usage {
	if r.Usage != nil {
		return *r.Usage
	}
	out := int64(len(r.Chunks))
	return message.Usage{Input: 10, Output: out, TotalTokens: 10 + out}
}

func (r Reply) stop() message.StopReason {
	switch {
	case r.Stop != "":
		return r.Stop
	case r.Error != "":
		return message.StopError
	case r.Deferred != nil:
		return message.StopDeferred
	case len(r.Calls) > 0:
		return message.StopToolUse
	}
	return message.StopStop
}
