package message

import "encoding/json"

// Assistant is the typed form of an assistant message, for those who build one.
// Fields it does not name are not kept: change a stored message with With.
type Assistant struct {
	Content       []Block
	API           string
	Provider      string
	Model         string
	ResponseModel string
	ResponseID    string
	Usage         Usage
	StopReason    StopReason
	ErrorMessage  string
	RawStopReason string
	Deferred      json.RawMessage
	Diagnostics   json.RawMessage
	Timestamp     int64 // Unix ms
}

// ParseAssistant decodes an assistant message; its raw fields alias m.
func ParseAssistant(m Message) (Assistant, error) { return Assistant{}, nil }

// AppendJSON appends the message; empty optional fields are left out.
func (a Assistant) AppendJSON(dst []byte) ([]byte, error) { return dst, nil }

// Message returns the message of a.
func (a Assistant) Message() Message { return nil }
