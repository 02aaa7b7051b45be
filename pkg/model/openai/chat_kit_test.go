package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
	"github.com/drover-run/drover/pkg/model/modeltest"
)

// TestChatSuite runs the provider suite against servers of several minds.
func TestChatSuite(t *testing.T) {
	for name, q := range map[string]Quirks{
		"plain":  {},
		"modern": {TokenField: TokensModern, SystemRole: RoleDeveloper, ReasoningField: ReasoningContent, Effort: EffortNested},
		"other":  {ReasoningField: Reasoning, ReasoningBack: true, NoStreamOptions: true},
		"mute":   {ReasoningField: ReasoningNone, Effort: EffortNone},
	} {
		t.Run(name, func(t *testing.T) {
			k := chatKit(q)
			k.Brief = name != "plain"
			modeltest.Run(t, k)
		})
	}
}

func TestMockChat(t *testing.T) { modeltest.RunMock(t, chatKit(Quirks{})) }

func chatKit(q Quirks) modeltest.Kit {
	k := modeltest.Kit{
		New: func(e model.Endpoint) model.Provider {
			e.BaseURL += "/v1"
			return NewCompatible(e, q)
		},
		Path: "/v1/chat/completions",
		Key: func(h http.Header) string {
			return strings.TrimPrefix(h.Get("Authorization"), "Bearer ")
		},
		Render: func(s modeltest.Script) []string { return renderChat(s, q) },
		Refuse: func(status int, text string) string {
			return fmt.Sprintf(`{"error":{"message":%s,"type":"some_error","param":null,"code":null}}`, rawjson.Quote(text))
		},
		Fail: func(class, text string) string {
			code := map[string]string{
				message.ClassOverloaded: "529", message.ClassRateLimit: "429", message.ClassServer: `"server_error"`, message.ClassOverflow: "400",
			}[class]
			return data(fmt.Sprintf(`{"error":{"code":%s,"message":%s}}`, code, rawjson.Quote(text)))
		},
		Read: func(t *testing.T, body []byte) modeltest.Asked { return readChatRequest(t, body, q) },
		Stops: []modeltest.Stop{
			{Raw: "eos", Want: message.StopStop},
			{Raw: "max_tokens", Want: message.StopLength},
			{Raw: "content_filter", Want: message.StopError},
		},
		Overflows: []string{
			"This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
			"the request exceeds the available context size. try increasing the context size or enable context shift",
			"This endpoint's maximum context length is 131072 tokens. However, you requested about 200000 tokens",
			"Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough: prompt is too long",
		},
		Lacks: []modeltest.Feature{
			modeltest.Signatures, modeltest.Redacted, modeltest.SeveralBlocks, modeltest.ErrorResults, modeltest.ToolResultImages,
		},
	}
	if q.ReasoningField == ReasoningNone {
		k.Lacks = append(k.Lacks, modeltest.Thinking)
	}
	if q.Effort == EffortNone {
		k.Lacks = append(k.Lacks, modeltest.Levels)
	}
	return k
}

func data(s string) string { return "data: " + s + "\n\n" }

// renderChat writes a script in chunks.
func renderChat(s modeltest.Script, q Quirks) []string {
	chunk := func(rest string) string {
		return data(fmt.Sprintf(`{"id":%q,"object":"chat.completion.chunk","created":1,"model":%q,%s}`, s.ID, s.Model, rest))
	}
	delta := func(d, finish string) string {
		return chunk(fmt.Sprintf(`"choices":[{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}],"usage":null`, d, finish))
	}
	all := []string{delta(`{"role":"assistant","content":""}`, "null")}
	calls := map[int]int{}
	for _, step := range s.Steps {
		text := rawjson.Quote(step.Text)
		switch {
		case step.Type == message.BlockToolCall && step.Op == modeltest.Open:
			calls[step.Block] = len(calls)
			all = append(all, delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]}`,
				calls[step.Block], step.ID, step.Name), "null"))
		case step.Op != modeltest.Delta:
		case step.Type == message.BlockToolCall:
			all = append(all, delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, calls[step.Block], text), "null"))
		case step.Type == message.BlockText:
			all = append(all, delta(fmt.Sprintf(`{"content":%s}`, text), "null"))
		case step.Type == message.BlockThinking:
			all = append(all, delta(fmt.Sprintf(`{%q:%s}`, or(q.ReasoningField, ReasoningContent), text), "null"))
		}
	}
	finish := map[message.StopReason]string{
		message.StopStop: "stop", message.StopLength: "length", message.StopToolUse: "tool_calls",
	}[s.Stop]
	all = append(all, delta("{}", string(rawjson.Quote(or(s.RawStop, finish)))))
	u := s.Usage
	prompt := u.Input + u.CacheRead + u.CacheWrite
	details := ""
	if u.Reasoning != nil {
		details = fmt.Sprintf(`,"completion_tokens_details":{"reasoning_tokens":%d}`, *u.Reasoning)
	}
	all = append(all, chunk(fmt.Sprintf(
		`"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d}%s}`,
		prompt, u.Output, prompt+u.Output, u.CacheRead, u.CacheWrite, details)))
	return append(all, "data: [DONE]\n\n")
}

// chatRequest is a request's body.
type chatRequest struct {
	Model    string
	Messages []struct {
		Role       string
		Content    json.RawMessage
		ToolCallID string `json:"tool_call_id"`
		ToolCalls  []struct {
			ID, Type string
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
		ReasoningContent string `json:"reasoning_content"`
		Reasoning        string
	}
	Tools []struct {
		Type     string
		Function struct {
			Name, Description string
			Parameters        json.RawMessage
		}
	}
	MaxTokens           int64 `json:"max_tokens"`
	MaxCompletionTokens int64 `json:"max_completion_tokens"`
	Temperature         *float64
	ReasoningEffort     string `json:"reasoning_effort"`
	Reasoning           struct{ Effort string }
	Stream              bool
	StreamOptions       *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

func readChatRequest(t *testing.T, body []byte, q Quirks) modeltest.Asked {
	t.Helper()
	var r chatRequest
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	a := modeltest.Asked{Model: r.Model, MaxTokens: r.MaxTokens, Temperature: r.Temperature, Thinking: r.ReasoningEffort, Stream: r.Stream}
	if q.TokenField == TokensModern {
		a.MaxTokens = r.MaxCompletionTokens
	}
	if q.Effort == EffortNested {
		a.Thinking = r.Reasoning.Effort
	}
	if asked := r.StreamOptions != nil && r.StreamOptions.IncludeUsage; asked == q.NoStreamOptions {
		t.Errorf("stream_options are %v", r.StreamOptions)
	}
	for _, tool := range r.Tools {
		a.Tools = append(a.Tools, message.ToolSpec{Name: tool.Function.Name, Description: tool.Function.Description, Parameters: tool.Function.Parameters})
	}
	for i, m := range r.Messages {
		said := modeltest.Said{Role: message.Role(m.Role), CallID: m.ToolCallID, Blocks: readChatParts(t, m.Content)}
		switch m.Role {
		case q.systemRole():
			if i > 0 {
				t.Errorf("message %d is the system's", i)
			}
			a.System = said.Blocks[0].Text
			continue
		case "tool":
			said.Role = message.RoleToolResult
		case "user", "assistant":
		default:
			t.Errorf("role %q", m.Role)
		}
		for _, call := range m.ToolCalls {
			said.Blocks = append(said.Blocks, message.Block{
				Type: message.BlockToolCall, ID: call.ID, Name: call.Function.Name, Arguments: json.RawMessage(call.Function.Arguments),
			})
		}
		a.Said = append(a.Said, said)
	}
	return a
}

func readChatParts(t *testing.T, content json.RawMessage) []message.Block {
	t.Helper()
	var text *string
	if json.Unmarshal(content, &text) == nil {
		if text == nil {
			return nil
		}
		return []message.Block{message.TextBlock(*text)}
	}
	var parts []struct {
		Type, Text string
		ImageURL   struct{ URL string } `json:"image_url"`
	}
	if err := json.Unmarshal(content, &parts); err != nil {
		t.Fatal(err)
	}
	var blocks []message.Block
	for _, p := range parts {
		if p.Type == "text" {
			blocks = append(blocks, message.TextBlock(p.Text))
			continue
		}
		mime, encoded, ok := strings.Cut(strings.TrimPrefix(p.ImageURL.URL, "data:"), ";base64,")
		if p.Type != "image_url" || !ok {
			t.Errorf("part %+v", p)
		}
		blocks = append(blocks, message.Block{Type: message.BlockImage, MimeType: mime, Data: encoded})
	}
	return blocks
}
