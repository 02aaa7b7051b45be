package message

import (
	"bytes"
	"encoding/json"

	"github.com/drover-run/drover/internal/rawjson"
)

// Frame is one durable step of a streamed answer: a stream event without the
// growing message (spec §3.7), as raw JSON.
type Frame json.RawMessage

// FrameOf returns the frame of an event; done and error have none, nor has an
// event of an unknown type. It is called for every delta and allocates once.
func FrameOf(ev StreamEvent) (Frame, bool) {
	f := make(Frame, 0, 64+ev.payload())
	f = append(append(append(f, `{"type":"`...), ev.Type...), '"')
	if ev.Type == EventStart {
		return append(appendRaw(f, `,"message":`, ev.Message), '}'), true
	}
	f = appendInt(f, `,"contentIndex":`, int64(ev.ContentIndex))
	switch ev.Type {
	case EventTextStart, EventThinkingStart, EventToolCallStart:
		f, _ = ev.Block.AppendJSON(append(f, `,"block":`...))
	case EventTextDelta, EventThinkingDelta, EventToolCallDelta:
		f = appendString(f, `,"delta":`, ev.Delta)
	case EventTextEnd:
		f = appendString(f, `,"content":`, ev.Block.Text)
		f = appendOptional(f, `,"textSignature":`, ev.Block.TextSignature)
	case EventThinkingEnd:
		f = appendString(f, `,"content":`, ev.Block.Thinking)
		f = appendOptional(f, `,"thinkingSignature":`, ev.Block.ThinkingSignature)
		if ev.Block.Redacted {
			f = append(f, `,"redacted":true`...)
		}
	case EventToolCallEnd:
		f = ev.Block.appendCall(f)
	default:
		return nil, false
	}
	return append(f, '}'), true
}

// payload estimates how many bytes the event's own values take in its frame;
// escapes are rare enough that an eighth on top covers nearly all of them.
func (ev StreamEvent) payload() int {
	if ev.Delta != "" {
		return len(ev.Delta) + len(ev.Delta)>>3
	}
	b := ev.Block
	n := len(b.Text) + len(b.Thinking)
	return n + n>>3 + 128 + len(ev.Message) + len(b.Raw) + len(b.Arguments) + len(b.ID) + len(b.Name) +
		len(b.TextSignature) + len(b.ThinkingSignature) + len(b.ThoughtSignature) + len(b.Namespace) + len(b.ArgumentsError)
}

// AppendJSON appends the frame verbatim, null when there is none.
func (f Frame) AppendJSON(dst []byte) ([]byte, error) { return appendRaw(dst, "", f), nil }

// MarshalJSON is AppendJSON for encoding/json.
func (f Frame) MarshalJSON() ([]byte, error) { return f.AppendJSON(nil) }

// UnmarshalJSON keeps a copy of data verbatim.
func (f *Frame) UnmarshalJSON(data []byte) error {
	*f = append(Frame(nil), data...)
	return nil
}

// frameParts are the raw members of a frame that the reducer needs, aliasing it.
type frameParts struct {
	frame          Frame
	typ            EventType
	index          int64
	message, block []byte
	delta, content []byte
}

// parseFrame takes a frame apart and says what is wrong with it.
func parseFrame(f Frame) (frameParts, string) {
	p := frameParts{frame: f, index: -1}
	err := rawjson.MembersFunc(f, func(m rawjson.Member) bool {
		switch string(keyText(m.Key)) {
		case "type":
			p.typ = eventType(m.Value)
		case "contentIndex":
			p.index, _ = integer(m.Value)
		case "message":
			p.message = m.Value
		case "block":
			p.block = m.Value
		case "delta":
			p.delta = m.Value
		case "content":
			p.content = m.Value
		}
		return true
	})
	if err != nil {
		return p, "it is not an object: " + err.Error()
	}
	return p, ""
}

func eventType(raw []byte) EventType {
	for _, t := range frameTypes {
		if isName(raw, string(t)) {
			return t
		}
	}
	return EventType(text(raw))
}

// endBlock decodes the block of an end frame and says what is wrong with it.
// The frame's members are named like a block's, but for the content.
func (p frameParts) endBlock(typ BlockType) (Block, string) {
	b, err := ParseBlock(json.RawMessage(p.frame))
	if err != nil {
		return Block{}, "it is not an object"
	}
	content, err := rawjson.Unquote(p.content)
	if err != nil && typ != BlockToolCall {
		return Block{}, "its content is not a string"
	}
	end := Block{Type: typ}
	switch typ {
	case BlockText:
		end.Text, end.TextSignature = content, b.TextSignature
	case BlockThinking:
		end.Thinking, end.ThinkingSignature, end.Redacted = content, b.ThinkingSignature, b.Redacted
	case BlockToolCall:
		end.ID, end.Name, end.Arguments = b.ID, b.Name, bytes.Clone(b.Arguments)
		end.ThoughtSignature, end.Namespace, end.ArgumentsError = b.ThoughtSignature, b.Namespace, b.ArgumentsError
	}
	return end, ""
}
