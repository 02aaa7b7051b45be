package enginetest

import (
	"context"
	"encoding/json"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// visitor is a user in another terminal, and what it sends while the model answers.
// A repeated request is answered as the first time, and a dead process answers
// nothing.
type visitor struct{ w *World }

func (w *World) meanwhile() visitor { return visitor{w} }

func (u visitor) steer(texts ...string) visitor {
	for _, text := range texts {
		_, _ = u.w.Lane.Steer(context.Background(), engine.Queued{EntryID: u.w.ID("steer " + text), Text: text})
	}
	return u
}

func (u visitor) followUp(texts ...string) visitor {
	for _, text := range texts {
		_, _ = u.w.Lane.FollowUp(context.Background(), engine.Queued{EntryID: u.w.ID("follow-up " + text), Text: text})
	}
	return u
}

func (u visitor) nextRun(texts ...string) visitor {
	for _, text := range texts {
		_, _ = u.w.Lane.NextRun(context.Background(), engine.Queued{EntryID: u.w.ID("next " + text), Text: text})
	}
	return u
}

// abort cancels what is open.
func (u visitor) abort() visitor {
	if info, err := u.w.Lane.InspectExecution(context.Background()); err == nil && info.Current != nil {
		_, _ = u.w.Lane.RequestAbort(context.Background(), info.Current.ID)
	}
	return u
}

// note is content that no request carries, unless a projector says so.
func note(kind string) store.PendingEntry {
	return store.PendingEntry{Type: store.TypeCustom, CustomType: kind, Payload: json.RawMessage(`{"n":1}`)}
}

func (u visitor) write(content store.PendingEntry) visitor {
	_, _, _ = u.w.Lane.Append(context.Background(), u.w.ID("write "+content.CustomType), content)
	return u
}

// withdraw takes a queued message back, unless that was done before.
func (u visitor) withdraw(key string) visitor {
	_, _ = u.w.Lane.CancelQueued(context.Background(), u.w.ID(key))
	return u
}

// during is a line in whose midst something happens.
func during(r Reply, do func(visitor)) Line {
	return func(w *World) Reply {
		r.Midway = func() { do(w.meanwhile()) }
		return r
	}
}

func oneAtATime(w *World) { w.Options.SteeringMode, w.Options.FollowUpMode = op.QueueOne, op.QueueOne }

func projecting(w *World) {
	w.Options.Projectors = map[string]engine.Projector{"seen": func(e store.Entry) ([]message.Message, error) {
		return []message.Message{message.NewUser("seen", nil, e.Timestamp)}, nil
	}}
}

func queueCases() []Case {
	table := []Case{
		{Name: "steering while the model answers", Script: script(during(Say("a", "b"), func(u visitor) { u.steer("also") }))},
		{Name: "two steers at once", Script: script(during(Say("a"), func(u visitor) { u.steer("x", "y") }))},
		{Name: "two steers one at a time", Setup: oneAtATime, Script: script(during(Say("a"), func(u visitor) { u.steer("x", "y") }))},
		{Name: "a follow-up", Script: script(during(Say("a"), func(u visitor) { u.followUp("then") }))},
		{Name: "two follow-ups one at a time", Setup: oneAtATime, Script: script(during(Say("a"), func(u visitor) { u.followUp("x", "y") }))},
		{Name: "a steer and a follow-up", Script: script(during(Say("a"), func(u visitor) { u.followUp("later").steer("now") }))},
		{Name: "a steer taken back", Script: script(during(Say("a"), func(u visitor) { u.steer("no", "yes").withdraw("steer no") }))},
		{
			Name: "a steer while tools run", Tools: []*Tool{steering(safe())}, Setup: sequential, Script: script(calls("often", "a", "b"), say("done")),
		},
		{
			Name: "a message for the next run", Acts: []Act{Prompt("go"), Prompt("two")},
			Script: script(during(Say("a"), func(u visitor) { u.nextRun("first this") })),
		},
		{Name: "a message that waits for a run", Script: script(during(Say("a"), func(u visitor) { u.nextRun("x", "y").withdraw("next x") }))},
		{Name: "a run of what waited", Acts: []Act{waits("before"), Prompt("")}, Script: map[string][]Line{"before": {say("ok")}}},
		{Name: "a deferred write", Script: script(during(Say("a"), func(u visitor) { u.write(note("unseen")) }))},
		{Name: "a deferred write that projects", Setup: projecting, Script: script(during(Say("a"), func(u visitor) { u.write(note("seen")) }))},
		{
			Name: "everything at once", Setup: projecting, Script: script(during(Say("a"), func(u visitor) {
				u.write(note("seen")).write(note("unseen")).followUp("later").steer("now").nextRun("next")
			})),
			// One pass drains writes and steers; a process that dies between the two owes
			// a turn first (D30).
			Differs: Differs{Else: []string{branch(
				`user "go"`, `answer stop "a`, `custom seen {"n":1}`, `custom unseen {"n":1}`, `answer stop "re: seen`,
				`user "now"`, `answer stop "re: now`, `user "later"`, `answer stop "re: later`,
			)}},
		},
		{Name: "a failure that a steer revives", Script: script(during(Refuse("no", 400, 0), func(u visitor) { u.steer("try this") }))},
		{Name: "a failure that a follow-up revives", Script: script(during(Refuse("no", 400, 0), func(u visitor) { u.followUp("try this") }))},
		{Name: "a failure with writes that no request carries", Script: script(during(Refuse("no", 400, 0), func(u visitor) { u.write(note("unseen")) }))},
		{Name: "a failure with a write that projects", Setup: projecting, Script: script(during(Refuse("no", 400, 0), func(u visitor) { u.write(note("seen")) }))},
		{
			Name: "attempts that run out while a steer waits", Script: script(during(Fail("500"), func(u visitor) { u.steer("try this") })),
			Setup: func(w *World) { w.Options.Retry.MaxRetries = 2 },
		},
	}
	for i := range table {
		if table[i].Acts == nil {
			table[i].Acts = goes()
		}
	}
	return table
}

// steering sends a message while the tool runs.
func steering(t *Tool) *Tool {
	t.Run = func(_ context.Context, w *World, call effect.Invocation) (message.ToolResult, error) {
		w.meanwhile().steer("during " + call.CallID)
		return Result("ran"), nil
	}
	return t
}

// waits queues a message for the next run of an idle lane, once.
func waits(text string) Act {
	return Do("queue "+text, func(ctx context.Context, w *World, _ string) error {
		_, err := w.Lane.NextRun(ctx, engine.Queued{EntryID: w.ID("next " + text), Text: text})
		return err
	})
}
