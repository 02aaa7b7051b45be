package store_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/store"
)

var errSeal = errors.New("sealed")

// held occupies a line until the returned function is called.
func held(t *testing.T, l *store.Line) (release func()) {
	t.Helper()
	running, gate := make(chan struct{}), make(chan struct{})
	l.Enqueue(func() error {
		close(running)
		<-gate
		return nil
	})
	<-running
	return func() { close(gate) }
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestLineRunsJobsInOrderOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l store.Line
		release := held(t, &l)
		var order []int // unguarded: the race detector sees two jobs at once
		var tickets []*store.Ticket
		for i := range 100 {
			tickets = append(tickets, l.Enqueue(func() error {
				order = append(order, i)
				return nil
			}))
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := l.Do(t.Context(), func() error { order = append(order, 100); return nil }); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		release()
		wg.Wait()
		for _, ticket := range tickets {
			if err := ticket.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		}
		want := make([]int, 101)
		for i := range want {
			want[i] = i
		}
		if diff := cmp.Diff(want, order); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

func TestLineRunsOnTheCallerWhenIdle(t *testing.T) {
	var l store.Line
	onStack := false
	probe := func() error {
		// A panic inside the job reaches the caller only from its own goroutine.
		panic("caller-run")
	}
	func() {
		defer func() { onStack = recover() == "caller-run" }()
		_ = l.Do(t.Context(), probe)
	}()
	if !onStack {
		t.Error("the job of an idle line did not run on its caller")
	}
	if err := l.Do(t.Context(), func() error { return nil }); err != nil {
		t.Errorf("the line is stuck after a panic: %v", err)
	}
}

func TestLineJobErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l store.Line
		boom := errors.New("boom")
		fail := func() error { return boom }
		if err := l.Do(t.Context(), fail); !errors.Is(err, boom) {
			t.Errorf("caller-run: %v", err)
		}
		release := held(t, &l)
		var queued error
		var wg sync.WaitGroup
		wg.Go(func() { queued = l.Do(t.Context(), fail) })
		ticket := l.Enqueue(fail)
		synctest.Wait()
		release()
		wg.Wait()
		if !errors.Is(queued, boom) {
			t.Errorf("queued: %v", queued)
		}
		for range 2 {
			if err := ticket.Wait(t.Context()); !errors.Is(err, boom) {
				t.Errorf("enqueued: %v", err)
			}
		}
	})
}

func TestLineCancelledWaitersJobStillRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l store.Line
		release := held(t, &l)
		ctx, cancel := context.WithCancelCause(t.Context())
		reason := errors.New("gave up")
		ran := make(chan struct{})
		var waited error
		var wg sync.WaitGroup
		wg.Go(func() { waited = l.Do(ctx, func() error { close(ran); return nil }) })
		ticket := l.Enqueue(func() error { return nil })
		synctest.Wait()
		cancel(reason)
		wg.Wait()
		if !errors.Is(waited, reason) {
			t.Errorf("waiter got %v, want the cause", waited)
		}
		if err := ticket.Wait(ctx); !errors.Is(err, reason) {
			t.Errorf("ticket got %v, want the cause", err)
		}
		if isDone(ran) {
			t.Error("the job ran out of turn")
		}
		release()
		synctest.Wait()
		if !isDone(ran) {
			t.Error("the job of the waiter that left did not run")
		}
		if err := ticket.Wait(ctx); err != nil {
			t.Errorf("an ended ticket: %v", err)
		}
	})
}

func TestLineSealRefusesWaitersAndDrainsEnqueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l store.Line
		release := held(t, &l)
		var ran []string
		job := func(name string) func() error {
			return func() error { ran = append(ran, name); return nil }
		}
		var wg sync.WaitGroup
		var first, second error
		before := l.Enqueue(job("enqueued 1"))
		wg.Go(func() { first = l.Do(t.Context(), job("waiting 1")) })
		synctest.Wait()
		after := l.Enqueue(job("enqueued 2"))
		wg.Go(func() { second = l.Do(t.Context(), job("waiting 2")) })
		synctest.Wait()

		drained := l.Seal(errSeal)
		wg.Wait() // refused at once, not when the held job ends
		if !errors.Is(first, errSeal) || !errors.Is(second, errSeal) {
			t.Errorf("waiters got %v and %v", first, second)
		}
		if isDone(drained) {
			t.Error("drained beside a running job")
		}
		if err := l.Do(t.Context(), job("late")); !errors.Is(err, errSeal) {
			t.Errorf("a late job got %v", err)
		}
		if err := l.Enqueue(job("late")).Wait(t.Context()); !errors.Is(err, errSeal) {
			t.Errorf("a late ticket got %v", err)
		}
		again := l.Seal(errors.New("second seal"))
		release()
		<-drained
		<-again
		for _, ticket := range []*store.Ticket{before, after} {
			if err := ticket.Wait(t.Context()); err != nil {
				t.Errorf("an enqueued job got %v", err)
			}
		}
		if diff := cmp.Diff([]string{"enqueued 1", "enqueued 2"}, ran); diff != "" {
			t.Errorf("jobs that ran (-want +got):\n%s", diff)
		}
		if err := l.Do(t.Context(), job("late")); !errors.Is(err, errSeal) {
			t.Errorf("after a second seal: %v, want the first one's error", err)
		}
		<-l.Seal(errSeal) // an idle line has drained
	})
}

func TestLineAbandonRunsNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l store.Line
		release := held(t, &l)
		never := func() error { t.Error("an abandoned job ran"); return nil }
		ticket := l.Enqueue(never)
		var waited error
		var wg sync.WaitGroup
		wg.Go(func() { waited = l.Do(t.Context(), never) })
		synctest.Wait()
		ended := l.Abandon(errSeal)
		wg.Wait()
		if err := ticket.Wait(t.Context()); !errors.Is(err, errSeal) || !errors.Is(waited, errSeal) {
			t.Errorf("ticket got %v, waiter %v", err, waited)
		}
		if isDone(ended) {
			t.Error("ended beside a running job")
		}
		release()
		<-ended
	})
}

func TestLineSealInsideItsOwnJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l store.Line
		var drained <-chan struct{}
		err := l.Do(t.Context(), func() error {
			drained = l.Abandon(errSeal)
			return nil
		})
		if err != nil {
			t.Errorf("the job that sealed got %v", err)
		}
		<-drained
	})
}

func TestLineUnderContention(t *testing.T) {
	var l store.Line
	const workers, jobs = 8, 200
	var got [][2]int // guarded by the line alone
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			var last *store.Ticket
			for j := range jobs {
				run := func() error { got = append(got, [2]int{w, j}); return nil }
				if j%3 == 0 {
					if err := l.Do(t.Context(), run); err != nil {
						t.Error(err)
					}
				} else {
					last = l.Enqueue(run)
				}
			}
			if err := last.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	<-l.Seal(errSeal)
	if len(got) != workers*jobs {
		t.Fatalf("%d jobs ran, want %d", len(got), workers*jobs)
	}
	for w := range workers {
		mine := slices.DeleteFunc(slices.Clone(got), func(x [2]int) bool { return x[0] != w })
		if !slices.IsSortedFunc(mine, func(a, b [2]int) int { return a[1] - b[1] }) {
			t.Errorf("jobs of goroutine %d ran out of order", w)
		}
	}
}

func BenchmarkLineDo(b *testing.B) {
	var l store.Line
	run := func() error { return nil }
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Do(b.Context(), run); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLineEnqueue(b *testing.B) {
	var l store.Line
	run := func() error { return nil }
	b.ReportAllocs()
	var last *store.Ticket
	for b.Loop() {
		last = l.Enqueue(run)
	}
	if err := last.Wait(b.Context()); err != nil {
		b.Fatal(err)
	}
}
