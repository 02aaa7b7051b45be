package openai

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-run/drover/pkg/model/answer"
)

func checkChat(t fataler, body string, noEnd bool) {
	t.Helper()
	res := &http.Response{Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}}
	checkLegal(t, chatAPI, func(b *answer.Builder) error { return readChat(b, Quirks{NoEnd: noEnd}, res) })
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
