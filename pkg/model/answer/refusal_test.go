package answer_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
	"github.com/drover-run/drover/pkg/model/answer"
)

func TestRefused(t *testing.T) {
	tests := []struct {
		name      string
		status    int
		body      string
		class     string
		text      string
		retryable bool
	}{
		{"bad request", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: too big"}}`,
			message.ClassInvalidRequest, "400: invalid_request_error: max_tokens: too big", false},
		{"overflow", 400, `{"error":{"type":"invalid_request_error","message":"prompt is too long: 200001 tokens > 200000"}}`,
			message.ClassOverflow, "400: invalid_request_error: prompt is too long: 200001 tokens > 200000", false},
		{"overflow by code", 400, `{"error":{"message":"no","code":"context_length_exceeded"}}`, message.ClassOverflow, "400: context_length_exceeded: no", false},
		{"bare 400", 400, "", message.ClassOverflow, "400: nothing more was said", false},
		{"401", 401, `{"error":{"message":"x","code":"invalid_api_key"}}`, message.ClassAuth, "401: invalid_api_key: x", false},
		{"402", 402, `{"error":{"message":"add credits","code":402}}`, message.ClassBilling, "402: add credits", false},
		{"403", 403, `{"message":"not for you"}`, message.ClassPermission, "403: not for you", false},
		{"404", 404, `{"error":"model \"x\" not found, try pulling it first"}`, message.ClassInvalidRequest, `404: model "x" not found, try pulling it first`, false},
		{"408", 408, `{}`, message.ClassTimeout, "408: {}", true},
		{"409 that passes", 409, `{"error":{"message":"Internal error"}}`, message.ClassRetryable, "409: Internal error", true},
		{"409 that does not", 409, `{"error":{"message":"exists"}}`, message.ClassInvalidRequest, "409: exists", false},
		{"413", 413, `{"error":{"type":"request_too_large","message":"x"}}`, message.ClassOverflow, "413: request_too_large: x", false},
		{"422", 422, `{"detail":"no such field"}`, message.ClassInvalidRequest, "422: no such field", false},
		{"425", 425, ``, message.ClassRetryable, "425: nothing more was said", true},
		{"429", 429, `{"error":{"type":"rate_limit_error","message":"too many tokens"}}`, message.ClassRateLimit, "429: rate_limit_error: too many tokens", true},
		{"quota", 429, `{"error":{"message":"check your plan","code":"insufficient_quota"}}`, message.ClassQuota, "429: insufficient_quota: check your plan", false},
		{"quota by words", 429, `{"error":{"message":"You exceeded your current quota"}}`, message.ClassQuota, "429: You exceeded your current quota", false},
		{"500", 500, `<html>oops</html>`, message.ClassServer, "500: <html>oops</html>", true},
		{"overflow as a server error", 500, `{"error":{"message":"the request exceeds the available context size"}}`,
			message.ClassOverflow, "500: the request exceeds the available context size", false},
		{"503", 503, `{"error":{"message":"The engine is currently overloaded"}}`, message.ClassOverloaded, "503: The engine is currently overloaded", true},
		{"504", 504, ``, message.ClassTimeout, "504: nothing more was said", true},
		{"529", 529, `{"error":{"type":"overloaded_error","message":"Overloaded"}}`, message.ClassOverloaded, "529: overloaded_error: Overloaded", true},
		{"a redirect", 302, ``, message.ClassInvalidRequest, "302: nothing more was said", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := answer.Refused(tt.status, nil, []byte(tt.body))
			if r.Class != tt.class || r.Error() != tt.text || r.Status != tt.status {
				t.Errorf("Refused = %+v", r)
			}
			m := refusedMessage(t, r)
			if message.IsRetryable(m) != tt.retryable || message.IsOverflow(m, 0, 0) != (tt.class == message.ClassOverflow) {
				t.Errorf("classification of %s", m)
			}
		})
	}
}

func refusedMessage(t *testing.T, err error) message.Message {
	t.Helper()
	events := ask(t, func(context.Context, *answer.Builder) error { return err })
	if len(events) != 1 || events[0].Type != message.EventError || events[0].Reason != message.StopError {
		t.Fatalf("events %v", lines(t, events))
	}
	return events[0].Final()
}

func TestReported(t *testing.T) {
	tests := []struct{ raw, class, text string }{
		{`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, message.ClassOverloaded, "overloaded_error: Overloaded"},
		{`{"error":{"code":429,"message":"slow"}}`, message.ClassRateLimit, "429: slow"},
		{`{"error":{"code":"502","message":"Provider returned error"}}`, message.ClassServer, "502: Provider returned error"},
		{`{"type":"response.failed","response":{"error":{"code":"server_error","message":"x"}}}`, message.ClassServer, "server_error: x"},
		{`{"type":"error","code":"rate_limit_exceeded","message":"y"}`, message.ClassRateLimit, "rate_limit_exceeded: y"},
		{`{"error":{"code":"insufficient_quota","message":"z"}}`, message.ClassQuota, "insufficient_quota: z"},
		{`{"error":"the context window: maximum context length is 8 tokens"}`, message.ClassOverflow, "the context window: maximum context length is 8 tokens"},
		{`{"error":{"type":"invalid_request_error","message":"prompt is too long"}}`, message.ClassOverflow, "invalid_request_error: prompt is too long"},
		{`{"error":{"message":"connection reset"}}`, message.ClassRetryable, "connection reset"},
		{`{"error":{"message":"unknown"}}`, message.ClassInvalidRequest, "unknown"},
		{`{"error":{}}`, message.ClassInvalidRequest, "{}"},
		{`no JSON`, message.ClassInvalidRequest, "no JSON"},
	}
	for _, tt := range tests {
		if r := answer.Reported([]byte(tt.raw)); r.Class != tt.class || r.Error() != tt.text {
			t.Errorf("Reported(%s) = %s %q, want %s %q", tt.raw, r.Class, r.Error(), tt.class, tt.text)
		}
	}
}

func TestUnanswered(t *testing.T) {
	get := func(err error) error {
		return fmt.Errorf("ask: %w", &url.Error{Op: "Post", URL: "https://h/?key=sk-1", Err: err})
	}
	tests := []struct {
		err         error
		class, text string
	}{
		{io.EOF, message.ClassNetwork, "the stream ended early"},
		{get(io.ErrUnexpectedEOF), message.ClassNetwork, "the stream ended early"},
		{get(&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}), message.ClassNetwork, "dial tcp: connect: connection refused"},
		{get(&net.DNSError{Err: "no such host", Name: "h", IsNotFound: true}), message.ClassNetwork, "lookup h: no such host"},
		{get(&net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}), message.ClassTimeout, "read tcp: i/o timeout"},
		{get(x509.UnknownAuthorityError{}), message.ClassInvalidRequest, "x509: certificate signed by unknown authority"},
		{get(tls.RecordHeaderError{Msg: "no TLS"}), message.ClassInvalidRequest, "tls: no TLS"},
		{get(errors.New(`malformed HTTP response "SSH-2.0"`)), message.ClassInvalidRequest, `malformed HTTP response "SSH-2.0"`},
		{get(errors.New(`unsupported protocol scheme "htp"`)), message.ClassInvalidRequest, `unsupported protocol scheme "htp"`},
		{get(lasting{}), message.ClassInvalidRequest, "lasting"},
		{answer.Permanent("the answer is text/html"), message.ClassInvalidRequest, "the answer is text/html"},
		{answer.Garbled("an event that is no JSON", []byte(strings.Repeat("é", 200))), message.ClassServer,
			"the server sent an event that is no JSON: " + strings.Repeat("é", 100) + "…"},
	}
	for _, tt := range tests {
		m := refusedMessage(t, tt.err)
		want := message.ErrorInfo{Class: tt.class, Unsent: tt.class == message.ClassNetwork && tt.text != "the stream ended early", Known: true}
		if diff := cmp.Diff(want, message.ProviderError(m)); diff != "" {
			t.Errorf("%v: %s", tt.err, diff)
		}
		if got, want := m.ErrorMessage(), "acme/m1 at api.acme.test: "+tt.text; got != want {
			t.Errorf("error = %q, want %q", got, want)
		}
	}
}

type lasting struct{}

func (lasting) Error() string   { return "lasting" }
func (lasting) Permanent() bool { return true }

// TestErrorStop: an answer may end as an error, in the server's own word.
func TestErrorStop(t *testing.T) {
	got := ask(t, func(_ context.Context, b *answer.Builder) error {
		b.Text().Add("no")
		b.Stopped("content_filter")
		return answer.Permanent("the answer was filtered")
	})
	want := `error error [{"type":"text","text":"no"}] raw=content_filter "acme/m1 at api.acme.test: the answer was filtered" ` +
		`[{"type":"provider_error","class":"invalid_request"}]`
	if diff := cmp.Diff(want, lines(t, got[3:])[0]); diff != "" {
		t.Error(diff)
	}
	checkFrames(t, got)
}

func TestRetryAfter(t *testing.T) {
	date := "Fri, 13 Nov 2026 10:00:00 GMT"
	tests := []struct {
		header http.Header
		want   int64
	}{
		{http.Header{}, 0},
		{http.Header{"Retry-After": {"2"}}, 2000},
		{http.Header{"Retry-After": {"0.0005"}}, 1},
		{http.Header{"Retry-After": {"-1"}}, 0},
		{http.Header{"Retry-After": {"NaN"}}, 0},
		{http.Header{"Retry-After": {"1e300"}}, 365 * 24 * 3600 * 1000},
		{http.Header{"Retry-After": {"soon"}}, 0},
		{http.Header{"Retry-After": {"2"}, "Retry-After-Ms": {"1500.5"}}, 1501},
		{http.Header{"Retry-After": {"2"}, "Retry-After-Ms": {"x"}}, 2000},
		{http.Header{"Retry-After": {"Fri, 13 Nov 2026 10:01:30 GMT"}, "Date": {date}}, 90000},
		{http.Header{"Retry-After": {"Fri, 13 Nov 2026 09:00:00 GMT"}, "Date": {date}}, 0},
		{http.Header{"Retry-After": {"Fri, 13 Nov 1998 09:00:00 GMT"}}, 0},
	}
	for _, tt := range tests {
		if got := answer.RetryAfterMs(tt.header); got != tt.want {
			t.Errorf("RetryAfterMs(%v) = %d, want %d", tt.header, got, tt.want)
		}
	}
	m := refusedMessage(t, answer.Refused(429, tests[1].header, []byte(`{"message":"slow down"}`)))
	want := message.ErrorInfo{Status: 429, Class: message.ClassRateLimit, RetryAfterMs: 2000, Known: true}
	if diff := cmp.Diff(want, message.ProviderError(m)); diff != "" {
		t.Error(diff)
	}
}

// TestPoll: only an answer about the job itself settles it (D33).
func TestPoll(t *testing.T) {
	handle := message.DeferredHandle{Raw: []byte(`{"id" : "job", "x":1.0}`)}
	pending := func(text, note string) string {
		return `done deferred [] [{"type":"provider_error"` + note + `,"message":"acme/m1 at api.acme.test` + text + `"}] {"id" : "job", "x":1.0}`
	}
	failed := func(text, note string) string {
		return `error error [] "acme/m1 at api.acme.test` + text + `" [{"type":"provider_error"` + note + `}]`
	}
	unsent := func(text, note string) string {
		return strings.Replace(pending(text, note), `"}] {`, `","unsent":true}] {`, 1)
	}
	tests := []struct {
		err  error
		want string
	}{
		{&net.OpError{Op: "dial", Net: "tcp", Err: errors.New("refused")}, unsent(": dial tcp: refused", `,"class":"network"`)},
		{&net.OpError{Op: "read", Net: "tcp", Err: errors.New("reset")}, pending(": read tcp: reset", `,"class":"network"`)},
		{&net.DNSError{Err: "no such host", Name: "h"}, unsent(": lookup h: no such host", `,"class":"network"`)},
		{lasting{}, pending(": lasting", `,"class":"invalid_request"`)},
		{nil, pending(": the stream ended early", `,"class":"network"`)},
		{answer.Garbled("x", nil), pending(": the server sent x: ", `,"class":"server"`)},
		{answer.Refused(429, http.Header{"Retry-After": {"7"}}, nil), pending(" answered 429: nothing more was said", `,"status":429,"class":"rate_limit","retryAfterMs":7000`)},
		{answer.Refused(429, nil, []byte("quota")), pending(" answered 429: quota", `,"status":429,"class":"quota"`)},
		{answer.Refused(503, nil, nil), pending(" answered 503: nothing more was said", `,"status":503,"class":"server"`)},
		{answer.Refused(408, nil, nil), pending(" answered 408: nothing more was said", `,"status":408,"class":"timeout"`)},
		{answer.Refused(401, nil, nil), pending(" answered 401: nothing more was said", `,"status":401,"class":"auth"`)},
		{answer.Refused(400, nil, []byte("no credit")), pending(" answered 400: no credit", `,"status":400,"class":"invalid_request"`)},
		{answer.Reported([]byte(`{"code":"server_error","message":"x"}`)), failed(": server_error: x", `,"class":"server"`)},
		{answer.Permanent("expired"), failed(": expired", `,"class":"invalid_request"`)},
	}
	for _, tt := range tests {
		got := collect(answer.Poll(t.Context(), request(), base(), handle, func(context.Context, *answer.Builder) error { return tt.err }))
		if diff := cmp.Diff([]string{tt.want}, lines(t, got)); diff != "" {
			t.Errorf("%v: %s", tt.err, diff)
		}
	}
	got := collect(answer.Poll(t.Context(), request(), base(), handle, func(_ context.Context, b *answer.Builder) error {
		b.Text().Add("here")
		b.Done(message.StopStop, "")
		return nil
	}))
	if end := got[len(got)-1]; end.Reason != message.StopStop {
		t.Errorf("events %v", lines(t, got))
	}
}

// TestPollOfUnknownJob: nothing at an address is not yet a job that is unknown. Only a
// server that says so of the job, in its own form, settles it (D33).
func TestPollOfUnknownJob(t *testing.T) {
	handle := message.DeferredHandle{Raw: []byte(`{"id":"job_1"}`)}
	for _, tt := range []struct {
		name    string
		body    string
		settles bool
	}{
		{"a page of a proxy", `<html><body>nginx 404</body></html>`, false},
		{"nothing", ``, false},
		{"no object", `{"error":"job_1 not found"}`, false},
		{"a framework's words", `{"detail":"Not Found"}`, false},
		{"a framework's words about a path", `{"timestamp":1,"status":404,"error":"Not Found","path":"/v1/messages/batches/job_1"}`, false},
		{"the first vendor, in short", `{"type":"error","error":{"type":"not_found_error","message":"Not found"},"request_id":"r"}`, true},
		{"its way to name an address", `{"type":"error","error":{"type":"not_found_error","message":"no batch at /v1/messages/batches/job_1"}}`, false},
		{"the first vendor, of a model", `{"type":"error","error":{"type":"not_found_error","message":"model: m1"}}`, false},
		{"the first vendor, of the job", `{"type":"error","error":{"type":"not_found_error","message":"message batch job_1 not found"}}`, true},
		{"without its name", `{"type":"error","error":{"type":"not_found_error","message":"Message batch not found"}}`, true},
		{"the second vendor, of an address", `{"error":{"message":"Invalid URL (GET /v1/responses/job_1)","type":"invalid_request_error","param":null,"code":null}}`, false},
		{"the second vendor, of a job", `{"error":{"message":"Response with id 'job_1' not found.","type":"invalid_request_error","param":"id","code":null}}`, true},
		{"both", `{"error":{"message":"GET /v1/responses/job_1: response job_1 is not there","type":"invalid_request_error"}}`, true},
		{"another server, of an address", `{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}`, false},
		{"a gateway", `{"error":{"message":"there is nothing here","type":"invalid_request_error","code":"not_found"}}`, false},
	} {
		for _, status := range []int{404, 410} {
			got := collect(answer.Poll(t.Context(), request(), base(), handle, func(context.Context, *answer.Builder) error {
				return answer.Refused(status, nil, []byte(tt.body))
			}))[0].Final()
			want := message.StopDeferred
			if tt.settles {
				want = message.StopError
			}
			if got.StopReason() != want || message.ProviderError(got).Status != status {
				t.Errorf("%s, as %d: %s", tt.name, status, got)
			}
		}
	}
}

// Credentials that an endpoint is given as headers stay out of what is told, too.
func TestHeadersAreSecret(t *testing.T) {
	e := model.Endpoint{Headers: map[string]string{"X-Api-Key": "k-secret-1", "Authorization": "Bearer k-secret-2", "X-Team": "blue"}}
	events := collect(answer.Stream(t.Context(), request(), base(), func(ctx context.Context, b *answer.Builder) error {
		if key, err := b.Key(ctx, e); key != "" || err != nil {
			t.Errorf("key %q, %v", key, err)
		}
		return answer.Refused(401, nil, []byte("k-secret-1 and k-secret-2 of team blue are wrong"))
	}))
	got := lines(t, events)
	if text := strings.Join(got, "\n"); strings.Contains(text, "k-secret") || !strings.Contains(text, "[redacted] and [redacted] of team blue") {
		t.Error(text)
	}
}
