package anthropic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model/anthropic"
	"github.com/drover-run/drover/pkg/model/modeltest"
)

func TestSuite(t *testing.T) { modeltest.Run(t, kit()) }

func TestMock(t *testing.T) { modeltest.RunMock(t, kit()) }

func kit() modeltest.Kit {
	return modeltest.Kit{
		New:  anthropic.New,
		Path: "/v1/messages",
		Key: func(h http.Header) string {
			if bearer, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer "); ok && bearer == h.Get("X-Api-Key") {
				return bearer
			}
			return ""
		},
		Render: render,
		Refuse: func(status int, text string) string {
			names := map[int]string{400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}
			return fault(names[status], text)
		},
		Fail: func(class, text string) string {
			names := map[string]string{
				message.ClassOverloaded: "overloaded_error", message.ClassRateLimit: "rate_limit_error",
				message.ClassServer: "api_error", message.ClassOverflow: "invalid_request_error",
			}
			return sse("error", fault(names[class], text))
		},
		Read: readRequest,
		Stops: []modeltest.Stop{
			{Raw: "end_turn", Want: message.StopStop},
			{Raw: "stop_sequence", Want: message.StopStop},
			{Raw: "pause_turn", Want: message.StopStop},
			{Raw: "something_new", Want: message.StopStop},
			{Raw: "max_tokens", Want: message.StopLength},
			{Raw: "model_context_window_exceeded", Want: message.StopLength},
			{Raw: "refusal", Want: message.StopError},
		},
		Overflows: []string{
			"prompt is too long: 210000 tokens > 200000 maximum",
			"input length and `max_tokens` exceed context limit: the prompt exceeds the context window",
		},
	}
}

func fault(kind, text string) string {
	return fmt.Sprintf(`{"type":"error","error":{"type":%s,"message":%s},"request_id":"req_1"}`, quote(kind), quote(text))
}

func quote(s string) string { return string(rawjson.Quote(s)) }

func sse(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }

// render writes a script as the events of the Messages API.
func render(s modeltest.Script) []string {
	u := s.Usage
	extra := ""
	if u.CacheWrite1h != nil {
		extra = fmt.Sprintf(`,"cache_creation":{"ephemeral_5m_input_tokens":%d,"ephemeral_1h_input_tokens":%d}`, u.CacheWrite-*u.CacheWrite1h, *u.CacheWrite1h)
	}
	events := []string{
		sse("message_start", fmt.Sprintf(
			`{"type":"message_start","message":{"id":%s,"type":"message","role":"assistant","model":%s,"content":[],"stop_reason":null,"usage":{"input_tokens":%d,"cache_read_input_tokens":%d,"cache_creation_input_tokens":%d,"output_tokens":1%s}}}`,
			quote(s.ID), quote(s.Model), u.Input, u.CacheRead, u.CacheWrite, extra)),
		sse("ping", `{"type": "ping"}`),
	}
	for _, step := range s.Steps {
		events = append(events, renderStep(step)...)
	}
	stop := map[message.StopReason]string{message.StopStop: "end_turn", message.StopLength: "max_tokens", message.StopToolUse: "tool_use"}[s.Stop]
	if s.RawStop != "" {
		stop = s.RawStop
	}
	details := ""
	if u.Reasoning != nil {
		details = fmt.Sprintf(`,"output_tokens_details":{"thinking_tokens":%d}`, *u.Reasoning)
	}
	return append(events,
		sse("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%s,"stop_sequence":null},"usage":{"output_tokens":%d%s}}`, quote(stop), u.Output, details)),
		sse("message_stop", `{"type":"message_stop"}`))
}

func renderStep(step modeltest.Step) []string {
	delta := func(kind, member string) []string {
		return []string{sse("content_block_delta", fmt.Sprintf(
			`{"type":"content_block_delta","index":%d,"delta":{"type":%q,%q:%s}}`, step.Block, kind, member, quote(step.Text)))}
	}
	switch {
	case step.Op == modeltest.Open:
		block := map[message.BlockType]string{
			message.BlockText:     `{"type":"text","text":""}`,
			message.BlockThinking: `{"type":"thinking","thinking":"","signature":""}`,
			message.BlockToolCall: fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":{}}`, quote(step.ID), quote(step.Name)),
		}[step.Type]
		if step.Redacted {
			block = fmt.Sprintf(`{"type":"redacted_thinking","data":%s}`, quote(step.Text))
		}
		return []string{sse("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, step.Block, block))}
	case step.Op == modeltest.Close:
		return []string{sse("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, step.Block))}
	case step.Op == modeltest.Sign:
		return delta("signature_delta", "signature")
	case step.Type == message.BlockThinking:
		return delta("thinking_delta", "thinking")
	case step.Type == message.BlockToolCall:
		return delta("input_json_delta", "partial_json")
	}
	return delta("text_delta", "text")
}

// wireBlock is a content block of a request, as strict as the API is.
type wireBlock struct {
	Type         string          `json:"type"`
	Text         *string         `json:"text"`
	Thinking     *string         `json:"thinking"`
	Signature    string          `json:"signature"`
	Data         string          `json:"data"`
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Input        json.RawMessage `json:"input"`
	ToolUseID    string          `json:"tool_use_id"`
	IsError      bool            `json:"is_error"`
	Content      []wireBlock     `json:"content"`
	Source       *wireSource     `json:"source"`
	CacheControl json.RawMessage `json:"cache_control"`
}

type wireSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

type wireRequest struct {
	Model        string          `json:"model"`
	MaxTokens    int64           `json:"max_tokens"`
	Stream       bool            `json:"stream"`
	System       []wireBlock     `json:"system"`
	Temperature  *float64        `json:"temperature"`
	ToolChoice   json.RawMessage `json:"tool_choice"`
	OutputConfig json.RawMessage `json:"output_config"`
	Thinking     json.RawMessage `json:"thinking"`
	Tools        []struct {
		Name         string          `json:"name"`
		Description  string          `json:"description"`
		Schema       json.RawMessage `json:"input_schema"`
		CacheControl json.RawMessage `json:"cache_control"`
	} `json:"tools"`
	Messages []struct {
		Role    string      `json:"role"`
		Content []wireBlock `json:"content"`
	} `json:"messages"`
}

// readRequest reads a request and refuses what the API refuses.
func readRequest(t *testing.T, body []byte) modeltest.Asked {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.DisallowUnknownFields()
	var r wireRequest
	if err := dec.Decode(&r); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	a := modeltest.Asked{Model: r.Model, MaxTokens: r.MaxTokens, Temperature: r.Temperature, Stream: r.Stream}
	if budget, ok := rawjson.GetInt(r.Thinking, "budget_tokens"); ok {
		if budget < 1024 || budget >= r.MaxTokens {
			t.Errorf("a budget of %d of %d tokens", budget, r.MaxTokens)
		}
		a.Thinking = fmt.Sprint(budget)
	}
	for _, b := range r.System {
		a.System += *b.Text
	}
	for _, tool := range r.Tools {
		a.Tools = append(a.Tools, message.ToolSpec{Name: tool.Name, Description: tool.Description, Parameters: tool.Schema})
	}
	if len(r.ToolChoice) > 0 {
		a.Tools = nil // they are declared for the history only
	}
	role := "assistant"
	for _, m := range r.Messages {
		if m.Role == role {
			t.Errorf("two turns of the %s in a row: %s", role, body)
		}
		role = m.Role
		a.Said = append(a.Said, readTurn(t, m.Role, m.Content)...)
	}
	return a
}

func readTurn(t *testing.T, role string, content []wireBlock) []modeltest.Said {
	t.Helper()
	var said []modeltest.Said
	spoke := false
	for _, b := range content {
		if b.Type == "tool_result" {
			if spoke || role != "user" {
				t.Errorf("the result of %s is not where results must be", b.ToolUseID)
			}
			said = append(said, modeltest.Said{Role: message.RoleToolResult, CallID: b.ToolUseID, IsError: b.IsError, Blocks: readBlocks(t, b.Content)})
			continue
		}
		spoke = true
		said = append(said, modeltest.Said{Role: message.Role(role), Blocks: readBlocks(t, []wireBlock{b})})
	}
	return said
}

func readBlocks(t *testing.T, content []wireBlock) []message.Block {
	t.Helper()
	var all []message.Block
	for _, b := range content {
		switch b.Type {
		case "text":
			if strings.TrimSpace(*b.Text) == "" {
				t.Error("a text without content")
			}
			all = append(all, message.TextBlock(*b.Text))
		case "thinking":
			all = append(all, message.Block{Type: message.BlockThinking, Thinking: *b.Thinking, ThinkingSignature: b.Signature})
		case "redacted_thinking":
			all = append(all, message.Block{Type: message.BlockThinking, Redacted: true, ThinkingSignature: b.Data})
		case "image":
			all = append(all, message.Block{Type: message.BlockImage, Data: b.Source.Data, MimeType: b.Source.MediaType})
		case "tool_use":
			all = append(all, message.Block{Type: message.BlockToolCall, ID: b.ID, Name: b.Name, Arguments: b.Input})
		default:
			t.Errorf("block of type %q", b.Type)
		}
	}
	return all
}
