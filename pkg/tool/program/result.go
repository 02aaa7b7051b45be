package program

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
)

// fields are the members of an object that a program printed.
type fields map[string]json.RawMessage

// parseResult reads a result that a program prints as JSON. Unknown members are
// refused: a misspelt isError would make a failure look like none.
func parseResult(text []byte) (message.ToolResult, error) {
	f, err := parseFields(text, "content", "details", "isError", "usage", "addedToolNames", "terminate")
	if err != nil {
		return message.ToolResult{}, err
	}
	r, err := f.result()
	if err != nil {
		return r, err
	}
	if r.Terminate, err = f.flag("terminate"); err != nil {
		return r, err
	}
	r.IsError, err = f.flag("isError")
	return r, err
}

// parseProgress reads a line of descriptor 3.
func parseProgress(line []byte) (r message.ToolResult, checkpoint bool, err error) {
	f, err := parseFields(line, "content", "details", "checkpoint")
	if err != nil {
		return r, false, err
	}
	if r, err = f.result(); err != nil {
		return r, false, err
	}
	checkpoint, err = f.flag("checkpoint")
	return r, checkpoint, err
}

// parseFields reads an object that has these members only, each at most once;
// null is as good as none.
func parseFields(text []byte, known ...string) (fields, error) {
	if at := rawjson.ValidUTF8(text); at >= 0 {
		return nil, &message.UTF8Error{Offset: at}
	}
	if bad := rawjson.Valid(text); bad != nil {
		return nil, fmt.Errorf("it is not JSON: %s at byte %d", bad.Msg, bad.Offset)
	}
	if rawjson.KindOf(text) != rawjson.Object {
		return nil, errors.New("it is not a JSON object")
	}
	text, err := rawjson.Compact(nil, text) // what goes into events stays on one line
	if err != nil {
		return nil, err
	}
	f := fields{}
	for m, err := range rawjson.Members(text) {
		if err != nil {
			return nil, err
		}
		name, _ := rawjson.Unquote(m.Key)
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("%s is unknown; there are %s", m.Key, strings.Join(known, ", "))
		}
		if _, twice := f[name]; twice {
			return nil, fmt.Errorf("%s is there twice", name)
		}
		f[name] = m.Value
	}
	for name, value := range f {
		if rawjson.KindOf(value) == rawjson.Null {
			delete(f, name)
		}
	}
	return f, nil
}

// result reads the members that a result and progress share, as strictly as the
// message that they become a part of.
func (f fields) result() (message.ToolResult, error) {
	var r message.ToolResult
	content := f["content"]
	if content == nil {
		return r, errors.New("content is missing")
	}
	if rawjson.KindOf(content) == rawjson.String {
		content = append(append(json.RawMessage(`[{"type":"text","text":`), content...), `}]`...)
	}
	m := append(append(message.Message(`{"role":"toolResult","toolCallId":"","toolName":"","isError":false,"content":`), content...), '}')
	if bad, ok := errors.AsType[*message.FieldError](message.Validate(m)); ok {
		return r, fmt.Errorf("%s %s", bad.Field, bad.Msg)
	}
	for raw := range rawjson.Elements(content) {
		b, err := message.ParseBlock(raw)
		if err == nil {
			err = checkImage(b)
		}
		if err != nil {
			return r, fmt.Errorf("content[%d]%w", len(r.Content), err)
		}
		r.Content = append(r.Content, b)
	}
	return r, f.rest(&r)
}

// rest reads what does not show in the conversation.
func (f fields) rest(r *message.ToolResult) error {
	if d := f["details"]; d != nil && rawjson.KindOf(d) != rawjson.Object {
		return errors.New("details is not an object")
	}
	r.Details = f["details"]
	if raw := f["usage"]; raw != nil {
		u, err := message.ParseUsage(raw)
		if err != nil {
			return fmt.Errorf("usage is no usage object: %w", err)
		}
		if err := u.Check(); err != nil {
			return err
		}
		r.Usage = &u
	}
	if raw := f["addedToolNames"]; raw != nil {
		if json.Unmarshal(raw, &r.AddedToolNames) != nil {
			return errors.New("addedToolNames is not a list of names")
		}
	}
	return nil
}

func (f fields) flag(name string) (bool, error) {
	raw := f[name]
	if raw == nil {
		return false, nil
	}
	if rawjson.KindOf(raw) != rawjson.Bool {
		return false, fmt.Errorf("%s is not true or false", name)
	}
	return string(raw) == "true", nil
}

// checkImage refuses an image that every provider would refuse, in this request
// and in all later ones.
func checkImage(b message.Block) error {
	if b.Type != message.BlockImage {
		return nil
	}
	switch b.MimeType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		return errors.New(".mimeType is not image/png, image/jpeg, image/gif or image/webp")
	}
	if b.Data == "" {
		return errors.New(".data is empty")
	}
	if _, err := base64.StdEncoding.DecodeString(b.Data); err != nil {
		return errors.New(".data is not base64")
	}
	return nil
}
