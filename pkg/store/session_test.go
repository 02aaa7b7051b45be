package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/memory"
	"github.com/drover-run/drover/pkg/store/storetest"
)

var (
	noteA = store.NewValue[json.RawMessage]("app.note", "a")
	noteB = store.NewValue[json.RawMessage]("app.note", "b")
	logA  = store.NewList[json.RawMessage]("app.log", "a")
)

func raw(s string) json.RawMessage { return json.RawMessage(s) }

// newBackend opens a memory store that has nothing but the lane main.
func newBackend(t testing.TB) store.Backend {
	t.Helper()
	var d memory.Driver
	path := t.TempDir() + "/s1.mem"
	records, _, err := store.Prepare(store.Tx{
		store.LaneLeaf(store.MainLane).Set(""), store.LaneStateOf(store.MainLane).Set(store.LaneState{}),
	}, store.Base{NextSeq: 1})
	if err != nil {
		t.Fatal(err)
	}
	h := store.Header{ID: "s1", StorageVersion: store.StorageVersion, CreatedAt: 1}
	if err := d.Build(t.Context(), path, store.NewSnapshot(h, records), store.BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	b, err := d.Open(t.Context(), path, store.OpenOptions{Now: func() int64 { return 1000 }})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// counter makes the ids n1, n2, …
func counter() store.IDSource { return &countingIDs{} }

type countingIDs struct {
	mu sync.Mutex
	n  int
}

func (c *countingIDs) NewID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return "n" + string(rune('0'+c.n))
}

func (c *countingIDs) At(int64) string { return c.NewID() }

func serve(t testing.TB, b store.Backend) *store.Session {
	t.Helper()
	return store.NewSession(b, store.SessionOptions{IDs: counter()})
}

func set(v store.Value[json.RawMessage], text string) func(*store.Mutator) error {
	return func(m *store.Mutator) error {
		_, err := m.Commit(store.Tx{v.Set(raw(text))})
		return err
	}
}

func valueText(t *testing.T, q store.Queries, v store.Value[json.RawMessage]) string {
	t.Helper()
	got, ok, err := q.Value(context.Background(), v.Address())
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return "absent"
	}
	return string(got.Value)
}

func TestMutatorCommitsOnce(t *testing.T) {
	s := serve(t, newBackend(t))
	defer s.Close()
	var kept *store.Mutator
	err := s.Mutate(t.Context(), "main", func(m *store.Mutator) error {
		kept = m
		if m.Lane() != "main" {
			t.Errorf("lane %q", m.Lane())
		}
		if _, err := m.Commit(store.Tx{noteA.Set(raw("1"))}); err != nil {
			return err
		}
		_, err := m.Commit(store.Tx{noteA.Set(raw("2"))})
		return err
	})
	if !errors.Is(err, store.ErrMutatorUsed) {
		t.Errorf("second commit: %v", err)
	}
	if got := valueText(t, s, noteA); got != "1" {
		t.Errorf("value %s, want the first commit's", got)
	}
	if err := s.Mutate(t.Context(), "main", func(m *store.Mutator) error { kept = m; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := kept.Commit(store.Tx{noteA.Set(raw("3"))}); !errors.Is(err, store.ErrMutatorUsed) {
		t.Errorf("commit after a job that made none: %v", err)
	}
}

func TestRefusedCommitConsumesTheMutatorButFaultsNothing(t *testing.T) {
	s := serve(t, newBackend(t))
	defer s.Close()
	err := s.Mutate(t.Context(), "main", func(m *store.Mutator) error {
		var invalid *store.InvalidWrite
		if _, err := m.Commit(store.Tx{noteA.Set(raw("{"))}); !errors.As(err, &invalid) {
			t.Errorf("invalid commit: %v", err)
		}
		_, err := m.Commit(store.Tx{noteA.Set(raw("1"))})
		return err
	})
	if !errors.Is(err, store.ErrMutatorUsed) {
		t.Errorf("second attempt: %v", err)
	}
	if err := s.Fault(); err != nil {
		t.Errorf("fault after a refusal: %v", err)
	}
	if err := s.Mutate(t.Context(), "main", set(noteA, "2")); err != nil {
		t.Errorf("next job: %v", err)
	}
}

func TestMutatorReadsBetweenJobs(t *testing.T) {
	s := serve(t, newBackend(t))
	defer s.Close()
	const n = 50
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			err := s.Mutate(t.Context(), "main", func(m *store.Mutator) error {
				var n int
				if got, ok, err := m.Value(t.Context(), noteA.Address()); err != nil {
					return err
				} else if ok {
					if err := json.Unmarshal(got.Value, &n); err != nil {
						return err
					}
				}
				next, _ := json.Marshal(n + 1)
				_, err := m.Commit(store.Tx{noteA.Set(next)})
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := valueText(t, s, noteA); got != "50" {
		t.Errorf("counted %s, want %d: read, decide, commit was not one job", got, n)
	}
}

func TestLanesDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, newBackend(t))
		defer s.Close()
		gate := make(chan struct{})
		ticket := s.Enqueue("a", func(*store.Mutator) error { <-gate; return nil })
		if err := s.Mutate(t.Context(), "b", set(noteA, "1")); err != nil {
			t.Error(err)
		}
		close(gate)
		if err := ticket.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestCommitsOfTwoLanesAreSerialized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := storetest.NewGating(newBackend(t))
		r := storetest.NewRecorder(g)
		s := serve(t, r)
		a := s.Enqueue("a", set(noteA, "1"))
		synctest.Wait()
		b := s.Enqueue("b", set(noteB, "2"))
		synctest.Wait()
		g.Next(1)
		if err := a.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		g.Next(1)
		if err := b.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		want := "TX[ upsert app.note/a = 1 ]\nTX[ upsert app.note/b = 2 ]\n"
		if got := r.String(); got != want {
			t.Errorf("recorded\n%swant\n%s", got, want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestFailedCommitFaultsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := storetest.NewGating(newBackend(t))
		s := serve(t, g)
		var told []error
		s.OnFault(func(err error) { told = append(told, err) })
		failing := s.Enqueue("a", set(noteA, "1"))
		other := s.Enqueue("b", set(noteB, "1")) // waits in the commit queue
		waiting := s.Enqueue("a", func(*store.Mutator) error { t.Error("a job ran after the fault"); return nil })
		synctest.Wait()
		if n := g.Discard(); n != 1 {
			t.Fatalf("%d commits reached the store, want 1", n)
		}
		var fault *store.Fault
		for name, ticket := range map[string]*store.Ticket{"failing": failing, "queued commit": other, "waiting": waiting} {
			if err := ticket.Wait(t.Context()); !errors.As(err, &fault) || !errors.Is(err, storetest.ErrDiscarded) {
				t.Errorf("%s job: got %v, want the *Fault", name, err)
			}
		}
		synctest.Wait()
		if n := g.Discard(); n != 0 {
			t.Errorf("%d commits reached the store after the fault", n)
		}
		if err := s.Mutate(t.Context(), "c", set(noteA, "2")); !errors.As(err, &fault) {
			t.Errorf("a later job: %v", err)
		}
		if err := s.Fault(); !errors.Is(err, storetest.ErrDiscarded) {
			t.Errorf("fault: %v", err)
		}
		s.OnFault(func(err error) { told = append(told, err) })
		if len(told) != 2 || !errors.Is(told[0], storetest.ErrDiscarded) || !errors.Is(told[1], storetest.ErrDiscarded) {
			t.Errorf("listeners heard %v", told)
		}
		if got := valueText(t, s, noteA); got != "absent" {
			t.Errorf("value %s after a failed commit", got)
		}
		if err := s.Close(); err != nil {
			t.Errorf("close after a fault: %v", err)
		}
	})
}

func TestFaultyBreaksBeforeOrAfterTheCommit(t *testing.T) {
	for _, c := range []struct {
		name string
		plan storetest.Plan
		want string // of noteA
	}{
		{"before", storetest.Plan{Commit: 2}, "1"},
		{"after", storetest.Plan{Commit: 2, After: true}, "2"},
		{"with a cause", storetest.Plan{Commit: 2, Err: io.ErrShortWrite}, "1"},
		{"never", storetest.Plan{}, "3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			crashed := 0
			c.plan.Crash = func() { crashed++ }
			f := storetest.NewFaulty(newBackend(t), c.plan)
			s := serve(t, f)
			defer s.Close()
			var errs []error
			for _, text := range []string{"1", "2", "3"} {
				errs = append(errs, s.Mutate(t.Context(), "main", set(noteA, text)))
			}
			if got := valueText(t, s, noteA); got != c.want {
				t.Errorf("value %s, want %s", got, c.want)
			}
			cause := c.plan.Err
			if cause == nil {
				cause = storetest.ErrInjected
			}
			broken := c.plan.Commit == 2
			if errs[0] != nil || errors.Is(errs[1], cause) != broken || errors.Is(errs[2], cause) != broken {
				t.Errorf("errors %v", errs)
			}
			if (crashed == 1) != broken || (f.Commits() == 2) != broken {
				t.Errorf("crashed %d times, %d commits", crashed, f.Commits())
			}
		})
	}
}

// lossy is a backend whose check answers what the test says.
type lossy struct {
	store.Backend
	err error
}

func (l *lossy) Check(context.Context) error { return l.err }

func TestCheckFaultsOnLossAlone(t *testing.T) {
	b := &lossy{Backend: newBackend(t), err: context.Canceled}
	s := serve(t, b)
	defer s.Close()
	if err := s.Check(t.Context()); !errors.Is(err, context.Canceled) || s.Fault() != nil {
		t.Errorf("a check that could not be made: %v, fault %v", err, s.Fault())
	}
	b.err = &store.Lost{Path: "p", Reason: "deleted"}
	var fault *store.Fault
	var lost *store.Lost
	if err := s.Check(t.Context()); !errors.As(err, &fault) || !errors.As(err, &lost) || s.Fault() == nil {
		t.Errorf("a loss: %v, fault %v", err, s.Fault())
	}
	if err := s.Mutate(t.Context(), "main", set(noteA, "1")); !errors.As(err, &lost) {
		t.Errorf("a job after the loss: %v", err)
	}
}

func TestCloseIsIdempotentAndRunsOnCloseOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := storetest.NewGating(newBackend(t))
		closed := 0
		s := store.NewSession(g, store.SessionOptions{OnClose: func() { closed++ }})
		ticket := s.Enqueue("main", set(noteA, "1"))
		synctest.Wait()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if closed != 0 {
			t.Error("closed beside an admitted commit")
		}
		g.Next(1)
		wg.Wait()
		if err := ticket.Wait(t.Context()); err != nil {
			t.Errorf("the admitted commit: %v", err)
		}
		if err := s.Close(); err != nil || closed != 1 {
			t.Errorf("close again: %v, OnClose ran %d times", err, closed)
		}
		if err := s.Mutate(t.Context(), "main", set(noteA, "2")); !errors.Is(err, store.ErrClosed) {
			t.Errorf("job after close: %v", err)
		}
		if err := s.Enqueue("new", set(noteA, "2")).Wait(t.Context()); !errors.Is(err, store.ErrClosed) {
			t.Errorf("job on a new lane after close: %v", err)
		}
	})
}

func TestRecorderWritesTheNotation(t *testing.T) {
	r := storetest.NewRecorder(newBackend(t))
	s := serve(t, r)
	defer s.Close()
	tree := s.View("main")
	id, err := tree.AppendMessage(t.Context(), message.Message(`{"role":"user","content":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Mutate(t.Context(), "main", func(m *store.Mutator) error {
		_, err := m.Commit(store.Tx{
			store.InsertEntry(store.CustomEntry("c1", id, "app.c", nil)), store.InsertUsage(store.NewUsage{ID: "u1", EntryID: id}),
			store.InsertUsage(store.NewUsage{ID: "u2", Adjustment: true}),
			noteA.Set(raw(`{ "a" : 1 }`)), noteA.Delete(), logA.Append(raw("1")), logA.Delete(),
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `TX[ insert entry n1 (message), upsert pi.lane.leaf/main = "n1" ]
TX[ insert entry c1 (custom app.c) under n1, insert usage u1 of n1, insert usage u2 (adjustment), upsert app.note/a = {"a":1}, delete app.note/a, append app.log/a += 1, delete list app.log/a ]
`
	if diff := cmp.Diff(want, r.String()); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	if got := r.Committed(); len(got) != 2 || len(got[1].Result.Seqs) != 7 {
		t.Errorf("committed %+v", got)
	}
	r.Reset()
	if got := r.String(); got != "" {
		t.Errorf("after a reset: %s", got)
	}
}

func BenchmarkMutate(b *testing.B) {
	s := serve(b, newBackend(b))
	defer s.Close()
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Mutate(b.Context(), "main", func(*store.Mutator) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// TestNoSequenceNumberIsLeft: a file from elsewhere can claim the last number. A commit
// that would need it changes nothing, and says so.
func TestNoSequenceNumberIsLeft(t *testing.T) {
	for next, want := range map[int64]bool{math.MaxInt64 - 2: true, math.MaxInt64 - 1: false, math.MaxInt64: false} {
		records, _, err := store.Prepare(store.Tx{noteA.Set(raw(`1`)), noteB.Set(raw(`2`))}, store.Base{NextSeq: next})
		var corrupt *store.Corrupt
		if fits := err == nil && len(records) == 2; fits != want || !want && !errors.As(err, &corrupt) {
			t.Errorf("two writes from %d on: %d records, %v", next, len(records), err)
		}
	}
}
