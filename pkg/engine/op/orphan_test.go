package op_test

import (
	"testing"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
)

const (
	zeroUsage = `{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`
	warning   = "the request was interrupted: this is the latest part of the answer that was saved, newer output may be missing, and whether the provider finished it is unknown"
)

// §4.5: the committed partial, zero usage, and a warning; without a start frame
// an empty answer of the captured model.
func TestInterrupted(t *testing.T) {
	tests := []struct {
		name    string
		partial message.Message
		want    string
	}{
		{
			"no frame was committed", nil,
			`{"role":"assistant","content":[],"api":"echo","provider":"acme","model":"one","usage":` + zeroUsage +
				`,"stopReason":"error","timestamp":1700000000000,"errorMessage":"` + warning + `"}`,
		},
		{
			"a partial keeps its content, identity and unknown fields",
			message.Message(`{"role":"assistant","content":[{"type":"text","text":"ha\ud83d"}],"provider":"other","x-new":1.0,"usage":{"input":7},"stopReason":"pending","timestamp":5}`),
			`{"role":"assistant","content":[{"type":"text","text":"ha\ud83d"}],"provider":"other","x-new":1.0,"usage":` + zeroUsage +
				`,"stopReason":"error","timestamp":5,"errorMessage":"` + warning + `"}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := op.Interrupted(tt.partial, config.Model, "echo", now)
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, string(got), tt.want)
		})
	}
}

// A warning that read as an overflow, or as a permanent error, would change what
// the next drive does with it.
func TestInterruptedIsNoOverflow(t *testing.T) {
	if message.IsOverflowMessage(warning) {
		t.Error("the warning reads as an overflow")
	}
}

// The first row of §4.5's table, below and at the cap, running and cancelled.
func TestSettleOrphan(t *testing.T) {
	m, err := op.Interrupted(message.Message(`{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"rm","arguments":{}}],"stopReason":"pending"}`), config.Model, "echo", now)
	if err != nil {
		t.Fatal(err)
	}
	aborted := stopped(t, m, "aborted", warning+" (aborted on request; the response had ended with error)")
	tests := []struct {
		name   string
		turn   op.Turn
		stored message.Message
		phase  op.Phase
		events []op.Event
	}{
		{
			"below the cap it is retried; partial calls never run",
			run(generating(pending(1))), m,
			generating(op.RetryWait{Context: step, NextAttempt: 2, NotBefore: now + 100, ErrorMessage: warning}),
			told(true, op.Event{Type: op.EventRetryScheduled, Step: "s1", Attempt: 2, MaxAttempts: 3, DelayMs: 100, ErrorText: warning}),
		},
		{
			"at the cap it fails",
			run(generating(pending(3))), m, failedPhase("provider_error", warning),
			told(true, op.Event{Type: op.EventRetryEnd, Step: "s1", Attempt: 3, ErrorText: warning}, turnEnd(m)),
		},
		{
			"under cancellation it is aborted, below the cap too",
			cancel(run(generating(pending(1)))), aborted, mayFinish(true), told(true, turnEnd(aborted)),
		},
		{
			"under cancellation at the cap",
			cancel(run(generating(pending(3)))), aborted, mayFinish(true),
			told(true, op.Event{Type: op.EventRetryEnd, Step: "s1", Attempt: 3, ErrorText: aborted.ErrorMessage()}, turnEnd(aborted)),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := op.SettleOrphan(tt.turn, m)
			wantPlan(t, got, err, op.Plan{Writes: published(attemptOf(tt.turn), tt.stored), Next: at(tt.turn, tt.phase, "r1"), Events: tt.events})
		})
	}
	refuseElsewhere(t, op.PointEffectPending, func(turn op.Turn) (op.Plan, error) { return op.SettleOrphan(turn, m) })
}

// A submission whose job was found again suspends as if it had been answered;
// nothing else can be adopted (D34).
func TestSettleAdopted(t *testing.T) {
	deferred := deferring(t, "acme", "job-1")
	handle, _ := deferred.Get("deferred")
	turn := run(generating(pending(2)))
	got, err := op.SettleAdopted(turn, response(deferred))
	wantPlan(t, got, err, op.Plan{
		Writes: published(2, deferred),
		Next: at(turn, op.DeferredPhase{Deferred: op.Deferred{
			Status: op.DeferredSuspended, StepID: "s1", SourceEntryID: "r1", Configuration: config,
		}}, "r1"),
		Events: append(
			told(true, op.Event{Type: op.EventRetryEnd, Step: "s1", Attempt: 2, Success: true}, turnEnd(deferred)),
			op.Event{Type: op.EventRunSuspend, Lane: lane, RunID: "op1", Deferred: handle},
		),
	})
	for name, m := range map[string]message.Message{
		"an answer": answer(message.StopStop, "hi"), "another model's job": deferring(t, "other", "job-1"),
	} {
		if _, err := op.SettleAdopted(turn, response(m)); err == nil {
			t.Errorf("%s was adopted", name)
		}
	}
	refuseElsewhere(t, op.PointEffectPending, func(turn op.Turn) (op.Plan, error) { return op.SettleAdopted(turn, response(deferred)) })
}
