package engine_test

import (
	"errors"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// The refusals of §5.1: their stable tags, and sentences that name what is wrong.
func TestErrors(t *testing.T) {
	cause := errors.New("model acme/on is not registered; nearest: acme/one")
	for _, tt := range []struct {
		err       error
		tag, text string
	}{
		{&engine.LaneBusy{Lane: "main", OperationID: "o", Kind: op.KindRun}, "LaneBusy", "lane main is busy with run o"},
		{&engine.OperationMismatch{Lane: "main", Expected: "a"}, "OperationMismatch", "operation a is not open on lane main, which is idle"},
		{&engine.OperationMismatch{Lane: "main", Expected: "a", Current: "b"}, "OperationMismatch", "operation a is not open on lane main, which runs b"},
		{&engine.MissingIdentities{Missing: op.Missing{Model: "acme/on"}, Err: cause}, "MissingIdentities", cause.Error()},
		{&engine.MissingIdentities{Missing: op.Missing{Model: "acme/on", Tools: []string{"a", "b"}}}, "MissingIdentities", "model acme/on is not registered; tools not registered: a, b"},
		{
			&engine.MissingIdentities{Missing: op.Missing{Tools: []string{"raed", "b"}}, Nearest: map[string][]string{"raed": {"read", "edit"}}},
			"MissingIdentities", "tools not registered: raed (nearest: read, edit), b",
		},
		{&engine.InvalidMessage{Reason: "it is empty"}, "InvalidMessage", "invalid message: it is empty"},
		{&engine.NothingToResume{Lane: "main"}, "NothingToResume", "lane main has no open operation"},
		{&engine.LaneNotFound{Lane: "x", Known: []string{"a", "main"}}, "LaneNotFound", `lane "x" does not exist; lanes: a, main`},
		{&engine.Defect{Lane: "main", Err: errors.New("hole")}, "", "lane main: invariant defect: hole"},
	} {
		tag := ""
		if tagged, ok := tt.err.(interface{ Tag() string }); ok {
			tag = tagged.Tag()
		}
		if tag != tt.tag || tt.err.Error() != tt.text {
			t.Errorf("%T: %s %q, want %s %q", tt.err, tag, tt.err, tt.tag, tt.text)
		}
	}
	if !errors.Is(&engine.MissingIdentities{Err: cause}, cause) || !errors.Is(&engine.Defect{Err: cause}, cause) {
		t.Error("a cause is lost")
	}
}

// Every lane of the session is there, by name, and each runs by itself.
func TestLanes(t *testing.T) {
	w := enginetest.InMemory(t)
	w.Watch, *w.Pace = true, enginetest.Free
	w.Model.Reply = enginetest.Echo
	w.Open()
	cfg, err := w.Lane.Configuration(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Session.CreateLane(t.Context(), "a side", "", cfg); err != nil {
		t.Fatal(err)
	}
	w.Reopen()
	if w.Harness.Session() != w.Session {
		t.Error("another session")
	}
	var names []string
	runs := map[string]<-chan ended[engine.DriveOutcome]{}
	for _, l := range w.Harness.Lanes() {
		names = append(names, l.Name())
		out := make(chan ended[engine.DriveOutcome], 1)
		runs[l.Name()] = out
		go func() {
			d, err := l.Prompt(t.Context(), engine.Request{Text: "from " + l.Name()})
			out <- ended[engine.DriveOutcome]{d, err}
		}()
	}
	enginetest.Equal(t, "lanes", names, []string{"a side", "main"})
	for name, c := range runs {
		end := <-c
		if end.err != nil {
			t.Fatal(end.err)
		}
		if got := end.value.Outcome.FinalMessage.Text(); got != "you said from "+name {
			t.Errorf("%s got %q", name, got)
		}
	}
	w.Settled()
	info, err := w.Lane.InspectExecution(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := info.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	enginetest.Equal(t, "execution", numbered(string(raw)),
		`{"lane":"main","leafId":"#a","current":null,"lastResult":{"operationId":"#b","kind":"run","outcome":"completed","leafId":"#a","finalAssistantEntryId":"#a","runCompletion":"assistant"}}`)
}

// A model registry that cannot look is no missing model: the drive fails, the
// state stays, and a later drive goes on.
func TestModelsThatFail(t *testing.T) {
	w := enginetest.InMemory(t)
	w.Open()
	id := w.Accept("hi")
	no := errors.New("disk")
	w.Models.Fail(no)
	if _, err := w.Lane.Accept(t.Context(), engine.Request{Text: "x"}); err == nil {
		t.Error("accepted on a busy lane")
	}
	if _, err := w.Lane.Drive(t.Context(), engine.DriveOptions{OperationID: id}); !errors.Is(err, no) {
		t.Errorf("got %v", err)
	}
	wantPoint(t, w, id, op.PointReady)
	w.Models.Fail(nil)
	w.Drive(engine.DriveOptions{OperationID: id})
	w.Settled()
	if _, ok, err := store.Get(t.Context(), w.View(), op.StateOf(id)); ok || err != nil {
		t.Error("the operation is still there")
	}
}
