package engine_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// finder is a model that finds the jobs of lost submissions.
type finder struct {
	*enginetest.Deferring
	find  func(responseEntryID string) (message.DeferredHandle, bool)
	asked []string
}

func (f *finder) Adopt(_ context.Context, responseEntryID string, since int64) (message.DeferredHandle, bool) {
	if at, err := store.IDTime(responseEntryID); err != nil || at != since {
		return message.DeferredHandle{}, false
	}
	f.asked = append(f.asked, responseEntryID)
	return f.find(responseEntryID)
}

// A deferred submission whose process died before its settlement is looked for
// before anything else is done about it, and its job adopted when there is one
// (D34); otherwise it is an interrupted request (§4.5).
func TestAdoptsLostSubmission(t *testing.T) {
	handle := message.DeferredHandle{Raw: json.RawMessage(`{"provider":"acme","modelId":"one","api":"echo","id":"j1"}`)}
	foreign := message.DeferredHandle{Raw: json.RawMessage(`{"provider":"other","modelId":"one","api":"echo","id":"j1"}`)}
	for _, tt := range []struct {
		name     string
		deferred string
		find     func(string) (message.DeferredHandle, bool)
		requests int // in all
		asked    int
		wait     engine.WaitReason
	}{
		{"the job is there", `{"window":"24h"}`, func(string) (message.DeferredHandle, bool) { return handle, true }, 1, 1, engine.WaitDeferred},
		{"there is none", `true`, func(string) (message.DeferredHandle, bool) { return message.DeferredHandle{}, false }, 1, 1, engine.WaitRetry},
		{"a job that nobody can be asked about", `true`, func(string) (message.DeferredHandle, bool) { return foreign, true }, 1, 1, engine.WaitRetry},
		{"the request was not deferred", `false`, func(string) (message.DeferredHandle, bool) { return handle, true }, 1, 0, engine.WaitRetry},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := enginetest.InMemory(t)
			model := &finder{find: tt.find, Deferring: w.Defer(func(message.DeferredHandle, effect.Request) enginetest.Reply {
				return enginetest.Say("at last")
			})}
			w.Models.Add(model)
			w.Model.Reply = enginetest.Sequence(enginetest.Reply{Deferred: handle.Raw})
			w.Options.Retry.BaseDelayMs = 1000
			w.Options.StreamOptions.Deferred = json.RawMessage(tt.deferred)
			w.OpenMortal(enginetest.Death{Effect: 1, After: true})
			id := w.Accept("go")
			w.Die(id)
			_ = w.Harness.Close()
			w.OpenMortal(enginetest.Death{})
			d := w.Drive(engine.DriveOptions{OperationID: id})
			if d.Kind != engine.Waiting || d.Reason != tt.wait || len(model.asked) != tt.asked || len(w.Model.Requests()) != tt.requests {
				t.Fatalf("outcome %+v after %d requests, asked for %q", d, len(w.Model.Requests()), model.asked)
			}
			if tt.wait != engine.WaitDeferred {
				return
			}
			enginetest.Equal(t, "what was asked for", model.asked[0], w.Model.Requests()[0].ResponseEntryID)
			enginetest.Equal(t, "handle", string(d.Deferred), string(handle.Raw))
			d = w.Drive(engine.DriveOptions{OperationID: id, PollDeferred: true})
			if d.Kind != engine.Settled || d.Outcome == nil {
				t.Fatalf("after the poll %+v", d)
			}
			w.Verify()
		})
	}
}

// An abort that comes before the question is reconciled without it.
func TestAbortBeforeAdoption(t *testing.T) {
	w := enginetest.InMemory(t)
	model := &finder{Deferring: w.Defer(nil), find: func(string) (message.DeferredHandle, bool) { return message.DeferredHandle{}, false }}
	w.Models.Add(model)
	w.Model.Reply = enginetest.Sequence(enginetest.Reply{Deferred: json.RawMessage(`{}`)})
	w.Options.StreamOptions.Deferred = json.RawMessage("true")
	w.OpenMortal(enginetest.Death{Effect: 1, After: true})
	id := w.Accept("go")
	w.Die(id)
	_ = w.Harness.Close()
	w.OpenMortal(enginetest.Death{})
	if _, err := w.Lane.RequestAbort(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	d := w.Drive(engine.DriveOptions{OperationID: id})
	if d.Kind != engine.Settled || len(model.asked) > 0 {
		t.Errorf("outcome %+v, asked for %q", d, model.asked)
	}
}
