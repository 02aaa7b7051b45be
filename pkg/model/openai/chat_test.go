package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3/responses"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
)

// chatModelAt resolves a model of a server.
func chatModelAt(t *testing.T, url string, q Quirks) effect.Model {
	t.Helper()
	m, err := NewCompatible(model.Endpoint{Provider: "local", BaseURL: url, Models: listed{{ID: "m", Images: true}}}, q).Resolve("m")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// chatSays has a server answer with chunks and returns what becomes of them.
func chatSays(t *testing.T, q Quirks, chunks ...string) message.Message {
	t.Helper()
	s := serve(t, func(w http.ResponseWriter, _ asked) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, c := range chunks {
			fmt.Fprint(w, data(c))
		}
	})
	return lastMessage(t, chatModelAt(t, s.url, q).Stream(t.Context(), effect.Request{ResponseEntryID: "019a-abcdef012345"}))
}

// lastMessage consumes an answer, whose frames must add up to its content.
func lastMessage(t *testing.T, events effect.Events) message.Message {
	t.Helper()
	var frames message.Reducer
	var last message.StreamEvent
	for ev := range events {
		if f, ok := message.FrameOf(ev); ok {
			if err := frames.Add(0, f); err != nil {
				t.Fatal(err)
			}
		}
		last = ev
	}
	want, _ := last.Final().Get("content")
	if m, ok := frames.Message(); ok {
		got, _ := m.Get("content")
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Error(diff)
		}
	}
	return last.Final()
}

// chunkOf is a chunk with a delta.
func chunkOf(delta string) string {
	return `{"id":"c","model":"m","choices":[{"delta":` + delta + `}]}`
}

// callsOf is a chunk with pieces of tool calls.
func callsOf(calls ...string) string {
	return chunkOf(`{"tool_calls":[` + strings.Join(calls, ",") + `]}`)
}

// contentOf is what an answer says, in short.
func contentOf(t *testing.T, m message.Message) string {
	t.Helper()
	blocks, err := m.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, b := range blocks {
		switch b.Type {
		case message.BlockToolCall:
			all = append(all, fmt.Sprintf("%s %s%s", b.ID, b.Name, b.Arguments))
		case message.BlockThinking:
			all = append(all, "("+b.Thinking+")")
		default:
			all = append(all, b.Text)
		}
	}
	return strings.Join(all, " | ")
}

const (
	finished = `{"choices":[{"delta":{},"finish_reason":"stop"}]}`
	done     = "[DONE]"
)

// TestChatDialects: what servers make of Chat Completions.
func TestChatDialects(t *testing.T) {
	tests := []struct {
		name   string
		quirks Quirks
		chunks []string
		want   string
		stop   message.StopReason
	}{
		{"a call that comes whole, without an id and an index", Quirks{}, []string{
			callsOf(`{"function":{"name":"ls","arguments":"{\"a\":1}"}}`), finished, done,
		}, `call_abcdef012345_1 ls{"a":1}`, message.StopToolUse},
		{"calls that come whole, all of them without an id and with index 0", Quirks{}, []string{
			callsOf(`{"index":0,"function":{"name":"ls","arguments":"{}"}}`),
			callsOf(`{"index":0,"function":{"name":"cat","arguments":"{}"}}`), finished, done,
		}, `call_abcdef012345_1 ls{} | call_abcdef012345_2 cat{}`, message.StopToolUse},
		{"calls with ids and index 0", Quirks{}, []string{
			callsOf(`{"index":0,"id":"x","function":{"name":"ls","arguments":"{}"}}`, `{"index":0,"id":"y","function":{"name":"ls","arguments":"{}"}}`), done,
		}, `x ls{} | y ls{}`, message.StopToolUse},
		{"the id in every piece, no index", Quirks{}, []string{
			callsOf(`{"id":"x","function":{"name":"ls","arguments":"{\"a\""}}`),
			callsOf(`{"id":"y","function":{"name":"cat","arguments":"{\"b\""}}`),
			callsOf(`{"id":"x","function":{"name":"ls","arguments":":1}"}}`),
			callsOf(`{"id":"y","function":{"arguments":":2}"}}`), done,
		}, `x ls{"a":1} | y cat{"b":2}`, message.StopToolUse},
		{"no id, no index, in pieces", Quirks{}, []string{
			callsOf(`{"function":{"name":"ls","arguments":""}}`), callsOf(`{"function":{"arguments":"{\"a\""}}`),
			callsOf(`{"function":{"name":"ls","arguments":":1}"}}`), callsOf(`{"function":{"name":"ls","arguments":"{}"}}`), done,
		}, `call_abcdef012345_1 ls{"a":1} | call_abcdef012345_2 ls{}`, message.StopToolUse},
		{"id and name that come late", Quirks{}, []string{
			callsOf(`{"index":0,"function":{"arguments":"{"}}`), callsOf(`{"index":0,"id":"x","function":{"name":"ls","arguments":"}"}}`), done,
		}, `x ls{}`, message.StopToolUse},
		{"arguments as an object", Quirks{}, []string{
			callsOf(`{"id":"x","function":{"name":"ls","arguments":{"a": [1]}}}`), done,
		}, `x ls{"a": [1]}`, message.StopToolUse},
		{"arguments that are null", Quirks{}, []string{
			callsOf(`{"id":"x","function":{"name":"ls","arguments":null}}`), done,
		}, `x ls{}`, message.StopToolUse},
		{"no finish reason, but the end", Quirks{}, []string{chunkOf(`{"content":"hi"}`), done}, "hi", message.StopStop},
		{"no finish reason, no end", Quirks{}, []string{chunkOf(`{"content":"hi"}`)}, "hi", message.StopError},
		{"no finish reason, no end, which is this server's way", Quirks{NoEnd: true}, []string{chunkOf(`{"content":"hi"}`)}, "hi", message.StopStop},
		{"an end without an answer", Quirks{}, []string{done}, "", message.StopError},
		{"nothing, which is no server's way", Quirks{NoEnd: true}, nil, "", message.StopError},
		{"a finish reason and no end", Quirks{}, []string{chunkOf(`{"content":"hi"}`), finished}, "hi", message.StopStop},
		{"an empty finish reason", Quirks{}, []string{`{"choices":[{"delta":{"content":"hi"},"finish_reason":""}]}`}, "hi", message.StopError},
		{"reasoning of either name", Quirks{}, []string{
			chunkOf(`{"reasoning":"a","reasoning_content":"a","content":null}`), chunkOf(`{"reasoning":"b","content":""}`), chunkOf(`{"content":"c"}`), finished,
		}, "(ab) | c", message.StopStop},
		{"the other reasoning", Quirks{ReasoningField: Reasoning}, []string{chunkOf(`{"reasoning":"a","reasoning_content":"x"}`), finished}, "(a)", message.StopStop},
		{"no reasoning", Quirks{ReasoningField: ReasoningNone}, []string{chunkOf(`{"reasoning":"a","content":"b"}`), finished}, "b", message.StopStop},
		{"a refusal", Quirks{}, []string{chunkOf(`{"refusal":"I must "}`), chunkOf(`{"refusal":"not"}`), finished}, "I must not", message.StopStop},
		{"another choice", Quirks{}, []string{chunkOf(`{"content":"a"}`), `{"choices":[{"index":1,"delta":{"content":"b"},"finish_reason":"length"}]}`, finished}, "a", message.StopStop},
		{"strange events", Quirks{}, []string{`{"type":"ping"}`, `{"choices":null}`, chunkOf(`{"content":7,"tool_calls":{}}`), chunkOf(`{"content":"a"}`), finished}, "a", message.StopStop},
		{"an error in the place of an answer", Quirks{}, []string{`{"object":"error","message":"no","code":400}`, done}, "", message.StopError},
		{"an error after an answer's beginning", Quirks{}, []string{chunkOf(`{"content":"a"}`), `{"id":"c","error":{"code":502,"message":"gone"},"choices":[{"delta":{},"finish_reason":"error"}]}`}, "a", message.StopError},
		{"an end as an error", Quirks{}, []string{chunkOf(`{"content":"a"}`), `{"choices":[{"delta":{},"finish_reason":"error"}]}`}, "a", message.StopError},
		{"no error", Quirks{}, []string{`{"error":null,"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`}, "a", message.StopStop},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := chatSays(t, tt.quirks, tt.chunks...)
			if got := contentOf(t, m); got != tt.want || m.StopReason() != tt.stop {
				t.Errorf("%q, %s; want %q, %s: %s", got, m.StopReason(), tt.want, tt.stop, m)
			}
		})
	}
}

// TestChatInOnePiece: a server that cannot stream answers as a whole.
func TestChatInOnePiece(t *testing.T) {
	for body, want := range map[string]string{
		`{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"hi","tool_calls":[{"id":"x","type":"function","function":{"name":"ls","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`: "hi | x ls{} toolUse",
		`{"id":"c","choices":[{"message":{"content":"hi"}}]}`: "hi stop",
		`{"error":{"message":"no such model"}}`:               " error",
		`{"ok":true}`:                                         " error",
		`{"choices":`:                                         " error",
	} {
		s := serve(t, func(w http.ResponseWriter, _ asked) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			fmt.Fprint(w, body)
		})
		m := lastMessage(t, chatModelAt(t, s.url, Quirks{}).Stream(t.Context(), effect.Request{}))
		if got := contentOf(t, m) + " " + string(m.StopReason()); got != want {
			t.Errorf("%s became %q: %s", body, got, m)
		}
	}
}

func TestChatUsage(t *testing.T) {
	three := int64(3)
	for usage, want := range map[string]message.Usage{
		`{"usage":{"prompt_tokens":10,"completion_tokens":5},"choices":[]}`:                                                         {Input: 10, Output: 5, TotalTokens: 15},
		`{"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":4}}`:                                          {Input: 6, CacheRead: 4, Output: 5, TotalTokens: 15},
		`{"usage":{"prompt_tokens":10,"completion_tokens":5,"cached_tokens":4,"prompt_tokens_details":null}}`:                       {Input: 6, CacheRead: 4, Output: 5, TotalTokens: 15},
		`{"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"completion_tokens_details":{"reasoning_tokens":3}}}`: {Input: 10, Output: 5, Reasoning: &three, TotalTokens: 15},
		`{"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":18,"completion_tokens_details":{"reasoning_tokens":3}}}`: {Input: 10, Output: 8, Reasoning: &three, TotalTokens: 18},
		`{"choices":[{"delta":{},"usage":{"prompt_tokens":10,"completion_tokens":5}}]}`:                                             {Input: 10, Output: 5, TotalTokens: 15},
		`{"usage":{"prompt_tokens":3,"completion_tokens":-5,"prompt_tokens_details":{"cached_tokens":4}}}`:                          {CacheRead: 4, TotalTokens: 4},
		`{"usage":{"prompt_tokens":"x","completion_tokens":1.5}}`:                                                                   {},
		`{"choices":[],"usage":null}`: {},
	} {
		got, _ := chatSays(t, Quirks{}, chunkOf(`{"content":"a"}`), finished, usage, done).Usage()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", usage, diff)
		}
	}
}

// TestChatErrors: how errors that only such servers send are classified.
func TestChatErrors(t *testing.T) {
	for chunk, want := range map[string]message.ErrorInfo{
		`{"object":"error","message":"This model's maximum context length is 8 tokens","type":"BadRequestError","code":400}`:   {Status: 400, Class: message.ClassOverflow, Known: true},
		`{"error":{"message":"Provider returned error","code":502}}`:                                                           {Status: 502, Class: message.ClassServer, Known: true},
		`{"error":{"code":500,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`: {Status: 500, Class: message.ClassOverflow, Known: true},
		`{"error":"model runner has unexpectedly stopped"}`:                                                                    {Class: message.ClassInvalidRequest, Known: true},
		`{"choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]}`:                                            {Class: message.ClassOverloaded, Known: true},
		`{"choices":[{"delta":{},"finish_reason":"error"}]}`:                                                                   {Class: message.ClassServer, Known: true},
	} {
		if diff := cmp.Diff(want, message.ProviderError(chatSays(t, Quirks{}, chunk))); diff != "" {
			t.Errorf("%s: %s", chunk, diff)
		}
	}
}

// TestChatEnvironment: what the environment says to OpenAI's SDK is not for this
// server, and a server that needs no key gets none.
func TestChatEnvironment(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-openai")
	t.Setenv("OPENAI_ORG_ID", "org-openai")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Secret: openai")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/openai")
	s := serve(t, func(w http.ResponseWriter, _ asked) { fmt.Fprint(w, data(chunkOf(`{"content":"a"}`)), data(done)) })
	m := lastMessage(t, chatModelAt(t, s.url+"/base/", Quirks{}).Stream(t.Context(), effect.Request{}))
	if m.StopReason() != message.StopStop {
		t.Fatalf("%s", m)
	}
	got := s.seen[0]
	for _, name := range []string{"Authorization", "Openai-Organization", "X-Secret"} {
		if v, there := got.Header[name]; there {
			t.Errorf("%s is %q", name, v)
		}
	}
	if got.URL != "/v1/base/chat/completions" {
		t.Errorf("address %s", got.URL)
	}
}

// TestChatHistory: what becomes of the conversation.
func TestChatHistory(t *testing.T) {
	call := func(id string) message.Block {
		return message.Block{Type: message.BlockToolCall, ID: id, Name: "ls", Arguments: json.RawMessage(`{"a":"é"}`)}
	}
	image := message.Block{Type: message.BlockImage, Data: "aGk=", MimeType: "image/png"}
	said := func(provider string, blocks ...message.Block) message.Message {
		return message.Assistant{Content: blocks, Provider: provider, API: chatAPI, Model: "m", StopReason: message.StopStop}.Message()
	}
	thinking := message.Block{Type: message.BlockThinking, Thinking: "hm"}
	tests := []struct {
		name   string
		quirks Quirks
		blind  bool
		msgs   []message.Message
		want   string
	}{
		{"text as strings", Quirks{}, false, []message.Message{
			message.Message(`{"role":"system","content":"rules"}`),
			message.Message(`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`),
			said("local", message.TextBlock("c"), message.TextBlock("d")),
		}, `{"role":"system","content":"rules"},{"role":"user","content":"a\nb"},{"role":"assistant","content":"c\nd"}`},
		{"thinking stays here", Quirks{}, false, []message.Message{said("local", thinking, message.TextBlock("c")), said("local", thinking)},
			`{"role":"assistant","content":"c"}`},
		{"thinking goes back", Quirks{ReasoningBack: true}, false, []message.Message{said("local", thinking, call("x")), said("other", thinking, call("y"))},
			`{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"x","type":"function","function":{"name":"ls","arguments":"{\"a\":\"é\"}"}}]},` +
				`{"role":"assistant","content":null,"tool_calls":[{"id":"y","type":"function","function":{"name":"ls","arguments":"{\"a\":\"é\"}"}}]}`},
		{"thinking goes back where no field is known", Quirks{ReasoningBack: true, ReasoningField: ReasoningNone}, false,
			[]message.Message{said("local", thinking, message.TextBlock("c"))}, `{"role":"assistant","content":"c"}`},
		{"images of results", Quirks{}, false, []message.Message{
			message.NewToolResult("x", "ls", message.ToolResult{Content: []message.Block{message.TextBlock("one"), image}}, 1),
			message.NewToolResult("y", "ls", message.ToolResult{Content: []message.Block{image}}, 1),
			message.NewToolResult("z", "ls", message.ToolResult{}, 1),
		}, `{"role":"tool","tool_call_id":"x","content":"one"},{"role":"tool","tool_call_id":"y","content":"(see the images below)"},` +
			`{"role":"tool","tool_call_id":"z","content":"(no output)"},` +
			`{"role":"user","content":[{"type":"text","text":"The images of the tool results above:"},` +
			`{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]}`},
		{"a model that takes no images", Quirks{}, true, []message.Message{message.NewUser("see", []message.Block{image}, 1)},
			`{"role":"user","content":"see\n(an image was left out: this model takes none)"}`},
		{"half a character", Quirks{}, false, []message.Message{message.NewUser("a\xed\xa0\xbd", nil, 1)}, `{"role":"user","content":"a\ufffd"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := chatBody("local", model.Spec{ID: "m", Images: !tt.blind}, tt.quirks, effect.Request{Messages: tt.msgs})
			var got struct{ Messages json.RawMessage }
			if err := json.Unmarshal(body, &got); err != nil {
				t.Fatal(err)
			}
			want := "[" + strings.ReplaceAll(tt.want, `\ufffd`, "\ufffd") + "]"
			if diff := cmp.Diff(want, strings.ReplaceAll(string(got.Messages), `\ufffd`, "\ufffd")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestChatIsBuiltLate: a provider is registered by every command; its client is
// made by the first request.
func TestChatIsBuiltLate(t *testing.T) {
	p := NewCompatible(model.Endpoint{Provider: "local", Models: listed{{ID: "m"}}, Key: func(context.Context) (string, error) {
		t.Error("the key was read")
		return "", nil
	}}, Quirks{}).(*chatProvider)
	built := false
	client := p.client
	p.client = func() *responses.ResponseService { built = true; return client() }
	if _, err := p.Resolve("m"); err != nil || built {
		t.Errorf("Resolve = %v, built %t", err, built)
	}
	if got := p.endpoint.BaseURL; got != vendorURL {
		t.Errorf("base URL %q", got)
	}
}
