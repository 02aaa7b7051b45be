package op_test

import (
	"encoding/json"
	"testing"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
)

// §3.7, first row: the snapshot is taken inline, the stream options of the run and
// the overflow flag travel (D34).
func TestStartStep(t *testing.T) {
	limit := int64(512)
	start := op.StepStart{StepID: "s1", Configuration: config, RetryPolicy: op.RetryPolicy{MaxAttempts: 3, BaseDelayMs: 100}}
	captured := step
	captured.StreamOptions = message.StreamOptions{MaxTokens: &limit, Deferred: json.RawMessage(`{"window":"1h"}`)}
	afterOverflow := captured
	afterOverflow.OverflowRecoveryUsed = true
	turnStart := []op.Event{{Type: op.EventTurnStart, Lane: lane, RunID: "op1", TurnID: "s1"}}

	tests := []struct {
		name string
		from op.Checkpoint
		want op.GenerationContext
	}{
		{"a fresh turn", needAssistant(), captured},
		{"a turn after an overflow compaction", op.Checkpoint{Continuation: op.NeedAssistant(true), TriggerEntryID: "e1"}, afterOverflow},
		{
			"skipInboxOnce and the threshold mark end with the checkpoint",
			op.Checkpoint{Continuation: op.NeedAssistant(false), TriggerEntryID: "e1", SkipInboxOnce: true, ThresholdCheckedTriggerEntryID: "e1"},
			captured,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			turn := with(run(tt.from), func(s *op.RunState) { s.Settings.StreamOptions = captured.StreamOptions })
			got, err := op.StartStep(turn, start)
			wantPlan(t, got, err, op.Plan{
				Next: at(turn, generating(op.Ready{Context: tt.want, NextAttempt: 1}), ""), Events: turnStart,
			})
		})
	}
	refuseElsewhere(t, op.PointNeedAssistant, func(turn op.Turn) (op.Plan, error) { return op.StartStep(turn, start) })
}

// §3.7, second row: the intent reserves both ids and records the limits.
func TestIntend(t *testing.T) {
	r := op.Reservation{ResponseEntryID: "r1", UsageID: "u1", IntendedOutput: 4_000, ContextWindow: 100_000}
	t.Run("the first attempt is silent", func(t *testing.T) {
		got, err := op.Intend(run(generating(op.Ready{Context: step, NextAttempt: 1})), r)
		wantPlan(t, got, err, op.Plan{Next: at(run(nil), generating(pending(1)), "")})
	})
	t.Run("a later attempt starts a retry", func(t *testing.T) {
		got, err := op.Intend(run(generating(op.Ready{Context: step, NextAttempt: 3})), r)
		wantPlan(t, got, err, op.Plan{
			Next:   at(run(nil), generating(pending(3)), ""),
			Events: []op.Event{{Type: op.EventRetryStart, Lane: lane, RunID: "op1", Step: "s1", Attempt: 3}},
		})
	})
	refuseElsewhere(t, op.PointReady, func(turn op.Turn) (op.Plan, error) { return op.Intend(turn, r) })
}

// §3.7, last row.
func TestRetryDue(t *testing.T) {
	wait := op.RetryWait{Context: step, NextAttempt: 2, NotBefore: now, ErrorMessage: "overloaded"}
	t.Run("at its time it is ready again, with the same snapshot", func(t *testing.T) {
		got, err := op.RetryDue(run(generating(wait)))
		wantPlan(t, got, err, op.Plan{Next: at(run(nil), generating(op.Ready{Context: step, NextAttempt: 2}), "")})
	})
	t.Run("a millisecond early it is refused", func(t *testing.T) {
		turn := run(generating(wait))
		turn.Now = now - 1
		got, err := op.RetryDue(turn)
		wantInvalid(t, got, err)
	})
	refuseElsewhere(t, op.PointRetryWait, op.RetryDue)
}

// The whole transaction: the plan's writes, then S, then the last result, then L
// (§3.4, D27).
func TestPlanTx(t *testing.T) {
	accepted, err := op.Accept(idle(), op.RunRequest{OperationID: "op7", Prompt: []op.Placed{place("e1", "hi")}, Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	finished, err := op.Finish(run(mayFinish(true)))
	if err != nil {
		t.Fatal(err)
	}
	begun, err := op.Begin(run(op.Starting{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		plan op.Plan
		want []string
	}{
		{"acceptance", accepted, []string{"entry e1", "pi.lane.leaf/main", "pi.op.meta/op7", "pi.op.state/op7", "pi.lane.state/main"}},
		{"an ordinary transition", begun, []string{"pi.op.state/op7"}},
		{"the end", finished, []string{"-pi.op.meta/op1", "-pi.op.state/op1", "pi.lane.lastResult/main", "pi.lane.state/main"}},
		{"no transition", op.Plan{}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, w := range tt.plan.Tx("op7", lane) {
				got = append(got, writeName(w))
			}
			wantEqual(t, got, tt.want)
		})
	}
}
