package anthropic

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
)

const (
	rowID = "018bcfe5-6800-7188-8627-c76b1bfb1fa3"
	made  = "2026-11-30T10:00:05.123456Z"
)

var madeAt = time.Date(2026, 11, 30, 10, 0, 5, 123456000, time.UTC)

// batchesServer answers by path and keeps what it was asked.
type batchesServer struct {
	*httptest.Server
	replies map[string]reply
	asked   []string // method, path and body
	headers http.Header
}

type reply struct {
	status int
	body   string
}

func serve(t *testing.T, replies map[string]reply) *batchesServer {
	t.Helper()
	s := &batchesServer{replies: replies}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.asked, s.headers = append(s.asked, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body))), r.Header
		re, ok := s.replies[r.Method+" "+r.URL.RequestURI()]
		if !ok {
			re, ok = s.replies[r.Method+" "+r.URL.Path]
		}
		if !ok {
			re = reply{404, `{"type":"error","error":{"type":"not_found_error","message":"Message batch not found"}}`}
		}
		kind := "application/json"
		if strings.HasPrefix(re.body, "event:") {
			kind = "text/event-stream"
		}
		w.Header().Set("Content-Type", kind)
		if re.status < 0 { // the connection breaks
			w.Header().Set("Content-Length", "10000")
			re.status = 200
		}
		w.WriteHeader(re.status)
		_, _ = io.WriteString(w, re.body)
	}))
	t.Cleanup(s.Close)
	return s
}

type listed struct{ model.Spec }

func (l listed) Find(id string) model.Spec {
	l.ID = id
	return l.Spec
}
func (listed) IDs() []string { return nil }

func (s *batchesServer) model(t *testing.T, id string) effect.Adopter {
	t.Helper()
	m, err := New(model.Endpoint{
		Provider: "acme", BaseURL: s.URL + "/v1/", Client: s.Client(),
		Key:    func(context.Context) (string, error) { return "sk-1", nil },
		Models: listed{model.Spec{Prices: model.Prices{Input: 2e6, Output: 4e6, CacheWrite: 6e6, CacheWrite1h: 8e6}}},
	}).Resolve(id)
	if err != nil {
		t.Fatal(err)
	}
	return m.(effect.Adopter)
}

func final(t *testing.T, events effect.Events) message.Assistant {
	t.Helper()
	var last message.StreamEvent
	for ev := range events {
		last = ev
	}
	a, err := message.ParseAssistant(last.Final())
	if err != nil {
		t.Fatalf("%s: %v", last.Type, err)
	}
	return a
}

func batch(id, status, created string, rows int) string {
	return fmt.Sprintf(`{"id":%q,"type":"message_batch","processing_status":%q,"request_counts":{"processing":%d,"succeeded":0,"errored":0,"canceled":0,"expired":0},`+
		`"created_at":%q,"expires_at":"2026-12-01T10:00:05Z","ended_at":null,"results_url":null}`, id, status, rows, created)
}

// handleOf is a handle as a submission or an adoption makes it.
func handleOf(id, poll string) message.DeferredHandle {
	return message.DeferredHandle{Raw: json.RawMessage(`{"provider":"acme","modelId":"claude-opus-4-8","api":"anthropic-messages","id":"` + id +
		`","expiresAt":1796119205000,"pollAfterMs":` + poll + `,"data":{"row":"` + rowID + `"}}`)}
}

var handle = handleOf("msgbatch_1", "300000")

func TestSubmit(t *testing.T) {
	s := serve(t, map[string]reply{"POST /v1/messages/batches": {200, batch("msgbatch_1", "in_progress", made, 1)}})
	for _, tt := range []struct{ option, poll string }{
		{`{"window":"24h"}`, "300000"}, {`true`, "300000"}, {`{"window":"1h"}`, "60000"}, {`{"window":"15m"}`, "15000"}, {`{"window":"soon"}`, "300000"},
	} {
		req := effect.Request{ResponseEntryID: rowID, Messages: []message.Message{user("a")}, MaxOutput: 10, Options: message.StreamOptions{Deferred: json.RawMessage(tt.option)}}
		req.Payload = func(_ context.Context, body json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(strings.Replace(string(body), `"a"`, `"hooked"`, 1)), nil
		}
		got := final(t, s.model(t, "claude-opus-4-8").Stream(t.Context(), req))
		if got.StopReason != message.StopDeferred || string(got.Deferred) != string(handleOf("msgbatch_1", tt.poll).Raw) || len(got.Content) > 0 {
			t.Errorf("deferred %s: %+v %s", tt.option, got, got.Deferred)
		}
		if !(message.DeferredHandle{Raw: got.Deferred}).Valid(message.ModelRef{Provider: "acme", ModelID: "claude-opus-4-8"}, API) {
			t.Errorf("handle %s", got.Deferred)
		}
	}
	want := `POST /v1/messages/batches {"requests":[{"custom_id":"` + rowID + `","params":{"model":"claude-opus-4-8","max_tokens":10,"messages":[{"role":"user","content":[{"type":"text","text":"hooked",` + mark + `}]}]}}]}`
	if diff := cmp.Diff(want, s.asked[0]); diff != "" {
		t.Error(diff)
	}
}

// A submission that is refused, or answered with something else, is an error like
// any other.
func TestSubmitFails(t *testing.T) {
	for _, tt := range []struct {
		reply reply
		class string
	}{
		{reply{529, `{"type":"error","error":{"type":"overloaded_error","message":"later"}}`}, message.ClassOverloaded},
		{reply{400, `{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`}, message.ClassInvalidRequest},
		{reply{200, `{"hello":"world"}`}, message.ClassServer},
		{reply{200, `<html>`}, message.ClassServer},
		{reply{-1, `{"id":`}, message.ClassNetwork},
	} {
		s := serve(t, map[string]reply{"POST /v1/messages/batches": tt.reply})
		req := effect.Request{ResponseEntryID: rowID, Messages: []message.Message{user("a")}, Options: message.StreamOptions{Deferred: json.RawMessage("true")}}
		got := final(t, s.model(t, "claude-opus-4-8").Stream(t.Context(), req))
		if e := message.ProviderError(got.Message()); got.StopReason != message.StopError || e.Class != tt.class || len(s.asked) != 1 {
			t.Errorf("%v: %+v after %q", tt.reply, got, s.asked)
		}
	}
}

func TestNotDeferred(t *testing.T) {
	for _, option := range []string{"", "false", "null"} {
		if _, ok := deferral(json.RawMessage(option)); ok {
			t.Errorf("%q asks for a deferred answer", option)
		}
	}
}

const ended = `{"id":"msgbatch_1","processing_status":"ended","request_counts":{"succeeded":1},"created_at":"` + made + `"}`

// row is a line of a batch's results.
func row(id, result string) string { return `{"custom_id":"` + id + `","result":` + result + "}\n" }

func (s *batchesServer) poll(t *testing.T) message.Assistant {
	t.Helper()
	return s.pollAt(t, 5)
}

func (s *batchesServer) pollAt(t *testing.T, now int64) message.Assistant {
	t.Helper()
	return final(t, s.model(t, "claude-opus-4-8").Poll(t.Context(), handle, effect.Request{ResponseEntryID: "other", Messages: []message.Message{user("a")}, Now: now}))
}

// Results may come after the end of a batch, if late; those of an old one are gone.
func TestPollWithoutResults(t *testing.T) {
	for age, want := range map[time.Duration]message.StopReason{time.Hour: message.StopDeferred, 50 * time.Hour: message.StopError} {
		s := serve(t, map[string]reply{"GET /v1/messages/batches/msgbatch_1": {200, ended}})
		if got := s.pollAt(t, madeAt.Add(age).UnixMilli()); got.StopReason != want {
			t.Errorf("after %v: %+v", age, got)
		}
	}
}

// What says nothing about the job leaves it pending under the stored handle, byte
// for byte; an answer about it settles it (D33).
func TestPollPending(t *testing.T) {
	const job, results = "GET /v1/messages/batches/msgbatch_1", "GET /v1/messages/batches/msgbatch_1/results"
	for name, tt := range map[string]struct {
		replies map[string]reply
		pending bool
		noted   bool
	}{
		"in progress":         {map[string]reply{job: {200, batch("msgbatch_1", "in_progress", made, 1)}}, true, false},
		"cancelling":          {map[string]reply{job: {200, batch("msgbatch_1", "canceling", made, 1)}}, true, false},
		"408":                 {map[string]reply{job: {408, ""}}, true, true},
		"425":                 {map[string]reply{job: {425, ""}}, true, true},
		"429":                 {map[string]reply{job: {429, `{"error":{"type":"rate_limit_error","message":"x"}}`}}, true, true},
		"500":                 {map[string]reply{job: {500, ""}}, true, true},
		"529":                 {map[string]reply{job: {529, ""}}, true, true},
		"no batch":            {map[string]reply{job: {200, `{}`}}, true, true},
		"a page":              {map[string]reply{job: {200, `<html>`}}, true, true},
		"cut":                 {map[string]reply{job: {-1, `{"id":`}}, true, true},
		"results later":       {map[string]reply{job: {200, ended}, results: {503, ""}}, true, true},
		"results cut":         {map[string]reply{job: {200, ended}, results: {-1, row("x", `{}`)}}, true, true},
		"results cut in row":  {map[string]reply{job: {200, ended}, results: {200, `{"custom_id":"` + rowID}}, true, true},
		"unknown":             {map[string]reply{}, false, true},
		"a wrong key":         {map[string]reply{job: {401, ""}}, true, true},
		"forbidden":           {map[string]reply{job: {403, ""}}, true, true},
		"a proxy":             {map[string]reply{job: {407, ""}}, true, true},
		"nothing is there":    {map[string]reply{job: {404, ""}}, true, true},
		"a proxy's page":      {map[string]reply{job: {404, "<html>nginx 404</html>"}}, true, true},
		"results elsewhere":   {map[string]reply{job: {200, ended}, results: {404, "<html>nginx 404</html>"}}, true, true},
		"unchanged":           {map[string]reply{job: {304, ""}}, true, true},
		"no results":          {map[string]reply{job: {200, ended}, results: {200, ""}}, true, true},
		"unchanged results":   {map[string]reply{job: {200, ended}, results: {304, ""}}, true, true},
		"results to come":     {map[string]reply{job: {200, ended}}, true, true},
		"no row for this key": {map[string]reply{job: {200, ended}, results: {200, row("x", `{}`)}}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, tt.replies)
			got := s.poll(t)
			if tt.pending != (got.StopReason == message.StopDeferred && string(got.Deferred) == string(handle.Raw)) || tt.noted != (len(got.Diagnostics) > 0) {
				t.Errorf("%+v %s %s", got, got.Deferred, got.Diagnostics)
			}
		})
	}
}

func TestPollWithoutServer(t *testing.T) {
	s := serve(t, nil)
	m := s.model(t, "claude-opus-4-8")
	s.Close()
	got := final(t, m.Poll(t.Context(), handle, effect.Request{}))
	if got.StopReason != message.StopDeferred || string(got.Deferred) != string(handle.Raw) || len(got.Diagnostics) == 0 {
		t.Errorf("%+v", got)
	}
}

func TestPollSettles(t *testing.T) {
	for _, tt := range []struct {
		name, result string
		want         message.StopReason
		text         string // of the error
	}{
		{"errored", `{"type":"errored","error":{"type":"error","error":{"type":"overloaded_error","message":"too much"}}}`, message.StopError, "too much"},
		{"canceled", `{"type":"canceled"}`, message.StopError, "cancelled"},
		{"expired", `{"type":"expired"}`, message.StopError, "expired"},
		{"refused", `{"type":"succeeded","message":{"id":"m","model":"x","content":[],"stop_reason":"refusal","stop_details":{"explanation":"because"}}}`, message.StopError, "because"},
		{"length", `{"type":"succeeded","message":{"id":"m","model":"x","content":[{"type":"text","text":"so"}],"stop_reason":"max_tokens"}}`, message.StopLength, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, map[string]reply{
				"GET /v1/messages/batches/msgbatch_1":         {200, ended},
				"GET /v1/messages/batches/msgbatch_1/results": {200, row("x", `{}`) + row(rowID, tt.result)},
			})
			got := s.poll(t)
			if got.StopReason != tt.want || !strings.Contains(got.ErrorMessage, tt.text) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// An answer in one piece becomes what a stream would; its tokens cost half.
func TestPollAnswer(t *testing.T) {
	s := serve(t, map[string]reply{
		"GET /v1/messages/batches/msgbatch_1": {200, ended},
		"GET /v1/messages/batches/msgbatch_1/results": {200, row(rowID, `{"type":"succeeded","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-4-8-20260528","content":[`+
			`{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"redacted_thinking","data":"xyz"},{"type":"text","text":"I look \ud83d\ude42"},`+
			`{"type":"tool_use","id":"toolu_1","name":"ls","input":{"n": 1.0}}],"stop_reason":"tool_use","stop_sequence":null,`+
			`"usage":{"input_tokens":1,"cache_creation_input_tokens":3,"cache_creation":{"ephemeral_5m_input_tokens":1,"ephemeral_1h_input_tokens":2},"cache_read_input_tokens":0,"output_tokens":5,"output_tokens_details":{"thinking_tokens":4},"service_tier":"batch"}}}`)},
	})
	hour, thinking := int64(2), int64(4)
	want := message.Assistant{
		Provider: "acme", API: API, Model: "claude-opus-4-8", ResponseID: "msg_1", ResponseModel: "claude-opus-4-8-20260528",
		StopReason: message.StopToolUse, RawStopReason: "tool_use", Timestamp: 5,
		Usage: message.Usage{
			Input: 1, Output: 5, CacheWrite: 3, CacheWrite1h: &hour, Reasoning: &thinking, TotalTokens: 9,
			Cost: message.Cost{Input: 1, Output: 10, CacheWrite: 11, Total: 22},
		},
	}
	got := s.poll(t)
	content := string(message.Assistant{Content: got.Content}.Message())
	got.Content = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, part := range []string{
		`{"type":"thinking","thinking":"hm","thinkingSignature":"sig"}`, `{"type":"thinking","thinking":"","thinkingSignature":"xyz","redacted":true}`,
		`{"type":"text","text":"I look 🙂"}`, `{"type":"toolCall","id":"toolu_1","name":"ls","arguments":{"n": 1.0}}`,
	} {
		if !strings.Contains(content, part) {
			t.Errorf("%s lacks %s", content, part)
		}
	}
}

func TestCancel(t *testing.T) {
	const cancel = "POST /v1/messages/batches/msgbatch_1/cancel"
	for _, tt := range []struct {
		name   string
		status int
		fails  bool
	}{
		{"running", 200, false},
		{"ended already", 409, false},
		{"unknown", 404, false},
		{"nobody is there", 500, true},
	} {
		s := serve(t, map[string]reply{cancel: {tt.status, "{}"}})
		err := s.model(t, "claude-opus-4-8").Cancel(t.Context(), handle)
		if (err != nil) != tt.fails || len(s.asked) != 1 {
			t.Errorf("%s: %v after %q", tt.name, err, s.asked)
		}
	}
}

// A job's id is the server's to choose, and no path of ours.
func TestOddJobID(t *testing.T) {
	s := serve(t, nil)
	odd := message.DeferredHandle{Raw: json.RawMessage(`{"id":"../../x?y","data":{}}`)}
	_ = s.model(t, "m").Cancel(t.Context(), odd)
	if len(s.asked) != 1 || s.asked[0] != "POST /v1/messages/batches/..%2F..%2Fx%3Fy/cancel" {
		t.Errorf("asked %q", s.asked)
	}
}
