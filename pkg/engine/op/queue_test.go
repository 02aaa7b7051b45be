package op_test

import (
	"testing"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

var (
	said   = message.NewUser("also", nil, now)
	queued = op.PlaceMessage("q7", said)
)

func inbox(change func(*op.Inbox)) func(*op.RunState) {
	return func(s *op.RunState) {
		s.Inbox = op.Inbox{Steer: []string{"a"}, FollowUp: []string{"b"}, Writes: []string{"c"}}
		change(&s.Inbox)
	}
}

func full(*op.Inbox) {}

// §3.11: content is written once under its reserved id, the queue carries the id.
func TestEnqueue(t *testing.T) {
	turn := with(run(needAssistant()), inbox(full))
	content := store.Pending("q7").Set(queued.Content)
	for name, tt := range map[string]struct {
		queue  op.Queue
		change func(*op.Inbox)
		events []op.Event
	}{
		"steer":     {op.QueueSteer, func(i *op.Inbox) { i.Steer = []string{"a", "q7"} }, nil},
		"follow-up": {op.QueueFollowUp, func(i *op.Inbox) { i.FollowUp = []string{"b", "q7"} }, nil},
		"a write": {op.QueueWrites, func(i *op.Inbox) { i.Writes = []string{"c", "q7"} }, []op.Event{
			{Type: op.EventWritePending, Lane: lane, RunID: "op1", EntryID: "q7", EntryType: store.TypeMessage},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := op.Enqueue(turn, tt.queue, queued)
			wantPlan(t, got, err, op.Plan{Writes: []store.Write{content}, Next: with(turn, inbox(tt.change)).State, Events: tt.events})
		})
	}
	t.Run("the next run, on an idle lane too", func(t *testing.T) {
		got, err := op.Enqueue(idle(), op.QueueNextRun, queued)
		wantPlan(t, got, err, op.Plan{Writes: []store.Write{content}, Lane: &store.LaneState{PendingNextRun: []string{"q7"}}})
	})
	t.Run("a write survives cancellation", func(t *testing.T) {
		if _, err := op.Enqueue(cancel(turn), op.QueueWrites, queued); err != nil {
			t.Error(err)
		}
	})
	for name, turn := range map[string]op.Turn{"no run": idle(), "a cancelled run": cancel(turn)} {
		t.Run("steer: "+name, func(t *testing.T) {
			got, err := op.Enqueue(turn, op.QueueSteer, queued)
			wantInvalid(t, got, err)
		})
	}
}

// §3.11: what is still queued is gone with its content; what is not is left alone.
func TestWithdraw(t *testing.T) {
	turn := with(run(needAssistant()), inbox(full))
	for id, want := range map[string]func(*op.Inbox){
		"a": func(i *op.Inbox) { i.Steer = []string{} },
		"b": func(i *op.Inbox) { i.FollowUp = []string{} },
		"c": func(i *op.Inbox) { i.Writes = []string{} },
	} {
		got, ok := op.Withdraw(turn, id)
		if !ok {
			t.Errorf("%s is not queued", id)
		}
		wantPlan(t, got, nil, op.Plan{After: []store.Write{store.Pending(id).Delete()}, Next: with(turn, inbox(want)).State})
	}
	got, ok := op.Withdraw(turn, "n9")
	if !ok {
		t.Error("the next run's item is not queued")
	}
	wantPlan(t, got, nil, op.Plan{
		After: []store.Write{store.Pending("n9").Delete()},
		Lane:  &store.LaneState{CurrentOperationID: "op1", PendingNextRun: []string{}},
	})
	for name, turn := range map[string]op.Turn{"unknown": turn, "idle": idle(), "drained": cancel(turn)} {
		if _, ok := op.Withdraw(turn, "q1"); ok {
			t.Errorf("%s: withdrawn", name)
		}
	}
}

// §4.6: the marker drains steering and follow-ups, never writes; a second request
// changes nothing.
func TestRequestCancel(t *testing.T) {
	turn := with(run(generating(pending(1))), inbox(full))
	got, fresh := op.RequestCancel(turn)
	want := with(turn, func(s *op.RunState) {
		s.Control = op.Control{Status: op.CancelRequested, RequestedAt: now, DrainedSteer: []string{"a"}, DrainedFollowUp: []string{"b"}}
		s.Inbox = op.Inbox{Steer: []string{}, FollowUp: []string{}, Writes: []string{"c"}}
	})
	if !fresh {
		t.Error("not newly requested")
	}
	wantPlan(t, got, nil, op.Plan{Next: want.State})
	if got, fresh := op.RequestCancel(want); fresh || got.Next != nil {
		t.Errorf("a second request wrote %+v", got)
	}
	for _, s := range []op.State{op.CompactionState{Control: running}, op.NavigationState{Control: running}} {
		got, _ := op.RequestCancel(op.Turn{State: s, Now: now})
		if c := got.Next.Cancel(); c.Status != op.CancelRequested || c.RequestedAt != now {
			t.Errorf("%T: control %+v", s, c)
		}
	}
}

// §3.12: a drain that projects owes a turn and skips the inbox once.
func TestDrain(t *testing.T) {
	first := op.Item{Placed: op.PlaceMessage("a", said), Projects: true}
	silent := op.Item{Placed: op.Placed{EntryID: "c", Content: store.PendingEntry{Type: store.TypeCustom, CustomType: "app.x"}}}
	owed := op.Checkpoint{Continuation: op.NeedAssistant(false), TriggerEntryID: "a", SkipInboxOnce: true}
	used := op.Checkpoint{Continuation: op.NeedAssistant(true), TriggerEntryID: "e1", ThresholdCheckedTriggerEntryID: "e1"}
	noSteer := func(i *op.Inbox) { i.Steer = []string{} }
	noWrites := func(i *op.Inbox) { i.Writes = []string{} }

	for name, tt := range map[string]struct {
		turn   op.Turn
		queue  op.Queue
		item   op.Item
		phase  op.Phase
		change func(*op.Inbox)
	}{
		"steering at a checkpoint":            {run(mayFinish(true)), op.QueueSteer, first, owed, noSteer},
		"steering revives a failed run":       {run(drain()), op.QueueSteer, first, owed, noSteer},
		"a silent write keeps the checkpoint": {run(used), op.QueueWrites, silent, used, noWrites},
		"a silent write keeps the failure":    {run(drain()), op.QueueWrites, silent, drain(), noWrites},
		"under cancellation nothing is owed":  {cancel(run(mayFinish(true))), op.QueueSteer, first, mayFinish(true), noSteer},
		"a cancelled run drains anywhere":     {cancel(run(generating(pending(1)))), op.QueueWrites, silent, generating(pending(1)), noWrites},
	} {
		t.Run(name, func(t *testing.T) {
			turn := with(tt.turn, inbox(full))
			got, err := op.Drain(turn, tt.queue, []op.Item{tt.item})
			want := with(turn, inbox(tt.change))
			want = with(want, func(s *op.RunState) { s.Phase = tt.phase })
			id := tt.item.EntryID
			wantPlan(t, op.Plan{Writes: got.Writes, Next: got.Next}, err, op.Plan{
				Writes: []store.Write{
					store.InsertEntry(tt.item.Content.Entry(id, "e1")), store.Pending(id).Delete(), store.LaneLeaf(lane).Set(store.LeafID(id)),
				},
				Next: want.State,
			})
		})
	}
	t.Run("nowhere else", func(t *testing.T) {
		got, err := op.Drain(run(generating(pending(1))), op.QueueSteer, []op.Item{first})
		wantInvalid(t, got, err)
	})
}

// §3.12: the follow-up of before_run_end is born placed.
func TestExtend(t *testing.T) {
	turn := run(mayFinish(true))
	got, err := op.Extend(turn, queued)
	wantPlan(t, op.Plan{Writes: got.Writes, Next: got.Next}, err, op.Plan{
		Writes: []store.Write{store.InsertEntry(store.MessageEntry("q7", "e1", said)), store.LaneLeaf(lane).Set("q7")},
		Next:   at(turn, op.Checkpoint{Continuation: op.NeedAssistant(false), TriggerEntryID: "q7", SkipInboxOnce: true}, ""),
	})
	got, err = op.Extend(run(needAssistant()), queued)
	wantInvalid(t, got, err)
}
