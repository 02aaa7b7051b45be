package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
)

// listed describes the models of the tests.
type listed []model.Spec

func (l listed) Find(id string) model.Spec {
	for _, s := range l {
		if s.ID == id {
			return s
		}
	}
	return model.Spec{ID: id, Assumed: true}
}

func (l listed) IDs() []string {
	var ids []string
	for _, s := range l {
		ids = append(ids, s.ID)
	}
	return ids
}

// asked is a request as the server got it.
type asked struct {
	Method, URL string
	Header      http.Header
	Body        string
}

// server answers with what its test says and keeps what it was asked.
type server struct {
	url  string
	mu   sync.Mutex
	seen []asked
}

func serve(t *testing.T, answer func(w http.ResponseWriter, a asked)) *server {
	s := &server{}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a := asked{Method: r.Method, URL: r.URL.String(), Header: r.Header.Clone(), Body: string(body)}
		s.mu.Lock()
		s.seen = append(s.seen, a)
		s.mu.Unlock()
		answer(w, a)
	}))
	t.Cleanup(h.Close)
	s.url = h.URL + "/v1"
	return s
}

// requests returns what the server was asked.
func (s *server) requests() []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

const testKey = "sk-very-secret"

// model returns a model of a provider whose endpoint is the server.
func (s *server) model(t *testing.T, id string) effect.DeferredModel {
	t.Helper()
	p := New(model.Endpoint{
		Provider: "openai", BaseURL: s.url, Client: http.DefaultClient, Headers: map[string]string{"X-Team": "blue"},
		Key:    func(context.Context) (string, error) { return testKey, nil },
		Models: listed{thinker, blind},
	})
	m, err := p.Resolve(id)
	if err != nil {
		t.Fatal(err)
	}
	return m.(effect.DeferredModel)
}

// sse writes events, each with its type in front as the API does.
func sse(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	for _, e := range events {
		var typed struct{ Type string }
		_ = json.Unmarshal([]byte(e), &typed)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", typed.Type, e)
	}
}

// told writes stream events as one line each.
func told(events effect.Events) []string {
	var all []string
	for ev := range events {
		switch {
		case ev.Final() != nil:
			all = append(all, fmt.Sprintf("%s %s", ev.Type, ev.Final()))
		case ev.Block.Type != "":
			raw, _ := ev.Block.AppendJSON(nil)
			all = append(all, fmt.Sprintf("%s %d %s", ev.Type, ev.ContentIndex, raw))
		default:
			all = append(all, fmt.Sprintf("%s %d %q", ev.Type, ev.ContentIndex, ev.Delta))
		}
	}
	return all
}

// final returns the message that the events end with.
func final(t *testing.T, events effect.Events) message.Message {
	t.Helper()
	var last message.StreamEvent
	for ev := range events {
		last = ev
	}
	if last.Type != message.EventDone && last.Type != message.EventError {
		t.Fatalf("the stream ends with %q", last.Type)
	}
	if err := message.Validate(last.Final()); err != nil {
		t.Errorf("%s: %v", last.Final(), err)
	}
	return last.Final()
}

// brief returns a message without what all messages of a test have in common.
func brief(m message.Message) string {
	return strings.NewReplacer(`"api":"openai-responses","provider":"openai","model":"gpt-5.2",`, "", `,"timestamp":7`, "").Replace(string(m))
}

func question() effect.Request {
	return effect.Request{ResponseEntryID: "entry-1", Messages: []message.Message{user(`"hi"`)}, Now: 7, Thinking: message.ThinkingLow}
}
