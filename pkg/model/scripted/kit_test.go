package scripted_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model/scripted"
)

// write puts a script into a folder of its own and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	rewrite(t, path, text)
	return path
}

func rewrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func resolve(t testing.TB, id string) effect.Model {
	t.Helper()
	m, err := scripted.New(scripted.Options{}).Resolve(id)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// request is a request of 10 estimated tokens: 3 of system prompt, 7 of text.
func request() effect.Request {
	return effect.Request{
		SystemPrompt: "Be brief.",
		Messages:     []message.Message{message.NewUser("say something to a tester", nil, 1)},
		MaxOutput:    777,
		Now:          1700000000000,
	}
}

// ask sends a request and collects the events.
func ask(ctx context.Context, m effect.Model, req effect.Request) []message.StreamEvent {
	var events []message.StreamEvent
	for ev := range m.Stream(ctx, req) {
		events = append(events, ev)
	}
	return events
}

// last returns the message of the last event.
func last(events []message.StreamEvent) message.Message {
	return events[len(events)-1].Message
}

// lines writes events as one line each, with everything they carry but what the
// model puts into every message.
func lines(t *testing.T, events []message.StreamEvent) []string {
	t.Helper()
	all := make([]string, len(events))
	for i, ev := range events {
		s := string(ev.Type)
		if ev.Message == nil {
			s += fmt.Sprintf(" %d", ev.ContentIndex)
		}
		if ev.Delta != "" {
			s += fmt.Sprintf(" %q", ev.Delta)
		}
		if ev.Block.Type != "" {
			b, err := ev.Block.AppendJSON(nil)
			if err != nil {
				t.Fatal(err)
			}
			s += " " + string(b)
		}
		if ev.Reason != "" {
			s += " " + string(ev.Reason)
		}
		if ev.Message != nil {
			s += " " + short(t, ev.Message)
		}
		all[i] = s
	}
	return all
}

// short checks the fields that all answers share and returns the others.
func short(t *testing.T, m message.Message) string {
	t.Helper()
	a, err := message.ParseAssistant(m)
	if err != nil {
		t.Fatal(err)
	}
	if a.API != "scripted" || a.Provider != "scripted" || a.Timestamp != 1700000000000 {
		t.Errorf("attribution of %s", m)
	}
	content, _ := m.Get("content")
	s := fmt.Sprintf("%s %s in=%d out=%d total=%d", content, a.StopReason, a.Usage.Input, a.Usage.Output, a.Usage.TotalTokens)
	if a.ErrorMessage != "" {
		s += fmt.Sprintf(" %q", a.ErrorMessage)
	}
	if a.Diagnostics != nil {
		s += " " + string(a.Diagnostics)
	}
	if a.Deferred != nil {
		s += " " + string(a.Deferred)
	}
	return s
}
