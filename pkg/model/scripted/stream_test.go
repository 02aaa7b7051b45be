package scripted_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model/scripted"
)

const pending = "start [] pending in=0 out=0 total=0"

func TestEvents(t *testing.T) {
	tests := []struct {
		name, response string
		want           []string // ID stands for the model's id
	}{
		{"text in chunks", `{text: "twelve chars and more", chunk: 12}`, []string{
			pending,
			`text_start 0 {"type":"text","text":""}`,
			`text_delta 0 "twelve chars"`,
			`text_delta 0 " and more"`,
			`text_end 0 {"type":"text","text":"twelve chars and more"}`,
			`done stop [{"type":"text","text":"twelve chars and more"}] stop in=10 out=6 total=16`,
		}},
		{"sixteen characters by default", `{text: "0123456789abcdefg"}`, []string{
			pending,
			`text_start 0 {"type":"text","text":""}`,
			`text_delta 0 "0123456789abcdef"`,
			`text_delta 0 "g"`,
			`text_end 0 {"type":"text","text":"0123456789abcdefg"}`,
			`done stop [{"type":"text","text":"0123456789abcdefg"}] stop in=10 out=5 total=15`,
		}},
		{"thinking, text, calls", `{tool_calls: [{name: bash, arguments: {command: ls -l}}, {id: mine, name: read}], text: b, thinking: a}`, []string{
			pending,
			`thinking_start 0 {"type":"thinking","thinking":""}`,
			`thinking_delta 0 "a"`,
			`thinking_end 0 {"type":"thinking","thinking":"a"}`,
			`text_start 1 {"type":"text","text":""}`,
			`text_delta 1 "b"`,
			`text_end 1 {"type":"text","text":"b"}`,
			`toolcall_start 2 {"type":"toolCall","id":"call_1_1","name":"bash","arguments":{}}`,
			`toolcall_delta 2 "{\"command\":\"ls -"`,
			`toolcall_delta 2 "l\"}"`,
			`toolcall_end 2 {"type":"toolCall","id":"call_1_1","name":"bash","arguments":{"command":"ls -l"}}`,
			`toolcall_start 3 {"type":"toolCall","id":"mine","name":"read","arguments":{}}`,
			`toolcall_delta 3 "{}"`,
			`toolcall_end 3 {"type":"toolCall","id":"mine","name":"read","arguments":{}}`,
			`done toolUse [{"type":"thinking","thinking":"a"},{"type":"text","text":"b"},` +
				`{"type":"toolCall","id":"call_1_1","name":"bash","arguments":{"command":"ls -l"}},` +
				`{"type":"toolCall","id":"mine","name":"read","arguments":{}}] toolUse in=10 out=8 total=18`,
		}},
		{"nothing", `{}`, []string{pending, `done stop [] stop in=10 out=0 total=10`}},
		{"length", `{stop: length}`, []string{pending, `done length [] length in=10 out=777 total=787`}},
		{"length with its own usage", `{stop: length, usage: {output: 0}}`, []string{
			pending, `done length [] length in=10 out=0 total=10`,
		}},
		{"usage", `{usage: {input: 1200, output: 40, cacheRead: 5}}`, []string{
			pending, `done stop [] stop in=1200 out=40 total=1245`,
		}},
		{"error", `{error: {message: "429 too many requests", retryable: true, status: 429, retry_after_ms: 1500}}`, []string{
			`error error [] error in=0 out=0 total=0 "429 too many requests" ` +
				string(message.AppendProviderError(nil, message.ErrorInfo{Class: message.ClassRetryable, Status: 429, RetryAfterMs: 1500})),
		}},
		{"error after text, billed", `{text: half, error: {message: broken, usage: {input: 7}}}`, []string{
			pending,
			`text_start 0 {"type":"text","text":""}`,
			`text_delta 0 "half"`,
			`text_end 0 {"type":"text","text":"half"}`,
			`error error [{"type":"text","text":"half"}] error in=7 out=0 total=7 "broken" ` +
				string(message.AppendProviderError(nil, message.ErrorInfo{Class: message.ClassInvalidRequest})),
		}},
		{"deferred", `{deferred: {id: job-1, poll_after_ms: 50}}`, []string{
			pending,
			`done deferred [] deferred in=10 out=0 total=10 ` +
				`{"provider":"scripted","modelId":"ID","api":"scripted","id":"job-1","pollAfterMs":50}`,
		}},
		{"deferred without a time", `{deferred: {id: ""}}`, []string{
			pending,
			`done deferred [] deferred in=10 out=0 total=10 {"provider":"scripted","modelId":"ID","api":"scripted","id":""}`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, "s.yaml", "responses:\n  - "+tt.response+"\n")
			got := lines(t, ask(t.Context(), resolve(t, path), request()))
			for i := range tt.want {
				tt.want[i] = strings.ReplaceAll(tt.want[i], "ID", path)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestClassification(t *testing.T) {
	path := write(t, "s.yaml", `
responses:
  - error: {message: "something odd", retryable: true}
  - error: {message: "503 service unavailable"}
  - error: {message: "prompt is too long: 210000 tokens"}
  - {hang_ms: 1}
`)
	type class struct{ Retryable, Overflow bool }
	var got []class
	for range 4 {
		m := last(ask(t.Context(), resolve(t, path), request()))
		got = append(got, class{message.IsRetryable(m), message.IsOverflow(m, 200_000, 777)})
	}
	want := []class{{Retryable: true}, {}, {Overflow: true}, {Retryable: true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMessage(t *testing.T) {
	path := write(t, "s.json", `{"responses": [{"text": "é\ud83d\ude00\ud83d", "usage": {"input": 3, "output": 4, `+
		`"cacheWrite": 2, "cacheWrite1h": 1, "reasoning": 2, "cost": {"input": 0.25, "output": 0.5}}}]}`)
	got := last(ask(t.Context(), resolve(t, path), request()))
	want := `{"role":"assistant","content":[{"type":"text","text":"é😀\ud83d"}],"api":"scripted","provider":"scripted",` +
		`"model":"` + path + `","usage":{"input":3,"output":4,"cacheRead":0,"cacheWrite":2,"cacheWrite1h":1,"reasoning":2,` +
		`"totalTokens":9,"cost":{"input":0.25,"output":0.5,"cacheRead":0,"cacheWrite":0,"total":0.75}},"stopReason":"stop",` +
		`"timestamp":1700000000000}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestEcho(t *testing.T) {
	image := message.Block{Type: message.BlockImage, Data: "aGk=", MimeType: "image/png"}
	user := func(text string, images ...message.Block) message.Message {
		return message.NewUser(text, images, 1)
	}
	tests := []struct {
		name     string
		messages []message.Message
		want     string
	}{
		{"last user message", []message.Message{
			user("first"), user("second"), message.Message(`{"role":"assistant","content":[],"stopReason":"stop"}`),
		}, `[{"type":"text","text":"second"}]`},
		{"string content", []message.Message{message.Message(`{"role":"user","content":"plain \ud83d"}`)}, `[{"type":"text","text":"plain \ud83d"}]`},
		{"one image", []message.Message{user("look", image)}, `[{"type":"text","text":"look\n[1 image]"}]`},
		{"images alone", []message.Message{user("", image, image)}, `[{"type":"text","text":"[2 images]"}]`},
		{"nobody asked", nil, `[]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := request()
			req.Messages = tt.messages
			content, _ := last(ask(t.Context(), resolve(t, "echo"), req)).Get("content")
			if diff := cmp.Diff(tt.want, string(content)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInfo(t *testing.T) {
	levels := []message.ThinkingLevel{"minimal", "low", "medium", "high", "xhigh", "max"}
	small := write(t, "s.yaml", "model: {context_window: 4000, max_tokens: 500, reasoning: false}\nresponses: []\n")
	tests := []struct {
		id   string
		want effect.ModelInfo
	}{
		{"echo", effect.ModelInfo{ContextWindow: 200_000, MaxTokens: 32_000, Thinking: levels, Images: true}},
		{small, effect.ModelInfo{ContextWindow: 4000, MaxTokens: 500, Images: true}},
	}
	for _, tt := range tests {
		tt.want.API, tt.want.Ref = "scripted", message.ModelRef{Provider: scripted.Name, ModelID: tt.id}
		if diff := cmp.Diff(tt.want, resolve(t, tt.id).Info()); diff != "" {
			t.Error(diff)
		}
	}
}

// deltas returns what a text is cut into.
func deltas(t *testing.T, m effect.Model) []string {
	var all []string
	for _, ev := range ask(t.Context(), m, request()) {
		if ev.Type == message.EventTextDelta {
			all = append(all, ev.Delta)
		}
	}
	return all
}

func TestChunks(t *testing.T) {
	tests := []struct {
		name, text, chunk string // text as JSON
		want              []string
	}{
		{"emoji", `"a😀b"`, "1", []string{"a", "😀", "b"}},
		{"joined emoji", `"👩‍👧!"`, "2", []string{"👩\u200d", "👧!"}},
		{"combining mark", `"e\u0301e"`, "1", []string{"e", "\u0301", "e"}},
		{"unpaired surrogates", `"\ud83dx\ude00\ude00"`, "1", []string{"\xed\xa0\xbd", "x", "\xed\xb8\x80", "\xed\xb8\x80"}},
		{"larger than the text", `"ab"`, "9999999999", []string{"ab"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, "s.json", `{"responses":[{"chunk":`+tt.chunk+`,"text":`+tt.text+`}]}`)
			if diff := cmp.Diff(tt.want, deltas(t, resolve(t, path))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFramesReduceToTheAnswer: whatever is streamed, its frames add up to the
// content of the final message, and every prefix of them is legal.
func TestFramesReduceToTheAnswer(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		req := request()
		req.Messages = []message.Message{message.NewUser(rapid.String().Draw(rt, "text"), nil, 1)}
		m, err := scripted.New(scripted.Options{}).Resolve("echo")
		if err != nil {
			rt.Fatal(err)
		}
		checkFrames(rt, ask(t.Context(), m, req))
	})
	path := write(t, "s.yaml", `
responses:
  - {thinking: "why 😀 not", text: "because\nof \"this\"", chunk: 3, tool_calls: [{name: a, arguments: {x: [1, "é", null]}}, {name: b}]}
`)
	checkFrames(t, ask(t.Context(), resolve(t, path), request()))
}

func checkFrames(t interface{ Fatalf(string, ...any) }, events []message.StreamEvent) {
	var r message.Reducer
	for i, ev := range events {
		f, ok := message.FrameOf(ev)
		if !ok {
			continue
		}
		if err := r.Add(int64(i), f); err != nil {
			t.Fatalf("%v", err)
		}
	}
	m, ok := r.Message()
	if !ok {
		t.Fatalf("no message")
	}
	got, _ := m.Get("content")
	want, _ := last(events).Get("content")
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Fatalf("%s", diff)
	}
}

func TestConsumerStops(t *testing.T) {
	path := write(t, "s.yaml", "responses: [{thinking: a, text: bcd, chunk: 1, tool_calls: [{name: x}], error: {message: m}}]\n")
	all := len(ask(t.Context(), resolve(t, path), request()))
	for stop := 1; stop <= all; stop++ {
		if err := os.Remove(path + ".state"); err != nil {
			t.Fatal(err)
		}
		seen := 0
		for range resolve(t, path).Stream(t.Context(), request()) {
			if seen++; seen == stop {
				break
			}
		}
		if seen != stop {
			t.Errorf("%d events, want %d", seen, stop)
		}
	}
}
