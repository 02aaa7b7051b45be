package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

// Hooks see the body of a request, and what they make of it is answered.
func TestPayload(t *testing.T) {
	const body = `{"systemPrompt":"Be brief.","tools":["bash"],"messages":[{"role":"user","content":[{"type":"text","text":"hello"}],"timestamp":1}]}`
	for _, tt := range []struct {
		name string
		hook func(json.RawMessage) (json.RawMessage, error)
		want string // the answer's text, or its error
	}{
		{"kept", func(b json.RawMessage) (json.RawMessage, error) { return b, nil }, "hello"},
		{"changed", func(b json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(strings.Replace(string(b), "hello", "bye", 1)), nil
		}, "bye"},
		{"refused", func(json.RawMessage) (json.RawMessage, error) { return nil, errors.New("no") }, "no"},
		{"no body", func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`1`), nil }, "the request has no messages"},
		{"no message", func(json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"messages":[{"role":"user"}]}`), nil
		}, "message field content is missing"},
	} {
		m, err := New(Options{}).Resolve(echoID)
		if err != nil {
			t.Fatal(err)
		}
		req := effect.Request{
			SystemPrompt: "Be brief.", Tools: []message.ToolSpec{{Name: "bash"}},
			Messages: []message.Message{message.NewUser("hello", nil, 1)},
			Payload: func(_ context.Context, b json.RawMessage) (json.RawMessage, error) {
				if string(b) != body {
					t.Errorf("%s: the body is %s", tt.name, b)
				}
				return tt.hook(b)
			},
		}
		var last message.Message
		for ev := range m.Stream(t.Context(), req) {
			if ev.Message != nil {
				last = ev.Message
			}
		}
		if got := last.Text() + last.ErrorMessage(); got != tt.want {
			t.Errorf("%s: the answer is %q, want %q", tt.name, got, tt.want)
		}
	}
}
