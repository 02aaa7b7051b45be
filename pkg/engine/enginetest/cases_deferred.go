package enginetest

import (
	"encoding/json"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

func job(id string) json.RawMessage {
	return json.RawMessage(`{"provider":"acme","modelId":"one","api":"echo","id":"` + id + `","pollAfterMs":1000}`)
}

// polls makes a world whose model answers polls with one line after the other, by
// what the run has polled before, and repeats the last.
func polls(lines ...Line) func(*World) {
	return func(w *World) {
		w.Defer(func(_ message.DeferredHandle, _ effect.Request) Reply {
			settled := w.polled() - 1
			return lines[min(settled, len(lines)-1)](w)
		})
	}
}

// polled is how many deferred answers stand in the tree.
func (w *World) polled() int {
	n := 0
	entries, err := w.Session.ScanEntries(w.TB.Context(), store.EntryQuery{Type: store.TypeMessage})
	if err != nil {
		return 1
	}
	for _, e := range entries {
		if e.Message().StopReason() == message.StopDeferred {
			n++
		}
	}
	return n
}

func deferredCases() []Case {
	later := answer(Reply{Deferred: job("j1")})
	table := []Case{
		{Name: "an answer that comes later", Setup: polls(say("at ", "last"))},
		{Name: "an answer that two polls wait for", Setup: polls(later, later, say("at last"))},
		{Name: "tools of an answer that came later", Tools: []*Tool{safe(), never()}, Setup: polls(ask(Call("a", "often", `{}`), Call("b", "once", `{}`))), Differs: unknown("b")},
		{Name: "another job than was asked about", Setup: polls(answer(Reply{Deferred: job("j2")}))},
		{Name: "a job that failed", Setup: polls(answer(Fail("expired")))},
		{Name: "a job that nobody can be asked about", Setup: polls(say("never")), Script: script(answer(Reply{Deferred: json.RawMessage(`{"id":""}`)}))},
		{Name: "a follow-up while the job runs", Setup: polls(later, say("at last")), Waits: map[engine.WaitReason]func(*World) error{
			engine.WaitDeferred: func(w *World) error { w.meanwhile().followUp("and then").write(note("unseen")); return nil },
		}},
		{Name: "a poll that steers", Setup: polls(during(Say("at last"), func(u visitor) { u.steer("now") }))},
	}
	for i := range table {
		table[i].Acts = goes()
		if table[i].Script == nil {
			table[i].Script = script(later, say("done"))
		}
	}
	return table
}
