package answer_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
	"github.com/drover-run/drover/pkg/model/answer"
)

func base() answer.Base {
	return answer.Base{
		Provider: "acme", API: "acme-api", Model: "m1", Address: "https://user:pw@api.acme.test/v1?key=1",
		Prices: model.Prices{Input: 1, Output: 10, CacheRead: 0.1, CacheWrite: 2},
	}
}

func request() effect.Request {
	return effect.Request{ResponseEntryID: "0190-abcdef012345", Now: 1700000000000}
}

type run = func(context.Context, *answer.Builder) error

func collect(events effect.Events) []message.StreamEvent {
	var all []message.StreamEvent
	for ev := range events {
		all = append(all, ev)
	}
	return all
}

func ask(t testing.TB, r run) []message.StreamEvent {
	return collect(answer.Stream(t.Context(), request(), base(), r))
}

// lines writes events as one line each.
func lines(t *testing.T, events []message.StreamEvent) []string {
	t.Helper()
	var all []string
	for _, ev := range events {
		s := string(ev.Type)
		switch {
		case ev.Final() != nil:
			s += " " + short(t, ev)
		case ev.Block.Type != "":
			raw, err := ev.Block.AppendJSON(nil)
			if err != nil {
				t.Fatal(err)
			}
			s += fmt.Sprintf(" %d %s", ev.ContentIndex, raw)
		default:
			s += fmt.Sprintf(" %d %q", ev.ContentIndex, ev.Delta)
		}
		all = append(all, s)
	}
	return all
}

// short checks what all answers share and returns the rest.
func short(t *testing.T, ev message.StreamEvent) string {
	t.Helper()
	if err := message.Validate(ev.Final()); err != nil && ev.Type != message.EventStart {
		t.Errorf("%s: %v", ev.Final(), err)
	}
	a, err := message.ParseAssistant(ev.Final())
	if err != nil {
		t.Fatal(err)
	}
	if a.Provider != "acme" || a.API != "acme-api" || a.Model != "m1" || a.Timestamp != 1700000000000 ||
		ev.Reason != a.StopReason && ev.Type != message.EventStart {
		t.Errorf("%s %s: attribution of %s", ev.Type, ev.Reason, ev.Final())
	}
	content, _ := ev.Final().Get("content")
	s := fmt.Sprintf("%s %s", a.StopReason, content)
	if a.RawStopReason != "" {
		s += " raw=" + a.RawStopReason
	}
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

// checkFrames checks that the events are legal and that their frames add up to
// the content of the last message.
func checkFrames(t interface {
	Helper()
	Fatalf(string, ...any)
}, events []message.StreamEvent) {
	t.Helper()
	var frames, live message.Reducer
	for i, ev := range events {
		end := ev.Type == message.EventDone || ev.Type == message.EventError
		if end != (i == len(events)-1) {
			t.Fatalf("event %d of %d is %s", i, len(events), ev.Type)
		}
		if err := live.AddEvent(ev); err != nil {
			t.Fatalf("%v", err)
		}
		if f, ok := message.FrameOf(ev); ok {
			if err := frames.Add(int64(i), f); err != nil {
				t.Fatalf("%v", err)
			}
		}
	}
	want, _ := events[len(events)-1].Final().Get("content")
	for name, r := range map[string]*message.Reducer{"frames": &frames, "events": &live} {
		got := "[]"
		if m, ok := r.Message(); ok {
			content, _ := m.Get("content")
			got = string(content)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Fatalf("%s: %s", name, diff)
		}
	}
}
