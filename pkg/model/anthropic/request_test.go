package anthropic

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
)

// sent returns the request's body with one member left out that a test does not
// care for.
func sent(t *testing.T, spec model.Spec, req effect.Request, without ...string) string {
	t.Helper()
	body := newRequest("acme", spec, req, false).body
	if err := rawjson.Valid(body); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for _, member := range without {
		var err error
		if body, err = rawjson.Delete(body, member); err != nil {
			t.Fatal(err)
		}
	}
	return string(body)
}

var spec = model.Spec{ID: "claude-sonnet-4-5", ContextWindow: 200_000, MaxTokens: 64_000, Images: true}

func user(text string) message.Message { return message.NewUser(text, nil, 1) }

// said is an answer of the model itself.
func said(blocks ...message.Block) message.Message {
	return message.Assistant{Provider: "acme", API: API, Model: spec.ID, Content: blocks, StopReason: message.StopStop}.Message()
}

func done(id, text string) message.Message {
	r := message.ToolResult{}
	if text != "" {
		r.Content = []message.Block{message.TextBlock(text)}
	}
	return message.NewToolResult(id, "ls", r, 1)
}

func call(id string) message.Block {
	return message.Block{Type: message.BlockToolCall, ID: id, Name: "ls", Arguments: []byte(`{"n": 1.0}`)}
}

const mark = `"cache_control":{"type":"ephemeral"}`

// The cache reaches to the end of the tools, of the system prompt and of the
// conversation.
func TestCacheMarks(t *testing.T) {
	got := sent(t, spec, effect.Request{
		SystemPrompt: "Be brief.", MaxOutput: 100,
		Messages: []message.Message{user("a"), said(message.TextBlock("b"), call("c1"), call("c2")), done("c1", "1"), done("c2", "2")},
		Tools:    []message.ToolSpec{{Name: "ls", Description: "List.", Parameters: []byte(`{"type":"object"}`)}, {Name: "cat", Parameters: []byte(`{"properties":{}}`)}},
	})
	want := `{"model":"claude-sonnet-4-5","max_tokens":100,` +
		`"system":[{"type":"text","text":"Be brief.",` + mark + `}],` +
		`"tools":[{"name":"ls","description":"List.","input_schema":{"type":"object"}},{"name":"cat","input_schema":{"properties":{},"type":"object"},` + mark + `}],` +
		`"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},` +
		`{"role":"assistant","content":[{"type":"text","text":"b"},{"type":"tool_use","id":"c1","name":"ls","input":{"n": 1.0}},{"type":"tool_use","id":"c2","name":"ls","input":{"n": 1.0}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"1"}]},` +
		`{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"2"}],` + mark + `}]}]}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestHistory: what is stored, as the turns of the API.
func TestHistory(t *testing.T) {
	thought := message.Block{Type: message.BlockThinking, Thinking: "hm", ThinkingSignature: "s/+="}
	redacted := message.Block{Type: message.BlockThinking, Redacted: true, ThinkingSignature: "data"}
	system := func(text string) message.Message {
		return message.Message(`{"role":"system","content":"` + text + `","timestamp":1}`)
	}
	for _, tt := range []struct {
		name     string
		messages []message.Message
		want     string // of messages
	}{
		{"nothing", nil, `[]`},
		{
			"thinking goes back as it came",
			[]message.Message{user("a"), said(thought, redacted, message.TextBlock("b")), user("c")},
			`[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[` +
				`{"type":"thinking","thinking":"hm","signature":"s/+="},{"type":"redacted_thinking","data":"data"},{"type":"text","text":"b"}]},` +
				`{"role":"user","content":[{"type":"text","text":"c",` + mark + `}]}]`,
		},
		{
			"another model's thinking is text",
			[]message.Message{user("a"), others(thought, redacted, message.TextBlock("b")), user("c")},
			`[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[` +
				`{"type":"text","text":"hm"},{"type":"text","text":"b"}]},{"role":"user","content":[{"type":"text","text":"c",` + mark + `}]}]`,
		},
		{
			"neighbours of one role are one turn, and those who say nothing are none",
			[]message.Message{user("a"), user("b"), said(message.TextBlock(" \n")), user("c"), said(message.TextBlock("d")), said(message.TextBlock("e"))},
			`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"text","text":"c"}]},` +
				`{"role":"assistant","content":[{"type":"text","text":"d"},{"type":"text","text":"e"}]}]`,
		},
		{
			"results come first in the user's turn, and say something",
			[]message.Message{user("a"), said(call("c1"), call("c2")), user("b"), done("c2", ""), done("c1", "1")},
			`[{"role":"user","content":[{"type":"text","text":"a"}]},` +
				`{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"ls","input":{"n": 1.0}},{"type":"tool_use","id":"c2","name":"ls","input":{"n": 1.0}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"1"}]},` +
				`{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"(no output)"}]},{"type":"text","text":"b",` + mark + `}]}]`,
		},
		{
			"instructions before the conversation are the system's, later ones the user's",
			[]message.Message{system("one"), system("two"), user("a"), said(message.TextBlock("b")), system("three"), user("c")},
			`[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"text","text":"b"}]},` +
				`{"role":"user","content":[{"type":"text","text":"<system>\nthree\n</system>"},{"type":"text","text":"c",` + mark + `}]}]`,
		},
		{
			"a conversation that begins with an answer gets a beginning",
			[]message.Message{said(message.TextBlock("a")), user("b")},
			`[{"role":"user","content":[{"type":"text","text":"(The beginning of the conversation is not shown.)"}]},` +
				`{"role":"assistant","content":[{"type":"text","text":"a"}]},{"role":"user","content":[{"type":"text","text":"b",` + mark + `}]}]`,
		},
		{
			"half a character is replaced, a whole one and a backslash are not",
			[]message.Message{message.Message(`{"role":"user","content":"\ud83d \ud83d\ude42 \ude42 \\ud83d \ud83d\u0041","timestamp":1}`)},
			`[{"role":"user","content":[{"type":"text","text":"\ufffd 🙂 \ufffd \\ud83d \ufffdA",` + mark + `}]}]`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := []byte(sent(t, spec, effect.Request{Messages: tt.messages}))
			got, _ := rawjson.Get(body, "messages")
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Error(diff)
			}
			if strings.HasPrefix(tt.name, "instructions") {
				system, _ := rawjson.Get(body, "system")
				if want := `[{"type":"text","text":"one"},{"type":"text","text":"two",` + mark + `}]`; string(system) != want {
					t.Errorf("system %s, want %s", system, want)
				}
			}
		})
	}
}

// An argument may hold half a character, too.
func TestSurrogatesInArguments(t *testing.T) {
	c := call("c1")
	c.Arguments = []byte(`{"a":"\ud83d","b":"\uD83D\uDE42\\"}`)
	got := sent(t, spec, effect.Request{Messages: []message.Message{user("a"), said(c), done("c1", "1")}})
	if !strings.Contains(got, `"input":{"a":"\ufffd","b":"\uD83D\uDE42\\"}`) {
		t.Error(got)
	}
}

// Images that cannot be sent leave a note.
func TestImages(t *testing.T) {
	picture := func(mime string) message.Message {
		return message.NewUser("", []message.Block{{Type: message.BlockImage, Data: "aGk=", MimeType: mime}}, 1)
	}
	blind := spec
	blind.Images = false
	for _, tt := range []struct {
		spec model.Spec
		mime string
		want string
	}{
		{spec, "image/png", `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="},` + mark + `}`},
		{spec, "image/tiff", `{"type":"text","text":"(An image of the type image/tiff was left out: it cannot be sent.)",` + mark + `}`},
		{blind, "image/png", `{"type":"text","text":"(An image was left out: this model takes none.)",` + mark + `}`},
	} {
		if got := sent(t, tt.spec, effect.Request{Messages: []message.Message{picture(tt.mime)}}); !strings.Contains(got, `"content":[`+tt.want+`]`) {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
}

// Tools that the history speaks of are declared when none is active, and may not
// be called.
func TestIdleTools(t *testing.T) {
	got := sent(t, spec, effect.Request{Messages: []message.Message{user("a"), said(call("c1")), done("c1", "1")}}, "messages", "model", "max_tokens")
	want := `{"tools":[{"name":"ls","input_schema":{"type":"object"},` + mark + `}],"tool_choice":{"type":"none"}}`
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Ids and names that other providers made are spelled as the API takes them, the
// same way wherever they stand.
func TestSpellings(t *testing.T) {
	odd := call("call_1|fc/2")
	odd.Name = "fs.list"
	got := sent(t, spec, effect.Request{Messages: []message.Message{user("a"), said(odd, call("call_1|fc/3")), done("call_1|fc/3", "3"), done("call_1|fc/2", "2")}})
	for _, want := range []string{
		`"id":"` + callID("call_1|fc/2") + `","name":"tool_fs_list"`, `"tool_use_id":"` + callID("call_1|fc/2") + `","content":[{"type":"text","text":"2"}]`,
		`"tool_use_id":"` + callID("call_1|fc/3") + `","content":[{"type":"text","text":"3"}]`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	if callID("call_1|fc/2") == callID("call_1|fc/3") || !plain(callID("call_1|fc/2")) || callID("toolu_01-a") != "toolu_01-a" {
		t.Error("ids are not told apart, or not kept")
	}
}
