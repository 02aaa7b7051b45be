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

func TestResponsesSuite(t *testing.T) { modeltest.Run(t, responsesKit()) }

func TestMockResponses(t *testing.T) { modeltest.RunMock(t, responsesKit()) }

func responsesKit() modeltest.Kit {
	return modeltest.Kit{
		New: func(e model.Endpoint) model.Provider {
			e.BaseURL += "/v1"
			return New(e)
		},
		Path:   "/v1/responses",
		Key:    func(h http.Header) string { return strings.TrimPrefix(h.Get("Authorization"), "Bearer ") },
		Render: renderResponse,
		Refuse: func(status int, text string) string {
			typ := "invalid_request_error"
			if status == http.StatusTooManyRequests {
				typ = "requests"
			}
			return fmt.Sprintf(`{"error":{"message":%s,"type":%q,"param":null,"code":null}}`, rawjson.Quote(text), typ)
		},
		Fail: func(class, text string) string {
			code := map[string]string{
				message.ClassOverloaded: "server_is_overloaded", message.ClassRateLimit: "rate_limit_exceeded",
				message.ClassServer: "server_error", message.ClassOverflow: "context_length_exceeded",
			}[class]
			return wire("error", fmt.Sprintf(`"code":%q,"message":%s,"param":null`, code, rawjson.Quote(text)))
		},
		Read:   readRequest,
		CallID: func(stored string) string { call, _ := splitCallID(stored); return call },
		Stops: []modeltest.Stop{
			{Raw: "max_output_tokens", Want: message.StopLength},
			{Raw: "content_filter", Want: message.StopError},
			{Raw: "steered", Want: message.StopError},
		},
		Overflows: []string{
			"Your input exceeds the context window of this model. Please adjust your input and try again.",
			"This model's maximum context length is 128000 tokens. However, your messages resulted in 150000 tokens.",
		},
		Lacks: []modeltest.Feature{modeltest.Redacted, modeltest.ErrorResults},
	}
}

// wire writes one event with the members that follow its type.
func wire(typ, members string) string {
	return fmt.Sprintf("event: %s\ndata: {\"type\":%q,%s}\n\n", typ, typ, members)
}

// renderResponse writes a script as the API would send it.
func renderResponse(s modeltest.Script) []string {
	blocks := s.Blocks()
	head := fmt.Sprintf(`"id":%q,"object":"response","model":%q`, s.ID, s.Model)
	events := []string{
		wire("response.created", `"response":{`+head+`,"status":"in_progress","output":[]}`),
		wire("response.in_progress", `"response":{`+head+`,"status":"in_progress","output":[]}`),
	}
	var output []string
	for _, step := range s.Steps {
		at := fmt.Sprintf(`"output_index":%d`, step.Block)
		text := string(rawjson.Quote(step.Text))
		switch {
		case step.Op == modeltest.Open:
			events = append(events, wire("response.output_item.added", at+`,"item":`+itemOf(message.Block{Type: step.Type, ID: step.ID, Name: step.Name})))
			if step.Type == message.BlockText {
				events = append(events, wire("response.content_part.added", at+`,"content_index":0,"part":{"type":"output_text","text":""}`))
			}
		case step.Op == modeltest.Close:
			if step.Type == message.BlockText {
				whole := string(rawjson.Quote(blocks[step.Block].Text))
				events = append(events, wire("response.output_text.done", at+`,"content_index":0,"text":`+whole))
			}
			item := itemOf(blocks[step.Block])
			events = append(events, wire("response.output_item.done", at+`,"item":`+item))
			output = append(output, item)
		case step.Op == modeltest.Sign: // the item's end has it
		case step.Type == message.BlockText:
			events = append(events, wire("response.output_text.delta", at+`,"content_index":0,"delta":`+text))
		case step.Type == message.BlockThinking:
			events = append(events, wire("response.reasoning_summary_text.delta", at+`,"summary_index":0,"delta":`+text))
		default:
			events = append(events, wire("response.function_call_arguments.delta", at+`,"delta":`+text))
		}
	}
	end := head + `,"output":[` + strings.Join(output, ",") + `],"usage":` + usageOf(s.Usage)
	reason := s.RawStop
	if s.Stop == message.StopLength {
		reason = "max_output_tokens"
	}
	if reason == "" {
		return append(events, wire("response.completed", `"response":{`+end+`,"status":"completed","incomplete_details":null}`))
	}
	return append(events, wire("response.incomplete", `"response":{`+end+`,"status":"incomplete","incomplete_details":{"reason":"`+reason+`"}}`))
}

func itemOf(b message.Block) string {
	switch b.Type {
	case message.BlockThinking:
		summary, secret := "", ""
		if b.Thinking != "" {
			summary = `{"type":"summary_text","text":` + string(rawjson.Quote(b.Thinking)) + `}`
		}
		if b.ThinkingSignature != "" {
			secret = `,"encrypted_content":` + string(rawjson.Quote(b.ThinkingSignature))
		}
		return `{"id":"rs_1","type":"reasoning","summary":[` + summary + `]` + secret + `}`
	case message.BlockText:
		content := ""
		if b.Text != "" {
			content = `{"type":"output_text","annotations":[],"text":` + string(rawjson.Quote(b.Text)) + `}`
		}
		return `{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[` + content + `]}`
	default:
		return fmt.Sprintf(`{"id":"fc_%[1]s","type":"function_call","call_id":%[1]q,"name":%[2]q,"arguments":%[3]s}`, b.ID, b.Name, rawjson.Quote(string(b.Arguments)))
	}
}

func usageOf(u message.Usage) string {
	reasoning := int64(0)
	if u.Reasoning != nil {
		reasoning = *u.Reasoning
	}
	input := u.Input + u.CacheRead + u.CacheWrite
	return fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d},`+
		`"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}`,
		input, u.CacheRead, u.CacheWrite, u.Output, reasoning, input+u.Output)
}

type wireItem struct {
	Type, Role, Name, Arguments string
	CallID                      string `json:"call_id"`
	Secret                      string `json:"encrypted_content"`
	Content, Output             json.RawMessage
	Summary                     []wirePart
}

type wirePart struct {
	Type, Text string
	ImageURL   string `json:"image_url"`
}

func readRequest(t *testing.T, body []byte) modeltest.Asked {
	t.Helper()
	var r struct {
		Model, Instructions string
		Input               []wireItem
		Tools               []message.ToolSpec
		Reasoning           struct{ Effort string }
		MaxTokens           int64 `json:"max_output_tokens"`
		Temperature         *float64
		Stream, Store       bool
	}
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	if r.Store {
		t.Errorf("the server is asked to store the answer: %s", body)
	}
	a := modeltest.Asked{
		Model: r.Model, System: r.Instructions, Tools: r.Tools, MaxTokens: r.MaxTokens,
		Temperature: r.Temperature, Thinking: r.Reasoning.Effort, Stream: r.Stream,
	}
	for _, item := range r.Input {
		a.Said = append(a.Said, readItem(t, item))
	}
	return a
}

func readItem(t *testing.T, item wireItem) modeltest.Said {
	t.Helper()
	switch item.Type {
	case "reasoning":
		b := message.Block{Type: message.BlockThinking, ThinkingSignature: item.Secret}
		for _, part := range item.Summary {
			b.Thinking += part.Text
		}
		return modeltest.Said{Role: message.RoleAssistant, Blocks: []message.Block{b}}
	case "function_call":
		return modeltest.Said{Role: message.RoleAssistant, Blocks: []message.Block{
			{Type: message.BlockToolCall, ID: item.CallID, Name: item.Name, Arguments: json.RawMessage(item.Arguments)},
		}}
	case "function_call_output":
		return modeltest.Said{Role: message.RoleToolResult, CallID: item.CallID, Blocks: readContent(t, item.Output)}
	}
	return modeltest.Said{Role: message.Role(item.Role), Blocks: readContent(t, item.Content)}
}

func readContent(t *testing.T, raw json.RawMessage) []message.Block {
	t.Helper()
	if rawjson.KindOf(raw) == rawjson.String {
		s, _ := rawjson.Unquote(raw)
		return []message.Block{message.TextBlock(s)}
	}
	var parts []wirePart
	if err := json.Unmarshal(raw, &parts); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	var blocks []message.Block
	for _, p := range parts {
		if p.Type != "input_image" {
			blocks = append(blocks, message.TextBlock(p.Text))
			continue
		}
		mime, data, _ := strings.Cut(strings.TrimPrefix(p.ImageURL, "data:"), ";base64,")
		blocks = append(blocks, message.Block{Type: message.BlockImage, Data: data, MimeType: mime})
	}
	return blocks
}
