package openai

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model/answer"
)

// checkChat: whatever a server sends, the answer's events are legal, end once,
// and add up to its message.
func checkChat(t interface {
	Helper()
	Fatalf(string, ...any)
}, body string, noEnd bool) {
	t.Helper()
	res := &http.Response{Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}}
	base := answer.Base{Provider: "local", API: chatAPI, Model: "m"}
	var frames message.Reducer
	var last message.StreamEvent
	for ev := range answer.Stream(context.Background(), effect.Request{}, base, func(_ context.Context, b *answer.Builder) error {
		return readChat(b, Quirks{NoEnd: noEnd}, res)
	}) {
		if last.Message != nil && last.Type != message.EventStart {
			t.Fatalf("%s after %s", ev.Type, last.Type)
		}
		if frame, ok := message.FrameOf(ev); ok {
			if err := frames.Add(0, frame); err != nil {
				t.Fatalf("%v", err)
			}
		}
		last = ev
	}
	if err := message.Validate(last.Message); err != nil || last.Reason != last.Message.StopReason() {
		t.Fatalf("%s %s: %v", last.Reason, last.Message, err)
	}
	if m, ok := frames.Message(); ok {
		got, _ := m.Get("content")
		want, _ := last.Message.Get("content")
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Fatalf("%s", diff)
		}
	}
}

func FuzzChat(f *testing.F) {
	for _, s := range []string{
		data(chunkOf(`{"content":"a\ud83d"}`)) + data(chunkOf(`{"reasoning":"b"}`)) + data(done),
		data(callsOf(`{"index":0,"id":"x","function":{"name":"ls","arguments":"{\"a\""}}`, `{"index":1}`)) + data(finished),
		data(`{"error":{"code":429,"message":"x"}}`),
		data(`{"usage":{"prompt_tokens":1e3,"completion_tokens":-1},"choices":[{"delta":null,"finish_reason":"content_filter"}]}`),
		"event: x\r\ndata: {\r\ndata: }\r\n\r\n: c\n\ndata:",
	} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, body string, noEnd bool) { checkChat(t, body, noEnd) })
}

// TestAnyChunksMakeAnAnswer mixes what servers send, and breaks some of it.
func TestAnyChunksMakeAnAnswer(t *testing.T) {
	deltas := []string{
		`{"content":"a\ud83d"}`, `{"content":"\ude42"}`, `{"content":"\u0000é"}`, `{"reasoning":"b"}`, `{"reasoning_content":"\ud83d"}`,
		`{"tool_calls":[{"index":0,"id":"x","function":{"name":"ls","arguments":"{\"a\""}}]}`,
		`{"tool_calls":[{"index":1,"function":{"arguments":":1}"}}]}`, `{"tool_calls":[{"function":{"name":"z","arguments":"{}"}}]}`,
		`{"tool_calls":[{"id":"y","function":{"name":"z","arguments":{"k":1}}}]}`, `{"refusal":"r"}`, `null`, `{}`,
	}
	ends := []string{`null`, `null`, `null`, `"stop"`, `"length"`, `"tool_calls"`, `"content_filter"`, `"error"`, `""`, `7`}
	rapid.Check(t, func(rt *rapid.T) {
		var body strings.Builder
		for range rapid.IntRange(0, 8).Draw(rt, "chunks") {
			s := data(`{"id":"i","choices":[{"delta":` + rapid.SampledFrom(deltas).Draw(rt, "delta") +
				`,"finish_reason":` + rapid.SampledFrom(ends).Draw(rt, "end") + `}]}`)
			at := rapid.IntRange(0, len(s)-1).Draw(rt, "at")
			switch rapid.IntRange(0, 20).Draw(rt, "break") {
			case 0:
				s = s[:at] + string([]byte{rapid.Byte().Draw(rt, "byte")}) + s[at+1:]
			case 1:
				s = s[:at]
			case 2:
				s = data(done)
			}
			body.WriteString(s)
		}
		checkChat(rt, body.String(), rapid.Bool().Draw(rt, "no end"))
	})
}
