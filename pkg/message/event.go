package message

// EventType names a stream event and the frame made of it.
type EventType string

// The events of one response, in the order of their life.
const (
	EventStart         EventType = "start"
	EventTextStart     EventType = "text_start"
	EventTextDelta     EventType = "text_delta"
	EventTextEnd       EventType = "text_end"
	EventThinkingStart EventType = "thinking_start"
	EventThinkingDelta EventType = "thinking_delta"
	EventThinkingEnd   EventType = "thinking_end"
	EventToolCallStart EventType = "toolcall_start"
	EventToolCallDelta EventType = "toolcall_delta"
	EventToolCallEnd   EventType = "toolcall_end"
	EventDone          EventType = "done"
	EventError         EventType = "error"
)

// frameTypes are the events that have a frame, the frequent ones first.
var frameTypes = [...]EventType{
	EventTextDelta, EventThinkingDelta, EventToolCallDelta, EventStart,
	EventTextStart, EventTextEnd, EventThinkingStart, EventThinkingEnd,
	EventToolCallStart, EventToolCallEnd,
}

// StreamEvent is one step of a provider's answer. Which fields count depends on
// Type: start has Message (empty content, stop reason pending); the block
// events have ContentIndex with Block as it was at that moment (start), Delta
// (for a tool call a piece of its arguments' JSON text), or Block as it is for
// good (end); done and error have Reason and the final Message, or Late. error may
// come without a start.
type StreamEvent struct {
	Type         EventType
	ContentIndex int
	Delta        string
	Block        Block
	Message      Message
	Reason       StopReason
	// Late makes the final Message, which is left to Final.
	Late func() Message
}

// Final is the message that a done or error event ends with. Where a provider has
// left the making of a long one to it, every call makes a new one (D41).
func (ev StreamEvent) Final() Message {
	if ev.Late != nil {
		return ev.Late()
	}
	return ev.Message
}

// ResponseMetadata is what is known of an answer before its body is read.
type ResponseMetadata struct {
	Status  int
	Headers map[string]string
}

// step is what an event does to a block, or to the message.
type step int

const (
	stepUnknown step = iota
	stepMessage
	stepStart
	stepDelta
	stepEnd
	stepDone
)

// split returns the type of block an event is about and what it does to it.
func (t EventType) split() (BlockType, step) {
	switch t {
	case EventStart:
		return "", stepMessage
	case EventTextStart:
		return BlockText, stepStart
	case EventTextDelta:
		return BlockText, stepDelta
	case EventTextEnd:
		return BlockText, stepEnd
	case EventThinkingStart:
		return BlockThinking, stepStart
	case EventThinkingDelta:
		return BlockThinking, stepDelta
	case EventThinkingEnd:
		return BlockThinking, stepEnd
	case EventToolCallStart:
		return BlockToolCall, stepStart
	case EventToolCallDelta:
		return BlockToolCall, stepDelta
	case EventToolCallEnd:
		return BlockToolCall, stepEnd
	case EventDone, EventError:
		return "", stepDone
	}
	return "", stepUnknown
}
