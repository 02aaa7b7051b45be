package engine_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// finder is a model that finds the jobs of lost submissions: it answers with its
// adoptions in turn, then that there is none.
type finder struct {
	*enginetest.Deferring
	t      *testing.T
	answer []effect.Adoption
	asked  [][]string // the keys of each question
}

func (f *finder) Adopt(_ context.Context, _ int64, lost []effect.Submission) (next effect.Adoption) {
	var keys []string
	for _, s := range lost {
		if at, err := store.IDTime(s.ResponseEntryID); err != nil || at != s.ReservedAt {
			f.t.Errorf("submission %s was reserved at %d, it says %d: %v", s.ResponseEntryID, at, s.ReservedAt, err)
		}
		keys = append(keys, s.ResponseEntryID)
	}
	f.asked = append(f.asked, keys)
	if len(f.answer) > 0 {
		next, f.answer = f.answer[0], f.answer[1:]
	}
	return next
}

// finds makes the world's model a finder, which answers polls at last.
func finds(t *testing.T, w *enginetest.World, deferred string, answer ...effect.Adoption) *finder {
	f := &finder{t: t, answer: answer, Deferring: w.Defer(func(message.DeferredHandle, effect.Request) enginetest.Reply {
		return enginetest.Say("at last")
	})}
	w.Models.Add(f)
	w.Options.Retry = engine.RetryPolicy{MaxRetries: 3, BaseDelayMs: 1000}
	w.Options.StreamOptions.Deferred = json.RawMessage(deferred)
	return f
}

// keys are the keys of the submissions that were made, the newest first.
func (f *finder) keys() (keys []string) {
	for _, r := range f.Requests() {
		keys = append([]string{r.ResponseEntryID}, keys...)
	}
	return keys
}

func adoption(provider string) effect.Adoption {
	return effect.Adoption{Handle: message.DeferredHandle{Raw: json.RawMessage(`{"provider":"` + provider + `","modelId":"one","api":"echo","id":"j1"}`)}}
}

var unsure = effect.Adoption{Unsure: true}

// wantUnsure wants a pass that waits for jobs that do not tell yet whose they are; all
// that it has of its own job is the key.
func wantUnsure(t *testing.T, d engine.DriveOutcome, now int64, key string) {
	t.Helper()
	if d.Kind != engine.Waiting || d.Reason != engine.WaitDeferred || !d.Unsure || d.NotBefore == nil || *d.NotBefore != now+60_000 {
		t.Fatalf("outcome %+v", d)
	}
	enginetest.Equal(t, "handle", string(d.Deferred), `{"provider":"acme","modelId":"one","api":"echo","id":"`+key+`"}`)
}

// A deferred submission whose process died before its settlement is looked for
// before anything else is done about it, and its job adopted when there is one
// (D34); otherwise it is an interrupted request (§4.5).
func TestAdoptsLostSubmission(t *testing.T) {
	for _, tt := range []struct {
		name     string
		deferred string
		found    effect.Adoption
		asked    int
		wait     engine.WaitReason
	}{
		{"the job is there", `{"window":"24h"}`, adoption("acme"), 1, engine.WaitDeferred},
		{"there is none", `true`, effect.Adoption{}, 1, engine.WaitRetry},
		{"a job that nobody can be asked about", `true`, adoption("other"), 1, engine.WaitRetry},
		{"the request was not deferred", `false`, adoption("acme"), 0, engine.WaitRetry},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := enginetest.InMemory(t)
			model := finds(t, w, tt.deferred, tt.found)
			w.Model.Reply = enginetest.Sequence(enginetest.Reply{Deferred: adoption("acme").Handle.Raw})
			id := dieInSubmission(w)
			d := w.Drive(engine.DriveOptions{OperationID: id})
			if d.Kind != engine.Waiting || d.Reason != tt.wait || len(model.asked) != tt.asked || len(w.Model.Requests()) != 1 {
				t.Fatalf("outcome %+v after %d requests, asked for %q", d, len(w.Model.Requests()), model.asked)
			}
			if tt.wait != engine.WaitDeferred {
				return
			}
			enginetest.Equal(t, "what was asked for", model.asked[0], model.keys())
			enginetest.Equal(t, "handle", string(d.Deferred), string(tt.found.Handle.Raw))
			d = w.Drive(engine.DriveOptions{OperationID: id, PollDeferred: true})
			if d.Kind != engine.Settled || d.Outcome == nil {
				t.Fatalf("after the poll %+v", d)
			}
			w.Verify()
		})
	}
}

// What is explained is what a drive does first: it looks for the job where its provider
// can be asked for it, and nowhere else.
func TestExplainsTheLookFirst(t *testing.T) {
	for _, tt := range []struct {
		name, deferred string
		looks          bool
		want           string
	}{
		{"a provider that can be asked", `true`, true, "deferred.fetch"},
		{"one that cannot", `true`, false, "recovery.settlement"},
		{"a request that was not deferred", `false`, true, "recovery.settlement"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := enginetest.InMemory(t)
			model := finds(t, w, tt.deferred)
			if !tt.looks {
				w.Models.Add(model.Deferring)
			}
			w.Model.Reply = enginetest.Sequence(enginetest.Reply{Deferred: adoption("acme").Handle.Raw})
			id := dieInSubmission(w)
			first := func() string {
				t.Helper()
				e, err := engine.Explain(t.Context(), w.Session, w.Models, store.MainLane, w.Clock.Now())
				if err != nil || len(e.Next) == 0 {
					t.Fatalf("%+v, %v", e, err)
				}
				return e.Next[0].Kind
			}
			if got := first(); got != tt.want {
				t.Errorf("first %s, want %s", got, tt.want)
			}
			if d := w.Drive(engine.DriveOptions{OperationID: id}); d.Reason != engine.WaitRetry {
				t.Fatalf("%+v", d)
			}
			// The wait for the retry comes before the look; once it is over the look is first.
			if got := first(); got != "retry.sleep" {
				t.Errorf("in the wait: first %s", got)
			}
			w.Clock.Advance(3_600_000)
			want := map[string]string{"deferred.fetch": "deferred.fetch", "recovery.settlement": "assistant.intent"}[tt.want]
			if got := first(); got != want {
				t.Errorf("after the wait: first %s, want %s", got, want)
			}
		})
	}
}

// dieInSubmission drives a run until its process dies after its first request was
// heard, and opens the world again.
func dieInSubmission(w *enginetest.World) (id string) {
	w.OpenMortal(enginetest.Death{Effect: 1, After: true})
	id = w.Accept("go")
	w.Die(id)
	_ = w.Harness.Close()
	w.OpenMortal(enginetest.Death{})
	return id
}

// While a job may be the lost one and does not tell yet, nothing is adopted, submitted
// or written: whichever it turns out to be, there is one submission.
func TestWaitsUntilJobsTell(t *testing.T) {
	for _, tt := range []struct {
		name  string
		found effect.Adoption
		more  int // submissions
	}{
		{"it was the lost one", adoption("acme"), 0},
		{"it was another's", effect.Adoption{}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := enginetest.InMemory(t)
			// That there is none is asked again before the retry, and is so.
			model := finds(t, w, `true`, unsure, unsure, tt.found)
			w.Model.Reply = enginetest.Sequence(enginetest.Reply{Deferred: adoption("acme").Handle.Raw})
			id := dieInSubmission(w)
			before := w.Records()
			for range 2 {
				d := w.Drive(engine.DriveOptions{OperationID: id, WaitForRetry: true, PollDeferred: true})
				wantUnsure(t, d, w.Clock.Now(), model.keys()[0])
				w.Clock.Advance(60_000)
				w.Reopen()
			}
			enginetest.Equal(t, "what the waits wrote", w.Records(), before)
			d := w.Drive(engine.DriveOptions{OperationID: id})
			if d.Reason == engine.WaitRetry {
				w.Clock.Advance(1000)
				d = w.Drive(engine.DriveOptions{OperationID: id})
			}
			if d.Reason != engine.WaitDeferred || d.Unsure || len(model.Requests()) != 1+tt.more {
				t.Fatalf("outcome %+v after %d requests", d, len(model.Requests()))
			}
			d = w.Drive(engine.DriveOptions{OperationID: id, PollDeferred: true})
			if d.Kind != engine.Settled || d.Outcome.FinalMessage.Text() != "at last" {
				t.Fatalf("after the poll %+v", d)
			}
			w.Settled()
		})
	}
}

// silence is the end of a submission that may have arrived.
func silence(e message.ErrorInfo) enginetest.Reply {
	e.Known = true
	return enginetest.Reply{Error: "overloaded", Bare: true, Note: e}
}

// An attempt is not made again before the job of a submission that may have arrived
// was looked for (D34).
func TestRetryLooksForItsSubmission(t *testing.T) {
	for _, tt := range []struct {
		name  string
		note  message.ErrorInfo
		looks bool
	}{
		{"nothing came back", message.ErrorInfo{Class: message.ClassTimeout}, true},
		{"the connection broke", message.ErrorInfo{Class: message.ClassNetwork}, true},
		{"what came back is no job", message.ErrorInfo{Class: message.ClassServer}, true},
		{"a proxy got no answer", message.ErrorInfo{Status: 504, Class: message.ClassTimeout}, true},
		{"a proxy got a bad answer", message.ErrorInfo{Status: 502, Class: message.ClassServer}, true},
		{"it was never sent", message.ErrorInfo{Class: message.ClassNetwork, Unsent: true}, false},
		{"it was refused", message.ErrorInfo{Status: 529, Class: message.ClassOverloaded}, false},
		{"it came too early", message.ErrorInfo{Status: 429, Class: message.ClassRateLimit}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := enginetest.InMemory(t)
			model := finds(t, w, `true`, adoption("acme"))
			w.Model.Reply = enginetest.Sequence(silence(tt.note), later("j2"))
			w.Open()
			d := w.Prompt("go")
			for d.Reason == engine.WaitRetry {
				w.Clock.Advance(1000)
				d = w.Continue()
			}
			if d.Reason != engine.WaitDeferred {
				t.Fatalf("outcome %+v", d)
			}
			if !tt.looks {
				if len(model.asked) != 0 || len(model.Requests()) != 2 {
					t.Errorf("asked for %q, %d requests", model.asked, len(model.Requests()))
				}
				return
			}
			enginetest.Equal(t, "what was asked for", model.asked, [][]string{model.keys()})
			enginetest.Equal(t, "handle", string(d.Deferred), string(adoption("acme").Handle.Raw))
			wantTalk(t, w, "user: go", "assistant error", "assistant deferred")
			d = w.Drive(engine.DriveOptions{OperationID: d.OperationID, PollDeferred: true})
			if d.Kind != engine.Settled || d.Outcome.Kind != op.Completed || len(model.Requests()) != 1 {
				t.Fatalf("after the poll %+v, %d requests", d, len(model.Requests()))
			}
			w.Settled()
		})
	}
}

// Every submission of the step that may have arrived is looked for, also by the
// recovery of a later one, which may die wherever it likes.
func TestLooksForAllAttempts(t *testing.T) {
	w := enginetest.InMemory(t)
	model := finds(t, w, `true`, effect.Adoption{}, unsure, adoption("acme"), adoption("acme"))
	lost := silence(message.ErrorInfo{Class: message.ClassTimeout})
	w.Model.Reply = enginetest.Sequence(lost, silence(message.ErrorInfo{Status: 503}), lost)
	w.Open()
	d := w.Prompt("go")
	for _, attempt := range []int{2, 3, 4} {
		if d.Reason != engine.WaitRetry || len(model.Requests()) != attempt-1 {
			t.Fatalf("before attempt %d: %+v", attempt, d)
		}
		w.Clock.Advance(10_000)
		if attempt == 3 {
			model.answer = append([]effect.Adoption{{}}, model.answer...)
		}
		d = w.Drive(engine.DriveOptions{OperationID: d.OperationID})
	}
	keys := model.keys() // of attempts 3, 2 and 1
	wantUnsure(t, d, w.Clock.Now(), keys[0])
	enginetest.Equal(t, "what was asked for", model.asked, [][]string{{keys[2]}, {keys[2]}, {keys[0], keys[2]}})

	// It finds the job, and dies between intent and settlement.
	_ = w.Harness.Close()
	w.OpenMortal(enginetest.Death{Commit: 1})
	w.Die(d.OperationID)
	_ = w.Harness.Close()
	w.OpenMortal(enginetest.Death{})
	enginetest.Equal(t, "where it died", op.PointOf(state(t, w, d.OperationID)), op.PointEffectPending)
	d = w.Drive(engine.DriveOptions{OperationID: d.OperationID})
	if d.Reason != engine.WaitDeferred || d.Unsure || len(model.Requests()) != 3 {
		t.Fatalf("outcome %+v after %d requests", d, len(model.Requests()))
	}
	last := model.asked[len(model.asked)-1]
	enginetest.Equal(t, "what recovery asked for besides its own", last[1:], []string{keys[0], keys[2]})
	w.Verify()
}

// A run does not fail for a submission that may have arrived before its job was looked
// for; while jobs do not tell, the submission stays open as a lost one.
func TestLooksBeforeItGivesUp(t *testing.T) {
	for _, tt := range []struct {
		name  string
		found []effect.Adoption
		want  string // the last line of the conversation
	}{
		{"found at once", []effect.Adoption{adoption("acme")}, "assistant stop: at last"},
		{"found later", []effect.Adoption{unsure, unsure, adoption("acme")}, "assistant stop: at last"},
		{"there is none", nil, "assistant error"},
		{"there turns out to be none", []effect.Adoption{unsure}, "assistant error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := enginetest.InMemory(t)
			model := finds(t, w, `true`, tt.found...)
			w.Options.Retry.MaxRetries = 0
			w.Model.Reply = enginetest.Sequence(silence(message.ErrorInfo{Class: message.ClassTimeout}))
			w.Open()
			d := w.Prompt("go")
			for i := range tt.found {
				if tt.found[i].Unsure {
					wantUnsure(t, d, w.Clock.Now(), model.keys()[0])
					d = w.Drive(engine.DriveOptions{OperationID: d.OperationID})
				}
			}
			if d.Kind != engine.Settled {
				d = w.Drive(engine.DriveOptions{OperationID: d.OperationID, PollDeferred: true})
			}
			if d.Kind != engine.Settled || len(model.Requests()) != 1 {
				t.Fatalf("outcome %+v after %d requests", d, len(model.Requests()))
			}
			said := talk(t, w)
			enginetest.Equal(t, "what came last", said[len(said)-1], tt.want)
			w.Settled()
		})
	}
}

// An abort that comes before the question is reconciled without it.
func TestAbortBeforeAdoption(t *testing.T) {
	w := enginetest.InMemory(t)
	model := finds(t, w, `true`)
	w.Model.Reply = enginetest.Sequence(enginetest.Reply{Deferred: json.RawMessage(`{}`)})
	id := dieInSubmission(w)
	if _, err := w.Lane.RequestAbort(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	d := w.Drive(engine.DriveOptions{OperationID: id})
	if d.Kind != engine.Settled || len(model.asked) > 0 {
		t.Errorf("outcome %+v, asked for %q", d, model.asked)
	}
}
