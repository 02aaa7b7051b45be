package engine_test

import (
	"context"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// The rows of spec §9.2 in which an abort is one side.

func TestStaleAbortVersusCurrent(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		w.Options.Manual = true
		w.Open()
		a := w.Accept("a")
		finishPass(t, w, drive(w, engine.DriveOptions{OperationID: a}), op.Completed)
		b := w.Accept("b")
		done := parkAt(t, w, "assistant.request", engine.DriveOptions{OperationID: b})
		before := w.Records()
		r, err := w.Lane.RequestAbort(t.Context(), a)
		wantMismatch(t, err, engine.OperationMismatch{Lane: "main", Expected: a, Current: b, Last: a})
		enginetest.Equal(t, "answer", r, engine.AbortRequest{})
		enginetest.Equal(t, "what the stale abort left of b", w.Records(), before)
		finishPass(t, w, done, op.Completed)
		if n := len(w.Model.Requests()); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestAbortVersusResponseSettlement(t *testing.T) {
	t.Run("marker first", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *enginetest.World) {
			w.Options.Manual = true
			w.Open()
			id := w.Accept("hi")
			done := parkAt(t, w, "assistant.settlement", engine.DriveOptions{OperationID: id})
			cancel(t, w, id)
			finishPass(t, w, done, op.Aborted)
			wantTalk(t, w, "user: hi", "assistant aborted: hello you")
			rows, err := w.View().ScanUsage(t.Context(), store.UsageQuery{})
			if err != nil || len(rows) != 1 {
				t.Fatal(rows, err)
			}
			if u, err := message.ParseUsage(rows[0].Usage); err != nil || u.TotalTokens != 12 {
				t.Errorf("billed %+v, %v: the reported usage is kept", u, err)
			}
		})
	})
	t.Run("response first", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *enginetest.World) {
			w.Options.Manual = true
			w.Open()
			id := w.Accept("hi")
			done := parkAt(t, w, "assistant.settlement", engine.DriveOptions{OperationID: id})
			w.Lane.ExecuteAction(t.Context())
			executeTo(t, w, "checkpoint.finish")
			cancel(t, w, id)
			finishPass(t, w, done, op.Aborted)
			wantTalk(t, w, "user: hi", "assistant stop: hello you")
		})
	})
}

// The real result of a tool that ran is kept either way, and its wish to end the
// run is void once the run is cancelled (spec §4.6).
func TestAbortVersusToolOutcomeStaging(t *testing.T) {
	last := puppet{name: "last", run: func(context.Context, effect.Invocation) (message.ToolResult, error) {
		r := text("real")
		r.Terminate = true
		return r, nil
	}}
	for _, tt := range []struct {
		name      string
		execute   bool // the settlement, before the abort
		terminate bool
	}{
		{"abort first", false, false},
		{"outcome first", true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				w.Options.Manual = true
				arm(w, last)
				w.Model.Reply = enginetest.Sequence(calls("last"), enginetest.Say("never"))
				activate(t, w)
				id := w.Accept("hi")
				done := parkAt(t, w, "tool.settlement", engine.DriveOptions{OperationID: id})
				if tt.execute {
					w.Lane.ExecuteAction(t.Context())
					executeTo(t, w, "tool.materialize")
				}
				cancel(t, w, id)
				executeTo(t, w, "tool.materialize")
				enginetest.Equal(t, "staged", batch(t, w, id)[0].Terminate, tt.terminate)
				finishPass(t, w, done, op.Aborted)
				wantTalk(t, w, "user: hi", "assistant toolUse", "toolResult: real")
				if n := len(w.Model.Requests()); n != 1 {
					t.Errorf("%d requests", n)
				}
			})
		})
	}
}

func TestAbortVersusBeforeRunEndFollowUp(t *testing.T) {
	hooked := func(w *enginetest.World, admitted func()) {
		w.Options.Manual = true
		w.Model.Reply = enginetest.Echo
		asked := 0
		w.Options.Hooks.BeforeRunEnd = []engine.Hook[engine.BeforeRunEnd, string]{
			func(context.Context, engine.BeforeRunEnd) (string, error) {
				if asked++; asked > 1 {
					return "", nil
				}
				admitted()
				return "more", nil
			},
		}
	}
	t.Run("abort first", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *enginetest.World) {
			var id string
			hooked(w, func() { cancel(t, w, id) })
			w.Open()
			id = w.Accept("hi")
			finishPass(t, w, drive(w, engine.DriveOptions{OperationID: id}), op.Aborted)
			wantTalk(t, w, "user: hi", "assistant stop: you said hi")
		})
	})
	t.Run("follow-up first", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *enginetest.World) {
			hooked(w, func() {})
			w.Open()
			id := w.Accept("hi")
			done := parkAt(t, w, "hook.before_run_end", engine.DriveOptions{OperationID: id})
			w.Lane.ExecuteAction(t.Context())
			executeTo(t, w, "assistant.intent")
			wantTalk(t, w, "user: hi", "assistant stop: you said hi", "user: more")
			finishPass(t, w, done, op.Completed)
			wantTalk(t, w, "user: hi", "assistant stop: you said hi", "user: more", "assistant stop: you said more")
		})
	})
	t.Run("follow-up first, then the abort", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *enginetest.World) {
			hooked(w, func() {})
			w.Open()
			id := w.Accept("hi")
			done := parkAt(t, w, "hook.before_run_end", engine.DriveOptions{OperationID: id})
			w.Lane.ExecuteAction(t.Context())
			executeTo(t, w, "assistant.intent")
			cancel(t, w, id)
			finishPass(t, w, done, op.Aborted)
			wantTalk(t, w, "user: hi", "assistant stop: you said hi", "user: more")
		})
	})
	// The finish boundary is also left by input that came in meanwhile.
	t.Run("steering first", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *enginetest.World) {
			hooked(w, func() {
				if _, err := w.Lane.Steer(t.Context(), engine.Queued{Text: "turn"}); err != nil {
					t.Error(err)
				}
			})
			w.Open()
			id := w.Accept("hi")
			finishPass(t, w, drive(w, engine.DriveOptions{OperationID: id}), op.Completed)
			wantTalk(t, w, "user: hi", "assistant stop: you said hi", "user: turn", "assistant stop: you said turn")
		})
	})
}

// structural are the publications that an abort may race, by the breakpoint before
// them; setup accepts the operation and returns it.
var structural = []struct {
	name, point string
	setup       func(t *testing.T, w *enginetest.World) string
	adds        int // entries that a publication adds
}{
	{"compaction", "structural.publish", func(t *testing.T, w *enginetest.World) string {
		return admitted(t)(w.Lane.AcceptCompaction(t.Context(), engine.CompactRequest{}))
	}, 1},
	{"navigation", "navigation.commit", func(t *testing.T, w *enginetest.World) string {
		return admitted(t)(w.Lane.AcceptNavigation(t.Context(), engine.NavigateRequest{Target: firstEntry(t, w)}))
	}, 0},
	{"summarized navigation", "structural.publish", func(t *testing.T, w *enginetest.World) string {
		return admitted(t)(w.Lane.AcceptNavigation(t.Context(), engine.NavigateRequest{Target: firstEntry(t, w), Summarize: true, Label: "here"}))
	}, 1},
}

func admitted(t *testing.T) func(engine.Admission, error) string {
	return func(a engine.Admission, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return a.OperationID
	}
}

// firstEntry is the first entry of main's branch.
func firstEntry(t *testing.T, w *enginetest.World) store.LeafID {
	t.Helper()
	entries, err := w.View().ScanEntries(t.Context(), store.EntryQuery{Limit: 1})
	if err != nil || len(entries) == 0 {
		t.Fatal(err)
	}
	return store.LeafID(entries[0].ID)
}

func TestAbortVersusStructuralCommit(t *testing.T) {
	for _, s := range structural {
		open := func(t *testing.T, w *enginetest.World) string {
			w.Model.Reply = enginetest.Sequence(whole("said"))
			w.Open()
			for _, prompt := range []string{"one", "two"} {
				w.Prompt(prompt)
			}
			w.Options.Manual = true
			w.Reopen()
			return s.setup(t, w)
		}
		t.Run(s.name+"/abort first", func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				id := open(t, w)
				before := count(t, w)
				done := parkAt(t, w, s.point, engine.DriveOptions{OperationID: id})
				cancel(t, w, id)
				finishPass(t, w, done, op.Aborted)
				enginetest.Equal(t, "entries", count(t, w), before)
				wantTalk(t, w, "user: one", "assistant stop: said", "user: two", "assistant stop: said")
			})
		})
		t.Run(s.name+"/publication first", func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				id := open(t, w)
				before := count(t, w)
				done := parkAt(t, w, s.point, engine.DriveOptions{OperationID: id})
				finishPass(t, w, done, op.Completed)
				after := w.Records()
				_, err := w.Lane.RequestAbort(t.Context(), id)
				wantMismatch(t, err, engine.OperationMismatch{Lane: "main", Expected: id, Last: id})
				enginetest.Equal(t, "what the late abort wrote", w.Records(), after)
				enginetest.Equal(t, "entries", count(t, w), before+s.adds)
			})
		})
	}
}

func count(t *testing.T, w *enginetest.World) int {
	t.Helper()
	entries, err := w.View().ScanEntries(t.Context(), store.EntryQuery{})
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestDeferredWriteVersusAbort(t *testing.T) {
	for _, tt := range []struct {
		name  string
		write bool // before the abort
	}{{"write first", true}, {"abort first", false}} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				w.Options.Manual = true
				w.Open()
				id := w.Accept("hi")
				done := parkAt(t, w, "assistant.request", engine.DriveOptions{OperationID: id})
				write := func() {
					m := message.NewUser("written", nil, w.Clock.Now())
					if _, queued, err := w.Lane.Append(t.Context(), "", store.PendingEntry{Type: store.TypeMessage, Payload: []byte(m)}); err != nil || !queued {
						t.Fatalf("queued %t, %v", queued, err)
					}
				}
				if tt.write {
					write()
					cancel(t, w, id)
				} else {
					cancel(t, w, id)
					write()
				}
				finishPass(t, w, done, op.Aborted)
				wantTalk(t, w, "user: hi", "assistant aborted", "user: written")
				if n := len(w.Model.Requests()); n != 0 {
					t.Errorf("%d requests", n)
				}
			})
		})
	}
}

func TestAbortVersusRunHooks(t *testing.T) {
	for _, tt := range []struct {
		name   string
		parked string // the abort comes here
		inside string // or inside this hook
		drives int    // how often before_drive ran
		runs   int    // how often before_run ran
	}{
		{"cancellation before before_drive", "hook.before_drive", "", 0, 0},
		{"before_drive admitted first", "", "before_drive", 2, 0},
		{"cancellation before before_run", "hook.before_run", "", 2, 0},
		{"before_run admitted first", "", "before_run", 2, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				w.Options.Manual = true
				var id string
				drives, runs := 0, 0
				drive1 := func(hook string) func(context.Context, engine.BeforeDrive) error {
					return func(context.Context, engine.BeforeDrive) error {
						if drives++; tt.inside == hook && drives == 1 {
							cancel(t, w, id)
						}
						return nil
					}
				}
				run1 := func(context.Context, engine.BeforeRun) ([]message.Message, error) {
					if runs++; tt.inside == "before_run" && runs == 1 {
						cancel(t, w, id)
					}
					return []message.Message{message.NewUser("injected", nil, w.Clock.Now())}, nil
				}
				w.Options.Hooks.BeforeDrive = []func(context.Context, engine.BeforeDrive) error{drive1("before_drive"), drive1("")}
				w.Options.Hooks.BeforeRun = []func(context.Context, engine.BeforeRun) ([]message.Message, error){run1, run1}
				w.Open()
				id = w.Accept("hi")
				done := drive(w, engine.DriveOptions{OperationID: id})
				if tt.parked != "" {
					executeTo(t, w, tt.parked)
					cancel(t, w, id)
				}
				finishPass(t, w, done, op.Aborted)
				wantTalk(t, w, "user: hi")
				if drives != tt.drives || runs != tt.runs {
					t.Errorf("before_drive ran %d times, before_run %d; want %d and %d", drives, runs, tt.drives, tt.runs)
				}
			})
		})
	}
}
