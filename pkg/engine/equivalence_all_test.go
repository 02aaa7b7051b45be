package engine_test

import (
	"context"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// way is one way to bring a history to its end.
type way struct {
	name   string
	manual bool
	run    func(t *testing.T, w *enginetest.World)
}

// inBothModes are ways in automatic mode and parked at every breakpoint.
func inBothModes(ways map[string]func(t *testing.T, w *enginetest.World)) []way {
	var all []way
	for name, run := range ways {
		all = append(all, way{name, false, run}, way{name + " in manual mode", true, run})
	}
	return all
}

// wantEquivalent plays a history in every way and wants the same of each: what is
// durable, byte for byte, what was committed, and what was told (spec §9.1, §9.3).
// A pass of another number tells when it waits or resumes; that is its own.
func wantEquivalent(t *testing.T, setup func(w *enginetest.World), ways []way) {
	t.Helper()
	type left struct {
		records []store.Record
		commits []string
		events  []string
	}
	var want *left
	for _, way := range ways {
		bubble(t, func(t *testing.T, w *enginetest.World) {
			var got left
			setup(w)
			w.Options.Manual = way.manual
			w.Decorate = func(b store.Backend) store.Backend {
				return committing{b, func(tx store.Tx) { got.commits = append(got.commits, enginetest.TxString(tx)) }}
			}
			w.OnOpen = func() {
				w.Harness.On(func(e op.Event) {
					if raw, err := e.MarshalJSON(); err != nil {
						t.Error(err)
					} else if e.Type != op.EventRunResume {
						got.events = append(got.events, string(raw))
					}
				})
			}
			way.run(t, w)
			w.Verify()
			got.records = w.Records()
			if len(got.commits) == 0 || len(got.events) == 0 {
				t.Fatalf("%d commits and %d events after %s", len(got.commits), len(got.events), way.name)
			}
			if want == nil {
				want = &got
				return
			}
			enginetest.Equal(t, "durable state after "+way.name, got.records, want.records)
			enginetest.Equal(t, "commits of "+way.name, got.commits, want.commits)
			enginetest.Equal(t, "events of "+way.name, got.events, want.events)
		})
	}
}

// committing is a backend that notes what was committed.
type committing struct {
	store.Backend
	note func(store.Tx)
}

func (b committing) Commit(ctx context.Context, tx store.Tx) (store.CommitResult, error) {
	res, err := b.Backend.Commit(ctx, tx)
	if err == nil {
		b.note(tx)
	}
	return res, err
}

// toEnd runs a call that drives, executing whatever it is parked before.
func toEnd[T any](t *testing.T, w *enginetest.World, call func() (T, error)) T {
	t.Helper()
	done := begin(call)
	for !over(done) {
		if !w.Options.Manual {
			break
		}
		w.Lane.ExecuteAction(t.Context())
	}
	end := <-done
	if end.err != nil {
		t.Fatal(end.err)
	}
	return end.value
}

// The run of everything: prompt is accept and drive, resume is drive with a poll
// permit, however many passes it takes and whichever process has them.
func TestEquivalenceOfARun(t *testing.T) {
	setup := func(w *enginetest.World) {
		everything(w, func(_ context.Context, name string) {
			if name == "before_run" {
				queueInside(w)
			}
		})
		w.Options.Retry.BaseDelayMs = 0 // so that time is the same however often it is looked at
	}
	request := engine.Request{Text: "hi"}
	accept := func(t *testing.T, w *enginetest.World) engine.DriveOptions {
		return engine.DriveOptions{OperationID: admitted(t)(w.Lane.Accept(t.Context(), request)), WaitForRetry: true, PollDeferred: true}
	}
	passes := func(t *testing.T, w *enginetest.World, o engine.DriveOptions, between func()) {
		for {
			d := toEnd(t, w, func() (engine.DriveOutcome, error) { return w.Lane.Drive(context.Background(), o) })
			if d.Kind == engine.Settled {
				return
			}
			between()
		}
	}
	wantEquivalent(t, setup, inBothModes(map[string]func(*testing.T, *enginetest.World){
		"accept and drive": func(t *testing.T, w *enginetest.World) {
			activate(t, w)
			passes(t, w, accept(t, w), func() { t.Error("one pass is enough") })
		},
		"prompt and resume": func(t *testing.T, w *enginetest.World) {
			activate(t, w)
			toEnd(t, w, func() (engine.DriveOutcome, error) { return w.Lane.Prompt(context.Background(), request) })
			toEnd(t, w, func() (engine.DriveOutcome, error) { return w.Lane.Resume(context.Background()) })
		},
		"pass by pass": func(t *testing.T, w *enginetest.World) {
			activate(t, w)
			o := accept(t, w)
			o.WaitForRetry = false
			passes(t, w, o, func() {})
		},
		"a process for every pass": func(t *testing.T, w *enginetest.World) {
			activate(t, w)
			o := accept(t, w)
			o.PollDeferred = false
			w.Reopen()
			passes(t, w, o, func() {
				w.Reopen()
				o.PollDeferred = true
				passes(t, w, o, func() {})
			})
		},
	}))
}

// queueInside fills the queues of the open run from within one of its hooks.
func queueInside(w *enginetest.World) {
	ctx := context.Background()
	_, errSteer := w.Lane.Steer(ctx, engine.Queued{Text: "steer"})
	_, errFollow := w.Lane.FollowUp(ctx, engine.Queued{Text: "follow"})
	_, _, errWrite := w.Lane.Append(ctx, "", store.PendingEntry{Type: store.TypeCustom, CustomType: "note"})
	for _, err := range []error{errSteer, errFollow, errWrite} {
		if err != nil {
			w.TB.Fatal(err)
		}
	}
}

// compact and navigate are their acceptance and drives.
func TestEquivalenceOfStructuralOperations(t *testing.T) {
	talked := func(t *testing.T, w *enginetest.World) {
		w.Open()
		for _, text := range []string{"one", "two"} {
			toEnd(t, w, func() (engine.DriveOutcome, error) {
				return w.Lane.Prompt(context.Background(), engine.Request{Text: text})
			})
		}
	}
	driveAll := func(t *testing.T, w *enginetest.World, id string) {
		toEnd(t, w, func() (engine.DriveOutcome, error) {
			return w.Lane.Drive(context.Background(), engine.DriveOptions{OperationID: id, WaitForRetry: true})
		})
	}
	type operation struct {
		name   string
		whole  func(t *testing.T, w *enginetest.World) (engine.DriveOutcome, error)
		accept func(t *testing.T, w *enginetest.World) (engine.Admission, error)
	}
	navigation := func(name string, r func(t *testing.T, w *enginetest.World) engine.NavigateRequest) operation {
		return operation{
			name,
			func(t *testing.T, w *enginetest.World) (engine.DriveOutcome, error) {
				return w.Lane.Navigate(context.Background(), r(t, w))
			},
			func(t *testing.T, w *enginetest.World) (engine.Admission, error) {
				return w.Lane.AcceptNavigation(context.Background(), r(t, w))
			},
		}
	}
	high := message.ThinkingHigh
	compaction := engine.CompactRequest{CustomInstructions: "be brief", Configure: engine.Configure{ThinkingLevel: &high}}
	for _, o := range []operation{
		{
			"compaction",
			func(_ *testing.T, w *enginetest.World) (engine.DriveOutcome, error) {
				return w.Lane.Compact(context.Background(), compaction)
			},
			func(_ *testing.T, w *enginetest.World) (engine.Admission, error) {
				return w.Lane.AcceptCompaction(context.Background(), compaction)
			},
		},
		navigation("navigation to the root", func(*testing.T, *enginetest.World) engine.NavigateRequest { return engine.NavigateRequest{} }),
		navigation("summarized navigation", func(t *testing.T, w *enginetest.World) engine.NavigateRequest {
			return engine.NavigateRequest{Target: firstEntry(t, w), Summarize: true, Label: "here", CustomInstructions: "be brief"}
		}),
	} {
		t.Run(o.name, func(t *testing.T) {
			setup := func(w *enginetest.World) {
				w.Options.Retry = engine.RetryPolicy{MaxRetries: 2}
				w.Model.Reply = enginetest.Sequence(whole("said"), whole("said"), enginetest.Fail("overloaded"), whole("sum"))
			}
			wantEquivalent(t, setup, inBothModes(map[string]func(*testing.T, *enginetest.World){
				"whole": func(t *testing.T, w *enginetest.World) {
					talked(t, w)
					toEnd(t, w, func() (engine.DriveOutcome, error) { return o.whole(t, w) })
				},
				"accept and drive": func(t *testing.T, w *enginetest.World) {
					talked(t, w)
					driveAll(t, w, admitted(t)(o.accept(t, w)))
				},
				"accept, another process, drive": func(t *testing.T, w *enginetest.World) {
					talked(t, w)
					id := admitted(t)(o.accept(t, w))
					w.Reopen()
					driveAll(t, w, id)
				},
			}))
		})
	}
}

// abort is requestAbort and a drive, whether a pass was there or not.
func TestEquivalenceOfAborts(t *testing.T) {
	queued := func(t *testing.T, w *enginetest.World) string {
		activate(t, w)
		id := admitted(t)(w.Lane.Accept(t.Context(), engine.Request{Text: "hi"}))
		queueInside(w)
		return id
	}
	abort := func(t *testing.T, w *enginetest.World) {
		if _, err := w.Lane.Abort(t.Context()); err != nil {
			t.Fatal(err)
		}
		toEnd(t, w, func() (struct{}, error) { return struct{}{}, w.Lane.WaitForIdle(context.Background()) })
	}
	request := func(t *testing.T, w *enginetest.World, id string) {
		cancel(t, w, id)
		toEnd(t, w, func() (engine.DriveOutcome, error) {
			return w.Lane.Drive(context.Background(), engine.DriveOptions{OperationID: id})
		})
	}
	t.Run("of an operation that nobody drives", func(t *testing.T) {
		wantEquivalent(t, func(w *enginetest.World) { arm(w) }, inBothModes(map[string]func(*testing.T, *enginetest.World){
			"abort":                     func(t *testing.T, w *enginetest.World) { queued(t, w); abort(t, w) },
			"request and drive":         func(t *testing.T, w *enginetest.World) { request(t, w, queued(t, w)) },
			"reopen, request and drive": func(t *testing.T, w *enginetest.World) { id := queued(t, w); w.Reopen(); request(t, w, id) },
			"request, reopen and drive": func(t *testing.T, w *enginetest.World) {
				id := queued(t, w)
				cancel(t, w, id)
				w.Reopen()
				toEnd(t, w, func() (engine.DriveOutcome, error) {
					return w.Lane.Drive(context.Background(), engine.DriveOptions{OperationID: id})
				})
			},
		}))
	})
	t.Run("of a request that hangs", func(t *testing.T) {
		setup := func(w *enginetest.World) {
			arm(w)
			w.Model.Reply = enginetest.Sequence(enginetest.Reply{Chunks: []string{"par"}, Hang: true})
		}
		hanging := func(t *testing.T, w *enginetest.World) string {
			id := queued(t, w)
			go func() { _, _ = w.Lane.Drive(context.Background(), engine.DriveOptions{OperationID: id}) }()
			hung := make(chan struct{})
			go func() {
				<-w.Model.Hanging()
				close(hung)
			}()
			toEnd(t, w, func() (struct{}, error) { <-hung; return struct{}{}, nil })
			return id
		}
		wantEquivalent(t, setup, inBothModes(map[string]func(*testing.T, *enginetest.World){
			"abort":             func(t *testing.T, w *enginetest.World) { hanging(t, w); abort(t, w) },
			"request and drive": func(t *testing.T, w *enginetest.World) { request(t, w, hanging(t, w)) },
		}))
	})
}
