package answer_test

import (
	"context"
	"testing"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model/answer"
)

// Arguments that a model left unfinished, or that are none, are marked: a reading of
// them is for people, and must never run. None at all are an empty object.
func TestArgumentsAreMarked(t *testing.T) {
	for _, tt := range []struct{ written, want, problem string }{
		{`{"a":1}`, `{"a":1}`, ""},
		{" {} \n", `{}`, ""},
		{"", `{}`, ""},
		{"null", `{}`, ""},
		{`{"command":"rm -rf /srv/da`, `{"command":"rm -rf /srv/da"}`, "they are no JSON: unexpected end of text"},
		{`{"a":1} and more`, `{"a":1}`, "they are no JSON: unexpected text after the value"},
		{`[1]`, `{}`, "they are no JSON object: [1]"},
		{"rm -rf", `{}`, "they are no JSON object: rm -rf"},
	} {
		var last message.Message
		events := answer.Stream(t.Context(), effect.Request{}, answer.Base{Provider: "p", Model: "m"}, func(_ context.Context, b *answer.Builder) error {
			call := b.ToolCall("c1", "bash")
			call.Add(tt.written)
			call.End()
			b.Done(message.StopToolUse, "")
			return nil
		})
		for ev := range events {
			last = ev.Final()
		}
		got := last.ToolCalls()[0]
		if string(got.Arguments) != tt.want || got.ArgumentsError != tt.problem {
			t.Errorf("%q: %s, %q", tt.written, got.Arguments, got.ArgumentsError)
		}
	}
}
