package openai

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model/answer"
)

// fataler is a test, or a property of one.
type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

// checkLegal checks that whatever a server sends, the answer's events are legal,
// end once, and add up to its message, which it returns.
func checkLegal(t fataler, api string, read func(*answer.Builder) error) message.Message {
	t.Helper()
	base := answer.Base{Provider: "openai", API: api, Model: "gpt-5.2"}
	var frames message.Reducer
	var last message.StreamEvent
	for ev := range answer.Stream(context.Background(), effect.Request{}, base, func(_ context.Context, b *answer.Builder) error { return read(b) }) {
		if last.Final() != nil && last.Type != message.EventStart {
			t.Fatalf("%s after %s", ev.Type, last.Type)
		}
		if frame, ok := message.FrameOf(ev); ok {
			if err := frames.Add(0, frame); err != nil {
				t.Fatalf("%v", err)
			}
		}
		last = ev
	}
	if err := message.Validate(last.Final()); err != nil || last.Reason != last.Final().StopReason() {
		t.Fatalf("%s %s: %v", last.Reason, last.Final(), err)
	}
	if m, ok := frames.Message(); ok {
		got, _ := m.Get("content")
		want, _ := last.Final().Get("content")
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Fatalf("%s", diff)
		}
	}
	return last.Final()
}

// checkResponse also sends the answer back: the request must be JSON.
func checkResponse(t fataler, stream string) {
	t.Helper()
	m := checkLegal(t, responsesAPI, func(b *answer.Builder) error {
		return newResponsesAnswer(b).stream(strings.NewReader(stream))
	})
	req := effect.Request{Messages: message.ToProvider([]message.Message{m})}
	if err := rawjson.Valid(responsesBody("openai", thinker, req)); err != nil {
		t.Fatalf("%s goes back as no JSON: %v", m, err)
	}
}

func FuzzResponse(f *testing.F) {
	f.Add("event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r\"}}\n\n: c\r\n\r\ndata: {\n")
	for _, e := range mixed {
		f.Add(wire("x", e) + wire("response.completed", `"response":{"status":"completed"}`))
	}
	f.Fuzz(func(t *testing.T, stream string) { checkResponse(t, stream) })
}

// mixed are events, and some that are not quite.
var mixed = []string{
	`"type":"response.created","response":{"id":"r","model":"m"}`,
	`"type":"response.output_item.added","output_index":%d,"item":{"type":"reasoning","id":"rs","summary":[]}`,
	`"type":"response.output_item.added","output_index":%d,"item":{"type":"function_call","id":"fc","call_id":"c","name":"ls"}`,
	`"type":"response.output_item.added","output_index":%d,"item":null`,
	`"type":"response.output_text.delta","output_index":%d,"content_index":1,"delta":"a\ud83d"`,
	`"type":"response.output_text.delta","output_index":%d,"delta":"\ude42\u0000"`,
	`"type":"response.refusal.delta","output_index":%d,"delta":"no"`,
	`"type":"response.reasoning_summary_part.added","output_index":%d,"summary_index":1`,
	`"type":"response.reasoning_summary_text.delta","output_index":%d,"delta":"hm"`,
	`"type":"response.function_call_arguments.delta","output_index":%d,"delta":"{\"a\":"`,
	`"type":"response.output_item.done","output_index":%d,"item":{"type":"reasoning","id":"rs","encrypted_content":"x"}`,
	`"type":"response.output_item.done","output_index":%d,"item":{"type":"reasoning","summary":[{"text":"so"},7]}`,
	`"type":"response.output_item.done","output_index":%d,"item":{"type":"function_call","call_id":"c|d","arguments":"[1]"}`,
	`"type":"response.output_item.done","output_index":%d,"item":{"type":"message","id":"msg","content":[{"text":"a"},{"refusal":"b"},null]}`,
	`"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"text":"%d"}]}],"usage":{"input_tokens":-1}}`,
	`"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}`,
	`"type":"response.failed","response":{"status":"failed","error":{"code":"%d"}}`,
	`"type":"error","message":null`,
}

// TestAnyEventsMakeAnAnswer mixes what servers send, and breaks some of it.
func TestAnyEventsMakeAnAnswer(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var stream strings.Builder
		for range rapid.IntRange(0, 12).Draw(rt, "events") {
			s := rapid.SampledFrom(mixed).Draw(rt, "event")
			if strings.Contains(s, "%d") {
				s = fmt.Sprintf(s, rapid.SampledFrom([]int{0, 0, 1, 2, -1, 1 << 40}).Draw(rt, "index"))
			}
			s = "data: {" + s + "}\n\n"
			at := rapid.IntRange(0, len(s)-1).Draw(rt, "at")
			switch rapid.IntRange(0, 20).Draw(rt, "break") {
			case 0:
				s = s[:at] + string([]byte{rapid.Byte().Draw(rt, "byte")}) + s[at+1:]
			case 1:
				s = s[:at]
			}
			stream.WriteString(s)
		}
		checkResponse(rt, stream.String())
	})
}
