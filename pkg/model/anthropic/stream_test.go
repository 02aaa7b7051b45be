package anthropic

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
)

// events writes events, each named as its type.
func events(all ...string) string {
	var b strings.Builder
	for _, e := range all {
		b.WriteString("event: some\ndata: " + e + "\n\n")
	}
	return b.String()
}

const (
	began   = `{"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":4,"output_tokens":1}}}`
	stopped = `{"type":"message_stop"}`
)

func stopping(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":2}}`
}

// told streams an answer and returns its message without what all have in common.
func told(t *testing.T, body string) string {
	t.Helper()
	s := serve(t, map[string]reply{"POST /v1/messages": {200, body}})
	a := final(t, s.model(t, "m").Stream(t.Context(), effect.Request{Messages: []message.Message{user("a")}}))
	a.Provider, a.API, a.Model, a.ResponseID, a.Usage = "", "", "", "", message.Usage{}
	m := string(a.Message())
	m = strings.Replace(m, `"api":"","provider":"","model":"",`, "", 1)
	_, usage, _ := strings.Cut(m, `"usage":{`)
	usage, _, _ = strings.Cut(usage, "}}")
	return strings.NewReplacer(`"usage":{`+usage+`}},`, "", `,"timestamp":0`, "", `"role":"assistant",`, "").Replace(m)
}

// TestAnswers: what the suite's servers do not say.
func TestAnswers(t *testing.T) {
	open := func(block string) string {
		return `{"type":"content_block_start","index":0,"content_block":` + block + `}`
	}
	delta := func(d string) string { return `{"type":"content_block_delta","index":0,"delta":` + d + `}` }
	const closed = `{"type":"content_block_stop","index":0}`
	for _, tt := range []struct{ name, body, want string }{
		{
			"a block that starts with content",
			events(began, open(`{"type":"text","text":"a"}`), delta(`{"type":"text_delta","text":"b"}`), closed, stopping("end_turn"), stopped),
			`{"content":[{"type":"text","text":"ab"}],"stopReason":"stop","rawStopReason":"end_turn"}`,
		},
		{
			"a call whose input comes at once",
			events(began, open(`{"type":"tool_use","id":"t","name":"ls","input":{"a":1.0}}`), closed, stopping("tool_use"), stopped),
			`{"content":[{"type":"toolCall","id":"t","name":"ls","arguments":{"a":1.0}}],"stopReason":"toolUse","rawStopReason":"tool_use"}`,
		},
		{
			"thinking whose text is kept back, signed in pieces",
			events(began, open(`{"type":"thinking","thinking":"","signature":"a"}`), delta(`{"type":"signature_delta","signature":"b"}`), delta(`{"type":"signature_delta","signature":"c"}`), closed, stopping("end_turn"), stopped),
			`{"content":[{"type":"thinking","thinking":"","thinkingSignature":"abc"}],"stopReason":"stop","rawStopReason":"end_turn"}`,
		},
		{
			"blocks, deltas and events of kinds that are not known",
			events(began, open(`{"type":"server_tool_use","id":"x"}`), delta(`{"type":"input_json_delta","partial_json":"{}"}`), closed,
				`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`,
				`{"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{}}}`,
				`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"so"}}`,
				`{"type":"news"}`, `{}`, stopping("end_turn"), stopped),
			`{"content":[{"type":"text","text":"so"}],"stopReason":"stop","rawStopReason":"end_turn"}`,
		},
		{
			"an end without a reason",
			events(began, open(`{"type":"text","text":"a"}`), stopped),
			`{"content":[{"type":"text","text":"a"}],"stopReason":"stop"}`,
		},
		{
			"a refusal keeps what was said and why",
			events(began, open(`{"type":"text","text":"a"}`), closed,
				`{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","category":null,"explanation":"not this"}}}`, stopped),
			`{"content":[{"type":"text","text":"a"}],"stopReason":"error","errorMessage":"acme/m at HOST: the model refused to answer: not this","rawStopReason":"refusal","diagnostics":[{"type":"provider_error","class":"invalid_request"}]}`,
		},
		{
			"a context that leaves no room for a word",
			events(began, stopping("model_context_window_exceeded"), stopped),
			`{"content":[],"stopReason":"error","errorMessage":"acme/m at HOST: the context window is full: model_context_window_exceeded","rawStopReason":"model_context_window_exceeded","diagnostics":[{"type":"provider_error","class":"overflow"}]}`,
		},
		{
			"a delta of no block",
			events(began, delta(`{"type":"text_delta","text":"b"}`)),
			`{"content":[],"stopReason":"error","errorMessage":"acme/m at HOST: the server sent a delta of a block that has not started: {\"type\":\"text_delta\",\"text\":\"b\"}","diagnostics":[{"type":"provider_error","class":"server"}]}`,
		},
		{
			"an error in the stream, by its type",
			events(began, open(`{"type":"text","text":"a"}`), `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`),
			`{"content":[{"type":"text","text":"a"}],"stopReason":"error","errorMessage":"acme/m at HOST: overloaded_error: Overloaded","diagnostics":[{"type":"provider_error","class":"overloaded"}]}`,
		},
		{
			"an answer in one piece",
			`{"type":"message","id":"msg_1","model":"m","content":[{"type":"text","text":"whole"}],"stop_reason":"end_turn","usage":{}}`,
			`{"content":[{"type":"text","text":"whole"}],"stopReason":"stop","rawStopReason":"end_turn"}`,
		},
		{
			"an error in one piece",
			`{"type":"error","error":{"type":"api_error","message":"broken"}}`,
			`{"content":[],"stopReason":"error","errorMessage":"acme/m at HOST: api_error: broken","diagnostics":[{"type":"provider_error","class":"server"}]}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := told(t, tt.body)
			if before, after, ok := strings.Cut(got, " at 127.0.0.1:"); ok {
				_, after, _ = strings.Cut(after, ":")
				got = before + " at HOST:" + after
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What later events say of the usage replaces what earlier ones said.
func TestUsage(t *testing.T) {
	s := serve(t, map[string]reply{"POST /v1/messages": {200, events(
		`{"type":"message_start","message":{"usage":{"input_tokens":4,"cache_creation_input_tokens":3,"cache_creation":{"ephemeral_1h_input_tokens":2},"output_tokens":1}}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":5,"cache_read_input_tokens":7,"output_tokens":6,"output_tokens_details":{"thinking_tokens":2}}}`,
		stopped,
	)}})
	got := final(t, s.model(t, "m").Stream(t.Context(), effect.Request{Messages: []message.Message{user("a")}})).Usage
	hour, thinking := int64(2), int64(2)
	want := message.Usage{
		Input: 5, Output: 6, CacheRead: 7, CacheWrite: 3, CacheWrite1h: &hour, Reasoning: &thinking, TotalTokens: 21,
		Cost: message.Cost{Input: 10, Output: 24, CacheWrite: 22, Total: 56},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Requests are what the configuration says: of the environment nothing is taken,
// to telemetry nothing is told.
func TestHeaders(t *testing.T) {
	for name, value := range map[string]string{
		"ANTHROPIC_API_KEY": "env-key", "ANTHROPIC_AUTH_TOKEN": "env-token", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1",
		"ANTHROPIC_CUSTOM_HEADERS": "X-Env: yes", "ANTHROPIC_PROFILE": "none",
	} {
		t.Setenv(name, value)
	}
	s := serve(t, map[string]reply{"POST /v1/messages": {200, events(began, stopping("end_turn"), stopped)}})
	temperature := 0.1
	for _, tt := range []struct {
		name, id string
		endpoint model.Endpoint
		req      effect.Request
		want     map[string]string
	}{
		{
			"no key", "m", model.Endpoint{}, effect.Request{},
			map[string]string{"Authorization": "", "X-Api-Key": "", "X-Env": "", "Anthropic-Beta": "", "Accept": "text/event-stream", "Traceparent": ""},
		},
		{
			"a key and headers of its own", "claude-sonnet-5-5",
			model.Endpoint{Key: func(context.Context) (string, error) { return "sk", nil }, Headers: map[string]string{"Anthropic-Beta": "mine", "X-Own": "1"}},
			effect.Request{Thinking: message.ThinkingLow},
			map[string]string{"Authorization": "Bearer sk", "X-Api-Key": "sk", "X-Own": "1", "Anthropic-Beta": "mine, " + bindingBeta},
		},
		{
			"thinking between calls", "claude-opus-4-1", model.Endpoint{},
			effect.Request{Thinking: message.ThinkingLow, MaxOutput: 9000, Tools: []message.ToolSpec{{Name: "ls"}}},
			map[string]string{"Anthropic-Beta": interleavedBeta},
		},
		{
			"a temperature", "claude-opus-4-1", model.Endpoint{},
			effect.Request{Options: message.StreamOptions{Temperature: &temperature}},
			map[string]string{"Anthropic-Version": olderVersion},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := tt.endpoint
			e.Provider, e.BaseURL, e.Client, e.Models = "acme", s.URL, s.Client(), listed{}
			m, err := New(e).Resolve(tt.id)
			if err != nil {
				t.Fatal(err)
			}
			tt.req.Messages = []message.Message{user("a")}
			if got := final(t, m.Stream(t.Context(), tt.req)); got.StopReason != message.StopStop {
				t.Fatalf("%+v", got)
			}
			for name, want := range tt.want {
				if got := strings.Join(s.headers.Values(name), ", "); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			if older := s.headers.Get("Anthropic-Version") == olderVersion; older != (tt.name == "a temperature") {
				t.Errorf("version %s", s.headers.Get("Anthropic-Version"))
			}
		})
	}
}

func TestBaseURL(t *testing.T) {
	for given, want := range map[string]string{
		"https://a.test": "https://a.test/", "https://a.test/": "https://a.test/", "https://a.test/v1": "https://a.test/",
		"https://a.test/v1/": "https://a.test/", "https://a.test/claude/v1": "https://a.test/claude/",
	} {
		if got := baseURL(given); got != want {
			t.Errorf("%s becomes %s, want %s", given, got, want)
		}
	}
}

// A page is no answer, and asking again would not make it one.
func TestPage(t *testing.T) {
	s := serve(t, nil)
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<html>\n  <h1>Log in</h1>" + strings.Repeat(" ", 5000) + "end</html>"))
	})
	got := final(t, s.model(t, "m").Stream(t.Context(), effect.Request{Messages: []message.Message{user("a")}}))
	if message.IsRetryable(got.Message()) || !strings.Contains(got.ErrorMessage, "the answer is text/html, not a stream of events") || !strings.HasSuffix(got.ErrorMessage, "<html> <h1>Log in</h1>") {
		t.Errorf("%+v", got)
	}
}

// An object that is no message is told as what it says, of a fault above all.
func TestObjectsThatAreNoMessages(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"your quota of ducks is used up","type":"insufficient_quota"}}`: "your quota of ducks is used up",
		`{"hello":1}`: `the server sent an object that is no message: {"hello":1}`,
	} {
		s := serve(t, nil)
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(body))
		})
		got := final(t, s.model(t, "m").Stream(t.Context(), effect.Request{Messages: []message.Message{user("a")}}))
		if !strings.HasSuffix(got.ErrorMessage, want) {
			t.Errorf("%s: %s", body, got.ErrorMessage)
		}
	}
}

// An event that is too long to be read would be so again.
func TestEventTooLong(t *testing.T) {
	s := serve(t, nil)
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: "))
		piece := []byte(strings.Repeat("z", 1<<20))
		for range 70 {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	})
	got := final(t, s.model(t, "m").Stream(t.Context(), effect.Request{Messages: []message.Message{user("a")}}))
	if message.IsRetryable(got.Message()) || !strings.HasSuffix(got.ErrorMessage, "an event of the answer is longer than can be read") {
		t.Errorf("%s", got.ErrorMessage)
	}
}
