package store

import (
	"bytes"
	"encoding/json"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
)

// Appender is implemented by types that write their own JSON, so that raw
// payloads inside them are spliced and never re-encoded (D5).
type Appender interface {
	AppendJSON(dst []byte) ([]byte, error)
}

// encode gives the JSON of one typed value. Raw JSON and text never pass
// through encoding/json, which would change their bytes.
func encode(x any) (json.RawMessage, error) {
	switch v := x.(type) {
	case message.Frame:
		if len(v) > 0 {
			return json.RawMessage(v), nil // not copied: it can be a whole answer (D41)
		}
		return v.AppendJSON(nil)
	case Appender:
		return v.AppendJSON(nil)
	case json.RawMessage:
		return v, nil
	case string:
		return rawjson.Quote(v), nil
	case json.Marshaler:
		// Prepare checks the bytes; encoding/json would check and copy them, too.
		return v.MarshalJSON()
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(x); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// decode turns stored JSON into T; custom replaces the default decoding.
func decode[T any](raw json.RawMessage, custom func(json.RawMessage) (T, error)) (T, error) {
	if custom != nil {
		return custom(raw)
	}
	var v T
	switch p := any(&v).(type) {
	case *json.RawMessage:
		*p = raw
		return v, nil
	case *LeafID:
		return v, p.UnmarshalJSON(raw)
	case *string:
		s, err := rawjson.Unquote(raw)
		*p = s
		return v, err
	}
	err := json.Unmarshal(raw, &v)
	return v, err
}
