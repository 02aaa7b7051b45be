package anthropic

import (
	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model/answer"
)

// finish ends the answer as its stop reason says. Reasons that are not known are
// ends like any other.
func (r *reader) finish() error {
	r.b.Stopped(r.reason)
	switch r.reason {
	case "refusal":
		return answer.Permanent(refusalText(r.why))
	case "model_context_window_exceeded":
		// An answer that says something stays, as one that was cut short; the engine
		// judges by its usage whether the context has to shrink (D36).
		if !r.said {
			return &answer.Refusal{Class: message.ClassOverflow, Text: "the context window is full: " + r.reason}
		}
		r.b.Done(message.StopLength, r.reason)
	case "max_tokens":
		r.b.Done(message.StopLength, r.reason)
	case "tool_use":
		r.b.Done(message.StopToolUse, r.reason)
	default:
		r.b.Done(message.StopStop, r.reason)
	}
	return nil
}

func refusalText(why string) string {
	if why == "" {
		return "the model refused to answer"
	}
	return "the model refused to answer: " + why
}

// whole takes in a message that came in one piece.
func (r *reader) whole(m []byte) error {
	r.start(m)
	content, _ := rawjson.Get(m, "content")
	index := int64(0)
	err := rawjson.ElementsFunc(content, func(start, end int) bool {
		r.open(index, content[start:end])
		r.blocks[index].end()
		index++
		return true
	})
	if err != nil {
		return answer.Garbled("a message without content", m)
	}
	r.stopped(m)
	return r.finish()
}

// usage are the API's counts; later ones replace earlier ones.
type usage struct {
	input, output, read, write int64
	hour, thinking             *int64
}

func (u *usage) merge(raw []byte) {
	for _, c := range []struct {
		field string
		count *int64
	}{
		{"input_tokens", &u.input},
		{"output_tokens", &u.output},
		{"cache_read_input_tokens", &u.read},
		{"cache_creation_input_tokens", &u.write},
	} {
		if n, ok := rawjson.GetInt(raw, c.field); ok {
			*c.count = n
		}
	}
	creation, _ := rawjson.Get(raw, "cache_creation")
	if n, ok := rawjson.GetInt(creation, "ephemeral_1h_input_tokens"); ok {
		u.hour = &n
	}
	details, _ := rawjson.Get(raw, "output_tokens_details")
	if n, ok := rawjson.GetInt(details, "thinking_tokens"); ok {
		u.thinking = &n
	}
}

// counts are the usage's counts in our words: the API's input has no cached
// tokens in it, its output has the reasoning.
func (u *usage) counts() message.Usage {
	return message.Usage{
		Input: u.input, Output: u.output, CacheRead: u.read, CacheWrite: u.write,
		CacheWrite1h: u.hour, Reasoning: u.thinking,
	}
}
