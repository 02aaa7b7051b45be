package message

import "encoding/json"

// Role says who a message is from; it is the message's `role` field.
type Role string

// The roles a message can have.
const (
	RoleUser              Role = "user"
	RoleAssistant         Role = "assistant"
	RoleToolResult        Role = "toolResult"
	RoleSystem            Role = "system"
	RoleCustom            Role = "custom"
	RoleBashExecution     Role = "bashExecution"
	RoleBranchSummary     Role = "branchSummary"
	RoleCompactionSummary Role = "compactionSummary"
)

// StopReason says why an assistant message ended.
type StopReason string

// The stop reasons. A stored assistant message is never pending (spec §2.1).
const (
	StopPending  StopReason = "pending"
	StopStop     StopReason = "stop"
	StopLength   StopReason = "length"
	StopToolUse  StopReason = "toolUse"
	StopError    StopReason = "error"
	StopAborted  StopReason = "aborted"
	StopDeferred StopReason = "deferred"
)

// Message is one message of the conversation: the bytes of its JSON object,
// exactly as they arrived. The views below decode from it and never fail: a
// field that is missing or of another kind reads as its zero value. Of
// duplicate keys the last one counts.
type Message []byte

// Get returns the raw value of a field of the message.
func (m Message) Get(field string) (json.RawMessage, bool) { return nil, false }

// Role returns the `role` field.
func (m Message) Role() Role { return "" }

// Timestamp returns the `timestamp` field in Unix milliseconds.
func (m Message) Timestamp() int64 { return 0 }

// StopReason returns the `stopReason` of an assistant message.
func (m Message) StopReason() StopReason { return "" }

// ErrorMessage returns the `errorMessage` of an assistant message.
func (m Message) ErrorMessage() string { return "" }

// Usage decodes the `usage` field; false when there is none to read.
func (m Message) Usage() (Usage, bool) { return Usage{}, false }

// Text returns all text of the message: a string content, or the text blocks
// joined by newlines; of a bash execution its command and output, of a summary
// the summary.
func (m Message) Text() string { return "" }

// Blocks decodes the content. A string content is one text block, a null or
// missing one none. The blocks' raw fields alias the message.
func (m Message) Blocks() ([]Block, error) { return nil, nil }

// ToolCalls returns the tool calls of an assistant message in source order.
func (m Message) ToolCalls() []Block { return nil }

// With returns a copy of the message with one field replaced or added; all
// other bytes stay as they are.
func (m Message) With(field string, value json.RawMessage) (Message, error) { return nil, nil }

// AppendJSON appends the message verbatim.
func (m Message) AppendJSON(dst []byte) ([]byte, error) { return append(dst, m...), nil }

// MarshalJSON returns the message verbatim.
func (m Message) MarshalJSON() ([]byte, error) { return m, nil }

// UnmarshalJSON keeps a copy of data verbatim.
func (m *Message) UnmarshalJSON(data []byte) error {
	*m = append(Message(nil), data...)
	return nil
}
