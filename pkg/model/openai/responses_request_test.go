package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
)

var (
	thinker = model.Spec{ID: "gpt-5.2", Images: true, Thinking: []message.ThinkingLevel{message.ThinkingLow, message.ThinkingHigh}}
	blind   = model.Spec{ID: "gpt-3"}
)

const (
	reasoning = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Hm \ud83d"}],"encrypted_content":"gAAA==","unknown":1.0e2}`
	bare      = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Hm"}]}`
	open      = `{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Hm"}]}`
)

func user(content string) message.Message {
	return message.Message(`{"role":"user","content":` + content + `,"timestamp":1}`)
}

func result(id, content string) message.Message {
	return message.Message(`{"role":"toolResult","toolCallId":"` + id + `","toolName":"ls","content":` + content + `,"isError":false,"timestamp":1}`)
}

// said is an answer of the model that the tests ask.
func said(blocks ...string) message.Message { return saidBy("openai", "gpt-5.2", blocks...) }

func saidBy(provider, id string, blocks ...string) message.Message {
	return message.Message(`{"role":"assistant","content":[` + strings.Join(blocks, ",") + `],"api":"openai-responses","provider":"` +
		provider + `","model":"` + id + `","stopReason":"stop","timestamp":1}`)
}

func thought(signature string) string {
	return `{"type":"thinking","thinking":"Hm","thinkingSignature":` + string(rawjson.Quote(signature)) + `}`
}

func saying(text, signature string) string {
	return `{"type":"text","text":"` + text + `","textSignature":` + string(rawjson.Quote(signature)) + `}`
}

func calling(id string) string {
	return `{"type":"toolCall","id":"` + id + `","name":"ls","arguments":{"a":"\n"}}`
}

func TestInput(t *testing.T) {
	long := strings.Repeat("x", 65)
	for _, tt := range []struct {
		name     string
		spec     model.Spec
		messages []message.Message
		want     []string
	}{
		{"text as a string", thinker, []message.Message{user(`"hi"`)}, []string{
			`{"role":"user","content":[{"type":"input_text","text":"hi"}]}`,
		}},
		{"an image", thinker, []message.Message{user(`[{"type":"text","text":"see"},{"type":"image","data":"aGk=","mimeType":"image/png"}]`)}, []string{
			`{"role":"user","content":[{"type":"input_text","text":"see"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,aGk="}]}`,
		}},
		{"an image for a model that takes none", blind, []message.Message{user(`[{"type":"image","data":"aGk=","mimeType":"image/png"}]`)}, []string{
			`{"role":"user","content":[{"type":"input_text","text":"(an image was left out: this model takes none)"}]}`,
		}},
		{"nothing to say", thinker, []message.Message{user(`[{"type":"text","text":""},{"type":"future","text":"x"}]`), said(`{"type":"text","text":""}`)}, nil},
		{"half a character", thinker, []message.Message{user(`"a\ud83db"`)}, []string{
			`{"role":"user","content":[{"type":"input_text","text":"a` + "\uFFFD" + `b"}]}`,
		}},
		{"a system message", thinker, []message.Message{message.Message(`{"role":"system","content":"be brief"}`)}, []string{
			`{"role":"developer","content":"be brief"}`,
		}},
		{"a turn goes back as it came", thinker, []message.Message{
			said(thought(reasoning), saying("Let me look.", `{"v":1,"id":"msg_1","phase":"commentary"}`), calling("call_1|fc_1"), calling("call_2|fc_2")),
			result("call_1|fc_1", `[{"type":"text","text":"x"},{"type":"text","text":"y"}]`),
			result("call_2|fc_2", `[{"type":"text","text":"z"},{"type":"image","data":"aGk=","mimeType":"image/png"}]`),
		}, []string{
			reasoning,
			`{"type":"message","role":"assistant","id":"msg_1","status":"completed","content":[{"type":"output_text","text":"Let me look.","annotations":[]}],"phase":"commentary"}`,
			`{"type":"function_call","id":"fc_1","call_id":"call_1","name":"ls","arguments":"{\"a\":\"\\n\"}"}`,
			`{"type":"function_call","id":"fc_2","call_id":"call_2","name":"ls","arguments":"{\"a\":\"\\n\"}"}`,
			`{"type":"function_call_output","call_id":"call_1","output":"x\ny"}`,
			`{"type":"function_call_output","call_id":"call_2","output":[{"type":"input_text","text":"z"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,aGk="}]}`,
		}},
		{"parts of one message item", thinker, []message.Message{
			said(saying("a", `{"v":1,"id":"msg_1"}`), saying("no", `{"v":1,"id":"msg_1","refusal":true}`), saying("b", "msg_2"), saying("c", "?")),
		}, []string{
			`{"type":"message","role":"assistant","id":"msg_1","status":"completed","content":[{"type":"output_text","text":"a","annotations":[]},{"type":"refusal","refusal":"no"}]}`,
			`{"type":"message","role":"assistant","id":"msg_2","status":"completed","content":[{"type":"output_text","text":"b","annotations":[]}]}`,
			`{"role":"assistant","content":"c"}`,
		}},
		{"reasoning in the open", thinker, []message.Message{said(thought(open), saying("a", "msg_1"))}, []string{
			open,
			`{"type":"message","role":"assistant","id":"msg_1","status":"completed","content":[{"type":"output_text","text":"a","annotations":[]}]}`,
		}},
		{"reasoning that only the server had", thinker, []message.Message{said(thought(bare), saying("a", "msg_1"), calling("call_1|fc_1"))}, []string{
			`{"role":"assistant","content":"a"}`,
			`{"type":"function_call","call_id":"call_1","name":"ls","arguments":"{\"a\":\"\\n\"}"}`,
		}},
		{"reasoning that lost its signature", thinker, []message.Message{said(`{"type":"thinking","thinking":"x"}`, thought(reasoning), saying("a", "msg_1"))}, []string{
			`{"role":"assistant","content":"a"}`,
		}},
		{"reasoning that nothing follows", thinker, []message.Message{said(saying("a", "msg_1"), thought(reasoning), thought(reasoning))}, []string{
			`{"type":"message","role":"assistant","id":"msg_1","status":"completed","content":[{"type":"output_text","text":"a","annotations":[]}]}`,
		}},
		{"another model's", thinker, []message.Message{saidBy("openai", "gpt-5", thought(reasoning), saying("a", "msg_1"), saying("", "msg_2"), calling("call_1|fc_1"))}, []string{
			`{"role":"assistant","content":"a"}`,
			`{"type":"function_call","call_id":"call_1","name":"ls","arguments":"{\"a\":\"\\n\"}"}`,
		}},
		{"another provider's ids", thinker, []message.Message{
			saidBy("acme", "gpt-5.2", calling(long), calling("0|a"), calling("0|b")), result("0|b", `[]`), result(long, `[{"type":"text","text":"x"}]`),
		}, []string{
			`{"type":"function_call","call_id":"call_9537c5fdf120482f7d58d25e9ed583f5","name":"ls","arguments":"{\"a\":\"\\n\"}"}`,
			`{"type":"function_call","call_id":"0","name":"ls","arguments":"{\"a\":\"\\n\"}"}`,
			`{"type":"function_call","call_id":"call_7a29459eee5cbab479c9d1907d9637b7","name":"ls","arguments":"{\"a\":\"\\n\"}"}`,
			`{"type":"function_call_output","call_id":"call_7a29459eee5cbab479c9d1907d9637b7","output":""}`,
			`{"type":"function_call_output","call_id":"call_9537c5fdf120482f7d58d25e9ed583f5","output":"x"}`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := newInput("openai", tt.spec)
			for _, m := range tt.messages {
				in.add(m)
			}
			var got []string
			for item, err := range rawjson.Elements([]byte("[" + string(in.items) + "]")) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(item))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRequestBody(t *testing.T) {
	warm := 0.5
	full := effect.Request{
		ResponseEntryID: "entry-1", SystemPrompt: "be brief", Messages: []message.Message{user(`"hi"`)}, MaxOutput: 5,
		Tools:    []message.ToolSpec{{Name: "ls", Description: "lists", Parameters: json.RawMessage(`{"type":"object"}`)}, {Name: "pwd"}},
		Thinking: message.ThinkingHigh, Options: message.StreamOptions{Temperature: &warm},
	}
	const shared = `{"model":"gpt-5.2","instructions":"be brief","input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]}],` +
		`"tools":[{"type":"function","name":"ls","description":"lists","parameters":{"type":"object"},"strict":false},` +
		`{"type":"function","name":"pwd","description":"","parameters":{"type":"object","properties":{}},"strict":false}],` +
		`"tool_choice":"auto","parallel_tool_calls":true,"max_output_tokens":16,"temperature":0.5,` +
		`"include":["reasoning.encrypted_content"],"reasoning":{"effort":"high","summary":"auto"},`
	if diff := cmp.Diff(shared+`"store":false,"stream":true}`, string(responsesBody("openai", thinker, full))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(shared+`"background":true,"store":true,"metadata":{"drover_entry":"entry-1"}}`, string(backgroundBody("openai", thinker, full))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(`{"model":"gpt-3","input":[],"store":false,"stream":true}`, string(responsesBody("openai", blind, effect.Request{}))); diff != "" {
		t.Error(diff)
	}
}

func TestAppendReasoning(t *testing.T) {
	levels := []message.ThinkingLevel{message.ThinkingMinimal, message.ThinkingHigh}
	const include = `,"include":["reasoning.encrypted_content"]`
	const high = include + `,"reasoning":{"effort":"high","summary":"auto"}`
	const none = `,"reasoning":{"effort":"none"}`
	for _, tt := range []struct {
		id    string
		level message.ThinkingLevel
		spec  model.Spec
		want  string
	}{
		{"gpt-5", message.ThinkingHigh, model.Spec{Thinking: levels}, high},
		{"gpt-5", message.ThinkingOff, model.Spec{Thinking: levels}, include},
		{"gpt-5-2025-08-07", "", model.Spec{Thinking: levels}, include},
		{"gpt-5.1", message.ThinkingOff, model.Spec{Thinking: levels}, include + none},
		{"gpt-6-mini", "", model.Spec{Thinking: levels}, include + none},
		{"gpt-5.2-pro", message.ThinkingOff, model.Spec{Thinking: levels}, include},
		{"gpt-5.3-codex", message.ThinkingOff, model.Spec{Thinking: levels}, include},
		{"gpt-4.1", message.ThinkingOff, model.Spec{}, ""},
		{"house", message.ThinkingOff, model.Spec{Thinking: levels, Assumed: true}, ""},
		{"house", message.ThinkingHigh, model.Spec{Thinking: levels, Assumed: true}, high},
	} {
		tt.spec.ID = tt.id
		if diff := cmp.Diff("?"+tt.want, string(appendReasoning([]byte("?"), tt.spec, tt.level))); diff != "" {
			t.Errorf("%s at %q: %s", tt.id, tt.level, diff)
		}
	}
}
