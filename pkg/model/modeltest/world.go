package modeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
	"github.com/drover-run/drover/pkg/model/transport"
)

const (
	providerName = "acme"
	modelID      = "test-model"
	key          = "sk-test-key-0123456789"
	now          = 1700000000000
)

// spec describes the model that the suite asks.
var prices = model.Prices{Input: 1, Output: 10, CacheRead: 0.5, CacheWrite: 2, CacheWrite1h: 4}

func spec(id string) model.Spec {
	return model.Spec{
		ID: id, ContextWindow: 200_000, MaxTokens: 32_000, Images: true, Prices: prices,
		Thinking: message.ThinkingLevels()[1:],
	}
}

type catalogue struct{}

func (catalogue) Find(id string) model.Spec { return spec(id) }
func (catalogue) IDs() []string             { return []string{modelID} }

// world is a provider and the server it talks to.
type world struct {
	t      *testing.T
	kit    Kit
	server *httptest.Server
	model  effect.Model

	mu     sync.Mutex
	answer http.HandlerFunc
	bodies [][]byte
	heads  []*http.Request
}

// idle is how long a silent server is waited for where that matters.
const idle = 300 * time.Millisecond

func newWorld(t *testing.T, k Kit) *world { return newWorldWith(t, k, transport.Options{}) }

func newWorldWith(t *testing.T, k Kit, o transport.Options) *world {
	t.Helper()
	w := &world{t: t, kit: k}
	w.server = httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(w.server.Close)
	client, err := transport.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	w.model = w.resolve(k.New(w.endpoint(client)))
	return w
}

func (w *world) endpoint(client *http.Client) model.Endpoint {
	return endpointAt(w.server.URL, client, map[string]string{"X-Team": "drovers"})
}

func endpointAt(address string, client *http.Client, headers map[string]string) model.Endpoint {
	return model.Endpoint{
		Provider: providerName, BaseURL: address, Models: catalogue{}, Client: client, Headers: headers,
		Key: func(context.Context) (string, error) { return key, nil },
	}
}

func (w *world) resolve(p model.Provider) effect.Model {
	w.t.Helper()
	m, err := p.Resolve(modelID)
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.t.Errorf("read request: %v", err)
	}
	w.mu.Lock()
	w.bodies, w.heads = append(w.bodies, body), append(w.heads, r)
	answer := w.answer
	w.mu.Unlock()
	rw.Header().Set("Request-Id", "req_1")
	answer(rw, r)
}

// will sets how the server answers from now on.
func (w *world) will(answer http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = answer
}

// requests is how many requests came in.
func (w *world) requests() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.bodies)
}

// body is the latest request's, which must be JSON in UTF-8.
func (w *world) body() []byte {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.bodies) == 0 {
		w.t.Fatal("no request was made")
	}
	body := w.bodies[len(w.bodies)-1]
	if err := rawjson.Valid(body); err != nil || rawjson.ValidUTF8(body) >= 0 {
		w.t.Fatalf("the request is not JSON: %v: %.400s", err, body)
	}
	return body
}

func (w *world) asked() Asked {
	w.t.Helper()
	return w.kit.Read(w.t, w.body())
}

// sends answers with events, and flushes each.
func sends(events ...string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		write(rw, events...)
	}
}

// write sends events; what a client that is gone does not get is lost.
func write(rw http.ResponseWriter, events ...string) {
	for _, ev := range events {
		_, _ = io.WriteString(rw, ev)
		_ = http.NewResponseController(rw).Flush()
	}
}

// refuses answers with a status.
func refuses(status int, header map[string]string, body string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		for name, value := range header {
			rw.Header().Set(name, value)
		}
		rw.WriteHeader(status)
		write(rw, body)
	}
}

func request(msgs ...message.Message) effect.Request {
	if len(msgs) == 0 {
		msgs = []message.Message{message.NewUser("say something", nil, now)}
	}
	return effect.Request{
		ResponseEntryID: "019a8f00-0000-7000-8000-0123456789ab", SystemPrompt: "Be brief.",
		Messages: message.ToProvider(msgs), MaxOutput: 4321, Now: now,
	}
}

// ask sends a request and checks that the events are legal.
func (w *world) ask(ctx context.Context, req effect.Request) message.Message {
	w.t.Helper()
	return end(w.t, w.model.Stream(ctx, req))
}

// say has the server send a script and returns what the provider makes of it.
func (w *world) say(s Script) message.Message {
	w.t.Helper()
	return w.sayTo(s, request())
}

func (w *world) sayTo(s Script, req effect.Request) message.Message {
	w.t.Helper()
	w.will(sends(w.kit.Render(s)...))
	return w.ask(w.t.Context(), req)
}

// end consumes an answer and returns its message. Its events must be legal, and
// their frames must add up to its content.
func end(t *testing.T, events effect.Events) message.Message {
	t.Helper()
	var frames message.Reducer
	var last message.StreamEvent
	seq := int64(0)
	for ev := range events {
		if last.Final() != nil && last.Type != message.EventStart {
			t.Fatalf("%s after %s", ev.Type, last.Type)
		}
		seq++
		if f, ok := message.FrameOf(ev); ok {
			if err := frames.Add(seq, f); err != nil {
				t.Fatal(err)
			}
		}
		last = ev
	}
	if last.Type != message.EventDone && last.Type != message.EventError {
		t.Fatalf("the last event is %q", last.Type)
	}
	final := last.Final()
	if err := message.Validate(final); err != nil {
		t.Fatalf("%v: %s", err, final)
	}
	if last.Reason != final.StopReason() {
		t.Errorf("%s says %s", last.Type, final.StopReason())
	}
	if bytes.Contains(final, []byte(key)) {
		t.Errorf("the answer holds the key: %s", final)
	}
	got := "[]"
	if m, ok := frames.Message(); ok {
		got = content(m)
	}
	if diff := cmp.Diff(content(final), got); diff != "" {
		t.Errorf("frames do not add up to the answer: %s", diff)
	}
	return final
}

func content(m message.Message) string {
	c, _ := m.Get("content")
	return string(c)
}

// blocks are the message's blocks without what a provider may word as it likes.
func blocks(t *testing.T, k Kit, m message.Message) []message.Block {
	t.Helper()
	all, err := m.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if k.CallID != nil && all[i].Type == message.BlockToolCall {
			all[i].ID = k.CallID(all[i].ID)
		}
	}
	return neutral(t, all)
}

func neutral(t *testing.T, all []message.Block) []message.Block {
	t.Helper()
	out := make([]message.Block, 0, len(all))
	for _, b := range all {
		b.Raw, b.TextSignature, b.ThinkingSignature, b.ThoughtSignature = nil, "", "", ""
		if b.Type == message.BlockToolCall {
			b.Arguments = compact(t, b.Arguments)
		}
		if b.Redacted {
			b.Thinking = ""
		}
		out = append(out, b)
	}
	return out
}

func compact(t *testing.T, raw []byte) json.RawMessage {
	t.Helper()
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	out, err := rawjson.Compact(nil, raw)
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return out
}
