package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/drover-run/drover/pkg/model/modeltest"
)

// vendorTalk is a vendor's server whose answers are given one after the other. What
// comes after the last one is refused.
type vendorTalk struct {
	*httptest.Server
	mu      sync.Mutex
	bodies  []string
	answers []http.HandlerFunc
}

func newVendorTalk(t *testing.T, answers ...http.HandlerFunc) *vendorTalk {
	t.Helper()
	v := &vendorTalk{answers: answers}
	v.Server = httptest.NewServer(v)
	t.Cleanup(v.Close)
	return v
}

func (v *vendorTalk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // one that does not come whole is told by the test
	v.mu.Lock()
	n := len(v.bodies)
	v.bodies = append(v.bodies, string(body))
	v.mu.Unlock()
	if n >= len(v.answers) {
		http.Error(w, `{"error":{"message":"nothing more was to be asked"}}`, http.StatusBadRequest)
		return
	}
	v.answers[n](w, r)
}

// asked are the bodies of the requests so far.
func (v *vendorTalk) asked() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]string(nil), v.bodies...)
}

// tells answers with events.
func tells(events []string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { writeEvents(w, events) }
}

// holds answers with events and then with nothing more, for as long as anybody waits.
func holds(events []string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		writeEvents(w, events)
		<-r.Context().Done()
	}
}

func writeEvents(w http.ResponseWriter, events []string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		var typed struct{ Type string }
		if json.Unmarshal([]byte(e), &typed); typed.Type != "" {
			fmt.Fprintf(w, "event: %s\n", typed.Type)
		}
		fmt.Fprintf(w, "data: %s\n\n", e)
		_ = http.NewResponseController(w).Flush() // who is gone needs no more
	}
}

// text is a whole answer of the interface.
func (a vendorInterface) text(said string) []string {
	switch a.name {
	case "messages":
		return messageEvents(said)
	case "responses":
		return responseEvents(said)
	}
	return completionEvents(said)
}

// begun is an answer that has said this much.
func (a vendorInterface) begun(said string) []string {
	return a.text(said)[:map[string]int{"messages": 3, "responses": 4, "completions": 1}[a.name]]
}

// call is an answer that calls bash.
func (a vendorInterface) call(id, command string) []string {
	arguments := quoted(`{"command":` + quoted(command) + `}`)
	switch a.name {
	case "messages":
		all := messageEvents("")
		return append(append(all[:1:1],
			fmt.Sprintf(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":%q,"name":"bash","input":{}}}`, id),
			fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":%s}}`, arguments),
			`{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":50}}`,
		), all[len(all)-1])
	case "responses":
		item := fmt.Sprintf(`{"type":"function_call","id":"fc_%[1]s","call_id":%[1]q,"name":"bash","arguments":%[2]s,"status":"completed"}`, id, arguments)
		return append(responseEvents("")[:1:1],
			fmt.Sprintf(`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"type":"function_call","id":"fc_%[1]s","call_id":%[1]q,"name":"bash","arguments":"","status":"in_progress"}}`, id),
			fmt.Sprintf(`{"type":"response.function_call_arguments.delta","sequence_number":2,"item_id":"fc_%s","output_index":0,"delta":%s}`, id, arguments),
			fmt.Sprintf(`{"type":"response.output_item.done","sequence_number":3,"output_index":0,"item":%s}`, item),
			fmt.Sprintf(`{"type":"response.completed","sequence_number":4,"response":{"id":"resp_1","object":"response","status":"completed","model":"m","output":[%s],"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}}`, item),
		)
	}
	return append([]string{
		fmt.Sprintf(`{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":%q,"type":"function","function":{"name":"bash","arguments":%s}}]},"finish_reason":null}]}`, id, arguments),
		`{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
	}, completionEvents("")[2:]...)
}

// unpaired says what a vendor would refuse of the calls and results of a request.
func (a vendorInterface) unpaired(t *testing.T, body string) string {
	t.Helper()
	var asked struct {
		Messages, Input []struct {
			modeltest.ChatMessage
			Type, Name string
			CallID     string `json:"call_id"`
		}
	}
	if err := json.Unmarshal([]byte(body), &asked); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	var all []modeltest.ChatMessage
	for _, m := range append(asked.Messages, asked.Input...) {
		switch {
		case m.Type == "function_call":
			m.ToolCalls = []modeltest.ChatCall{chatCall(m.CallID, m.Name)}
		case m.Type == "function_call_output":
			m.Role, m.ToolCallID = "tool", m.CallID
		case a.name == "messages":
			all = append(all, splitTurn(t, m.ChatMessage)...)
			continue
		}
		all = append(all, m.ChatMessage)
	}
	return modeltest.Unpaired(all)
}

func chatCall(id, name string) modeltest.ChatCall {
	c := modeltest.ChatCall{ID: id}
	c.Function.Name = name
	return c
}

// splitTurn takes the results out of a turn of the Messages API, in which they must
// come first.
func splitTurn(t *testing.T, m modeltest.ChatMessage) []modeltest.ChatMessage {
	t.Helper()
	var blocks []struct {
		Type, ID, Name string
		ToolUseID      string `json:"tool_use_id"`
	}
	if strings.HasPrefix(string(m.Content), `"`) {
		return []modeltest.ChatMessage{m}
	}
	if err := json.Unmarshal(m.Content, &blocks); err != nil {
		t.Fatalf("%v: %s", err, m.Content)
	}
	var all []modeltest.ChatMessage
	rest := modeltest.ChatMessage{Role: m.Role}
	for i, b := range blocks {
		switch b.Type {
		case "tool_use":
			rest.ToolCalls = append(rest.ToolCalls, chatCall(b.ID, b.Name))
		case "tool_result":
			if len(all) != i {
				t.Errorf("the result of %s comes after something else: %s", b.ToolUseID, m.Content)
			}
			all = append(all, modeltest.ChatMessage{Role: "tool", ToolCallID: b.ToolUseID})
		}
	}
	if len(all) < len(blocks) {
		all = append(all, rest)
	}
	return all
}

// The server finds calls and results in the words of every interface.
func TestVendorUnpaired(t *testing.T) {
	for _, tt := range []struct{ api, question, call, result string }{
		{
			"messages", `{"role":"user","content":"x"}`,
			`{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"a","name":"bash","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"},{"type":"text","text":"x"}]}`,
		},
		{
			"responses", `{"role":"user","content":[{"type":"input_text","text":"x"}]}`,
			`{"type":"function_call","call_id":"a","name":"bash","arguments":"{}"}`, `{"type":"function_call_output","call_id":"a","output":"x"}`,
		},
		{
			"completions", `{"role":"user","content":"x"}`,
			`{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"bash","arguments":"{}"}}]}`,
			`{"role":"tool","tool_call_id":"a","content":"x"}`,
		},
	} {
		api := vendorInterface{name: tt.api}
		field := map[string]string{"messages": "messages", "responses": "input", "completions": "messages"}[tt.api]
		says := func(messages ...string) string {
			return api.unpaired(t, fmt.Sprintf(`{%q:[%s]}`, field, strings.Join(messages, ",")))
		}
		if why := says(tt.question, tt.call, tt.result); why != "" {
			t.Errorf("%s: %s", tt.api, why)
		}
		for _, wrong := range [][]string{{tt.question, tt.call}, {tt.question, tt.call, tt.question}, {tt.question, tt.result}} {
			if says(wrong...) == "" {
				t.Errorf("%s: nothing is wrong with %s", tt.api, wrong)
			}
		}
	}
}
