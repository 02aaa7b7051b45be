package op_test

import (
	"encoding/json"
	"testing"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

func user(text string) message.Message { return message.NewUser(text, nil, now) }

func place(id, text string) op.Placed { return op.PlaceMessage(id, user(text)) }

// placedEvents are what placing one message tells (D28).
func placedEvents(runID, id, text string) []op.Event {
	return []op.Event{
		{Type: op.EventMessageStart, Lane: lane, RunID: runID, Message: user(text)},
		{Type: op.EventMessageEnd, Lane: lane, RunID: runID, Message: user(text), EntryID: id},
		{Type: op.EventEntryAdded, Lane: lane, RunID: runID, EntryID: id},
	}
}

func concat(lists ...[]op.Event) []op.Event {
	var all []op.Event
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// The first row of §3.6.
func TestAccept(t *testing.T) {
	start := op.Event{Type: op.EventRunStart, Lane: lane, RunID: "op7"}
	next := op.RunState{Control: running, Settings: settings, Phase: op.Starting{}}
	meta := func(source store.LeafID, prompts ...string) store.Write {
		return op.Meta("op7").Set(op.Operation{
			OperationID: "op7", Lane: lane, SourceLeafID: source, StartedAt: now,
			Intent: op.Intent{Kind: op.KindRun, PromptEntryIDs: prompts},
		})
	}
	custom := op.Placed{EntryID: "n2", Content: store.PendingEntry{Type: store.TypeCustom, CustomType: "app.note", Payload: json.RawMessage(`{"a":1}`)}}
	first := idle()
	first.Leaf = ""
	waiting := idle()
	waiting.LaneState.PendingNextRun = []string{"n1", "n2", "n3"}

	tests := []struct {
		name string
		turn op.Turn
		req  op.RunRequest
		want op.Plan
	}{
		{
			"the first prompt of a session",
			first, op.RunRequest{OperationID: "op7", Prompt: []op.Placed{place("e1", "hi")}, Settings: settings},
			op.Plan{
				Writes: []store.Write{
					store.InsertEntry(store.MessageEntry("e1", "", user("hi"))),
					store.LaneLeaf(lane).Set("e1"), meta("", "e1"),
				},
				Next: next, Lane: &store.LaneState{CurrentOperationID: "op7", PendingNextRun: []string{}},
				Events: concat([]op.Event{start}, placedEvents("op7", "e1", "hi")),
			},
		},
		{
			"several messages: each under the one before, the newest is the leaf",
			idle(), op.RunRequest{OperationID: "op7", Prompt: []op.Placed{place("e1", "a"), place("e2", "b")}, Settings: settings},
			op.Plan{
				Writes: []store.Write{
					store.InsertEntry(store.MessageEntry("e1", "e0", user("a"))),
					store.InsertEntry(store.MessageEntry("e2", "e1", user("b"))),
					store.LaneLeaf(lane).Set("e2"), meta("e0", "e1", "e2"),
				},
				Next: next, Lane: &store.LaneState{CurrentOperationID: "op7", PendingNextRun: []string{}},
				Events: concat([]op.Event{start}, placedEvents("op7", "e1", "a"), placedEvents("op7", "e2", "b")),
			},
		},
		{
			"captured next-run content comes before the prompt and leaves the queue; a late item stays",
			waiting, op.RunRequest{
				OperationID: "op7", Prompt: []op.Placed{place("e1", "hi")}, NextRun: []op.Placed{place("n1", "queued"), custom}, Settings: settings,
			},
			op.Plan{
				Writes: []store.Write{
					store.InsertEntry(store.MessageEntry("n1", "e0", user("queued"))),
					store.InsertEntry(store.CustomEntry("n2", "n1", "app.note", json.RawMessage(`{"a":1}`))),
					store.InsertEntry(store.MessageEntry("e1", "n2", user("hi"))),
					store.Pending("n1").Delete(), store.Pending("n2").Delete(),
					store.LaneLeaf(lane).Set("e1"), meta("e0", "e1"),
				},
				Next: next, Lane: &store.LaneState{CurrentOperationID: "op7", PendingNextRun: []string{"n3"}},
				Events: concat([]op.Event{start}, placedEvents("op7", "n1", "queued"),
					[]op.Event{{Type: op.EventEntryAdded, Lane: lane, RunID: "op7", EntryID: "n2"}}, placedEvents("op7", "e1", "hi")),
			},
		},
		{
			"an empty request is valid when it captures something",
			waiting, op.RunRequest{OperationID: "op7", NextRun: []op.Placed{place("n1", "queued")}, Settings: settings},
			op.Plan{
				Writes: []store.Write{
					store.InsertEntry(store.MessageEntry("n1", "e0", user("queued"))),
					store.Pending("n1").Delete(), store.LaneLeaf(lane).Set("n1"), meta("e0", []string{}...),
				},
				Next: next, Lane: &store.LaneState{CurrentOperationID: "op7", PendingNextRun: []string{"n2", "n3"}},
				Events: concat([]op.Event{start}, placedEvents("op7", "n1", "queued")),
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := op.Accept(tt.turn, tt.req)
			wantPlan(t, got, err, tt.want)
		})
	}
}

func TestAcceptRefusals(t *testing.T) {
	one := op.RunRequest{OperationID: "op7", Prompt: []op.Placed{place("e1", "hi")}, Settings: settings}
	for point, s := range everyState() {
		t.Run("a lane at "+string(point)+" is busy", func(t *testing.T) {
			turn := run(op.Starting{})
			turn.State = s
			got, err := op.Accept(turn, one)
			wantInvalid(t, got, err)
		})
	}
	t.Run("nothing to place", func(t *testing.T) {
		got, err := op.Accept(idle(), op.RunRequest{OperationID: "op7", Settings: settings})
		wantInvalid(t, got, err)
	})
}

// Consuming before_run: starting → checkpoint (§3.6).
func TestBegin(t *testing.T) {
	inbox := op.Inbox{Steer: []string{"q1"}, FollowUp: []string{"q2"}, Writes: []string{"q3"}}
	tests := []struct {
		name string
		turn op.Turn
		add  []op.Placed
		want op.Plan
	}{
		{
			"without injections the newest accepted entry is the trigger",
			run(op.Starting{}), nil,
			op.Plan{Next: at(run(nil), needAssistant(), "")},
		},
		{
			"injections are placed, the newest is the trigger",
			run(op.Starting{}), []op.Placed{place("i1", "a"), place("i2", "b")},
			op.Plan{
				Writes: []store.Write{
					store.InsertEntry(store.MessageEntry("i1", "e1", user("a"))),
					store.InsertEntry(store.MessageEntry("i2", "i1", user("b"))),
					store.LaneLeaf(lane).Set("i2"),
				},
				Next:   at(run(nil), op.Checkpoint{Continuation: op.NeedAssistant(false), TriggerEntryID: "i2"}, ""),
				Events: concat(placedEvents("op1", "i1", "a"), placedEvents("op1", "i2", "b")),
			},
		},
		{
			"a newer inbox survives",
			with(run(op.Starting{}), func(s *op.RunState) { s.Inbox = inbox }), nil,
			op.Plan{Next: at(with(run(nil), func(s *op.RunState) { s.Inbox = inbox }), needAssistant(), "")},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := op.Begin(tt.turn, tt.add)
			wantPlan(t, got, err, tt.want)
		})
	}
	refuseElsewhere(t, op.PointStarting, func(turn op.Turn) (op.Plan, error) { return op.Begin(turn, nil) })
}

// refuseElsewhere wants a transition refused at every other restart point and on
// an idle lane.
func refuseElsewhere(t *testing.T, legal op.Point, transition func(op.Turn) (op.Plan, error)) {
	t.Helper()
	states := everyState()
	states[op.PointIdle] = nil
	for point, s := range states {
		if point == legal {
			continue
		}
		t.Run("refused at "+string(point), func(t *testing.T) {
			turn := run(op.Starting{})
			turn.State = s
			got, err := transition(turn)
			wantInvalid(t, got, err)
		})
	}
}
