package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// reconciling are the breakpoints of cancellation work, which an abort leaves
// parked.
var reconciling = []string{"cancel.reconcile", "tool.settlement", "tool.materialize", "tool.recover_interruption", "deferred.cancel"}

// requestAbort vs parked ordinary breakpoint: whatever the pass is parked before
// does not run, nothing else begins, and the run ends as aborted.
func TestAbortVersusParkedBreakpoint(t *testing.T) {
	for _, n := range parkings() {
		kind := everyAction[n]
		t.Run(fmt.Sprintf("%02d %s", n, kind), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				w.Quiet, w.Watch, *w.Pace = true, false, enginetest.Free // one of many
				w.Options.Manual = true
				b, id, done := parkEverything(t, w, n)
				effects, entries := slices.Clone(b.names), count(t, w)
				cancel(t, w, id)
				synctest.Wait()
				if got := count(t, w); got > entries+1 {
					t.Errorf("%d entries before anything was executed, %d at the abort", got, entries)
				}
				for !over(done) {
					if a, ok := w.Lane.ExecuteAction(t.Context()); ok && !slices.Contains(reconciling, a.Kind) {
						t.Errorf("parked before %s under cancellation", a.Kind)
					}
				}
				enginetest.Equal(t, "effects", b.names, effects)
				finishPass(t, w, done, op.Aborted)
				wantQueuesOf(t, w)
			})
		})
	}
}

// wantQueuesOf wants that nothing of a run that has ended waits, its write is placed
// and what waits for the next run still does.
func wantQueuesOf(t *testing.T, w *enginetest.World) {
	t.Helper()
	lane, _, err := store.Get(t.Context(), w.View(), store.LaneStateOf("main"))
	if err != nil || lane.Value.CurrentOperationID != "" || len(lane.Value.PendingNextRun) != 1 {
		t.Errorf("the lane is %+v, %v", lane.Value, err)
	}
	entries, err := w.View().ScanEntries(t.Context(), store.EntryQuery{CustomType: "note"})
	if err != nil || len(entries) != 1 {
		t.Errorf("%d notes, %v: a deferred write is placed whatever becomes of its run", len(entries), err)
	}
}

// integration is an effect of the catalogue in spec §4.2, with the breakpoint
// before its n-th admission in the run of everything, or in a navigation.
type integration struct {
	name, point string
	nth         int
	navigation  bool
}

var integrations = []integration{
	{"before_drive", "hook.before_drive", 1, false},
	{"before_run", "hook.before_run", 1, false},
	{"before_run_end", "hook.before_run_end", 1, false},
	{"transform_context", "hook.transform_context", 1, false},
	{"before_request", "hook.before_request", 1, false},
	{"before_payload", "hook.before_payload", 1, false},
	{"after_response", "hook.after_response", 1, false},
	{"before_tool", "hook.before_tool", 1, false},
	{"after_tool", "hook.after_tool", 1, false},
	{"before_compaction", "hook.before_compaction", 1, false},
	{"before_navigation", "hook.before_navigation", 1, true},
	{"request", "assistant.request", 1, false},
	{"summary", "structural.request", 1, false},
	{"summary", "structural.request", 3, false}, // the second request of one attempt
	{"summary", "structural.request", 1, true},
	{"poll", "deferred.fetch", 1, false},
	{"tool", "tool.execute", 1, false},
}

func (in integration) String() string {
	if in.navigation {
		return in.name + " of a navigation"
	}
	return fmt.Sprintf("%s %d", in.name, in.nth)
}

// start accepts the operation that has the integration, everything told to tell.
func (in integration) start(t *testing.T, w *enginetest.World, tell effects) string {
	t.Helper()
	if !in.navigation {
		everything(w, tell)
		return startEverything(t, w)
	}
	manual := w.Options.Manual
	w.Options.Manual = false
	talked(t, w, whole("sum"))
	_ = w.Harness.Close()
	w.Options.Manual, w.Options.Hooks = manual, toldHooks(tell)
	w.Models.Add(&telling{deferring{Model: w.Model}, tell})
	w.Open()
	return acceptNavigation(t, w, true)
}

func (b *begun) count(name string) (n int) {
	for _, other := range b.names {
		if other == name {
			n++
		}
	}
	return n
}

// Abort first: parked before its admission, the integration is never invoked.
func TestAbortBeforeAdmission(t *testing.T) {
	for _, in := range integrations {
		t.Run(in.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				*w.Pace = enginetest.Free
				w.Options.Manual = true
				var b begun
				id := in.start(t, w, b.tell)
				done := driveEverything(w, id)
				executeTo(t, w, in.point)
				for range in.nth - 1 {
					w.Lane.ExecuteAction(t.Context())
					executeTo(t, w, in.point)
				}
				if n := b.count(in.name); n != in.nth-1 {
					t.Fatalf("%d began before the breakpoint", n)
				}
				cancel(t, w, id)
				finishPass(t, w, done, op.Aborted)
				if n := b.count(in.name); n != in.nth-1 {
					t.Errorf("%d began, %d of them before the abort", n, in.nth-1)
				}
			})
		})
	}
}

// Admission first: the integration is invoked under the operation's signal, which
// is pulled once the marker is durable, and ends before the reconciliation.
func TestAdmissionBeforeAbort(t *testing.T) {
	for _, in := range integrations {
		t.Run(in.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				*w.Pace = enginetest.Free
				b := begun{}
				inside, signalled := make(chan struct{}), false
				id := in.start(t, w, func(ctx context.Context, name string) {
					b.tell(ctx, name)
					if name != in.name || b.count(name) != in.nth {
						return
					}
					close(inside)
					<-ctx.Done()
					signalled = true
					if !state(t, w, current(t, w)).Cancel().Cancelled() {
						t.Error("the signal came before the marker was durable")
					}
				})
				done := driveEverything(w, id)
				<-inside
				if over(done) {
					t.Fatal("the pass did not wait for what it had admitted")
				}
				began := len(b.names)
				cancel(t, w, id)
				finishPass(t, w, done, op.Aborted)
				if !signalled {
					t.Error("no signal came")
				}
				if len(b.names) != began {
					t.Errorf("%v began after the abort", b.names[began:])
				}
			})
		})
	}
}

// stopping is a backend that stands still after one commit until it may go on, and
// before the marker of an abort until that may land.
type stopping struct {
	store.Backend
	after         func(op.State) bool // says which commit, by the state it writes
	reached, goOn chan struct{}
	marker        chan struct{}
	once          *bool
}

func stopAfter(b store.Backend, after func(op.State) bool) stopping {
	return stopping{b, after, make(chan struct{}), make(chan struct{}), make(chan struct{}), new(bool)}
}

func (b stopping) Commit(ctx context.Context, tx store.Tx) (store.CommitResult, error) {
	s := stateIn(tx)
	if s != nil && s.Cancel().Cancelled() {
		<-b.marker
	}
	res, err := b.Backend.Commit(ctx, tx)
	if err == nil && !*b.once && s != nil && b.after(s) {
		*b.once = true
		close(b.reached)
		<-b.goOn
	}
	return res, err
}

// stateIn is the operation state that a transaction writes, nil for none.
func stateIn(tx store.Tx) op.State {
	for _, w := range tx {
		if w.Address.Namespace == "pi.op.state" && w.Op == store.OpSet {
			if s, err := op.DecodeState(w.Value); err == nil {
				return s
			}
		}
	}
	return nil
}

// Abort first, with no breakpoint to reject anything and no marker to be seen yet:
// the gate alone refuses.
func TestGateRefuses(t *testing.T) {
	at := func(point op.Point) func(op.State) bool {
		return func(s op.State) bool { return op.PointOf(s) == point }
	}
	for _, tt := range []struct {
		name   string
		before func(op.State) bool // says which commit is the last before it
	}{
		{"before_request", at(op.PointReady)},
		{"request", at(op.PointEffectPending)},
		{"before_tool", at(op.PointTools)},
		{"tool", at(op.PointToolsPending)},
		{"poll", at(op.PointDeferredPending)},
		{"before_compaction", at("run.compaction.deciding")},
		{"summary", func(s op.State) bool {
			structural := op.StructuralOf(s)
			if structural == nil {
				return false
			}
			pending, _ := structural.Generation.(op.SummaryEffectPending)
			return pending.Request != nil
		}},
		{"before_run_end", func(s op.State) bool {
			run, _ := s.(op.RunState)
			return op.PointOf(s) == op.PointMayFinish && run.Inbox.Empty()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *enginetest.World) {
				*w.Pace = enginetest.Free
				var b begun
				everything(w, b.tell)
				var stop stopping
				w.Decorate = func(backend store.Backend) store.Backend {
					stop = stopAfter(backend, tt.before)
					return stop
				}
				id := startEverything(t, w)
				w.Decorate = nil
				done := driveEverything(w, id)
				<-stop.reached
				began := len(b.names)
				requested := begin(func() (engine.AbortRequest, error) { return w.Lane.RequestAbort(context.Background(), id) })
				if over(requested) {
					t.Fatal("the marker did not wait for its turn")
				}
				close(stop.goOn)
				if over(done) || over(requested) {
					t.Fatal("something ended before the marker was durable")
				}
				close(stop.marker)
				finishPass(t, w, done, op.Aborted)
				if r := <-requested; r.err != nil || !r.value.NewlyRequested {
					t.Errorf("abort: %+v", r)
				}
				if late := b.names[began:]; slices.Contains(late, tt.name) {
					t.Errorf("%v began behind a closed gate", late)
				}
			})
		})
	}
}

// Retry timers, the last items of the catalogue: parked before its creation, none
// is made; one that runs ends with the signal, long before its time.
func TestAbortVersusRetryTimer(t *testing.T) {
	for _, tt := range []struct {
		name  string
		nth   int
		point op.Point
	}{{"assistant", 1, op.PointRetryWait}, {"structural", 2, "run.compaction.retry_wait"}} {
		for _, started := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, timer started %t", tt.name, started), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *enginetest.World) {
					*w.Pace = enginetest.Free
					w.Options.Manual = true
					var b begun
					everything(w, b.tell)
					w.Options.Retry.BaseDelayMs = 1_000_000_000
					id := startEverything(t, w)
					done := driveEverything(w, id)
					executeTo(t, w, "retry.sleep")
					for range tt.nth - 1 {
						w.Lane.ExecuteAction(t.Context())
						executeTo(t, w, "retry.sleep")
					}
					wantPoint(t, w, id, tt.point)
					if started {
						w.Lane.ExecuteAction(t.Context())
						synctest.Wait()
						wantPoint(t, w, id, tt.point)
					}
					began, at := len(b.names), time.Now()
					cancel(t, w, id)
					finishPass(t, w, done, op.Aborted)
					if len(b.names) != began || time.Since(at) != 0 {
						t.Errorf("%v began after the abort, in %v", b.names[began:], time.Since(at))
					}
				})
			})
		}
	}
}
