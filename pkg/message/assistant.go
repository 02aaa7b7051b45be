package message

import (
	"encoding/json"
	"fmt"

	"github.com/drover-run/drover/internal/rawjson"
)

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

// ParseAssistant decodes an assistant message; its raw fields alias m. Usage
// may be missing.
func ParseAssistant(m Message) (Assistant, error) {
	if m.Role() != RoleAssistant {
		return Assistant{}, &FieldError{Field: "role", Msg: "is not assistant"}
	}
	var a Assistant
	var bad error
	err := rawjson.MembersFunc(m, func(f rawjson.Member) bool {
		switch string(keyText(f.Key)) {
		case "content":
			a.Content, bad = parseContent(f.Value)
		case "api":
			a.API = text(f.Value)
		case "provider":
			a.Provider = text(f.Value)
		case "model":
			a.Model = text(f.Value)
		case "responseModel":
			a.ResponseModel = text(f.Value)
		case "responseId":
			a.ResponseID = text(f.Value)
		case "usage":
			if a.Usage = (Usage{}); rawjson.KindOf(f.Value) != rawjson.Null {
				a.Usage, bad = ParseUsage(f.Value)
			}
		case "stopReason":
			a.StopReason = StopReason(text(f.Value))
		case "errorMessage":
			a.ErrorMessage = text(f.Value)
		case "rawStopReason":
			a.RawStopReason = text(f.Value)
		case "deferred":
			a.Deferred = f.Value
		case "diagnostics":
			a.Diagnostics = f.Value
		case "timestamp":
			a.Timestamp, _ = integer(f.Value)
		}
		return bad == nil
	})
	if err == nil {
		err = bad
	}
	if err != nil {
		return Assistant{}, fmt.Errorf("decode assistant message: %w", err)
	}
	return a, nil
}

// AppendJSON appends the message; empty optional fields are left out.
func (a Assistant) AppendJSON(dst []byte) ([]byte, error) {
	dst = appendBlocks(append(dst, `{"role":"assistant","content":`...), a.Content)
	dst = appendString(dst, `,"api":`, a.API)
	dst = appendString(dst, `,"provider":`, a.Provider)
	dst = appendString(dst, `,"model":`, a.Model)
	dst = appendOptional(dst, `,"responseModel":`, a.ResponseModel)
	dst = appendOptional(dst, `,"responseId":`, a.ResponseID)
	dst, err := a.Usage.AppendJSON(append(dst, `,"usage":`...))
	if err != nil {
		return dst, err
	}
	dst = appendString(dst, `,"stopReason":`, string(a.StopReason))
	dst = appendOptional(dst, `,"errorMessage":`, a.ErrorMessage)
	dst = appendOptional(dst, `,"rawStopReason":`, a.RawStopReason)
	dst = appendOptionalRaw(dst, `,"deferred":`, a.Deferred)
	dst = appendOptionalRaw(dst, `,"diagnostics":`, a.Diagnostics)
	return append(appendInt(dst, `,"timestamp":`, a.Timestamp), '}'), nil
}

// Message returns the message of a.
func (a Assistant) Message() Message {
	m, _ := a.AppendJSON(nil)
	return m
}
