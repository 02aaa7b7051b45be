package openai

import (
	"bytes"
	"errors"
	"io"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model/answer"
)

// chat makes an answer of the chunks that it comes in.
type chat struct {
	b        *answer.Builder
	quirks   Quirks
	said     bool // a choice has come
	text     *answer.Block
	thinking *answer.Block
	calls    []*chatCall
}

func newChat(b *answer.Builder, q Quirks) *chat { return &chat{b: b, quirks: q} }

// stream reads a stream of chunks.
func (c *chat) stream(r io.Reader) error {
	for events := newEventReader(r); ; {
		data, err := events.next()
		switch {
		case errors.Is(err, io.EOF):
			return c.end(false)
		case err != nil:
			return err
		case bytes.HasPrefix(data, []byte("[DONE]")):
			return c.end(true)
		}
		if err := c.chunk(data); err != nil {
			return err
		}
	}
}

// end takes the end of the stream. Servers may forget to name a finish reason;
// where they say that they are done, or never do, that is an end all the same.
func (c *chat) end(said bool) error {
	if c.said && !c.b.Ended() && (said || c.quirks.NoEnd) {
		c.b.Done(message.StopStop, "")
	}
	return nil
}

// chunk takes one chunk, or an answer in one piece.
func (c *chat) chunk(data []byte) error {
	if rawjson.KindOf(data) != rawjson.Object || rawjson.Valid(data) != nil {
		return answer.Garbled("what is no event of an answer", data)
	}
	if c.isFailure(data) {
		return answer.Reported(data)
	}
	var id, name string
	var choices, usage []byte
	// The chunk is valid: the walk cannot fail.
	_ = rawjson.MembersFunc(data, func(m rawjson.Member) bool {
		switch string(m.Key) {
		case `"id"`:
			id = str(m.Value)
		case `"model"`:
			name = str(m.Value)
		case `"choices"`:
			choices = m.Value
		case `"usage"`:
			usage = m.Value
		}
		return true
	})
	if rawjson.KindOf(choices) != rawjson.Array && rawjson.KindOf(usage) != rawjson.Object {
		return nil // nothing of an answer
	}
	c.b.Start(id, name)
	c.usage(usage)
	var failed error
	// Choices that are no array hold none.
	_ = rawjson.ElementsFunc(choices, func(start, end int) bool {
		failed = c.choice(choices[start:end])
		return failed == nil
	})
	return failed
}

// isFailure tells an error that stands in the place of an answer.
func (c *chat) isFailure(data []byte) bool {
	if v, ok := rawjson.Get(data, "error"); ok && rawjson.KindOf(v) != rawjson.Null {
		return true
	}
	object, _ := rawjson.GetString(data, "object")
	return object == "error"
}

func str(raw []byte) string {
	s, _ := rawjson.Unquote(raw) // what is no string is empty
	return s
}

// choice takes the first choice's delta, or its message where the server does
// not stream; no other was asked for.
func (c *chat) choice(raw []byte) error {
	if n, _ := rawjson.GetInt(raw, "index"); n != 0 {
		return nil
	}
	c.said = true
	for _, field := range []string{"delta", "message"} {
		if delta, ok := rawjson.Get(raw, field); ok && rawjson.KindOf(delta) == rawjson.Object {
			c.delta(delta)
		}
	}
	if usage, ok := rawjson.Get(raw, "usage"); ok {
		c.usage(usage)
	}
	reason, _ := rawjson.GetString(raw, "finish_reason")
	return c.finish(reason)
}

func (c *chat) delta(raw []byte) {
	for _, field := range c.quirks.reasoningFields() {
		if v, ok := rawjson.Get(raw, field); ok && len(v) > len(`""`) && v[0] == '"' {
			if c.thinking == nil {
				c.thinking = c.b.Thinking()
			}
			c.thinking.AddRaw(v)
			break
		}
	}
	for _, field := range []string{"content", "refusal"} {
		if v, ok := rawjson.Get(raw, field); ok && len(v) > len(`""`) && v[0] == '"' {
			if c.text == nil {
				c.text = c.b.Text()
			}
			c.text.AddRaw(v)
		}
	}
	calls, _ := rawjson.Get(raw, "tool_calls")
	// What is no array has no calls.
	_ = rawjson.ElementsFunc(calls, func(start, end int) bool {
		c.call(calls[start:end])
		return true
	})
}

// finish takes the reason why the answer ends; "" is none yet.
func (c *chat) finish(reason string) error {
	refuse := func(class, text string) error {
		c.b.Stopped(reason)
		return &answer.Refusal{Class: class, Text: text}
	}
	switch reason {
	case "":
	case "length", "max_tokens":
		c.b.Done(message.StopLength, reason)
	case "tool_calls", "function_call":
		c.b.Done(message.StopToolUse, reason)
	case "content_filter":
		return refuse(message.ClassInvalidRequest, "the server's content filter stopped the answer")
	case "error":
		return refuse(message.ClassServer, "the server ended the answer with an error")
	case "abort", "insufficient_system_resource":
		return refuse(message.ClassOverloaded, "the server gave the answer up")
	default:
		c.b.Done(message.StopStop, reason)
	}
	return nil
}

// usage reads the token counts. Cached tokens are part of the prompt's.
func (c *chat) usage(raw []byte) {
	if rawjson.KindOf(raw) != rawjson.Object {
		return
	}
	count := func(of []byte, field string) int64 {
		n, _ := rawjson.GetInt(of, field)
		return max(0, n)
	}
	in, _ := rawjson.Get(raw, "prompt_tokens_details")
	out, _ := rawjson.Get(raw, "completion_tokens_details")
	prompt, completion := count(raw, "prompt_tokens"), count(raw, "completion_tokens")
	u := message.Usage{
		CacheRead:  max(count(in, "cached_tokens"), count(raw, "cached_tokens"), count(raw, "prompt_cache_hit_tokens")),
		CacheWrite: count(in, "cache_write_tokens"),
		Output:     completion,
	}
	if n, ok := rawjson.GetInt(out, "reasoning_tokens"); ok {
		u.Reasoning = &n
		// Some servers count it beside the completion.
		if n > 0 && count(raw, "total_tokens") == prompt+completion+n {
			u.Output += n
		}
	}
	u.Input = prompt - u.CacheRead - u.CacheWrite
	c.b.Usage(u)
}
