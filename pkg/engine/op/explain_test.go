package op_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine/op"
)

// The first step of an explanation is the one that a drive takes first; what
// follows goes on to the next request.
func TestExplain(t *testing.T) {
	need, may := op.NeedAssistant(false), op.MayFinish(false)
	planned := op.ToolCall{Status: op.CallPlanned}
	ready := op.ToolCall{Status: op.CallOutcomeReady}
	last := op.ToolCall{Status: op.CallOutcomeReady, Terminate: true}
	lost := op.ToolCall{Status: op.CallEffectPending, Replay: op.ReplayNever, Executions: 1}
	safe := op.ToolCall{Status: op.CallEffectPending, Replay: op.ReplaySafe, Executions: 1}
	batch := func(calls ...op.ToolCall) op.Phase {
		for i := range calls {
			calls[i].SourceIndex = i
		}
		return op.Tools{Batch: op.ToolBatch{Calls: calls}}
	}
	const ask = " assistant.intent/none assistant.request/new"
	cancelled := op.Control{Status: op.CancelRequested}
	for name, tt := range map[string]struct {
		state op.RunState
		want  string
	}{
		"starting":                     {op.RunState{Phase: op.Starting{}}, "run.begin/none" + ask},
		"starting, steered":            {op.RunState{Phase: op.Starting{}, Inbox: op.Inbox{Steer: []string{"s"}}}, "run.begin/none checkpoint.steer/none" + ask},
		"a turn is owed":               {op.RunState{Phase: op.Checkpoint{Continuation: need}}, ask[1:]},
		"a follow-up waits its turn":   {op.RunState{Phase: op.Checkpoint{Continuation: need}, Inbox: op.Inbox{FollowUp: []string{"f"}}}, ask[1:]},
		"a follow-up is next":          {op.RunState{Phase: op.Checkpoint{Continuation: may}, Inbox: op.Inbox{FollowUp: []string{"f"}}}, "checkpoint.follow_up/none" + ask},
		"steering comes first":         {op.RunState{Phase: op.Checkpoint{Continuation: may}, Inbox: op.Inbox{Steer: []string{"s"}, FollowUp: []string{"f"}}}, "checkpoint.steer/none" + ask},
		"the inbox is skipped once":    {op.RunState{Phase: op.Checkpoint{Continuation: need, SkipInboxOnce: true}, Inbox: op.Inbox{Steer: []string{"s"}}}, ask[1:]},
		"nothing is left":              {op.RunState{Phase: op.Checkpoint{Continuation: may}}, "checkpoint.finish/none"},
		"a retry that is not due":      {op.RunState{Phase: op.Assistant{Generation: op.RetryWait{NotBefore: now + 1}}}, "retry.sleep/none" + ask},
		"a retry that is due":          {op.RunState{Phase: op.Assistant{Generation: op.RetryWait{NotBefore: now}}}, ask[1:]},
		"a planned call":               {op.RunState{Phase: batch(planned)}, "tool.intent/none tool.execute/new tool.materialize/none" + ask},
		"two planned calls":            {op.RunState{Phase: batch(planned, planned)}, "tool.intent/none tool.execute/new tool.intent/none tool.execute/new tool.materialize/none" + ask},
		"a finished call":              {op.RunState{Phase: batch(ready)}, "tool.materialize/none" + ask},
		"a call that ends the run":     {op.RunState{Phase: batch(last)}, "tool.materialize/none checkpoint.finish/none"},
		"finished behind one to start": {op.RunState{Phase: batch(planned, ready)}, "tool.intent/none tool.execute/new tool.materialize/none" + ask},
		"finished before one to start": {op.RunState{Phase: batch(ready, planned)}, "tool.materialize/none tool.intent/none tool.execute/new tool.materialize/none" + ask},
		"interrupted calls":            {op.RunState{Phase: batch(lost, safe)}, "tool.recover_interruption/unknown tool.execute/repeats tool.materialize/none" + ask},
		"a deferred answer":            {op.RunState{Phase: op.DeferredPhase{Deferred: op.Deferred{Status: op.DeferredSuspended}}}, "deferred.intent/none deferred.fetch/repeats"},
		"a failed run, steered":        {op.RunState{Phase: op.FailureDrain{}, Inbox: op.Inbox{Steer: []string{"s"}}}, "checkpoint.steer/none checkpoint.finish/none"},
		"an in-run compaction": {
			op.RunState{Phase: op.InRunCompaction{ResumeAfter: op.Checkpoint{Continuation: need}}},
			"structural.intent/none structural.request/new structural.publish/none" + ask,
		},
		"cancelled calls": {op.RunState{Control: cancelled, Phase: batch(ready, planned, lost)},
			"tool.settlement/none tool.recover_interruption/unknown tool.materialize/none cancel.reconcile/none"},
		"a cancelled request": {op.RunState{Control: cancelled, Phase: op.Assistant{Generation: op.EffectPending{}}, Inbox: op.Inbox{Writes: []string{"w"}}},
			"cancel.reconcile/unknown cancel.reconcile/none cancel.reconcile/none"},
		"a cancelled job": {op.RunState{Control: cancelled, Phase: op.DeferredPhase{Deferred: op.Deferred{Status: op.DeferredSuspended}}},
			"deferred.cancel/new cancel.reconcile/none"},
		"a cancelled poll": {op.RunState{Control: cancelled, Phase: op.DeferredPhase{Deferred: op.Deferred{Status: op.DeferredEffectPending}}},
			"deferred.cancel/new cancel.reconcile/unknown cancel.reconcile/none"},
	} {
		t.Run(name, func(t *testing.T) {
			var steps []string
			for _, s := range op.Explain(tt.state, now) {
				steps = append(steps, s.Kind+"/"+string(s.Effect))
			}
			if diff := cmp.Diff(tt.want, strings.Join(steps, " ")); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}
