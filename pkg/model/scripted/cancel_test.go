package scripted_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/message"
)

// slow waits before its first event and between all deltas.
const slow = `
responses:
  - {hang_ms: 1000, thinking: abcd, text: efgh, chunk: 2, delay_ms: 100, tool_calls: [{name: ls, arguments: {p: "/"}}]}
`

// TestCancelAtEachWait cancels in the middle of the n-th wait: the events before
// it stand, and the partial is what they add up to.
func TestCancelAtEachWait(t *testing.T) {
	tests := []struct {
		after time.Duration
		sent  int // events before the error
		want  string
	}{
		{500 * time.Millisecond, 0, `[]`},
		{1050 * time.Millisecond, 3, `[{"type":"thinking","thinking":"ab"}]`},
		{1150 * time.Millisecond, 6, `[{"type":"thinking","thinking":"abcd"},{"type":"text","text":""}]`},
		{1250 * time.Millisecond, 7, `[{"type":"thinking","thinking":"abcd"},{"type":"text","text":"ef"}]`},
		{1350 * time.Millisecond, 10, `[{"type":"thinking","thinking":"abcd"},{"type":"text","text":"efgh"},` +
			`{"type":"toolCall","id":"call_1_1","name":"ls","arguments":{}}]`},
		{1550 * time.Millisecond, 12, `[{"type":"thinking","thinking":"abcd"},{"type":"text","text":"efgh"},` +
			`{"type":"toolCall","id":"call_1_1","name":"ls","arguments":{}}]`},
		{1650 * time.Millisecond, 13, `[{"type":"thinking","thinking":"abcd"},{"type":"text","text":"efgh"},` +
			`{"type":"toolCall","id":"call_1_1","name":"ls","arguments":{"p":""}}]`},
	}
	for _, tt := range tests {
		t.Run(tt.after.String(), func(t *testing.T) {
			path := write(t, "s.yaml", slow)
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.after)
				defer cancel()
				began := time.Now()
				events := ask(ctx, resolve(t, path), request())
				if took := time.Since(began); took != tt.after {
					t.Errorf("ended after %v, want %v", took, tt.after)
				}
				end := events[len(events)-1]
				content, _ := end.Message.Get("content")
				if diff := cmp.Diff(tt.want, string(content)); diff != "" {
					t.Error(diff)
				}
				if end.Type != message.EventError || end.Reason != message.StopAborted ||
					end.Message.StopReason() != message.StopAborted || len(events)-1 != tt.sent {
					t.Errorf("events %v", lines(t, events))
				}
				if tt.sent > 0 {
					checkFrames(t, events)
				}
			})
		})
	}
}

func TestDelays(t *testing.T) {
	path := write(t, "s.yaml", slow)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		for ev := range resolve(t, path).Stream(t.Context(), request()) {
			switch ev.Type {
			case message.EventStart, message.EventThinkingDelta, message.EventTextDelta, message.EventToolCallDelta, message.EventDone:
				at = append(at, time.Since(began))
			}
		}
		var want []time.Duration
		for _, ms := range []time.Duration{1000, 1000, 1100, 1200, 1300, 1400, 1500, 1600, 1700, 1800, 1800} {
			want = append(want, ms*time.Millisecond)
		}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Error(diff)
		}
	})
}

func TestHangWithoutContent(t *testing.T) {
	path := write(t, "s.yaml", "responses:\n  - hang_ms: 60000\n  - {hang_ms: 60000, error: {message: gone}}\n")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		class := func(c string) string {
			return string(message.AppendProviderError(nil, message.ErrorInfo{Class: c}))
		}
		for _, want := range []string{
			`error error [] error in=0 out=0 total=0 "request timed out after 1m0s" ` + class(message.ClassTimeout),
			`error error [] error in=0 out=0 total=0 "gone" ` + class(message.ClassInvalidRequest),
		} {
			if diff := cmp.Diff([]string{want}, lines(t, ask(t.Context(), resolve(t, path), request()))); diff != "" {
				t.Error(diff)
			}
		}
		if took := time.Since(began); took != 2*time.Minute {
			t.Errorf("took %v", took)
		}
	})
}

// TestCancelledEcho: a cancelled context ends an answer that never waits, too.
func TestCancelledEcho(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req := request()
	req.Messages = []message.Message{message.NewUser("0123456789abcdef0123456789abcdef", nil, 1)}
	var got []message.StreamEvent
	for ev := range resolve(t, "echo").Stream(ctx, req) {
		if got = append(got, ev); ev.Type == message.EventTextDelta {
			cancel()
		}
	}
	want := []string{
		pending,
		`text_start 0 {"type":"text","text":""}`,
		`text_delta 0 "0123456789abcdef"`,
		`error aborted [{"type":"text","text":"0123456789abcdef"}] aborted in=0 out=0 total=0 "the request was aborted"`,
	}
	if diff := cmp.Diff(want, lines(t, got)); diff != "" {
		t.Error(diff)
	}
}
