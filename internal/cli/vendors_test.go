package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// serveVendors starts a server that speaks like the vendors, each below its own
// path, for one script: $VENDORS is its address. What the last user message says
// decides the answer:
//
//	key?          which key came with the request, but for its sk-, and in what header
//	headers?      the header X-Team
//	refuse STATUS an error with that status
//	later STATUS  a job in the background, of which the server then says nothing but that
//	anything else is repeated
//
// Every answer used 1000 tokens of input, 400 more from the cache, and 50 of output.
func serveVendors(env *testscript.Env) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /chat/v1/chat/completions", vendor("messages", completionEvents))
	mux.HandleFunc("POST /responses/v1/responses", vendor("input", responseEvents))
	mux.HandleFunc("GET /responses/v1/responses/{job}", func(w http.ResponseWriter, r *http.Request) {
		var status int
		_, _ = fmt.Sscanf(r.PathValue("job"), "resp_%d", &status)
		http.Error(w, `{"error":{"message":"we say no"}}`, status)
	})
	mux.HandleFunc("POST /messages/v1/messages", vendor("messages", messageEvents))
	server := httptest.NewServer(mux)
	env.Setenv("VENDORS", server.URL)
	env.Defer(server.Close)
}

// vendor answers requests whose conversation is the field of that name.
func vendor(field string, events func(text string) []string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var asked map[string]json.RawMessage
		if err := json.Unmarshal(body, &asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		text := lastText(asked[field])
		var status int
		if n, _ := fmt.Sscanf(text, "refuse %d", &status); n == 1 {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error":{"type":"authentication_error","message":"go away"}}`)
			return
		}
		if n, _ := fmt.Sscanf(text, "later %d", &status); n == 1 {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":"resp_%d","status":"queued","output":[]}`, status)
			return
		}
		switch text {
		case "key?":
			text = "none"
			for _, name := range []string{"Authorization", "X-Api-Key"} {
				if v := r.Header.Get(name); v != "" {
					text = name + " " + strings.Replace(v, "sk-", "", 1)
				}
			}
		case "headers?":
			text = "team " + r.Header.Get("X-Team")
		}
		writeEvents(w, events(text))
	}
}

// lastText is the text of the last message, whose content is a text or a list of
// blocks.
func lastText(conversation json.RawMessage) string {
	var all []struct{ Content json.RawMessage }
	_ = json.Unmarshal(conversation, &all)
	if len(all) == 0 {
		return ""
	}
	content := all[len(all)-1].Content
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var blocks []struct{ Text string }
	_ = json.Unmarshal(content, &blocks)
	for _, b := range blocks {
		text += b.Text
	}
	return strings.TrimSpace(text)
}

func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

func completionEvents(text string) []string {
	return []string{
		`{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":` + quoted(text) + `},"finish_reason":null}]}`,
		`{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
		`{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[],"usage":{"prompt_tokens":1400,"completion_tokens":50,"total_tokens":1450,"prompt_tokens_details":{"cached_tokens":400}}}`,
		`[DONE]`,
	}
}

func responseEvents(text string) []string {
	message := `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":` + quoted(text) + `,"annotations":[]}]}`
	return []string{
		`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"m","output":[]}}`,
		`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","status":"in_progress","content":[]}}`,
		`{"type":"response.content_part.added","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`,
		`{"type":"response.output_text.delta","sequence_number":3,"item_id":"msg_1","output_index":0,"content_index":0,"delta":` + quoted(text) + `}`,
		`{"type":"response.output_text.done","sequence_number":4,"item_id":"msg_1","output_index":0,"content_index":0,"text":` + quoted(text) + `}`,
		`{"type":"response.content_part.done","sequence_number":5,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":` + quoted(text) + `,"annotations":[]}}`,
		`{"type":"response.output_item.done","sequence_number":6,"output_index":0,"item":` + message + `}`,
		`{"type":"response.completed","sequence_number":7,"response":{"id":"resp_1","object":"response","status":"completed","model":"m","output":[` + message + `],"usage":{"input_tokens":1400,"input_tokens_details":{"cached_tokens":400},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":1450}}}`,
	}
}

func messageEvents(text string) []string {
	return []string{
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1000,"cache_read_input_tokens":400,"cache_creation_input_tokens":0,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":` + quoted(text) + `}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":50}}`,
		`{"type":"message_stop"}`,
	}
}
