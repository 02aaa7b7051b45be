package engine_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

var uuidPattern = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

// report is the inspection of main as JSON, its ids numbered as they appear.
func report(t *testing.T, w *enginetest.World, o engine.InspectOptions) string {
	t.Helper()
	reports, err := engine.Inspect(t.Context(), w.View(), o)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := reports[0].MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(raw) {
		t.Fatalf("not JSON: %s", raw)
	}
	return numbered(string(raw))
}

func numbered(text string) string {
	seen := map[string]string{}
	return uuidPattern.ReplaceAllStringFunc(text, func(id string) string {
		if seen[id] == "" {
			seen[id] = "#" + string(rune('a'+len(seen)))
		}
		return seen[id]
	})
}

const (
	reportConfig = `"config":{"model":{"provider":"acme","modelId":"one"},"thinkingLevel":"off","activeToolNames":[]}`
	reportQueues = `"queues":{"steer":[],"followUp":[],"nextRun":[]},"pendingWrites":[]`
	reportPrompt = `"prompt":[{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":1700000000000}]`
)

// What a reader in another process sees of a lane, at every kind of standstill
// (§5.1, §5.4, D23, D39).
func TestInspect(t *testing.T) {
	tests := []struct {
		name  string
		run   func(*enginetest.World)
		o     engine.InspectOptions
		parts []string // in order
	}{
		{"a fresh lane", func(w *enginetest.World) { w.Open() }, engine.InspectOptions{}, []string{
			`{"lane":"main","leafId":null,"current":null,` + reportConfig + `,` + reportQueues + `}`,
		}},
		{"accepted", func(w *enginetest.World) { w.Open(); w.Accept("hi") }, engine.InspectOptions{}, []string{
			`{"lane":"main","leafId":"#a","current":{"id":"#b","kind":"run","status":"suspended","startedAt":1700000000000,"point":"run.starting"},` + reportConfig,
		}},
		{"accepted, and a live owner", func(w *enginetest.World) { w.Open(); w.Accept("hi") }, engine.InspectOptions{OwnerLive: true}, []string{
			`"status":"running","startedAt":1700000000000,"point":"run.starting"},`,
		}},
		{"ended", func(w *enginetest.World) { w.Open(); w.Prompt("hi") }, engine.InspectOptions{}, []string{
			`"current":null,"lastResult":{"operationId":"#b","kind":"run","outcome":"completed","leafId":"#a","finalAssistantEntryId":"#a","runCompletion":"assistant"},`,
		}},
		{"dead in the middle of an answer", func(w *enginetest.World) { w.OpenUntil(7); w.Die(w.Accept("hi")) }, engine.InspectOptions{Snapshot: true}, []string{
			`"status":"suspended","startedAt":1700000000000,"point":"run.assistant.effect_pending",`,
			`"suspended":{"lane":"main","operationId":"#b","kind":"run","startedAt":1700000000000,` + reportPrompt + `,"reason":"crash"}}`,
			`"snapshot":{"lane":"main","transcript":[{"id":"#a","parentId":null,"seq":`,
			`"streamingMessage":{"role":"assistant","content":[{"type":"text","text":"hello "}],"api":"echo","provider":"acme","model":"one",`,
			`"stopReason":"pending","timestamp":1700000000000},"runningTools":[]},"queues":{"steer":[],"followUp":[],"nextRun":[]},"pendingWrites":[],"faulted":false}}`,
		}},
		{"dead before the first frame", func(w *enginetest.World) { w.OpenUntil(4); w.Die(w.Accept("hi")) }, engine.InspectOptions{Snapshot: true}, []string{
			`"reason":"crash"},"runningTools":[]}`,
		}},
		{"waiting for a retry", func(w *enginetest.World) {
			w.Options.Retry.BaseDelayMs = 100
			w.Model.Reply = enginetest.Sequence(enginetest.Fail("overloaded"))
			w.Open()
			w.Prompt("hi")
		}, engine.InspectOptions{Snapshot: true}, []string{
			`"status":"suspended","startedAt":1700000000000,"point":"run.assistant.retry_wait"},`,
			`"runningTools":[],"retry":{"attempt":2,"maxAttempts":3,"nextAttemptAt":1700000000100}}`,
		}},
		{"cancelled", func(w *enginetest.World) {
			w.Open()
			id := w.Accept("hi")
			change(w, id, func(r *op.RunState) { r.Control = op.Control{Status: op.CancelRequested} })
		}, engine.InspectOptions{OwnerLive: true}, []string{`"status":"aborting","startedAt":1700000000000,"point":"run.starting"},`}},
		{"full queues", func(w *enginetest.World) {
			w.Open()
			id := w.Accept("hi")
			said := store.PendingEntry{Type: store.TypeMessage, Payload: []byte(`{"role":"user","content":"q","n":1.0}`)}
			change(w, id, func(r *op.RunState) {
				r.Inbox = op.Inbox{Steer: []string{"q1"}, FollowUp: []string{"q2"}, Writes: []string{"q3", "q4"}}
			}, store.Pending("q1").Set(said), store.Pending("q2").Set(said), store.Pending("q3").Set(said),
				store.Pending("q4").Set(store.PendingEntry{Type: store.TypeCustom, CustomType: "app.n", Payload: []byte(`[1.0]`)}))
		}, engine.InspectOptions{Snapshot: true}, []string{
			`"queues":{"steer":[{"entryId":"q1","message":{"role":"user","content":"q","n":1.0}}],"followUp":[{"entryId":"q2","message":{"role":"user","content":"q","n":1.0}}],"nextRun":[]},` +
				`"pendingWrites":[{"entryId":"q3","type":"message","message":{"role":"user","content":"q","n":1.0}},{"entryId":"q4","type":"custom","customType":"app.n","data":[1.0]}]`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := enginetest.InMemory(t)
			tt.run(w)
			_ = w.Harness.Close()
			before := w.Records()
			rest := report(t, w, tt.o)
			for _, part := range tt.parts {
				_, after, ok := strings.Cut(rest, part)
				if !ok {
					t.Fatalf("missing %s\nin %s", part, rest)
				}
				rest = after
			}
			enginetest.Equal(t, "what the inspection wrote", w.Records(), before)
		})
	}
}

// change rewrites the state of an operation, with further writes.
func change(w *enginetest.World, id string, edit func(*op.RunState), more ...store.Write) {
	err := w.Session.Mutate(w.TB.Context(), "main", func(m *store.Mutator) error {
		s, _, err := store.Get(w.TB.Context(), m, op.StateOf(id))
		if err != nil {
			return err
		}
		run := s.Value.(op.RunState)
		edit(&run)
		_, err = m.Commit(append(more, op.StateOf(id).Set(run)))
		return err
	})
	if err != nil {
		w.TB.Fatal(err)
	}
}

func TestInspectLane(t *testing.T) {
	w := enginetest.InMemory(t)
	w.Open()
	cfg, err := w.Lane.Configuration(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Session.CreateLane(t.Context(), "side", "", cfg); err != nil {
		t.Fatal(err)
	}
	reports, err := engine.Inspect(t.Context(), w.View(), engine.InspectOptions{})
	if err != nil || len(reports) != 2 || reports[0].Lane != "main" || reports[1].Lane != "side" {
		t.Errorf("got %+v, %v", reports, err)
	}
	one, err := engine.Inspect(t.Context(), w.View(), engine.InspectOptions{Lane: "side"})
	if err != nil || len(one) != 1 || one[0].Lane != "side" {
		t.Errorf("got %+v, %v", one, err)
	}
	_, err = engine.Inspect(t.Context(), w.View(), engine.InspectOptions{Lane: "x"})
	var missing *engine.LaneNotFound
	if !errors.As(err, &missing) || len(missing.Known) != 2 {
		t.Errorf("got %v", err)
	}
}

// In the process that drives, the lane tells whether a pass runs and why the last
// one waits.
func TestInspectExecution(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		w.Options.Manual = true
		w.Open()
		id := w.Accept("hi")
		status := func() engine.CurrentOperation {
			t.Helper()
			info, err := w.Lane.InspectExecution(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return *info.Current
		}
		want := engine.CurrentOperation{ID: id, Kind: op.KindRun, Status: engine.StatusSuspended, StartedAt: enginetest.Start, Point: op.PointStarting}
		enginetest.Equal(t, "accepted", status(), want)
		w.Models.Remove(enginetest.Ref)
		done := drive(w, engine.DriveOptions{OperationID: id})
		want.Status = engine.StatusRunning
		enginetest.Equal(t, "driven", status(), want)
		w.Lane.RunToCompletion(t.Context())
		if end := <-done; end.err != nil {
			t.Fatal(end.err)
		}
		want.Status, want.Point = engine.StatusSuspended, op.PointReady
		want.Suspended = &engine.SuspendedOperation{
			Lane: "main", OperationID: id, Kind: op.KindRun, StartedAt: enginetest.Start, Reason: "missing_identities",
			Prompt: []message.Message{message.NewUser("hi", nil, enginetest.Start)}, Missing: &op.Missing{Tools: []string{}, Model: "acme/one"},
		}
		enginetest.Equal(t, "waiting", status(), want)
		w.Reopen() // the reason was this process's
		want.Suspended = nil
		enginetest.Equal(t, "reopened", status(), want)
	})
}

// The JSON of every end of a drive (§5.1).
func TestDriveOutcomeJSON(t *testing.T) {
	notBefore := int64(7)
	m := message.Message(`{"role":"assistant","n":1.0}`)
	for _, tt := range []struct {
		outcome engine.DriveOutcome
		want    string
	}{
		{engine.DriveOutcome{Kind: engine.Yielded, OperationID: "o"}, `{"kind":"yielded","operationId":"o"}`},
		{
			engine.DriveOutcome{Kind: engine.Waiting, OperationID: "o", Reason: engine.WaitRetry, NotBefore: &notBefore},
			`{"kind":"waiting","operationId":"o","reason":"retry","notBefore":7}`,
		},
		{
			engine.DriveOutcome{Kind: engine.Waiting, OperationID: "o", Reason: engine.WaitMissing, Missing: &op.Missing{Tools: []string{"a"}, Model: "p/m"}},
			`{"kind":"waiting","operationId":"o","reason":"missing_identities","missing":{"tools":["a"],"model":"p/m"}}`,
		},
		{
			engine.DriveOutcome{Kind: engine.Settled, OperationID: "o", Outcome: &engine.Outcome{
				Operation: op.KindRun, RunID: "o", Kind: op.Completed, LeafID: "r", FinalEntryID: "r", FinalMessage: m,
			}},
			`{"kind":"settled","operationId":"o","outcome":{"operation":"run","runId":"o","kind":"completed","leafId":"r","finalEntryId":"r","finalMessage":{"role":"assistant","n":1.0}}}`,
		},
		{
			engine.DriveOutcome{Kind: engine.Settled, OperationID: "o", Outcome: &engine.Outcome{
				Operation: op.KindRun, RunID: "o", Kind: op.Failed, LeafID: "r", Error: &op.Error{Code: "c", Message: "<\xed\xa0\xbd>", Details: []byte(`{"n":1.0}`)},
			}},
			`{"kind":"settled","operationId":"o","outcome":{"operation":"run","runId":"o","kind":"failed","leafId":"r","error":{"code":"c","message":"<\ud83d>","details":{"n":1.0}}}}`,
		},
	} {
		got, err := tt.outcome.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		enginetest.Equal(t, "JSON", string(got), tt.want)
	}
}
