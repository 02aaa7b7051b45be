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

// StreamEvent is one step of a provider's answer. Which fields count depends on
// Type: start has Message (empty content, stop reason pending); the block
// events have ContentIndex with Block as it was at that moment (start), Delta
// (for a tool call a piece of its arguments' JSON text), or Block as it is for
// good (end); done and error have Reason and the final Message. error may come
// without a start.
type StreamEvent struct {
	Type         EventType
	ContentIndex int
	Delta        string
	Block        Block
	Message      Message
	Reason       StopReason
}

// ResponseMetadata is what is known of an answer before its body is read.
type ResponseMetadata struct {
	Status  int
	Headers map[string]string
}
