package op_test

import (
	"encoding/json"
	"testing"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// The terminal transaction of a run (§3.13): one shape for every outcome.
func TestFinish(t *testing.T) {
	answered := func(t op.Turn) op.Turn { return with(t, func(s *op.RunState) { s.LatestAssistantEntryID = "r1" }) }
	full := func(t op.Turn) op.Turn {
		return with(t, func(s *op.RunState) {
			s.Inbox = op.Inbox{Steer: []string{"q2"}, FollowUp: []string{"q3"}, Writes: []string{"q4"}}
		})
	}
	staged := op.Tools{Batch: op.ToolBatch{AssistantEntryID: "r1", TurnID: "s1", Calls: []op.ToolCall{
		{Status: op.CallCompleted, ResultEntryID: "t0"},
		{Status: op.CallOutcomeReady, SourceIndex: 1, ResultEntryID: "t1"},
		{Status: op.CallPlanned, SourceIndex: 2, ResultEntryID: "t2"},
	}}}
	withLeftovers := run(mayFinish(true))
	withLeftovers.Leftovers = []store.Address{{Namespace: "pi.op.tool_args", Key: "op1:s1:0"}, {Namespace: "pi.op.preparation", Key: "op1:t1"}}
	deletePending := func(ids ...string) []store.Write {
		var writes []store.Write
		for _, id := range ids {
			writes = append(writes, store.Pending(id).Delete())
		}
		return writes
	}
	frames := []store.Write{op.Frames("op1", "r1").Delete()}

	tests := []struct {
		name   string
		turn   op.Turn
		writes []store.Write // beyond meta and state
		want   op.LaneLastResult
	}{
		{
			"completed by its answer", answered(run(mayFinish(true))), nil,
			op.LaneLastResult{Outcome: op.Completed, RunCompletion: op.CompletedByAssistant, FinalAssistantEntryID: "r1"},
		},
		{
			"completed by tools that all terminated: no final answer", answered(run(mayFinish(false))), nil,
			op.LaneLastResult{Outcome: op.Completed, RunCompletion: op.CompletedByTools},
		},
		{
			"what the operation still owns goes", withLeftovers,
			[]store.Write{
				store.NewValue[json.RawMessage]("pi.op.tool_args", "op1:s1:0").Delete(),
				store.NewValue[json.RawMessage]("pi.op.preparation", "op1:t1").Delete(),
			},
			op.LaneLastResult{Outcome: op.Completed, RunCompletion: op.CompletedByAssistant},
		},
		{
			"failed, with the newest answer", answered(run(drain())), nil,
			op.LaneLastResult{Outcome: op.Failed, Error: &op.Error{Code: "provider_error", Message: "boom"}, FinalAssistantEntryID: "r1"},
		},
		{
			"failed before any answer", run(drain()), nil,
			op.LaneLastResult{Outcome: op.Failed, Error: &op.Error{Code: "provider_error", Message: "boom"}},
		},
		{
			"cancelled at a checkpoint that may finish; drained input goes", cancel(answered(run(mayFinish(true)))), deletePending("q1"),
			op.LaneLastResult{Outcome: op.Aborted, FinalAssistantEntryID: "r1"},
		},
		{
			"cancelled at a checkpoint that owes a turn", cancel(run(needAssistant())), deletePending("q1"),
			op.LaneLastResult{Outcome: op.Aborted},
		},
		{
			"cancelled in the failure drain is aborted, not failed", cancel(run(drain())), deletePending("q1"),
			op.LaneLastResult{Outcome: op.Aborted},
		},
		{
			"cancelled while starting, with a full inbox", cancel(full(run(op.Starting{}))), deletePending("q2", "q3", "q4", "q1"),
			op.LaneLastResult{Outcome: op.Aborted},
		},
		{
			"cancelled while a request may be under way: its frames go", cancel(run(generating(pending(1)))), append(frames, deletePending("q1")...),
			op.LaneLastResult{Outcome: op.Aborted},
		},
		{
			"cancelled while waiting for a retry", cancel(run(everyPhase()[op.PointRetryWait])), deletePending("q1"),
			op.LaneLastResult{Outcome: op.Aborted},
		},
		{
			"staged tool results go, placed and planned ones have nothing to delete", cancel(run(staged)), deletePending("q1", "t1"),
			op.LaneLastResult{Outcome: op.Aborted},
		},
		{
			"cancelled while a poll may be under way: its frames go", cancel(run(everyPhase()[op.PointDeferredPending])),
			append([]store.Write{op.Frames("op1", "r2").Delete()}, deletePending("q1")...),
			op.LaneLastResult{Outcome: op.Aborted},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := tt.want
			want.OperationID, want.Kind, want.LeafID = "op1", op.KindRun, "e1"
			got, err := op.Finish(tt.turn)
			wantPlan(t, got, err, op.Plan{
				Writes: append([]store.Write{op.Meta("op1").Delete(), op.StateOf("op1").Delete()}, tt.writes...),
				Result: &want,
				Lane:   &store.LaneState{PendingNextRun: []string{"n9"}}, // the lane's own queue stays
				Events: []op.Event{{
					Type: op.EventRunEnd, Lane: lane, RunID: "op1", Outcome: want.Outcome, LeafID: "e1",
					EntryID: want.FinalAssistantEntryID, Error: want.Error,
				}},
			})
		})
	}
}

func TestFinishRefusals(t *testing.T) {
	legal := map[op.Point]bool{op.PointMayFinish: true, op.PointFailureDrain: true}
	for point, s := range everyState() {
		if legal[point] {
			continue
		}
		t.Run("at "+string(point), func(t *testing.T) {
			turn := run(op.Starting{})
			turn.State = s
			got, err := op.Finish(turn)
			wantInvalid(t, got, err)
		})
	}
	for name, inbox := range map[string]op.Inbox{
		"steering": {Steer: []string{"q1"}}, "follow-up": {FollowUp: []string{"q1"}}, "a write": {Writes: []string{"q1"}},
	} {
		t.Run("while "+name+" waits", func(t *testing.T) {
			got, err := op.Finish(with(run(mayFinish(true)), func(s *op.RunState) { s.Inbox = inbox }))
			wantInvalid(t, got, err)
		})
	}
}

// Every place where a run names content that waits, and nothing of the lane's.
func TestOwnedPending(t *testing.T) {
	s := cancel(run(op.Tools{Batch: op.ToolBatch{Calls: []op.ToolCall{
		{Status: op.CallOutcomeReady, ResultEntryID: "t1"}, {Status: op.CallEffectPending, ResultEntryID: "t2"},
	}}})).State.(op.RunState)
	s.Inbox = op.Inbox{Steer: []string{"a"}, FollowUp: []string{"b"}, Writes: []string{"c"}}
	s.Control.DrainedSteer, s.Control.DrainedFollowUp = []string{"d"}, []string{"e"}
	wantEqual(t, op.OwnedPending(s), []string{"a", "b", "c", "d", "e", "t1"})
}

func TestPendingResponse(t *testing.T) {
	want := map[op.Point]string{op.PointEffectPending: "r1", op.PointDeferredPending: "r2"}
	for point, phase := range everyPhase() {
		if got := op.PendingResponse(run(phase).State.(op.RunState)); got != want[point] {
			t.Errorf("at %s: %q, want %q", point, got, want[point])
		}
	}
}
