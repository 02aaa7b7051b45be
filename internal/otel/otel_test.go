package otel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/otel"
	"github.com/drover-run/drover/pkg/telemetry"
)

type secretError struct{}

func (*secretError) Error() string { return "MARKER" }

// tell tells a run with a request below it, which fails.
func tell(c telemetry.Context) {
	run := c.Start(telemetry.SpanRun, telemetry.String("pi.lane", "main"))
	request := run.Start(telemetry.SpanRequest, telemetry.Int("pi.attempt", 2), telemetry.Float("pi.usage.cost", 0.5))
	request.Set(telemetry.Attr{Key: "pi.fresh", Value: true})
	request.End(&secretError{})
	run.End(nil)
}

func environment(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

func open(t *testing.T, o otel.Options) (telemetry.Context, func(context.Context)) {
	t.Helper()
	if o.Env == nil {
		o.Env = environment(nil)
	}
	if o.Report == nil {
		o.Report = func(err error) { t.Errorf("reported: %v", err) }
	}
	c, flush, err := otel.Context(o)
	if err != nil {
		t.Fatal(err)
	}
	return c, flush
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spans")
	parent := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	c, flush := open(t, otel.Options{File: path, Version: "1.2", Env: environment(map[string]string{"TRACEPARENT": parent})})
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("made before the first span: %v", err)
	}
	tell(c)
	flush(t.Context())

	type spanID struct{ TraceID, SpanID string }
	type line struct {
		Name                string
		SpanContext, Parent spanID
		Attributes          []struct {
			Key   string
			Value struct{ Value any }
		}
		Status struct{ Code, Description string }
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var lines []line
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var l line
		if err := d.Decode(&l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	if len(lines) != 2 || lines[0].Name != telemetry.SpanRequest || lines[1].Name != telemetry.SpanRun {
		t.Fatalf("%+v", lines)
	}
	request, run := lines[0], lines[1]
	if request.Parent != run.SpanContext || run.Parent.SpanID != "b7ad6b7169203331" || run.SpanContext.TraceID != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("lineage: %+v, %+v", request, run)
	}
	attrs := map[string]any{}
	for _, a := range request.Attributes {
		attrs[a.Key] = a.Value.Value
	}
	if diff := cmp.Diff(map[string]any{"pi.attempt": 2.0, "pi.usage.cost": 0.5, "pi.fresh": true}, attrs); diff != "" {
		t.Error(diff)
	}
	if request.Status.Code != "Error" || request.Status.Description != "*otel_test.secretError" {
		t.Errorf("status %+v", request.Status)
	}
	if bytes.Contains(text, []byte("MARKER")) {
		t.Error("the text of an error is told")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// collector is an OTLP endpoint.
type collector struct {
	mu     sync.Mutex
	bodies bytes.Buffer
	key    string
	status int
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = io.Copy(&c.bodies, r.Body)
	c.key = r.URL.Path + " " + r.Header.Get("X-Key")
	w.WriteHeader(c.status)
}

func TestHTTP(t *testing.T) {
	c := &collector{status: http.StatusOK}
	server := httptest.NewServer(c)
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=k1")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=ci")
	spans, flush := open(t, otel.Options{Env: os.Getenv})
	tell(spans)
	flush(t.Context())
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, want := range []string{telemetry.SpanRun, telemetry.SpanRequest, "pi.attempt", "drover", "deployment.environment"} {
		if !bytes.Contains(c.bodies.Bytes(), []byte(want)) {
			t.Errorf("%q was not sent", want)
		}
	}
	if bytes.Contains(c.bodies.Bytes(), []byte("MARKER")) || c.key != "/v1/traces k1" {
		t.Errorf("sent to %s", c.key)
	}
}

// The address for all signals gets a path, that for spans is taken as it is; without
// any the standard's own is used, unencrypted.
func TestEndpoints(t *testing.T) {
	c := &collector{status: http.StatusOK}
	server := httptest.NewServer(c)
	defer server.Close()
	for name, tt := range map[string]struct{ all, spans, path string }{
		"base":             {server.URL, "", "/v1/traces"},
		"base with a path": {server.URL + "/otel/", "", "/otel/v1/traces"},
		"spans":            {"http://127.0.0.1:1", server.URL + "/mine", "/mine"},
		"spans, root":      {"", server.URL, "/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", tt.all)
			t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", tt.spans)
			c.key = ""
			spans, flush := open(t, otel.Options{Env: os.Getenv})
			tell(spans)
			flush(t.Context())
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.key != tt.path+" " {
				t.Errorf("sent to %q", c.key)
			}
		})
	}
	t.Run("default", func(t *testing.T) {
		t.Setenv("OTEL_TRACES_EXPORTER", "otlp")
		t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1000")
		listener, err := net.Listen("tcp", "localhost:4318")
		if err != nil {
			t.Skip("the standard's port is taken: ", err)
		}
		go func() { _ = http.Serve(listener, c) }()
		defer listener.Close()
		c.key = ""
		spans, flush := open(t, otel.Options{Env: os.Getenv})
		tell(spans)
		flush(t.Context())
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.key != "/v1/traces " {
			t.Errorf("sent to %q", c.key)
		}
	})
}

// Spans that can not be delivered are told once and hurt nothing.
func TestUnreachable(t *testing.T) {
	c := &collector{status: http.StatusForbidden}
	server := httptest.NewServer(c)
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	var reported []string
	spans, flush := open(t, otel.Options{
		Env: os.Getenv, File: filepath.Join(t.TempDir(), "no", "folder"),
		Report: func(err error) { reported = append(reported, err.Error()) },
	})
	for range 2 {
		tell(spans)
		flush(t.Context())
	}
	if len(reported) != 1 || !strings.HasPrefix(reported[0], "telemetry: ") {
		t.Errorf("reported %q", reported)
	}
}

// A redirect is not followed: what headers hold is for the collector alone.
func TestRedirect(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL+"/v1/traces", http.StatusTemporaryRedirect))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret")
	var reported []string
	spans, flush := open(t, otel.Options{Env: os.Getenv, Report: func(err error) { reported = append(reported, err.Error()) }})
	tell(spans)
	flush(t.Context())
	if asked {
		t.Error("the headers went to another host")
	}
	if len(reported) != 1 || !strings.Contains(reported[0], "the collector redirects to "+strings.TrimPrefix(other.URL, "http://")+", which is not followed") {
		t.Errorf("reported %q", reported)
	}
}

// A collector that does not answer is named.
func TestSilentCollector(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL+"?key=secret")
	var reported []string
	spans, flush := open(t, otel.Options{Env: os.Getenv, Report: func(err error) { reported = append(reported, err.Error()) }})
	tell(spans)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	flush(ctx)
	want := "telemetry: the collector at " + strings.TrimPrefix(server.URL, "http://") + " did not take them in time"
	if len(reported) != 1 || reported[0] != want {
		t.Errorf("reported %q, want %q", reported, want)
	}
}

func TestOff(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"nothing set": nil,
		"disabled":    {"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
		"none":        {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
	} {
		if c, _ := open(t, otel.Options{Env: environment(env)}); !telemetry.Off(c) {
			t.Errorf("%s: spans go somewhere", name)
		}
	}
}

// What the standard knows and drover does not is told, and stops nothing.
func TestUnmet(t *testing.T) {
	const address = ": want an address that begins with http:// or https://, such as http://localhost:4318"
	for _, tt := range []struct {
		name   string
		env    map[string]string
		off    bool
		report string
	}{
		{"console", map[string]string{"OTEL_TRACES_EXPORTER": "console"}, true, "OTEL_TRACES_EXPORTER=console: there are otlp and none"},
		{"both", map[string]string{"OTEL_TRACES_EXPORTER": "console, otlp"}, false, "OTEL_TRACES_EXPORTER=console, otlp: there are otlp and none"},
		{"blanks", map[string]string{"OTEL_TRACES_EXPORTER": " otlp "}, false, ""},
		{"no scheme", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4318"}, true, "OTEL_EXPORTER_OTLP_ENDPOINT" + address},
		{"another scheme", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "unix:///run/otel"}, true, "OTEL_EXPORTER_OTLP_ENDPOINT" + address},
		{"no host", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http:///v1/traces"}, true, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" + address},
		{"one that is not used", map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "x"}, true, ""},
		{"the other is used", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x", "OTEL_EXPORTER_OTLP_ENDPOINT": "x"}, false, ""},
		{"disabled", map[string]string{"OTEL_SDK_DISABLED": "TRUE", "OTEL_TRACES_EXPORTER": "console"}, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var reported []string
			c, _ := open(t, otel.Options{Env: environment(tt.env), Report: func(err error) { reported = append(reported, err.Error()) }})
			if telemetry.Off(c) != tt.off {
				t.Errorf("off: %t", !tt.off)
			}
			want := ""
			if tt.report != "" {
				want = "telemetry: " + tt.report
			}
			if got := strings.Join(reported, "\n"); got != want {
				t.Errorf("reported %q, want %q", got, want)
			}
		})
	}
}

// A file that takes nothing is told on one line, whatever the number of spans.
func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no device that is always full: ", err)
	}
	var reported []string
	c, flush := open(t, otel.Options{File: "/dev/full", Report: func(err error) { reported = append(reported, err.Error()) }})
	tell(c)
	flush(t.Context())
	if len(reported) != 1 || !strings.HasSuffix(reported[0], "no space left on device") || strings.Contains(reported[0], "\n") {
		t.Errorf("reported %q", reported)
	}
}

func TestWrongProtocol(t *testing.T) {
	_, _, err := otel.Context(otel.Options{Env: environment(map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
	})})
	if want := "OTEL_EXPORTER_OTLP_PROTOCOL=grpc: spans are sent as http/protobuf or http/json"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
