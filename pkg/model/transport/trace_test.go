package transport_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/model/transport"
)

// line is one line of a trace.
type line struct {
	Type, Method, URL string
	PID, ID           int
	Status            int
	Headers           map[string]string
	Body, Error       string
	Time, TookMs      int64
}

func traced(t *testing.T) (string, *transport.Trace, *http.Client) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace")
	trace, err := transport.OpenTrace(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, trace, client(t, transport.Options{Trace: trace})
}

func lines(t *testing.T, path string) []line {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []line
	for _, text := range strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n") {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if l.PID != os.Getpid() || l.Time == 0 {
			t.Errorf("line %s", text)
		}
		l.PID, l.Time, l.TookMs = 0, 0, 0
		all = append(all, l)
	}
	return all
}

func send(t *testing.T, c *http.Client, method, url, body string, header map[string]string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := c.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func TestTrace(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Set-Cookie", "session=1")
		w.Header().Set("Retry-After", "3")
		w.Header().Set("Date", "now")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "got %s", body)
	}))
	path, trace, c := traced(t)
	if got := send(t, c, "POST", server.URL+"/v1?a=b", `{"x":"é"}`, map[string]string{"X-Title": "mine", "Content-Type": "application/json", "User-Agent": "me"}); got != `got {"x":"é"}` {
		t.Errorf("the answer is %q", got)
	}
	server.Close()
	if got := send(t, c, "GET", server.URL, "", map[string]string{"User-Agent": "me"}); !strings.Contains(got, "refused") {
		t.Errorf("the answer is %q", got)
	}
	if err := trace.Close(); err != nil {
		t.Error(err)
	}
	got := lines(t, path)
	if len(got) != 4 || !strings.Contains(got[3].Error, "refused") {
		t.Fatalf("lines %+v", got)
	}
	got[3].Error = ""
	want := []line{
		{Type: "request", ID: 1, Method: "POST", URL: server.URL + "/v1?a=b", Body: `{"x":"é"}`,
			Headers: map[string]string{"X-Title": "[redacted]", "Content-Type": "application/json", "User-Agent": "me"}},
		{Type: "response", ID: 1, Status: 418, Body: `got {"x":"é"}`, Headers: map[string]string{
			"Set-Cookie": "[redacted]", "Retry-After": "3", "Date": "now", "Content-Length": "14", "Content-Type": "text/plain; charset=utf-8",
		}},
		{Type: "request", ID: 2, Method: "GET", URL: server.URL, Headers: map[string]string{"User-Agent": "me"}},
		{Type: "response", ID: 2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestTraceHoldsNoKey: whatever a request carries its key in, and whoever repeats
// it.
func TestTraceHoldsNoKey(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Echo", fmt.Sprint(r.Header))
		w.Header().Set("Server", r.Header.Get("X-Api-Key")+r.Header.Get("Authorization"))
		fmt.Fprintf(w, "%s %s %s %v", r.URL, body, r.URL.Query(), r.Header)
	}))
	defer server.Close()
	const key = `sk-"é/0123+&456 789`
	quoted, err := json.Marshal(map[string]string{"key": key})
	if err != nil {
		t.Fatal(err)
	}
	for name, header := range map[string]map[string]string{
		"bearer":     {"Authorization": "Bearer " + key},
		"x-api-key":  {"X-Api-Key": key},
		"api-key":    {"Api-Key": key},
		"cookie":     {"Cookie": key},
		"configured": {"X-Portkey-Virtual-Token": key},
		"any name":   {"X-Group": key},
		"basic":      {"Authorization": "Basic OnNrLSLDqS8wMTIzKyY0NTYgNzg5"},
		"query":      {},
	} {
		t.Run(name, func(t *testing.T) {
			path, trace, c := traced(t)
			url := server.URL + "/v1?q=1"
			if name == "query" {
				url += "&key=" + queryEscape(key)
			}
			answer := send(t, c, "POST", url, key+string(quoted)+queryEscape(key), header)
			if !strings.Contains(answer, "0123") {
				t.Fatalf("the answer repeats nothing: %s", answer)
			}
			if err := trace.Close(); err != nil {
				t.Error(err)
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(raw, []byte("0123")) || bytes.Contains(raw, []byte("OnNr")) {
				t.Errorf("the trace holds the key: %s", raw)
			}
			if n := len(lines(t, path)); n != 2 {
				t.Errorf("%d lines", n)
			}
		})
	}
}

// TestTraceOfShortKey: what is too short to be a key stands in no header, and spoils
// no body.
func TestTraceOfShortKey(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "an answer") }))
	defer server.Close()
	path, trace, c := traced(t)
	send(t, c, "POST", server.URL, "a question", map[string]string{"Authorization": "Bearer a", "X-Api-Key": "a"})
	if err := trace.Close(); err != nil {
		t.Error(err)
	}
	got := lines(t, path)
	if got[0].Body != "a question" || got[1].Body != "an answer" || got[0].Headers["X-Api-Key"] != "[redacted]" || got[0].Headers["Authorization"] != "[redacted]" {
		t.Errorf("lines %+v", got)
	}
}

func queryEscape(s string) string {
	return strings.NewReplacer(`"`, "%22", "é", "%C3%A9", "/", "%2F", "+", "%2B", "&", "%26", " ", "+").Replace(s)
}

// TestTraceFile: only its owner reads it, it is appended to, and what is no file
// is refused rather than waited for.
func TestTraceFile(t *testing.T) {
	path := write(t, "before\n")
	trace, err := transport.OpenTrace(path)
	if err != nil {
		t.Fatal(err)
	}
	send(t, client(t, transport.Options{Trace: trace}), "GET", "http://127.0.0.1:1", "", nil)
	if err := trace.Close(); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	raw, err := os.ReadFile(path)
	if err != nil || !bytes.HasPrefix(raw, []byte("before\n{")) {
		t.Errorf("the file is %q, %v", raw, err)
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, t.TempDir(), filepath.Join(path, "x")} {
		if _, err := transport.OpenTrace(path); err == nil {
			t.Errorf("%s is opened", path)
		}
	}
}

// TestTraceFails: a trace that cannot be written costs no request.
func TestTraceFails(t *testing.T) {
	trace, err := transport.OpenTrace("/dev/full")
	if err != nil {
		t.Skip(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hi") }))
	defer server.Close()
	if got := send(t, client(t, transport.Options{Trace: trace}), "GET", server.URL, "", nil); got != "hi" {
		t.Errorf("the answer is %q", got)
	}
	if err := trace.Close(); err == nil {
		t.Error("nobody is told")
	}
}

// TestTraceWaitsForNothing: what has come is read before the next comes, and a
// body that is left or cut is traced as far as it was read.
func TestTraceWaitsForNothing(t *testing.T) {
	next := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "one")
		_ = http.NewResponseController(w).Flush()
		<-next
		fmt.Fprintln(w, "two")
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path == "/cut" {
			panic(http.ErrAbortHandler)
		}
		<-r.Context().Done()
	}))
	defer server.Close()
	path, trace, c := traced(t)
	for _, how := range []string{"/left", "/cut"} {
		resp, err := c.Get(server.URL + how)
		if err != nil {
			t.Fatal(err)
		}
		body := bufio.NewReader(resp.Body)
		for _, want := range []string{"one\n", "two\n"} {
			if got, err := body.ReadString('\n'); got != want || err != nil {
				t.Errorf("read %q, %v", got, err)
			}
			if want == "one\n" {
				next <- struct{}{}
			}
		}
		if how == "/cut" {
			if _, err := body.ReadByte(); err == nil {
				t.Error("the body goes on")
			}
		}
		resp.Body.Close()
	}
	if err := trace.Close(); err != nil {
		t.Error(err)
	}
	got := lines(t, path)
	if len(got) != 4 || got[1].Body != "one\ntwo\n" || got[1].Error != "" || got[3].Body != "one\ntwo\n" || got[3].Error == "" {
		t.Errorf("lines %+v", got)
	}
}

// TestTraceIsShared: clients write whole lines into one file.
func TestTraceIsShared(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "trace")
	var wg sync.WaitGroup
	for range 2 { // as two processes would
		trace, err := transport.OpenTrace(path)
		if err != nil {
			t.Fatal(err)
		}
		c := client(t, transport.Options{Trace: trace})
		for range 10 {
			wg.Go(func() { send(t, c, "POST", server.URL, strings.Repeat("x", 100_000), nil) })
		}
		defer trace.Close()
	}
	wg.Wait()
	if n := len(lines(t, path)); n != 40 {
		t.Errorf("%d lines", n)
	}
}
