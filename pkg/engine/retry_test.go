package engine_test

import (
	"context"
	"sync"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
)

// The cap on attempts is durable: what was tried before a process died counts.
func TestAttemptsSurviveRestarts(t *testing.T) {
	w := enginetest.InMemory(t)
	w.Watch = true
	w.Options.Retry = engine.RetryPolicy{MaxRetries: 2, BaseDelayMs: 100}
	w.Model.Reply = enginetest.Sequence(enginetest.Fail("500 internal server error"))
	w.Open()
	d := w.Prompt("hi")
	for d.Kind == engine.Waiting {
		w.Clock.Advance(*d.NotBefore - w.Clock.Now())
		w.Reopen()
		d = w.Continue()
	}
	if n := len(w.Model.Requests()); n != 3 || d.Outcome.Kind != op.Failed {
		t.Errorf("%d requests, then %s", n, d.Outcome.Kind)
	}
	w.Settled()
}

// A rate limit is a durable wait: drives before its end make no request, commit
// nothing and say when to come back.
func TestEarlyDrivesDoNothing(t *testing.T) {
	w := enginetest.InMemory(t)
	w.Watch = true
	w.Options.Retry.BaseDelayMs = 100
	w.Model.Reply = enginetest.Sequence(enginetest.Refuse("429", 429, 120_000), enginetest.Refuse("429", 429, 120_000), enginetest.Say("ok"))
	w.Open()
	d := w.Prompt("hi")
	for round := 1; round <= 2; round++ {
		before := w.Records()
		for range 5 {
			w.Clock.Advance(12_000)
			w.Reopen()
			early := w.Continue()
			enginetest.Equal(t, "an early drive", early, d)
		}
		enginetest.Equal(t, "what early drives wrote", w.Records(), before)
		if n := len(w.Model.Requests()); n != round {
			t.Errorf("%d requests in round %d", n, round)
		}
		w.Clock.Advance(60_000)
		d = w.Continue()
	}
	if d.Kind != engine.Settled || d.Outcome.FinalMessage.Text() != "ok" {
		t.Errorf("ended with %+v", d)
	}
	w.Settled()
}

// Everything at once, for the race detector: what is durable stays whole.
func TestStress(t *testing.T) {
	for range 5 {
		w := enginetest.InMemory(t)
		w.Watch, w.Quiet, *w.Pace = true, true, enginetest.Free
		w.Model.Reply = enginetest.Echo
		w.Open()
		w.Harness.On(func(op.Event) {})
		ctx := context.Background()
		low, off := message.ThinkingLow, message.ThinkingOff
		work := []func(){
			func() { _, _ = w.Lane.Prompt(ctx, engine.Request{Text: "a"}) },
			func() { _, _ = w.Lane.Prompt(ctx, engine.Request{Text: "b"}) },
			func() { _, _ = w.Lane.Resume(ctx) },
			func() { _, _ = w.Lane.InspectExecution(ctx) },
			func() { _ = w.Lane.Configure(ctx, engine.Configure{ThinkingLevel: &low}) },
			func() { _ = w.Lane.Configure(ctx, engine.Configure{ThinkingLevel: &off}) },
		}
		var calls, all sync.WaitGroup
		for _, call := range work {
			calls.Go(func() {
				for range 10 {
					call()
				}
			})
		}
		called := make(chan struct{})
		all.Go(func() { calls.Wait(); close(called) })
		all.Go(func() {
			// Most prompts may find the lane busy: the calls can end first.
			for over := false; !over && len(w.Model.Requests()) < 5; {
				_, _ = w.Lane.InspectExecution(ctx)
				select {
				case <-called:
					over = true
				default:
				}
			}
			_ = w.Harness.Close()
		})
		all.Wait()
		w.Verify()
		w.Open()
		if _, err := w.Lane.Resume(ctx); err == nil {
			w.Settled()
		}
	}
}
