package enginetest_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/message"
)

func TestComplaint(t *testing.T) {
	user := message.NewUser("hi", nil, 1)
	say := func(stop message.StopReason, blocks ...message.Block) message.Message {
		return message.Assistant{Content: blocks, StopReason: stop, Timestamp: 1}.Message()
	}
	call := func(id string) message.Block {
		return message.Block{Type: message.BlockToolCall, ID: id, Name: "ls", Arguments: json.RawMessage(`{}`)}
	}
	text := message.TextBlock("yes")
	result := func(id string) message.Message {
		return message.NewToolResult(id, "ls", message.ToolResult{Content: []message.Block{text}}, 1)
	}
	calls := say(message.StopToolUse, call("a"), call("b"))
	raw := func(text string) message.Message {
		return message.Message(fmt.Sprintf(`{"role":"user","content":"%s","timestamp":1}`, text))
	}
	tests := []struct {
		name string
		want string
		req  effect.Request
	}{
		{"a question", "", effect.Request{Messages: []message.Message{user}}},
		{"two questions", "", effect.Request{Messages: []message.Message{user, user}}},
		{"results in order", "", effect.Request{Messages: []message.Message{user, calls, result("a"), result("b")}}},
		{"a whole pair of surrogates", "", effect.Request{Messages: []message.Message{raw(`\\\ud83d\ude00\u00e9`)}}},
		{"nothing", "the request says nothing", effect.Request{}},
		{"no question", "the conversation does not begin with a user", effect.Request{Messages: []message.Message{say(message.StopStop, text), user}}},
		{"an answer last", "the conversation ends with an answer: nothing is asked", effect.Request{Messages: []message.Message{user, say(message.StopStop, text)}}},
		{"a call without a result", "call b has no result directly after it", effect.Request{Messages: []message.Message{user, calls, result("a"), user}}},
		{"a call at the end", "call a has no result directly after it", effect.Request{Messages: []message.Message{user, calls, user}}},
		{"results out of order", "the result of b stands where that of call a belongs", effect.Request{Messages: []message.Message{user, calls, result("b"), result("a")}}},
		{"a result too many", "message 4 is the result of a call that nobody made there", effect.Request{Messages: []message.Message{user, calls, result("a"), result("b"), result("b")}}},
		{"a call id twice", `call id "a" is empty or taken`, effect.Request{Messages: []message.Message{user, say(message.StopToolUse, call("a"), call("a")), result("a"), result("a")}}},
		{"a failed answer", "message 1: an answer that ended with error is no part of a conversation", effect.Request{Messages: []message.Message{user, say(message.StopError, text), user}}},
		{"an empty answer", "message 1: an answer without content", effect.Request{Messages: []message.Message{user, say(message.StopStop), user}}},
		{"a role of ours", "message 1: no provider knows the role custom", effect.Request{Messages: []message.Message{user, message.Message(`{"role":"custom","customType":"x","content":"y","timestamp":1}`)}}},
		{"no message", "message 0: message is not a JSON object", effect.Request{Messages: []message.Message{message.Message(`5`)}}},
		{"no UTF-8", "message 0: byte 26 is no Unicode", effect.Request{Messages: []message.Message{raw("\xff")}}},
		{"half a character", "message 0: half a character at byte 26", effect.Request{Messages: []message.Message{raw(`\ud83dx`)}}},
		{"the other half", "message 0: half a character at byte 28", effect.Request{Messages: []message.Message{raw(`\\\ude00`)}}},
		{"a system prompt of bytes", "the system prompt is no Unicode", effect.Request{Messages: []message.Message{user}, SystemPrompt: "\xff"}},
		{"a tool twice", `tool name "ls" is empty or taken`, effect.Request{Messages: []message.Message{user}, Tools: []message.ToolSpec{{Name: "ls"}, {Name: "ls"}}}},
		{"a tool without a schema", "tool ls cannot be described", effect.Request{Messages: []message.Message{user}, Tools: []message.ToolSpec{{Name: "ls", Parameters: json.RawMessage(`{`)}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			enginetest.Equal(t, "complaint", enginetest.Complaint(tt.req), tt.want)
		})
	}
}

// A refusal is loud, and a permanent error for whoever asked.
func TestStrictRefuses(t *testing.T) {
	w := enginetest.InMemory(t)
	told := ""
	models := enginetest.Strict(w.Models, func(format string, args ...any) { told = fmt.Sprintf(format, args...) })
	m, err := models.Resolve(enginetest.Ref)
	if err != nil {
		t.Fatal(err)
	}
	var last message.StreamEvent
	for ev := range m.Stream(t.Context(), effect.Request{ResponseEntryID: "r1"}) {
		last = ev
	}
	enginetest.Equal(t, "told", told, "the model refuses request r1: the request says nothing")
	if last.Type != message.EventError || message.IsRetryable(last.Message) {
		t.Errorf("the answer is %s %s", last.Type, last.Message)
	}
}
