package message

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/drover-run/drover/internal/rawjson"
)

// FieldError says which field of a message is not what it must be.
type FieldError struct {
	Field string // path of the field, as `content[2].data`; empty for the message itself
	Msg   string
}

func (e *FieldError) Error() string {
	if e.Field == "" {
		return "message " + e.Msg
	}
	return "message field " + e.Field + " " + e.Msg
}

// UTF8Error reports input that is not UTF-8.
type UTF8Error struct {
	Offset int // of the first byte that is not UTF-8
}

func (e *UTF8Error) Error() string { return fmt.Sprintf("invalid UTF-8 at byte %d", e.Offset) }

// Normalize turns input from outside into a message: it refuses bytes that are
// not UTF-8 (*UTF8Error), removes insignificant white space, validates, and
// stamps now (Unix ms) when there is no timestamp.
func Normalize(raw []byte, now int64) (Message, error) {
	if at := rawjson.ValidUTF8(raw); at >= 0 {
		return nil, &UTF8Error{Offset: at}
	}
	m, err := rawjson.Compact(nil, raw)
	if err != nil {
		return nil, syntaxError(err)
	}
	if err := Validate(m); err != nil {
		return nil, err
	}
	if _, ok := present(m, "timestamp"); !ok {
		return Message(m).With("timestamp", rawjson.AppendInt(nil, now))
	}
	return m, nil
}

func syntaxError(err error) error {
	msg := "is not JSON: " + err.Error()
	if s, ok := errors.AsType[*rawjson.SyntaxError](err); ok {
		msg += fmt.Sprintf(" at byte %d", s.Offset)
	}
	return &FieldError{Msg: msg}
}

// Validate checks what acceptance requires of a message (spec §0.8): an object
// of a known role whose fields have the kinds behaviour demands; a user message
// says something and an assistant message has ended. Fields it does not know
// are not judged. The error is a *FieldError.
func Validate(m Message) error {
	if err := rawjson.Valid(m); err != nil {
		return syntaxError(err)
	}
	if rawjson.KindOf(m) != rawjson.Object {
		return &FieldError{Msg: "is not a JSON object"}
	}
	if err := checkFields(m, "", []field{{"role", isString, true}, {"timestamp", isInteger, false}}); err != nil {
		return err
	}
	role := m.Role()
	if !slices.Contains(roles[:], role) {
		return &FieldError{Field: "role", Msg: fmt.Sprintf("%q is unknown", role)}
	}
	if err := checkFields(m, "", roleFields(role)); err != nil {
		return err
	}
	if err := checkContent(m, role); err != nil {
		return err
	}
	switch {
	case role == RoleUser && !m.outline().says:
		return &FieldError{Field: "content", Msg: "is empty"}
	case role == RoleAssistant && m.StopReason() == StopPending:
		return &FieldError{Field: "stopReason", Msg: "is pending: the answer has not ended"}
	case role == RoleAssistant && !slices.Contains(stopReasons[:], m.StopReason()):
		return &FieldError{Field: "stopReason", Msg: fmt.Sprintf("%q is unknown", m.StopReason())}
	}
	return nil
}

// field is what a known field of an object must be.
type field struct {
	name     string
	is       kind
	required bool
}

// kind is a JSON kind, or integer, with its name for error messages.
type kind struct {
	name string
	ok   func(raw []byte) bool
}

func ofKind(name string, k rawjson.Kind) kind {
	return kind{name, func(raw []byte) bool { return rawjson.KindOf(raw) == k }}
}

var (
	isString  = ofKind("a string", rawjson.String)
	isBool    = ofKind("true or false", rawjson.Bool)
	isObject  = ofKind("an object", rawjson.Object)
	isArray   = ofKind("an array", rawjson.Array)
	isInteger = kind{"an integer", func(raw []byte) bool { _, ok := integer(raw); return ok }}
	isUsage   = kind{"a usage object", func(raw []byte) bool { _, err := ParseUsage(raw); return err == nil }}
)

func roleFields(role Role) []field {
	switch role {
	case RoleUser:
		return nil
	case RoleAssistant:
		return []field{
			{"api", isString, false}, {"provider", isString, false}, {"model", isString, false},
			{"responseModel", isString, false}, {"responseId", isString, false},
			{"usage", isUsage, false}, {"stopReason", isString, true},
			{"errorMessage", isString, false}, {"rawStopReason", isString, false},
			{"deferred", isObject, false}, {"diagnostics", isArray, false},
		}
	case RoleToolResult:
		return []field{
			{"toolCallId", isString, true}, {"toolName", isString, true}, {"isError", isBool, true},
			{"usage", isUsage, false}, {"addedToolNames", isArray, false},
		}
	case RoleSystem:
		return []field{{"sections", isObject, false}}
	case RoleCustom:
		return []field{{"customType", isString, true}, {"display", isBool, false}}
	case RoleBashExecution:
		return []field{
			{"command", isString, true}, {"output", isString, true}, {"exitCode", isInteger, false},
			{"cancelled", isBool, false}, {"truncated", isBool, false},
			{"fullOutputPath", isString, false}, {"excludeFromContext", isBool, false},
		}
	case RoleBranchSummary:
		return []field{{"summary", isString, true}, {"fromId", isString, false}}
	case RoleCompactionSummary:
		return []field{{"summary", isString, true}, {"tokensBefore", isInteger, false}}
	}
	return nil
}

func checkFields(obj []byte, path string, fields []field) error {
	values := make([][]byte, len(fields))
	// Validate has checked the whole message: the walk cannot fail.
	_ = rawjson.MembersFunc(obj, func(m rawjson.Member) bool {
		for i, f := range fields {
			if rawjson.KeyIs(m.Key, f.name) {
				values[i] = m.Value
			}
		}
		return true
	})
	for i, f := range fields {
		ok := values[i] != nil && rawjson.KindOf(values[i]) != rawjson.Null
		switch {
		case !ok && f.required:
			return &FieldError{Field: path + f.name, Msg: "is missing"}
		case ok && !f.is.ok(values[i]):
			return &FieldError{Field: path + f.name, Msg: "is not " + f.is.name}
		}
	}
	return nil
}

// present is rawjson.Get for which null is as good as nothing.
func present(obj []byte, field string) ([]byte, bool) {
	raw, ok := rawjson.Get(obj, field)
	if !ok || rawjson.KindOf(raw) == rawjson.Null {
		return nil, false
	}
	return raw, true
}

// checkContent checks that the content is text or blocks, as the role allows.
func checkContent(m Message, role Role) error {
	var allowed []BlockType
	mayBeText := false
	switch role {
	case RoleUser, RoleCustom:
		allowed, mayBeText = []BlockType{BlockText, BlockImage}, true
	case RoleSystem:
		allowed, mayBeText = []BlockType{BlockText}, true
	case RoleAssistant:
		allowed = []BlockType{BlockText, BlockThinking, BlockToolCall}
	case RoleToolResult:
		allowed = []BlockType{BlockText, BlockImage}
	default:
		return nil
	}
	content, ok := present(m, "content")
	switch {
	case !ok && role == RoleSystem: // sections may be all there is
		return nil
	case !ok:
		return &FieldError{Field: "content", Msg: "is missing"}
	case rawjson.KindOf(content) == rawjson.String && mayBeText:
		return nil
	case rawjson.KindOf(content) == rawjson.Array:
		return checkBlocks(content, allowed)
	case mayBeText:
		return &FieldError{Field: "content", Msg: "is neither text nor blocks"}
	}
	return &FieldError{Field: "content", Msg: "is not an array of blocks"}
}

func checkBlocks(content json.RawMessage, allowed []BlockType) error {
	i := 0
	for raw, err := range rawjson.Elements(content) {
		if err != nil {
			return err
		}
		path := fmt.Sprintf("content[%d]", i)
		i++
		if rawjson.KindOf(raw) != rawjson.Object {
			return &FieldError{Field: path, Msg: "is not an object"}
		}
		typ := name(raw, "type", blockTypes[:])
		if !slices.Contains(allowed, typ) {
			return &FieldError{Field: path + ".type", Msg: fmt.Sprintf("%q does not belong here", typ)}
		}
		if err := checkFields(raw, path+".", blockFields(typ)); err != nil {
			return err
		}
	}
	return nil
}

func blockFields(typ BlockType) []field {
	switch typ {
	case BlockText:
		return []field{{"text", isString, true}, {"textSignature", isString, false}}
	case BlockThinking:
		return []field{
			{"thinking", isString, true}, {"thinkingSignature", isString, false}, {"redacted", isBool, false},
		}
	case BlockImage:
		return []field{{"data", isString, true}, {"mimeType", isString, true}}
	case BlockToolCall:
		return []field{
			{"id", isString, true}, {"name", isString, true}, {"arguments", isObject, true},
			{"thoughtSignature", isString, false}, {"namespace", isString, false}, {"argumentsError", isString, false},
		}
	}
	return nil
}
