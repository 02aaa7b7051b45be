package openai

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/message"
)

// background is a server that answers later: each retrieval of a job takes it one
// step on, through the statuses it was made with.
type background struct {
	steps []string // bodies after `"id":…,`

	mu   sync.Mutex
	jobs map[string]int // by id, how often it was retrieved
}

func (g *background) answer(w http.ResponseWriter, a asked) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	path, _, _ := strings.Cut(strings.TrimPrefix(a.URL, "/v1/responses"), "?")
	id, verb, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if id == "" {
		id = fmt.Sprintf("resp_%d", len(g.jobs)+1)
		g.jobs[id] = 0
		fmt.Fprintf(w, `{"id":%q,"status":"queued","output":[]}`, id)
		return
	}
	at, ok := g.jobs[id]
	switch {
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":{"message":"Response with id '`+id+`' not found.","type":"invalid_request_error","code":null}}`)
		return
	case verb == "cancel" && at < len(g.steps):
		g.steps, at = []string{`"status":"cancelled","output":[]`}, 0
		g.jobs[id] = 1
	case verb == "cancel":
		at--
	default:
		g.jobs[id] = min(at+1, len(g.steps))
	}
	fmt.Fprintf(w, `{"id":%q,%s}`, id, g.steps[min(at, len(g.steps)-1)])
}

func jobs(t *testing.T, steps ...string) *server {
	g := &background{steps: steps, jobs: map[string]int{}}
	return serve(t, g.answer)
}

const handle1 = `{"provider":"openai","modelId":"gpt-5.2","api":"openai-responses","id":"resp_1","pollAfterMs":15000}`

func TestBackground(t *testing.T) {
	s := jobs(t,
		`"status":"queued"`, `"status":"in_progress","model":"gpt-5.2-1"`,
		`"status":"completed","model":"gpt-5.2-1","output":[{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gA="},`+
			`{"id":"fc_1","type":"function_call","call_id":"call_1","name":"ls","arguments":"{}"}],`+usageJSON,
	)
	m := s.model(t, "gpt-5.2")
	req := question()
	req.Options.Deferred = json.RawMessage(`{"window":"24h"}`)
	submitted := final(t, m.Stream(t.Context(), req))
	deferred := `{"role":"assistant","content":[],` + unusedJSON + `,"stopReason":"deferred","deferred":HANDLE}`
	if diff := cmp.Diff(strings.Replace(deferred, "HANDLE", handle1, 1), brief(submitted)); diff != "" {
		t.Error(diff)
	}
	asked := s.requests()[0]
	if diff := cmp.Diff(string(backgroundBody("openai", thinker, req)), asked.Body); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("entry-1", asked.Header.Get("Idempotency-Key")); diff != "" {
		t.Error(diff)
	}

	// The stored handle comes back as it is, spelling included.
	stored := message.DeferredHandle{Raw: json.RawMessage(strings.Replace(handle1, `15000`, `1.5e4`, 1))}
	req.Options.Deferred = json.RawMessage("false")
	for range 2 {
		got := final(t, m.Poll(t.Context(), stored, req))
		if diff := cmp.Diff(strings.Replace(deferred, "HANDLE", string(stored.Raw), 1), brief(got)); diff != "" {
			t.Error(diff)
		}
	}
	got := final(t, m.Poll(t.Context(), stored, req))
	want := `{"role":"assistant","content":[` +
		`{"type":"thinking","thinking":"","thinkingSignature":"{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":\"gA=\"}"},` +
		`{"type":"toolCall","id":"call_1|fc_1","name":"ls","arguments":{}}],"responseModel":"gpt-5.2-1","responseId":"resp_1",` +
		usedJSON + `,"stopReason":"toolUse","rawStopReason":"completed"}`
	if diff := cmp.Diff(want, brief(got)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("GET /v1/responses/resp_1?include[]=reasoning.encrypted_content", unescaped(s.requests()[1])); diff != "" {
		t.Error(diff)
	}
}

func unescaped(a asked) string {
	return a.Method + " " + strings.NewReplacer("%5B", "[", "%5D", "]").Replace(a.URL)
}

func TestPollSettles(t *testing.T) {
	for _, tt := range []struct{ name, step, want string }{
		{"failed", `"status":"failed","error":{"code":"server_error","message":"Oops."}`, "server_error: Oops."},
		{"cancelled", `"status":"cancelled"`, `the response ended as "cancelled"`},
		{"expired", `"status":"expired"`, `the response ended as "expired"`},
		{"incomplete", `"status":"incomplete","incomplete_details":{"reason":"content_filter"}`, "the provider's content filter stopped the answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := jobs(t, tt.step)
			m := s.model(t, "gpt-5.2")
			req := question()
			req.Options.Deferred = json.RawMessage("true")
			final(t, m.Stream(t.Context(), req))
			got := final(t, m.Poll(t.Context(), message.DeferredHandle{Raw: json.RawMessage(handle1)}, req))
			if got.StopReason() != message.StopError || !strings.HasSuffix(got.ErrorMessage(), tt.want) {
				t.Errorf("%s, want an error %q", got, tt.want)
			}
		})
	}
	t.Run("unknown", func(t *testing.T) {
		got := final(t, jobs(t).model(t, "gpt-5.2").Poll(t.Context(), message.DeferredHandle{Raw: json.RawMessage(handle1)}, question()))
		if got.StopReason() != message.StopError || !strings.Contains(got.ErrorMessage(), "404") {
			t.Errorf("%s", got)
		}
	})
}

// A question that found no answer leaves the job as it was (D33).
func TestPollWithoutAnswer(t *testing.T) {
	stored := message.DeferredHandle{Raw: json.RawMessage(strings.Replace(handle1, `15000`, `1.5e4`, 1))}
	for _, status := range []int{408, 425, 429, 500, 503} {
		s := serve(t, func(w http.ResponseWriter, _ asked) {
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"error":{"message":"busy"}}`)
		})
		pending(t, final(t, s.model(t, "gpt-5.2").Poll(t.Context(), stored, question())), stored, fmt.Sprintf(`"status":%d`, status))
	}
	for _, page := range []string{
		`<html><body>nginx 404</body></html>`,
		`{"error":{"message":"Invalid URL (GET /v1/responses/resp_1)","type":"invalid_request_error","param":null,"code":null}}`,
	} {
		s := serve(t, func(w http.ResponseWriter, _ asked) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, page)
		})
		pending(t, final(t, s.model(t, "gpt-5.2").Poll(t.Context(), stored, question())), stored, `"status":404`)
	}
	cut := serve(t, func(w http.ResponseWriter, _ asked) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"id":"resp_1","status":"completed","output":[`)
	})
	pending(t, final(t, cut.model(t, "gpt-5.2").Poll(t.Context(), stored, question())), stored, `"class":"network"`)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	refused := server{url: gone.URL}
	pending(t, final(t, refused.model(t, "gpt-5.2").Poll(t.Context(), stored, question())), stored, `"class":"network"`)
}

func pending(t *testing.T, m message.Message, stored message.DeferredHandle, note string) {
	t.Helper()
	raw, _ := m.Get("deferred")
	notes, _ := m.Get("diagnostics")
	if m.StopReason() != message.StopDeferred || string(raw) != string(stored.Raw) || !strings.Contains(string(notes), note) {
		t.Errorf("%s, want it pending with %s and %s", m, stored.Raw, note)
	}
}

func TestCancel(t *testing.T) {
	s := jobs(t, `"status":"queued"`, `"status":"in_progress"`)
	m := s.model(t, "gpt-5.2")
	req := question()
	req.Options.Deferred = json.RawMessage("true")
	final(t, m.Stream(t.Context(), req))
	handle := message.DeferredHandle{Raw: json.RawMessage(handle1)}
	for range 2 {
		if err := m.Cancel(t.Context(), handle); err != nil {
			t.Error(err)
		}
	}
	if got := final(t, m.Poll(t.Context(), handle, req)); !strings.Contains(got.ErrorMessage(), "cancelled") {
		t.Errorf("%s", got)
	}
	unknown := message.DeferredHandle{Raw: json.RawMessage(strings.Replace(handle1, "resp_1", "resp_9", 1))}
	if err := m.Cancel(t.Context(), unknown); err != nil {
		t.Error(err)
	}
	if got := unescaped(s.requests()[1]); got != "POST /v1/responses/resp_1/cancel" {
		t.Error(got)
	}
	broken := serve(t, func(w http.ResponseWriter, _ asked) { w.WriteHeader(http.StatusInternalServerError) })
	if err := broken.model(t, "gpt-5.2").Cancel(t.Context(), handle); err == nil {
		t.Error("a cancel that failed returned no error")
	}
}

// A server that knows no background mode answers at once.
func TestBackgroundAnsweredAtOnce(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ asked) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"resp_1","status":"completed","output":[{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"Hi"}]}]}`)
	})
	req := question()
	req.Options.Deferred = json.RawMessage("true")
	if got := final(t, s.model(t, "gpt-5.2").Stream(t.Context(), req)); got.StopReason() != message.StopStop || got.Text() != "Hi" {
		t.Errorf("%s", got)
	}
}

func TestIsDeferred(t *testing.T) {
	for option, want := range map[string]bool{"": false, "null": false, "false": false, "true": true, `{"window":"24h"}`: true, `"24h"`: false} {
		if got := isDeferred(json.RawMessage(option)); got != want {
			t.Errorf("%q: %v", option, got)
		}
	}
}
