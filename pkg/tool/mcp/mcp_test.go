package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/tool"
	"github.com/drover-run/drover/pkg/tool/mcp"
)

// The test binary is the supervisor, and the server in its several moods.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == tool.SupervisorArg {
		os.Exit(tool.SupervisorMain(os.Args[2:]))
	}
	switch mood := os.Getenv("MCP_MOOD"); mood {
	case "":
		goleak.VerifyTestMain(m)
	case "garbage":
		fmt.Println("Welcome to the server!")
		_, _ = os.Stdin.Read(make([]byte, 1<<16))
	case "counted":
		f, err := os.OpenFile(os.Getenv("KEPT"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString("started\n")
		}
		fmt.Fprintln(os.Stderr, "not today", err)
		os.Exit(3)
	case "deaf":
		babble(mood) // up to its first call
		select {}
	case "babbles", "mumbles":
		babble(mood)
	case "refuses":
		fmt.Fprintln(os.Stderr, "no license found")
		os.Exit(3)
	case "silent":
		_, _ = os.Stdin.Read(make([]byte, 1<<16))
		select {}
	default:
		if err := newServer(mood).Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// babble answers calls with what is no result.
func babble(mood string) {
	answers := map[string]string{"babbles": `{"jsonrpc":"2.0","id":%s,"result":"text"}`, "mumbles": `well, %s`}
	in := json.NewDecoder(os.Stdin)
	for {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if in.Decode(&m) != nil {
			return
		}
		answer := map[string]string{
			"initialize": `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"b","version":"1"}}}`,
			"tools/list": `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}}`,
			"tools/call": answers[mood],
		}[m.Method]
		switch {
		case answer != "":
			fmt.Printf(answer+"\n", m.ID)
			if mood == "deaf" && m.Method == "tools/list" {
				return
			}
		case m.ID != nil:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`+"\n", m.ID)
		}
	}
}

func newServer(mood string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	object := json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)
	add := func(name string, hints *sdk.ToolAnnotations, answer func(args map[string]any) (*sdk.CallToolResult, error)) {
		s.AddTool(&sdk.Tool{Name: name, Description: "Does " + name + ".", InputSchema: object, Annotations: hints},
			func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				var args map[string]any
				if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
					return nil, err
				}
				return answer(args)
			})
	}
	say := func(texts ...string) (*sdk.CallToolResult, error) {
		r := &sdk.CallToolResult{}
		for _, text := range texts {
			r.Content = append(r.Content, &sdk.TextContent{Text: text})
		}
		return r, nil
	}
	add("echo", &sdk.ToolAnnotations{ReadOnlyHint: true}, func(args map[string]any) (*sdk.CallToolResult, error) {
		return say(args["text"].(string), os.Getenv("KEPT"))
	})
	add("die", nil, func(map[string]any) (*sdk.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "segmentation fault")
		os.Exit(9)
		return nil, nil
	})
	add("hang", nil, func(map[string]any) (*sdk.CallToolResult, error) { select {} })
	add("fail", nil, func(map[string]any) (*sdk.CallToolResult, error) {
		r, err := say("it did not work")
		r.IsError = true
		return r, err
	})
	add("huge", nil, func(map[string]any) (*sdk.CallToolResult, error) { return say(strings.Repeat("é", 300<<10), "more") })
	add("mixed", nil, func(map[string]any) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{
			Content: []sdk.Content{
				&sdk.ImageContent{Data: []byte{1, 2}, MIMEType: "image/png"},
				&sdk.AudioContent{Data: []byte{1}, MIMEType: "audio/wav"},
				&sdk.ResourceLink{URI: "file:///x", Name: "x"},
				&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///y", Text: "inside"}},
			},
			StructuredContent: map[string]any{"n": 1},
		}, nil
	})
	if mood == "odd" {
		add("with.dots", nil, func(map[string]any) (*sdk.CallToolResult, error) { return say("dotted") })
	}
	return s
}

// config is a server in a mood, run by this test binary.
func config(t *testing.T, mood string) mcp.Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return mcp.Config{
		Name: "srv", Argv: []string{self}, Dir: t.TempDir(), Self: self,
		Env: []string{"MCP_MOOD=" + mood, "KEPT=kept"}, StartTimeout: 30 * time.Second,
	}
}

func server(t *testing.T, c mcp.Config) *mcp.Server {
	t.Helper()
	s := mcp.New(c, "1.0")
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func lookup(t *testing.T, s *mcp.Server, name string) effect.Starter {
	t.Helper()
	found, ok := s.Lookup(name)
	if !ok {
		t.Fatalf("%s does not resolve", name)
	}
	return found.(effect.Starter)
}

func call(t *testing.T, s *mcp.Server, name, args string) (message.ToolResult, error) {
	t.Helper()
	return lookup(t, s, name).Execute(t.Context(), effect.Invocation{Args: json.RawMessage(args)})
}

func texts(r message.ToolResult) string {
	var all []string
	for _, b := range r.Content {
		all = append(all, b.Text)
	}
	return strings.Join(all, "|")
}

// A configured server resolves its names without being started (D47).
func TestResolvesUnstarted(t *testing.T) {
	c := config(t, "well")
	c.Argv = []string{filepath.Join(t.TempDir(), "not-there")}
	s := server(t, c)
	for name, want := range map[string]bool{"srv__anything": true, "srv__": false, "srv": false, "other__x": false, "srv_x": false} {
		if _, ok := s.Lookup(name); ok != want {
			t.Errorf("%s resolves: %t", name, ok)
		}
	}
	err := lookup(t, s, "srv__echo").Start(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "MCP server srv: it cannot be started: ") || !strings.Contains(err.Error(), "not-there: no such file") {
		t.Errorf("started: %v", err)
	}
}

func TestCalls(t *testing.T) {
	s := server(t, config(t, "well"))
	echo := lookup(t, s, "srv__echo")
	if err := echo.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	spec := echo.Spec()
	var schema, want any
	if err := json.Unmarshal(spec.Parameters, &schema); err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal([]byte(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`), &want)
	if diff := cmp.Diff(want, schema); diff != "" || spec.Name != "srv__echo" || spec.Description != "Does echo." {
		t.Errorf("%+v\n%s", spec, diff)
	}
	if _, err := echo.Prepare(json.RawMessage(`{"text":1}`)); err == nil {
		t.Error("wrong arguments pass")
	}
	r, err := call(t, s, "srv__echo", `{"text":"hé"}`)
	if err != nil || texts(r) != "hé|kept" || r.IsError {
		t.Errorf("%q, %v", texts(r), err)
	}
	r, err = call(t, s, "srv__fail", `{"text":""}`)
	if err != nil || texts(r) != "it did not work" || !r.IsError {
		t.Errorf("%q, %v", texts(r), err)
	}
	r, err = call(t, s, "srv__mixed", `{"text":""}`)
	if err != nil {
		t.Fatal(err)
	}
	if r.Content[0].Type != message.BlockImage || r.Content[0].Data != "AQI=" || r.Content[0].MimeType != "image/png" {
		t.Errorf("image: %+v", r.Content[0])
	}
	if got := texts(r); got != "|[audio, audio/wav, 1 bytes: not shown]|[resource file:///x] x|[resource file:///y]\ninside" {
		t.Errorf("%q", got)
	}
	if string(r.Details) != `{"structuredContent":{"n":1}}` {
		t.Errorf("details %s", r.Details)
	}
	r, err = call(t, s, "srv__huge", `{"text":""}`)
	if err != nil || len(texts(r)) > 257<<10 || !strings.HasSuffix(texts(r), "[352256 bytes of the result are left out here.]") {
		t.Errorf("%d bytes, %v: ...%q", len(texts(r)), err, texts(r)[len(texts(r))-60:])
	}
}

// A tool that the server does not have, or can not be offered, is told with what to
// do; others of it work.
func TestOffers(t *testing.T) {
	s := server(t, config(t, "odd"))
	for name, want := range map[string]string{
		"srv__nope":      "MCP server srv has no tool srv__nope; it has srv__die, srv__echo, srv__fail, srv__hang, srv__huge, srv__mixed",
		"srv__with.dots": `MCP server srv: srv__with.dots: the name is not 1 to 64 letters, digits, underscores and hyphens; give it one with rename: {"with.dots": with_dots}`,
	} {
		if err := lookup(t, s, name).Start(t.Context()); err == nil || err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := config(t, "odd")
	c.Rename = map[string]string{"with.dots": "dotted"}
	renamed := server(t, c)
	if r, err := call(t, renamed, "srv__dotted", `{"text":""}`); err != nil || texts(r) != "dotted" {
		t.Errorf("%q, %v", texts(r), err)
	}
	c.Rename = map[string]string{"with.dots": "echo"}
	if err := lookup(t, server(t, c), "srv__echo").Start(t.Context()); err == nil || !strings.Contains(err.Error(), "two tools of that name") {
		t.Errorf("two of one name: %v", err)
	}
}

// A server that dies is an error of the call, and is there again on the next one.
func TestDeath(t *testing.T) {
	s := server(t, config(t, "well"))
	_, err := call(t, s, "srv__die", `{"text":""}`)
	if err == nil || !strings.Contains(err.Error(), "it died during the call") || !strings.Contains(err.Error(), "exit code 9: segmentation fault") {
		t.Errorf("died: %v", err)
	}
	// The next call never meets what is left of the dead one, however soon it comes.
	for range 10 {
		if r, err := call(t, s, "srv__echo", `{"text":"again"}`); err != nil || texts(r) != "again|kept" {
			t.Fatalf("%q, %v", texts(r), err)
		}
		if _, err := call(t, s, "srv__die", `{"text":""}`); err == nil {
			t.Fatal("it lived")
		}
	}
}

func TestServersThatDoNotStart(t *testing.T) {
	for mood, want := range map[string]string{
		"garbage": `MCP server srv: it prints "Welcome to the server!", which is no message of the protocol: a server keeps its standard output for those`,
		"refuses": "MCP server srv: it ended before it was ready, with exit code 3: no license found",
		"silent":  "MCP server srv: it was not there within 1s; start_timeout gives it longer",
	} {
		c := config(t, mood)
		if mood == "silent" {
			c.StartTimeout = time.Second
		}
		if err := lookup(t, server(t, c), "srv__echo").Start(t.Context()); err == nil || err.Error() != want {
			t.Errorf("%s: %v", mood, err)
		}
	}
}

// Whoever waits while a server does not start has waited for all of its tools.
func TestOneStartForAllTools(t *testing.T) {
	c := config(t, "counted")
	starts := filepath.Join(t.TempDir(), "starts")
	c.Env = []string{"MCP_MOOD=counted", "KEPT=" + starts}
	s := server(t, c)
	const tools = 6
	start := func() {
		errs := make(chan error)
		for i := range tools {
			go func() { errs <- lookup(t, s, fmt.Sprint("srv__tool", i)).Start(t.Context()) }()
		}
		for range tools {
			if err := <-errs; err == nil || !strings.Contains(err.Error(), "not today <nil>") {
				t.Errorf("started: %v", err)
			}
		}
	}
	start()
	first, _ := os.ReadFile(starts)
	start() // asked again it is tried again
	second, _ := os.ReadFile(starts)
	// A tool that was not waiting yet when the start failed may have begun another.
	if n, m := strings.Count(string(first), "\n"), strings.Count(string(second), "\n"); n == 0 || n >= tools || m <= n {
		t.Errorf("%d starts, then %d in all, for %d tools", n, m, tools)
	}
}

// An answer that is none is told as that, without the insides of a decoder, and that
// the call was sent.
func TestAnswersThatAreNone(t *testing.T) {
	for mood, want := range map[string]string{
		"babbles": `MCP server srv: its answer is not what the protocol asks for: cannot unmarshal "\"text\""; the call may have had its effect`,
		"mumbles": `MCP server srv: its answer is not what the protocol asks for: invalid character 'w' looking for beginning of value; the call may have had its effect`,
	} {
		if _, err := call(t, server(t, config(t, mood)), "srv__echo", `{}`); err == nil || err.Error() != want {
			t.Errorf("%s: %v", mood, err)
		}
	}
}

// What a server repeats of its headers is in no error, also where its text is cut off.
func TestHeadersAreSecret(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusUnauthorized
		if r.URL.Path == "/late" {
			status = http.StatusBadGateway
		}
		said := fmt.Sprintf("%s %s %s", r.Header.Get("Authorization"), r.Header.Get("X-Extra"), r.Header.Get("X-Org"))
		http.Error(w, r.URL.Query().Get("pad")+said, status)
	}))
	defer web.Close()
	headers := map[string]string{"Authorization": "Bearer tok/S3CR3T+1", "X-Extra": "another-S3CR3T", "X-Org": "org-1"}
	for _, path := range []string{"/now", "/late", "/now?pad=" + strings.Repeat("p", 190)} {
		s := mcp.New(mcp.Config{Name: "srv", URL: web.URL + path, Headers: headers, Client: func() (*http.Client, error) { return web.Client(), nil }}, "1.0")
		err := lookup(t, s, "srv__echo").Start(t.Context())
		if err == nil || strings.Contains(err.Error(), "S3C") || strings.Contains(err.Error(), "tok") || !strings.Contains(err.Error(), "[redacted]") {
			t.Errorf("%s: %v", path, err)
		}
		if !strings.Contains(path, "pad") && !strings.Contains(err.Error(), "org-1") {
			t.Errorf("%s: what is no key is gone, too: %v", path, err)
		}
	}
}

// A server that does not read what it is sent holds up no longer than its limit, or an
// abort, allows, however much that is.
func TestServerThatDoesNotRead(t *testing.T) {
	long := fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 300<<10)) // more than a pipe holds
	c := config(t, "deaf")
	c.CallTimeout = 50 * time.Millisecond
	s := server(t, c)
	for range 2 { // it is started again for the second, which the limit is not for
		if err := lookup(t, s, "srv__echo").Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := call(t, s, "srv__echo", long); err == nil || err.Error() != "MCP server srv: the call took longer than 50ms; it may have had its effect" {
			t.Errorf("a limit: %v", err)
		}
	}
	s = server(t, config(t, "deaf"))
	tool := lookup(t, s, "srv__echo")
	if err := tool.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, abort := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { abort(errors.New("aborted by the test")) })
	if _, err := tool.Execute(ctx, effect.Invocation{Args: json.RawMessage(long)}); err == nil || !strings.Contains(err.Error(), "aborted by the test") {
		t.Errorf("an abort: %v", err)
	}
}

// A key is in no result either that a server calls an error, or gives by mistake.
func TestResultsKeepNoKey(t *testing.T) {
	sdkServer := newServer("http")
	const key = "tok/S3CR3T+1"
	sdkServer.AddTool(&sdk.Tool{Name: "leak", Description: "Uses " + key, InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{
				IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "upstream refused Bearer " + key}},
				StructuredContent: map[string]any{"sent": "Bearer " + key},
			}, nil
		})
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return sdkServer }, nil)
	web := httptest.NewServer(handler)
	defer web.Close()
	s := mcp.New(mcp.Config{
		Name: "srv", URL: web.URL, Headers: map[string]string{"Authorization": "Bearer " + key}, Client: func() (*http.Client, error) { return web.Client(), nil },
	}, "1.0")
	defer func() { _ = s.Close() }()
	r, err := call(t, s, "srv__leak", `{}`)
	if err != nil || texts(r) != "upstream refused [redacted]" || string(r.Details) != `{"structuredContent":{"sent":"[redacted]"}}` {
		t.Errorf("%q, %s, %v", texts(r), r.Details, err)
	}
	if got := lookup(t, s, "srv__leak").Spec().Description; got != "Uses [redacted]" {
		t.Errorf("described as %q", got)
	}
}

// A server over HTTP may forget a session: the call says so, and the next one gets a
// new one.
func TestForgottenSession(t *testing.T) {
	var forget atomic.Bool
	sdkServer := newServer("http")
	t.Cleanup(func() {
		for session := range sdkServer.Sessions() {
			_ = session.Close() // the forgotten one
		}
	})
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return sdkServer }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Session-Id") != "" && forget.CompareAndSwap(true, false) {
			http.Error(w, "session expired", http.StatusNotFound)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer web.Close()
	s := server(t, mcp.Config{Name: "srv", URL: web.URL, Client: func() (*http.Client, error) { return web.Client(), nil }})
	if _, err := call(t, s, "srv__echo", `{"text":"first"}`); err != nil {
		t.Fatal(err)
	}
	forget.Store(true)
	want := "MCP server srv: it has ended the session, and the call was not made; the next call begins another"
	if _, err := call(t, s, "srv__echo", `{"text":"second"}`); err == nil || err.Error() != want {
		t.Errorf("forgotten: %v", err)
	}
	if r, err := call(t, s, "srv__echo", `{"text":"third"}`); err != nil || !strings.HasPrefix(texts(r), "third") {
		t.Errorf("%q, %v", texts(r), err)
	}
}

func TestLimits(t *testing.T) {
	c := config(t, "well")
	c.CallTimeout = 2 * time.Second
	s := server(t, c)
	if err := lookup(t, s, "srv__hang").Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, s, "srv__hang", `{"text":""}`); err == nil || err.Error() != "MCP server srv: the call took longer than 2s; it may have had its effect" {
		t.Errorf("hung: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	abort := fmt.Errorf("aborted by the test")
	time.AfterFunc(50*time.Millisecond, func() { cancel(abort) })
	_, err := lookup(t, s, "srv__hang").Execute(ctx, effect.Invocation{Args: json.RawMessage(`{"text":""}`)})
	if err == nil || !strings.Contains(err.Error(), "aborted by the test") {
		t.Errorf("aborted: %v", err)
	}
}

// Calls run again only where the configuration says so, or trusts the server (D47).
func TestReplay(t *testing.T) {
	for _, tt := range []struct {
		name    string
		trust   bool
		safe    map[string]bool
		tool    string
		started bool
		want    bool
	}{
		{"a hint alone", false, nil, "srv__echo", true, false},
		{"a trusted hint", true, nil, "srv__echo", true, true},
		{"a trusted hint that is not known yet", true, nil, "srv__echo", false, false},
		{"no hint", true, nil, "srv__fail", true, false},
		{"configured", false, map[string]bool{"fail": true}, "srv__fail", false, true},
		{"configured against a trusted hint", true, map[string]bool{"echo": false}, "srv__echo", true, false},
	} {
		c := config(t, "well")
		c.TrustAnnotations, c.Safe = tt.trust, tt.safe
		s := server(t, c)
		found := lookup(t, s, tt.tool)
		if tt.started {
			if err := found.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := found.ReplaySafe(); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

// What is no server at an address is told with what it says, and nothing of a key
// that the address may hold.
func TestAddressesOfOthers(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, "<html>log in</html>")
		case "/other":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"hello":1}`)
		case "/broken":
			http.Error(w, "out of\norder", http.StatusInternalServerError)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer web.Close()
	for path, want := range map[string]string{
		"/page":   " answers with a page for people (text/html): its url is not that of an MCP server",
		"/broken": " answers 500 Internal Server Error: out of order",
		"/other":  ` does not answer as an MCP server does: failed to decode response: invalid message version tag ""; expected "2.0"`,
		"/gone":   " answers 404 Not Found; its url may be that of something else",
	} {
		client := func() (*http.Client, error) { return web.Client(), nil }
		s := mcp.New(mcp.Config{Name: "srv", URL: web.URL + path + "?key=secret", Client: client, StartTimeout: 10 * time.Second}, "1.0")
		err := lookup(t, s, "srv__echo").Start(t.Context())
		if err == nil || err.Error() != "MCP server srv: "+web.URL+path+want {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestOverHTTP(t *testing.T) {
	sdkServer := newServer("http")
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return sdkServer }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Team") != "blue" {
			http.Error(w, "who are you?", http.StatusForbidden)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer web.Close()
	client := func() (*http.Client, error) { return web.Client(), nil }
	s := mcp.New(mcp.Config{Name: "srv", URL: web.URL, Headers: map[string]string{"X-Team": "blue"}, Client: client}, "1.0")
	r, err := call(t, s, "srv__echo", `{"text":"over the wire"}`)
	if err != nil || !strings.HasPrefix(texts(r), "over the wire") {
		t.Errorf("%q, %v", texts(r), err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	stranger := mcp.New(mcp.Config{Name: "srv", URL: web.URL, Client: client}, "1.0")
	want := "MCP server srv: " + web.URL + " answers 403 Forbidden: who are you?; its headers must hold what lets drover in"
	if err := lookup(t, stranger, "srv__echo").Start(t.Context()); err == nil || err.Error() != want {
		t.Errorf("without the header: %v", err)
	}
	// A connection of before would tell of its own end first.
	fresh := func() (*http.Client, error) {
		return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, nil
	}
	gone := mcp.New(mcp.Config{Name: "srv", URL: web.URL, Client: fresh, StartTimeout: 5 * time.Second}, "1.0")
	web.Close()
	if err := lookup(t, gone, "srv__echo").Start(t.Context()); err == nil || err.Error() != "MCP server srv: "+web.URL+" cannot be reached: connection refused" {
		t.Errorf("nobody there: %v", err)
	}
}
