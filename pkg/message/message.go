package message

import (
	"bytes"
	"encoding/json"

	"github.com/drover-run/drover/internal/rawjson"
)

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

var roles = [...]Role{
	RoleUser, RoleAssistant, RoleToolResult, RoleSystem,
	RoleCustom, RoleBashExecution, RoleBranchSummary, RoleCompactionSummary,
}

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

var stopReasons = [...]StopReason{
	StopPending, StopStop, StopLength, StopToolUse, StopError, StopAborted, StopDeferred,
}

// Message is one message of the conversation: the bytes of its JSON object,
// exactly as they arrived. The views below decode from it; a field that is
// missing or of another kind reads as its zero value. Of duplicate keys the
// last one counts.
type Message []byte

// Get returns the raw value of a field, aliasing the message.
func (m Message) Get(field string) (json.RawMessage, bool) {
	v, ok := rawjson.Get(m, field)
	return v, ok
}

// Role returns the `role` field.
func (m Message) Role() Role { return name(m, "role", roles[:]) }

// Timestamp returns the `timestamp` field in Unix milliseconds.
func (m Message) Timestamp() int64 {
	v, _ := rawjson.Get(m, "timestamp")
	n, _ := integer(v)
	return n
}

// StopReason returns the `stopReason` of an assistant message.
func (m Message) StopReason() StopReason { return name(m, "stopReason", stopReasons[:]) }

// ErrorMessage returns the `errorMessage` of an assistant message.
func (m Message) ErrorMessage() string { return m.str("errorMessage") }

// Usage decodes the `usage` field; false when there is none to read.
func (m Message) Usage() (Usage, bool) {
	v, ok := rawjson.Get(m, "usage")
	if !ok || rawjson.KindOf(v) != rawjson.Object {
		return Usage{}, false
	}
	u, err := ParseUsage(v)
	return u, err == nil
}

// Text returns all text of the message: a string content, or the text blocks
// joined by newlines; of a bash execution its command and output, of a summary
// the summary.
func (m Message) Text() string {
	switch m.Role() {
	case RoleBashExecution:
		return m.str("command") + "\n" + m.str("output")
	case RoleBranchSummary, RoleCompactionSummary:
		return m.str("summary")
	}
	content, _ := rawjson.Get(m, "content")
	if rawjson.KindOf(content) != rawjson.Array {
		return text(content)
	}
	var all []byte
	found := false
	// Get has checked the content: the walk cannot fail.
	_ = rawjson.ElementsFunc(content, func(start, end int) bool {
		raw := content[start:end]
		if !isBlock(raw, BlockText) {
			return true
		}
		if found {
			all = append(all, '\n')
		}
		found = true
		if v, ok := rawjson.Get(raw, "text"); ok && v[0] == '"' {
			all, _ = rawjson.AppendUnquote(all, v)
		}
		return true
	})
	return string(all)
}

// Blocks decodes the content. A string content is one text block, a null or
// missing one none. The blocks' raw fields alias the message.
func (m Message) Blocks() ([]Block, error) {
	content, ok := rawjson.Get(m, "content")
	if !ok {
		return nil, nil
	}
	return parseContent(content)
}

// ToolCalls returns the tool calls of an assistant message in source order.
func (m Message) ToolCalls() []Block {
	if m.Role() != RoleAssistant {
		return nil
	}
	content, _ := rawjson.Get(m, "content")
	var calls []Block
	// Content that is no array holds no calls.
	_ = rawjson.ElementsFunc(content, func(start, end int) bool {
		if raw := content[start:end:end]; isBlock(raw, BlockToolCall) {
			call, _ := ParseBlock(raw)
			calls = append(calls, call)
		}
		return true
	})
	return calls
}

// With returns a copy of the message with one field replaced or added; all
// other bytes stay as they are.
func (m Message) With(field string, value json.RawMessage) (Message, error) {
	out, err := rawjson.Set(m, field, value)
	if err != nil {
		return nil, &FieldError{Field: field, Msg: "cannot be set: " + err.Error()}
	}
	return out, nil
}

// AppendJSON appends the message verbatim, null when there is none.
func (m Message) AppendJSON(dst []byte) ([]byte, error) { return appendRaw(dst, "", m), nil }

// MarshalJSON is AppendJSON for encoding/json.
func (m Message) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil) }

// UnmarshalJSON keeps a copy of data verbatim.
func (m *Message) UnmarshalJSON(data []byte) error {
	*m = append(Message(nil), data...)
	return nil
}

func (m Message) str(field string) string {
	s, _ := rawjson.GetString(m, field)
	return s
}

// OutputFile is the file that holds what was too long for a message, "" when there is
// none: it is named by the details of a tool result, and by a shell command that the
// user ran.
func (m Message) OutputFile() string {
	if !NamesOutputFile(m) {
		return ""
	}
	from := []byte(m)
	if m.Role() == RoleToolResult {
		from, _ = rawjson.Get(m, "details")
	}
	path, _ := rawjson.GetString(from, outputFile)
	return path
}

const outputFile = "fullOutputPath"

// NamesOutputFile is false of JSON that holds no message with an OutputFile. It is quick.
func NamesOutputFile(raw []byte) bool { return bytes.Contains(raw, []byte(outputFile)) }
