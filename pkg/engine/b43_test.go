package engine_test

import (
	"testing"

	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
)

// B43: a provider that says "aborted" though nobody asked for it is no user's abort:
// its answer is stored as an error, the run fails, and the lane takes the next one.
func TestB43UnaskedAbort(t *testing.T) {
	start := message.StreamEvent{Type: message.EventStart, Message: message.Assistant{API: "echo", Provider: "acme", Model: "one", StopReason: message.StopPending}.Message()}
	aborted := message.Message(`{"role":"assistant","content":[],"api":"echo","provider":"acme","model":"one","stopReason":"aborted","timestamp":1}`)
	for name, end := range map[string]message.StreamEvent{
		"done":  {Type: message.EventDone, Message: aborted},
		"error": {Type: message.EventError, Reason: message.StopAborted, Message: aborted},
	} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.InMemory(t)
			*w.Pace = enginetest.Free
			w.Options.Retry.MaxRetries = 0
			w.Model.Reply = enginetest.Sequence(enginetest.Reply{Events: []message.StreamEvent{start, end}}, enginetest.Say("ok"))
			w.Open()
			if d := w.Prompt("hi"); d.Outcome.Kind != op.Failed || d.Outcome.Error == nil ||
				d.Outcome.Error.Message != "the provider reported an abort that nobody asked for" {
				t.Fatalf("the run ended with %+v, error %+v", d.Outcome, d.Outcome.Error)
			}
			wantTalk(t, w, "user: hi", "assistant error")
			w.Prompt("again")
			wantTalk(t, w, "user: hi", "assistant error", "user: again", "assistant stop: ok")
			w.Settled()
		})
	}
}
