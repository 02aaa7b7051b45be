package op_test

import (
	"encoding/json"
	"testing"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// batch is a run at a tool batch; the calls get their source indices and the
// result ids t0, t1, … by position.
func batch(calls ...op.ToolCall) op.Turn {
	for i := range calls {
		calls[i].SourceIndex = i
		calls[i].ResultEntryID = "t" + string(rune('0'+i))
	}
	return with(run(op.Tools{Batch: op.ToolBatch{AssistantEntryID: "r1", Configuration: config, TurnID: "s1", Calls: calls}}),
		func(s *op.RunState) { s.LatestAssistantEntryID = "r1" })
}

func planned() op.ToolCall { return op.ToolCall{Status: op.CallPlanned} }
func effect(r op.Replay) op.ToolCall {
	return op.ToolCall{Status: op.CallEffectPending, Replay: r, Executions: 1}
}
func outcome(terminate bool) op.ToolCall {
	return op.ToolCall{Status: op.CallOutcomeReady, Terminate: terminate}
}
func completed(terminate bool) op.ToolCall {
	return op.ToolCall{Status: op.CallCompleted, Terminate: terminate}
}

func next(t op.Turn) op.State { return t.State }

func toolResult(text string) message.Message {
	return message.NewToolResult("c", "read", message.ToolResult{Content: []message.Block{message.TextBlock(text)}}, now)
}

// §3.8, first row: arguments and intent are one commit.
func TestClear(t *testing.T) {
	got, err := op.Clear(batch(completed(false), planned()), 1, []byte(`{"path":"x"}`), op.ReplaySafe)
	wantPlan(t, got, err, op.Plan{
		Writes: []store.Write{op.ToolArgsOf("op1", "s1", 1).Set(json.RawMessage(`{"path":"x"}`))},
		Next:   next(batch(completed(false), effect(op.ReplaySafe))),
	})
	for name, turn := range map[string]op.Turn{
		"pending": batch(effect(op.ReplayNever)), "ready": batch(outcome(false)), "completed": batch(completed(false)), "no such call": batch(),
		"elsewhere": run(needAssistant()),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := op.Clear(turn, 0, nil, op.ReplayNever)
			wantInvalid(t, got, err)
		})
	}
}

// started is a safe call that was started n times.
func started(n int) op.ToolCall {
	c := effect(op.ReplaySafe)
	c.Executions = n
	return c
}

// §4.5, D31: only what was declared safe may run again, three times in all; its
// stale checkpoint goes.
func TestRestart(t *testing.T) {
	for n := 1; n < op.MaxExecutions; n++ {
		got, err := op.Restart(batch(started(n)), 0)
		wantPlan(t, got, err, op.Plan{
			Writes: []store.Write{op.ToolOutput("op1", "t0").Delete()},
			Next:   next(batch(started(n + 1))),
		})
	}
	for name, turn := range map[string]op.Turn{"never": batch(effect(op.ReplayNever)), "too often": batch(started(op.MaxExecutions)), "planned": batch(planned()), "ready": batch(outcome(false))} {
		t.Run(name, func(t *testing.T) {
			got, err := op.Restart(turn, 0)
			wantInvalid(t, got, err)
		})
	}
}

// §3.8: staging makes a call final, in any order; memos and the checkpoint die
// with it. A call without an effect has neither.
func TestStage(t *testing.T) {
	result := toolResult("done")
	pending := store.Pending("t1").Set(store.PendingEntry{Type: store.TypeMessage, Payload: []byte(result)})
	memo := op.ToolMemo("op1", "t1", "k")

	got, err := op.Stage(batch(effect(op.ReplaySafe), effect(op.ReplayNever)), 1, op.CallOutcome{
		Result: result, Terminate: true, Memos: []store.Address{memo.Address()},
	})
	wantPlan(t, got, err, op.Plan{
		Writes: []store.Write{pending, op.ToolOutput("op1", "t1").Delete(), memo.Delete()},
		Next:   next(batch(effect(op.ReplaySafe), outcome(true))),
	})

	got, err = op.Stage(batch(planned(), planned()), 1, op.CallOutcome{Result: result})
	wantPlan(t, got, err, op.Plan{Writes: []store.Write{pending}, Next: next(batch(planned(), outcome(false)))})

	got, err = op.Stage(cancel(batch(effect(op.ReplayNever))), 0, op.CallOutcome{Result: result})
	if err != nil || got.Next.Cancel().Status != op.CancelRequested {
		t.Errorf("staging under cancellation: %+v, %v", got.Next, err)
	}
	for name, turn := range map[string]op.Turn{"twice": batch(outcome(false)), "completed": batch(completed(false))} {
		t.Run(name, func(t *testing.T) {
			got, err := op.Stage(turn, 0, op.CallOutcome{Result: result})
			wantInvalid(t, got, err)
		})
	}
}

func TestReadyPrefix(t *testing.T) {
	for name, tt := range map[string]struct {
		turn op.Turn
		want []string
	}{
		"nothing ready":               {batch(planned(), planned()), nil},
		"ready behind an effect":      {batch(effect(op.ReplayNever), outcome(false)), nil},
		"the first":                   {batch(outcome(false), planned()), []string{"t0"}},
		"after the completed ones":    {batch(completed(false), outcome(false), outcome(true), planned()), []string{"t1", "t2"}},
		"up to the effect in between": {batch(outcome(false), effect(op.ReplaySafe), outcome(false)), []string{"t0"}},
		"all completed":               {batch(completed(false)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range tt.turn.State.(op.RunState).Phase.(op.Tools).Batch.ReadyPrefix() {
				got = append(got, c.ResultEntryID)
			}
			wantEqual(t, got, tt.want)
		})
	}
}

// §3.8, last row: entries in source order, then their pending values, usage, the
// leaf; the last call deletes the arguments and decides what comes next.
func TestMaterialize(t *testing.T) {
	plain := toolResult("one")
	billed := set(t, toolResult("two"), "usage", `{"input":1,"output":2}`)
	adding := set(t, toolResult("three"), "addedToolNames", `["grep","read"]`)
	active := config
	active.ActiveToolNames = []string{"read"}
	grown := config
	grown.ActiveToolNames = []string{"read", "grep"}
	added := func(id string) op.Event {
		return op.Event{Type: op.EventEntryAdded, Lane: lane, RunID: "op1", EntryID: id}
	}
	entry := func(id, parent string, m message.Message) store.Write {
		return store.InsertEntry(store.MessageEntry(id, parent, m))
	}
	checkpoint := func(c op.Continuation, trigger string) op.State {
		return at(batch(), op.Checkpoint{Continuation: c, TriggerEntryID: trigger}, "r1")
	}

	tests := []struct {
		name string
		turn op.Turn
		p    op.Placement
		want op.Plan
	}{
		{
			"a prefix while others run",
			batch(outcome(false), effect(op.ReplayNever)), op.Placement{Results: []message.Message{plain}, Configuration: active},
			op.Plan{
				Writes: []store.Write{entry("t0", "e1", plain), store.Pending("t0").Delete(), store.LaneLeaf(lane).Set("t0")},
				Next:   next(batch(completed(false), effect(op.ReplayNever))),
				Events: []op.Event{added("t0")},
			},
		},
		{
			"the last calls, with usage and added tools",
			batch(completed(false), outcome(false), outcome(false)),
			op.Placement{
				Results: []message.Message{billed, adding}, UsageIDs: []string{"u9"}, Configuration: active,
				StepArgs: []store.Address{op.ToolArgsOf("op1", "s1", 0).Address()},
				Answer:   answer(message.StopToolUse, "x"), All: []message.Message{plain, billed, adding},
			},
			op.Plan{
				Writes: []store.Write{
					entry("t1", "e1", billed), entry("t2", "t1", adding), store.Pending("t1").Delete(), store.Pending("t2").Delete(),
					store.InsertUsage(store.NewUsage{ID: "u9", EntryID: "t1", RawUsage: json.RawMessage(`{"input":1,"output":2}`)}),
					store.LaneLeaf(lane).Set("t2"), store.LaneConfig(lane).Set(grown), op.ToolArgsOf("op1", "s1", 0).Delete(),
				},
				Next: checkpoint(op.NeedAssistant(false), "t2"),
				Events: []op.Event{
					added("t1"), added("t2"), {Type: op.EventUsage, Lane: lane, EntryID: "u9"},
					{Type: op.EventTurnEnd, Lane: lane, RunID: "op1", TurnID: "s1", Message: answer(message.StopToolUse, "x"), Results: []message.Message{plain, billed, adding}},
				},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := op.Materialize(tt.turn, tt.p)
			wantPlan(t, got, err, tt.want)
		})
	}

	t.Run("every call terminates", func(t *testing.T) {
		got, err := op.Materialize(batch(completed(true), outcome(true)), op.Placement{Results: []message.Message{plain}})
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, got.Next, checkpoint(op.MayFinish(false), "t1"))
		wantEqual(t, string(got.Writes[0].Entry.Payload), `{"message":`+string(plain)+`,"terminate":true}`)
	})
	t.Run("one call does not terminate", func(t *testing.T) {
		got, err := op.Materialize(batch(completed(false), outcome(true)), op.Placement{Results: []message.Message{plain}})
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, got.Next, checkpoint(op.NeedAssistant(false), "t1"))
	})
	for name, turn := range map[string]op.Turn{"nothing ready": batch(planned()), "elsewhere": run(drain())} {
		t.Run(name, func(t *testing.T) {
			got, err := op.Materialize(turn, op.Placement{})
			wantInvalid(t, got, err)
		})
	}
}
