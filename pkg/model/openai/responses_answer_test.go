package openai

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/model"
)

const usageJSON = `"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":60,"cache_write_tokens":10},` +
	`"output_tokens":20,"output_tokens_details":{"reasoning_tokens":5},"total_tokens":120}`

const usedJSON = `"usage":{"input":30,"output":20,"cacheRead":60,"cacheWrite":10,"reasoning":5,"totalTokens":120,` +
	`"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`

const unusedJSON = `"usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,` +
	`"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`

// A turn with all kinds of items: reasoning in two parts, a message, two calls
// whose arguments come side by side, and events and items that nobody knows.
func TestStream(t *testing.T) {
	const call1 = `{"id":"fc_1","type":"function_call","call_id":"call_1","name":"ls","arguments":"{\"a\": 1}","status":"completed"}`
	const call2 = `{"id":"fc_2","type":"function_call","call_id":"call_2","name":"pwd","arguments":"","status":"completed"}`
	s := serve(t, func(w http.ResponseWriter, _ asked) {
		sse(w,
			`{"type":"response.created","response":{"id":"resp_1","model":"gpt-5.2-2026-01-01","status":"in_progress"}}`,
			`{"type":"response.new.thing","output_index":0,"delta":"what?"}`,
			`{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}`,
			`{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}`,
			`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"One."}`,
			`{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":1,"part":{"type":"summary_text","text":""}}`,
			`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"Two."}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"One."},{"type":"summary_text","text":"Two."}],"encrypted_content":"gA="}}`,
			`{"type":"response.output_item.added","output_index":1,"item":{"id":"ws_1","type":"web_search_call"}}`,
			`{"type":"response.output_item.done","output_index":1,"item":{"id":"ws_1","type":"web_search_call"}}`,
			`{"type":"response.output_item.added","output_index":2,"item":{"id":"msg_1","type":"message","role":"assistant","content":[]}}`,
			`{"type":"response.content_part.added","output_index":2,"content_index":0,"part":{"type":"output_text","text":""}}`,
			`{"type":"response.output_text.delta","output_index":2,"content_index":0,"delta":"Hi \ud83d"}`,
			`{"type":"response.output_text.delta","output_index":2,"content_index":0,"delta":""}`,
			`{"type":"response.output_text.delta","output_index":2,"content_index":0,"delta":"\ude42"}`,
			`{"type":"response.output_text.done","output_index":2,"content_index":0,"text":"not looked at"}`,
			`{"type":"response.output_item.done","output_index":2,"item":{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"Hi 🙂","annotations":[]}],"phase":"commentary"}}`,
			`{"type":"response.output_item.added","output_index":3,"item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"ls","arguments":""}}`,
			`{"type":"response.output_item.added","output_index":4,"item":{"id":"fc_2","type":"function_call","call_id":"call_2","name":"pwd","arguments":""}}`,
			`{"type":"response.function_call_arguments.delta","output_index":3,"delta":"{\"a\":"}`,
			`{"type":"response.function_call_arguments.delta","output_index":4,"delta":"{}"}`,
			`{"type":"response.function_call_arguments.delta","output_index":3,"delta":" 1}"}`,
			`{"type":"response.output_item.done","output_index":3,"item":`+call1+`}`,
			`{"type":"response.output_item.done","output_index":4,"item":`+call2+`}`,
			`{"type":"response.completed","response":{"id":"resp_1","model":"gpt-5.2-2026-01-01","status":"completed","output":[],`+usageJSON+`}}`,
			`{"type":"response.output_text.delta","output_index":9,"delta":"after the end"}`,
		)
	})
	got := told(s.model(t, "gpt-5.2").Stream(t.Context(), question()))
	for i := range got {
		got[i] = brief([]byte(got[i]))
	}
	const signed = `"{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"One.\"},{\"type\":\"summary_text\",\"text\":\"Two.\"}],\"encrypted_content\":\"gA=\"}"`
	const thinking = `{"type":"thinking","thinking":"One.\n\nTwo.","thinkingSignature":` + signed + `}`
	const hi = `{"type":"text","text":"Hi 🙂","textSignature":"{\"v\":1,\"id\":\"msg_1\",\"phase\":\"commentary\"}"}`
	const ls = `{"type":"toolCall","id":"call_1|fc_1","name":"ls","arguments":{"a": 1}}`
	const pwd = `{"type":"toolCall","id":"call_2|fc_2","name":"pwd","arguments":{}}`
	const head = `"responseModel":"gpt-5.2-2026-01-01","responseId":"resp_1",`
	want := []string{
		`start {"role":"assistant","content":[],` + head + unusedJSON + `,"stopReason":"pending"}`,
		`thinking_start 0 {"type":"thinking","thinking":""}`,
		`thinking_delta 0 "One."`,
		`thinking_delta 0 "\n\n"`,
		`thinking_delta 0 "Two."`,
		`thinking_end 0 ` + thinking,
		`text_start 1 {"type":"text","text":""}`,
		`text_delta 1 "Hi "`,
		`text_delta 1 "🙂"`,
		`text_end 1 ` + hi,
		`toolcall_start 2 {"type":"toolCall","id":"call_1|fc_1","name":"ls","arguments":{}}`,
		`toolcall_start 3 {"type":"toolCall","id":"call_2|fc_2","name":"pwd","arguments":{}}`,
		`toolcall_delta 2 "{\"a\":"`,
		`toolcall_delta 3 "{}"`,
		`toolcall_delta 2 " 1}"`,
		`toolcall_end 2 ` + ls,
		`toolcall_end 3 ` + pwd,
		`done {"role":"assistant","content":[` + thinking + `,` + hi + `,` + ls + `,` + pwd + `],` + head + usedJSON + `,"stopReason":"toolUse","rawStopReason":"completed"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	asked := s.requests()[0]
	if diff := cmp.Diff([]string{"POST", "/v1/responses", "Bearer " + testKey, "blue", ""}, []string{
		asked.Method, asked.URL, asked.Header.Get("Authorization"), asked.Header.Get("X-Team"), asked.Header.Get("Idempotency-Key"),
	}); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(string(responsesBody("openai", thinker, question())), asked.Body); diff != "" {
		t.Error(diff)
	}
}

// What reasoned without a word goes back in front of what it led to, though that
// began before the reasoning ended.
func TestSilentReasoningKeepsItsPlace(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ asked) {
		sse(w,
			`{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"half"}}`,
			`{"type":"response.output_item.added","output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"ls","arguments":""}}`,
			`{"type":"response.output_item.done","output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"ls","arguments":"{}"}}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"whole"}}`,
			`{"type":"response.completed","response":{"status":"completed"}}`,
		)
	})
	m := final(t, s.model(t, "gpt-5.2").Stream(t.Context(), question()))
	in := newInput("openai", thinker)
	in.add(m)
	want := `{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"whole"},` +
		`{"type":"function_call","id":"fc_1","call_id":"call_1","name":"ls","arguments":"{}"}`
	if diff := cmp.Diff(want, string(in.items)); diff != "" {
		t.Error(diff)
	}
}

// An answer whose items came in no event of their own is in the last one, and in
// a response that is no stream.
func TestWholeResponse(t *testing.T) {
	const response = `{"id":"resp_1","model":"gpt-5.2","status":"completed","output":[` +
		`{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gA="},` +
		`{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"Hi"},{"type":"refusal","refusal":"No."}]}],` + usageJSON + `}`
	want := `{"role":"assistant","content":[` +
		`{"type":"thinking","thinking":"","thinkingSignature":"{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":\"gA=\"}"},` +
		`{"type":"text","text":"Hi","textSignature":"{\"v\":1,\"id\":\"msg_1\"}"},` +
		`{"type":"text","text":"No.","textSignature":"{\"v\":1,\"id\":\"msg_1\",\"refusal\":true}"}],` +
		`"responseId":"resp_1",` + usedJSON + `,"stopReason":"stop","rawStopReason":"completed"}`
	for name, answer := range map[string]func(http.ResponseWriter, asked){
		"stream": func(w http.ResponseWriter, _ asked) {
			sse(w, `{"type":"response.completed","response":`+response+`}`)
		},
		"JSON": func(w http.ResponseWriter, _ asked) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, response)
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := final(t, serve(t, answer).model(t, "gpt-5.2").Stream(t.Context(), question()))
			if diff := cmp.Diff(want, brief(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEnds(t *testing.T) {
	for _, tt := range []struct{ name, last, want string }{
		{"output limit", `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`,
			`"stopReason":"length","rawStopReason":"max_output_tokens"`},
		{"content filter", `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}`,
			`"stopReason":"error","errorMessage":"openai/gpt-5.2 at HOST: the provider's content filter stopped the answer","rawStopReason":"content_filter","diagnostics":[{"type":"provider_error","class":"invalid_request"}]`},
		{"another reason", `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"steered"}}}`,
			`"stopReason":"error","errorMessage":"openai/gpt-5.2 at HOST: the answer is incomplete: steered","rawStopReason":"steered","diagnostics":[{"type":"provider_error","class":"invalid_request"}]`},
		{"failed", `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"Oops."}}}`,
			`"stopReason":"error","errorMessage":"openai/gpt-5.2 at HOST: server_error: Oops.","diagnostics":[{"type":"provider_error","class":"server"}]`},
		{"failed without a word", `{"type":"response.failed","response":{"status":"failed","error":null}}`,
			`"stopReason":"error","errorMessage":"openai/gpt-5.2 at HOST: server_error: the response failed, and does not say why","diagnostics":[{"type":"provider_error","class":"server"}]`},
		{"error event", `{"type":"error","code":"rate_limit_exceeded","message":"Slow down.","param":null}`,
			`"stopReason":"error","errorMessage":"openai/gpt-5.2 at HOST: rate_limit_exceeded: Slow down.","diagnostics":[{"type":"provider_error","class":"rate_limit"}]`},
		{"overflow", `{"type":"error","code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}`,
			`"stopReason":"error","errorMessage":"openai/gpt-5.2 at HOST: context_length_exceeded: Your input exceeds the context window of this model.","diagnostics":[{"type":"provider_error","class":"overflow"}]`},
		{"no event", `event? no`,
			`"stopReason":"error","errorMessage":"openai/gpt-5.2 at HOST: the server sent an event that is not JSON: event? no","diagnostics":[{"type":"provider_error","class":"server"}]`},
		{"cut off", `{"type":"response.in_progress"}`,
			`"stopReason":"error","errorMessage":"openai/gpt-5.2 at HOST: the stream ended early","diagnostics":[{"type":"provider_error","class":"network"}]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ asked) {
				sse(w, `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Hi"}`, tt.last)
			})
			got := brief(final(t, s.model(t, "gpt-5.2").Stream(t.Context(), question())))
			want := `{"role":"assistant","content":[{"type":"text","text":"Hi"}],` + unusedJSON + `,` + tt.want + `}`
			host, _, _ := strings.Cut(strings.TrimPrefix(s.url, "http://"), "/")
			if diff := cmp.Diff(want, strings.ReplaceAll(got, host, "HOST")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The SDK loses the status of a refusal that is not JSON.
func TestRefusalThatIsNoJSON(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ asked) {
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "<html>try later</html>")
	})
	got := brief(final(t, s.model(t, "gpt-5.2").Stream(t.Context(), question())))
	if want := `"diagnostics":[{"type":"provider_error","status":503,"class":"server","retryAfterMs":3000}]`; !strings.Contains(got, want) {
		t.Errorf("%s lacks %s", got, want)
	}
	if n := len(s.requests()); n != 1 {
		t.Errorf("%d requests were made", n)
	}
}

func TestWebPage(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ asked) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<html>Please log in</html>")
	})
	got := final(t, s.model(t, "gpt-5.2").Stream(t.Context(), question())).ErrorMessage()
	if want := "the server sent a web page: <html>Please log in</html>"; !strings.HasSuffix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestUnusable(t *testing.T) {
	_, err := New(model.Endpoint{Provider: "openai", Unusable: "OPENAI_API_KEY is not set"}).Resolve("gpt-5.2")
	unknown, ok := errors.AsType[*effect.UnknownModel](err)
	if !ok || unknown.Error() != "model openai/gpt-5.2: OPENAI_API_KEY is not set" {
		t.Errorf("Resolve = %v", err)
	}
}

func TestTextLen(t *testing.T) {
	for _, raw := range []string{
		`""`, `"a"`, `"é🙂"`, `"\n\"\\\/"`, `"\u0041"`, `"\u00e9"`, `"\u20ac"`, `"\ud83d\ude42"`, `"x\ud83d"`, `"\ud83dx\ude42"`,
		`"\ude42\ud83d"`, `"\ud83d\ud83d\ude42\u0041\n"`, `"\\u0041"`, `"\\\u0041"`,
	} {
		if got, want := textLen([]byte(raw)), len(text([]byte(raw))); got != want {
			t.Errorf("%s has %d bytes, not %d", raw, want, got)
		}
	}
}

// A text ends as its item's end says, however long it is and whatever came before.
func TestFinalText(t *testing.T) {
	long := strings.Repeat("é\n", longText/3)
	raw := strings.ReplaceAll(long, "\n", `\n`)
	for name, deltas := range map[string][]string{
		"as it came": {raw[:longText], raw[longText:]}, "cut short": {raw[:longText]}, "otherwise": {"x"}, "in one piece": nil,
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ asked) {
				for _, d := range deltas {
					sse(w, `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"`+d+`"}`)
				}
				sse(w,
					`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"`+raw+`"}]}}`,
					`{"type":"response.completed","response":{"status":"completed"}}`)
			})
			if got := final(t, s.model(t, "gpt-5.2").Stream(t.Context(), question())).Text(); got != long {
				t.Errorf("%d bytes instead of %d", len(got), len(long))
			}
		})
	}
}
