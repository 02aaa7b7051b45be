package subsession_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/fsx/fsxtest"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/memory"
	"github.com/drover-run/drover/pkg/store/sqlite"
	"github.com/drover-run/drover/pkg/subsession"
)

func TestTrees(t *testing.T) {
	cases := map[string]struct {
		tree    []session
		deleted string // in order
		left    string
		forks   string
		remote  string
	}{
		"by refs": {
			tree:    []session{{id: "P", local: []string{"C", "D"}}, {id: "C", local: []string{"G"}}, {id: "D"}, {id: "G"}, {id: "X"}},
			deleted: "G C D P", left: "X",
		},
		"by pointers": {
			tree:    []session{{id: "P"}, {id: "C", parent: "P"}, {id: "D", parent: "P"}, {id: "G", parent: "C"}, {id: "X"}},
			deleted: "G C D P", left: "X",
		},
		"by both": {
			tree:    []session{{id: "P", local: []string{"C"}}, {id: "C", parent: "P", local: []string{"G"}}, {id: "G", parent: "C"}},
			deleted: "G C P",
		},
		"a circle of two": {
			tree:    []session{{id: "P", parent: "C", local: []string{"C"}}, {id: "C", parent: "P"}},
			deleted: "C P",
		},
		"itself": {
			tree:    []session{{id: "P", parent: "P", local: []string{"P"}}},
			deleted: "P",
		},
		"forks stay": {
			tree: []session{
				{id: "P", local: []string{"C"}}, {id: "C", parent: "P"},
				{id: "F", fork: "P"}, {id: "FC", fork: "C"}, {id: "S", fork: "P", parent: "P"},
			},
			deleted: "C S P", left: "F FC", forks: "F FC",
		},
		"a remote ref excludes, whatever the child says": {
			tree:    []session{{id: "P", away: []string{"R"}}, {id: "R", parent: "P"}},
			deleted: "P", left: "R", remote: "R",
		},
		"a remote child excludes itself": {
			tree:    []session{{id: "P"}, {id: "R", parent: "P", remote: true}},
			deleted: "P", left: "R",
		},
		"remote for one, local for another": {
			tree:    []session{{id: "P", local: []string{"C"}, away: []string{"T"}}, {id: "C", local: []string{"T"}}, {id: "T"}},
			deleted: "T C P",
		},
		"a child that was never made": {
			tree:    []session{{id: "P", local: []string{"C"}}, {id: "G", parent: "C"}},
			deleted: "G P",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			everyBackend(t, func(t *testing.T, w *world) {
				w.make(c.tree...)
				d := w.delete("P")
				if got := strings.Join(d.Deleted, " "); got != c.deleted {
					t.Errorf("deleted %q, want %q", got, c.deleted)
				}
				if got := w.left(); got != c.left {
					t.Errorf("left is %q, want %q", got, c.left)
				}
				if got := strings.Join(d.KeptForks, " "); got != c.forks {
					t.Errorf("kept forks %q, want %q", got, c.forks)
				}
				if got := strings.Join(d.KeptRemote, " "); got != c.remote {
					t.Errorf("kept remote %q, want %q", got, c.remote)
				}
				w.wantNoResidue(d.Deleted...)

				// Again: nothing is left to do, and remote children are still known.
				again := w.delete("P")
				if again.RootExisted || len(again.Deleted) > 0 || w.left() != c.left {
					t.Errorf("the second time: %+v, left %q", again, w.left())
				}
			})
		})
	}
}

func TestPlanTellsCircles(t *testing.T) {
	w := newWorld(t, &memory.Driver{})
	w.make(
		session{id: "P", local: []string{"A", "B", "S"}},
		session{id: "A", local: []string{"B"}}, session{id: "B", local: []string{"A"}}, session{id: "S", local: []string{"S"}},
	)
	plan, err := w.Plan(t.Context(), w.root("P"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{"A", "B"}, {"S"}}, plan.Cycles); diff != "" {
		t.Error(diff)
	}
}

func TestUnknownRoot(t *testing.T) {
	w := newWorld(t, &memory.Driver{})
	if _, err := w.Delete(t.Context(), w.root("P")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	w.make(session{id: "C", parent: "P"})
	if d := w.delete("P"); d.RootExisted || !slices.Equal(d.Deleted, []string{"C"}) {
		t.Errorf("through a root that is gone: %+v", d)
	}
}

// A ref that does not say where its child lives stops everything.
func TestRefWithoutLocation(t *testing.T) {
	everyBackend(t, func(t *testing.T, w *world) {
		w.make(session{id: "P", local: []string{"C"}}, session{id: "C"})
		s, err := w.repo.Open(t.Context(), w.root("C").Ref)
		if err != nil {
			t.Fatal(err)
		}
		err = s.Mutate(t.Context(), store.MainLane, func(m *store.Mutator) error {
			_, err := m.Commit(store.Tx{refAt("c:x", "x", "", 0)})
			return err
		})
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		_, err = w.Delete(t.Context(), w.root("P"))
		if bad, ok := errors.AsType[*subsession.BadRef](err); !ok || bad.SessionID != "C" || bad.Key != "c:x" {
			t.Errorf("got %v", err)
		}
		if w.left() != "C P" {
			t.Errorf("left is %q", w.left())
		}
	})
}

func TestOpenOperationRefuses(t *testing.T) {
	everyBackend(t, func(t *testing.T, w *world) {
		w.make(session{id: "P", local: []string{"C"}}, session{id: "C", open: true})
		_, err := w.Delete(t.Context(), w.root("P"))
		if e, ok := errors.AsType[*subsession.OpenOperation](err); !ok || e.Operations[0].SessionID != "C" {
			t.Errorf("got %v", err)
		}
		if w.left() != "C P" {
			t.Errorf("left is %q", w.left())
		}
		w.Force = true
		w.delete("P")
		if w.left() != "" {
			t.Errorf("left with --force: %q", w.left())
		}
	})
}

// Two repositories over one folder stand for two processes.
func TestLeasedLeaf(t *testing.T) {
	for _, d := range []store.Driver{jsonl.Driver{}, sqlite.Driver{}} {
		t.Run(d.Name(), func(t *testing.T) {
			w := newWorld(t, d)
			w.make(
				session{id: "P", local: []string{"A", "B"}}, session{id: "A", local: []string{"L"}}, session{id: "L"},
				session{id: "B", local: []string{"M"}}, session{id: "M"},
			)
			owner, err := w.open(d).Open(t.Context(), w.root("L").Ref)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Delete(t.Context(), w.root("P")); !isLeased(err) {
				t.Errorf("got %v, want *Leased", err)
			}
			if w.left() != "A B L M P" {
				t.Errorf("left is %q", w.left())
			}
			w.Partial = true
			part, err := w.Delete(t.Context(), w.root("P"))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(part.Deleted, " "); got != "M B" || len(part.Failed) != 3 {
				t.Errorf("deleted %q, failed %+v", got, part.Failed)
			}
			if err := owner.Close(); err != nil {
				t.Fatal(err)
			}
			rest := w.delete("P")
			if got := strings.Join(rest.Deleted, " "); got != "L A P" || w.left() != "" {
				t.Errorf("the rest: deleted %q, left %q", got, w.left())
			}
		})
	}
}

func isLeased(err error) bool {
	_, ok := errors.AsType[*subsession.Leased](err)
	return ok
}

// A session that this process has open is nobody else's, but not free either.
func TestOpenInThisProcess(t *testing.T) {
	w := newWorld(t, jsonl.Driver{})
	w.make(session{id: "P", local: []string{"C"}}, session{id: "C"})
	s, err := w.repo.Open(t.Context(), w.root("C").Ref)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Delete(t.Context(), w.root("P")); !errors.Is(err, store.ErrOpen) {
		t.Errorf("got %v, want ErrOpen", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if w.left() != "C P" {
		t.Errorf("left is %q", w.left())
	}
}

// TestMovedMeanwhile: a session whose file is not where the plan saw it is deleted where
// it is now, and never said to be gone.
func TestMovedMeanwhile(t *testing.T) {
	for _, to := range []store.Driver{jsonl.Driver{}, sqlite.Driver{}} {
		t.Run("to "+to.Name(), func(t *testing.T) {
			drivers := []store.Driver{jsonl.Driver{}, sqlite.Driver{}}
			if to.Name() == drivers[0].Name() {
				slices.Reverse(drivers)
			}
			w := newWorld(t, drivers...)
			w.make(session{id: "P", local: []string{"C"}}, session{id: "C"})
			root, other, mint := w.root("P"), w.open(drivers...), w.NewID
			w.NewID = func() string { // asked for when the plan is made and nothing is owned
				for _, id := range []string{"C", "P"} {
					if _, err := other.Move(t.Context(), w.root(id).Ref, store.MoveOptions{Backend: to.Name(), Discard: true}); err != nil {
						t.Error(err)
					}
				}
				return mint()
			}
			d, err := w.Delete(t.Context(), root)
			if err != nil {
				t.Fatal(err)
			}
			if len(d.Deleted) != 2 || len(d.AlreadyGone)+len(d.Failed) > 0 || w.left() != "" {
				t.Errorf("%+v; left is %q", d, w.left())
			}
			// A root that is told to be where it was, too.
			w.NewID = mint
			w.make(session{id: "Q"})
			root = w.root("Q")
			if _, err := other.Move(t.Context(), root.Ref, store.MoveOptions{Backend: to.Name(), Discard: true}); err != nil {
				t.Fatal(err)
			}
			if d, err := w.Delete(t.Context(), root); err != nil || len(d.Deleted) != 1 || w.left() != "" {
				t.Errorf("%+v, %v; left is %q", d, err, w.left())
			}
		})
	}
}

// The same id again starts above every generation of the one that was deleted,
// and the file itself goes on from its generation (D57).
func TestSameIDAgain(t *testing.T) {
	everyBackend(t, func(t *testing.T, w *world) {
		for round := range 2 {
			w.make(session{id: "P", local: []string{"C"}, gen: 6})
			w.delete("P")
			s, ref, err := w.repo.Create(t.Context(), store.CreateOptions{ID: "P"})
			if err != nil {
				t.Fatal(err)
			}
			floor, ok, err := store.Get(t.Context(), s, subsession.Floor())
			if err != nil || !ok || floor.Value != 7 {
				t.Errorf("floor %v, %v, %v, want 7", floor.Value, ok, err)
			}
			if g := s.Header().Generation; g != int64(2*round+2) {
				t.Errorf("generation %d, want %d", g, 2*round+2)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			r, err := w.repo.View(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			for p := range store.Verify(t.Context(), r) {
				t.Errorf("%+v", p)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			// Without refs the old floor stays.
			w.delete("P")
			if grave, err := (subsession.Tombstones{Dir: w.dir}).Read("P"); err != nil || grave.GenerationFloor != 7 {
				t.Errorf("tombstone %+v, %v", grave, err)
			}
		}
	})
}

func TestTombstoneKeepsTheTotals(t *testing.T) {
	everyBackend(t, func(t *testing.T, w *world) {
		w.make(session{id: "P", local: []string{"C"}, away: []string{"R"}, cost: 0.25}, session{id: "C", parent: "P", cost: 0.5})
		exported := map[string]int{}
		w.Export = func(_ context.Context, id string, rows []store.UsageRow) error {
			exported[id] += len(rows)
			return nil
		}
		d := w.delete("P")
		if d.Usage.Cost.Total != 0.75 {
			t.Errorf("total cost %v", d.Usage.Cost.Total)
		}
		if diff := cmp.Diff(map[string]int{"P": 1, "C": 1}, exported); diff != "" {
			t.Error(diff)
		}
		graves := subsession.Tombstones{Dir: w.dir}
		parent, err := graves.Read("P")
		if err != nil {
			t.Fatal(err)
		}
		child, err := graves.Read("C")
		if err != nil {
			t.Fatal(err)
		}
		if parent.UsageTotals.Cost.Total != 0.25 || child.UsageTotals.Cost.Total != 0.5 {
			t.Errorf("costs %v and %v", parent.UsageTotals.Cost.Total, child.UsageTotals.Cost.Total)
		}
		if diff := cmp.Diff([][]string{{"C"}, {"R"}}, [][]string{parent.LocalChildren, parent.RemoteChildren}); diff != "" {
			t.Error(diff)
		}
		if child.SpawnParent == nil || *child.SpawnParent != "P" || child.Root != "P" || child.CascadeID != d.CascadeID {
			t.Errorf("child's tombstone %+v", child)
		}
		text, err := os.ReadFile(w.dir + "/.tombstones/P.json")
		if err != nil || strings.Contains(string(text), "name of") {
			t.Errorf("the tombstone holds content: %s %v", text, err)
		}
	})
}

// An export that fails keeps the session and its ancestors, and not its siblings.
func TestExportFails(t *testing.T) {
	everyBackend(t, func(t *testing.T, w *world) {
		w.make(session{id: "P", local: []string{"A", "B"}}, session{id: "A"}, session{id: "B"})
		w.Export = func(_ context.Context, id string, _ []store.UsageRow) error {
			if id == "A" {
				return os.ErrDeadlineExceeded
			}
			return nil
		}
		d, err := w.Delete(t.Context(), w.root("P"))
		if err != nil {
			t.Fatal(err)
		}
		if w.left() != "A P" || len(d.Failed) != 2 || !errors.Is(d.Failed[0].Err, os.ErrDeadlineExceeded) || !errors.Is(d.Failed[1].Err, subsession.ErrChildKept) {
			t.Errorf("left %q, failed %+v", w.left(), d.Failed)
		}
	})
}

func TestSearchIndexHasNoAuthority(t *testing.T) {
	w := newWorld(t, jsonl.Driver{})
	w.make(session{id: "P"})
	w.Forget = func(context.Context, string) error { return os.ErrPermission }
	if d := w.delete("P"); d.SearchRemoved || len(d.Warnings) != 1 || w.left() != "" {
		t.Errorf("%+v, left %q", d, w.left())
	}
}

// What looking costs: nothing, also when somebody owns a session.
func TestPlanChangesNothing(t *testing.T) {
	for _, d := range []store.Driver{jsonl.Driver{}, sqlite.Driver{}} {
		t.Run(d.Name(), func(t *testing.T) {
			w := newWorld(t, d)
			w.make(session{id: "P", local: []string{"C"}, away: []string{"R"}}, session{id: "C", open: true}, session{id: "F", fork: "P"})
			owner, err := w.open(d).Open(t.Context(), w.root("C").Ref)
			if err != nil {
				t.Fatal(err)
			}
			defer owner.Close()
			before := w.files()
			c := w.cascade(w.repo.Untouched())
			plan, err := c.Plan(t.Context(), w.root("P"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, w.files()); diff != "" {
				t.Error(diff)
			}
			if n := plan.Nodes[0]; n.ID != "C" || n.Lease == nil || !n.Lease.Live || len(n.Open) != 1 || n.Bytes == 0 || n.Via != subsession.ViaRef {
				t.Errorf("%+v", n)
			}
			if len(plan.KeptRemote) != 1 || plan.KeptRemote[0].RefKey != "e:R" {
				t.Errorf("kept remote %+v", plan.KeptRemote)
			}
		})
	}
}

// A damaged root goes by its name, with what names it as its parent; a damaged
// child stays.
func TestDamaged(t *testing.T) {
	for _, d := range []store.Driver{jsonl.Driver{}, sqlite.Driver{}} {
		t.Run(d.Name(), func(t *testing.T) {
			w := newWorld(t, d)
			w.make(session{id: "P", local: []string{"C"}}, session{id: "C", parent: "P", local: []string{"G"}}, session{id: "G", parent: "C"})
			if err := os.WriteFile(w.root("C").Ref.Path, []byte("this is no session\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			part := w.delete("P")
			if got := strings.Join(part.Unreadable, " "); got != "C" || w.left() != "C G" || len(part.Warnings) != 1 {
				t.Errorf("unreadable %q, left %q, %v", got, w.left(), part.Warnings)
			}
			rest := w.delete("C")
			if got := strings.Join(rest.Deleted, " "); got != "G C" || w.left() != "" {
				t.Errorf("deleted %q, left %q", got, w.left())
			}
			w.wantNoResidue("P", "C", "G")
		})
	}
}

// A deletion takes leases in windows; a chain as long as this has many of them.
func TestDeepChain(t *testing.T) {
	const depth = 10_000
	next := func(id, _ string, at int) ([]string, bool, error) {
		if at == depth {
			return nil, true, nil
		}
		return []string{fmt.Sprintf("%06d", at+1)}, true, nil
	}
	steps, err := subsession.DeleteOrder("000000", next)
	if err != nil || len(steps) != depth+1 || steps[0].Depth != depth || steps[depth].ID != "000000" {
		t.Fatalf("%d steps, %v", len(steps), err)
	}

	if testing.Short() {
		t.Skip("makes ten thousand sessions")
	}
	w := newWorld(t, &memory.Driver{})
	w.FS = &fsxtest.FS{Lazy: true} // no power is lost here
	for i := range depth {
		s := session{id: fmt.Sprintf("%06d", i)}
		if i < depth-1 {
			s.local = []string{fmt.Sprintf("%06d", i+1)}
		}
		if i > 0 {
			s.parent = fmt.Sprintf("%06d", i-1)
		}
		w.make(s)
	}
	most := 0
	w.Passed = func(stage subsession.Stage, id string) {
		if stage == subsession.Entombed && most == 0 {
			listed, err := w.repo.List(context.Background())
			if err != nil {
				t.Error(err)
			}
			for _, l := range listed {
				if lease, err := w.repo.Lease(context.Background(), l.Ref); err == nil && lease != nil {
					most++
				}
			}
		}
	}
	d := w.delete("000000")
	if len(d.Deleted) != depth || w.left() != "" {
		t.Errorf("deleted %d, left %.100q", len(d.Deleted), w.left())
	}
	if most == 0 || most > 65 {
		t.Errorf("%d leases at a time", most)
	}
}

func TestTombstonesMerge(t *testing.T) {
	graves := subsession.Tombstones{Dir: t.TempDir()}
	write := func(s subsession.Tombstone) {
		t.Helper()
		if err := graves.Write(s); err != nil {
			t.Fatal(err)
		}
	}
	write(subsession.Tombstone{ID: "P", GenerationFloor: 5, LocalChildren: []string{"B", "A"}})
	write(subsession.Tombstone{ID: "P", GenerationFloor: 3, StoreGeneration: 2, LocalChildren: []string{"C", "A"}, RemoteChildren: []string{"R"}})
	got, err := graves.Read("P")
	if err != nil {
		t.Fatal(err)
	}
	want := &subsession.Tombstone{
		V: 1, ID: "P", GenerationFloor: 5, StoreGeneration: 2,
		LocalChildren: []string{"A", "B", "C"}, RemoteChildren: []string{"R"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := os.WriteFile(graves.Dir+"/.tombstones/P.json", []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := graves.Read("P"); !isCorrupt(err) {
		t.Errorf("a broken tombstone: %v", err)
	}
	if _, err := graves.Read("../P"); err == nil {
		t.Error("an id became a path")
	}
}

func isCorrupt(err error) bool {
	_, ok := errors.AsType[*store.Corrupt](err)
	return ok
}
