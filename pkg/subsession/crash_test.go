package subsession_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/internal/fsx/fsxtest"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/sqlite"
	"github.com/drover-run/drover/pkg/subsession"
)

func family() []session {
	return []session{
		{id: "P", local: []string{"A", "B"}, away: []string{"R"}, gen: 3}, {id: "A", parent: "P", local: []string{"G"}},
		{id: "B"}, {id: "G", parent: "A"}, {id: "R", parent: "P"}, {id: "F", fork: "P"},
	}
}

// wantFinished deletes again what an end in the middle left.
func (w *world) wantFinished(when string) {
	w.t.Helper()
	for range 2 { // and once more, when nothing is left to do
		d, err := w.Delete(context.Background(), w.root("P"))
		if err != nil || len(d.Failed) > 0 {
			w.t.Errorf("%s: %v %+v", when, err, d)
			return
		}
	}
	if got := w.left(); got != "F R" {
		w.t.Errorf("%s: left is %q", when, got)
	}
	w.wantNoResidue("P", "A", "B", "G")
	grave, err := (subsession.Tombstones{Dir: w.dir}).Read("P")
	if err != nil || grave == nil || grave.GenerationFloor != 4 || strings.Join(grave.RemoteChildren, " ") != "R" {
		w.t.Errorf("%s: tombstone %+v, %v", when, grave, err)
	}
}

// wantReachable checks what an end in the middle must not break: whoever is left
// has all of its ancestors, and is sound.
func (w *world) wantReachable(when string) {
	w.t.Helper()
	left := " " + w.left() + " "
	for _, edge := range []string{"G A", "A P", "B P"} {
		child, parent, _ := strings.Cut(edge, " ")
		if strings.Contains(left, " "+child+" ") && !strings.Contains(left, " "+parent+" ") {
			w.t.Errorf("%s: %s is there without %s:%s", when, child, parent, left)
		}
	}
	listed, err := w.repo.List(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, l := range listed {
		if l.Err != nil {
			w.t.Errorf("%s: %s: %v", when, l.Ref.ID, l.Err)
		}
	}
}

type crash struct{}

// A deletion that ends after any stage of any session is finished by the next.
func TestCrashAfterEveryStage(t *testing.T) {
	stages := []subsession.Stage{subsession.Exported, subsession.Entombed, subsession.Removed, subsession.Released, subsession.Forgotten}
	everyBackend(t, func(t *testing.T, first *world) {
		driver := func() store.Driver {
			switch {
			case strings.HasSuffix(t.Name(), "jsonl"):
				return jsonl.Driver{}
			case strings.HasSuffix(t.Name(), "sqlite"):
				return sqlite.Driver{}
			}
			return nil
		}
		for _, stage := range stages {
			for _, id := range []string{"G", "A", "B", "P"} {
				w := first
				if d := driver(); d != nil {
					w = newWorld(t, d)
				} else if w.left() != "" {
					w.delete("F")
					w.delete("R")
				}
				w.make(family()...)
				w.Export = func(context.Context, string, []store.UsageRow) error { return nil }
				w.Passed = func(s subsession.Stage, at string) {
					if s == stage && at == id {
						panic(crash{})
					}
				}
				func() {
					defer func() {
						if r := recover(); r != (crash{}) {
							t.Errorf("%s of %s: no crash: %v", stage, id, r)
						}
					}()
					_, _ = w.Delete(t.Context(), w.root("P")) // it never returns
				}()
				w.Passed = nil
				when := string(stage) + " " + id
				w.wantReachable(when)
				w.wantFinished(when)
				if t.Failed() {
					return
				}
			}
		}
	})
}

// Every call that changes a file fails once, on JSONL and of the tombstones; what
// it does not fail is still deleted, and the next run finishes.
func TestEveryFileCallFails(t *testing.T) {
	for _, cause := range []error{syscall.EIO, syscall.ENOSPC} {
		for n := 0; ; n++ {
			faulty := &fsxtest.FS{Lazy: true}
			w := newWorld(t, jsonl.Driver{FS: faulty})
			w.make(family()...)
			w.FS = faulty
			faulty.Fail(fsxtest.Rule{Op: fsxtest.Remove, Skip: n, Err: cause})
			if n >= 20 {
				faulty.Heal()
				faulty.Fail(fsxtest.Rule{Op: fsxtest.Rename, Skip: n - 20, Err: cause})
			}
			if n >= 30 {
				faulty.Heal()
				faulty.Fail(fsxtest.Rule{Op: fsxtest.SyncDir, Skip: n - 30, Err: cause})
			}
			d, err := w.Delete(t.Context(), w.root("P"))
			hit := len(faulty.Hits()) > 0
			if hit && err == nil && len(d.Failed) == 0 {
				t.Errorf("call %d failed and nobody was told", n)
			}
			if hit && err == nil && !errors.Is(d.Failed[0].Err, cause) {
				t.Errorf("call %d: %v", n, d.Failed[0].Err)
			}
			faulty.Heal()
			w.wantReachable("fault")
			w.wantFinished("fault")
			if t.Failed() {
				t.Fatalf("at call %d", n)
			}
			if n >= 50 {
				break
			}
		}
	}
}

// Two deletions of one tree: what one has is refused to the other, which finds it
// done later.
func TestTwoDeletions(t *testing.T) {
	for _, d := range []store.Driver{jsonl.Driver{}, sqlite.Driver{}} {
		t.Run(d.Name(), func(t *testing.T) {
			w := newWorld(t, d)
			w.make(family()...)
			other := w.cascade(w.open(d))
			var once sync.Once
			w.Passed = func(stage subsession.Stage, id string) {
				once.Do(func() {
					if _, err := other.Delete(context.Background(), w.root("P")); !isLeased(err) {
						t.Errorf("the second deletion: %v, want *Leased", err)
					}
				})
			}
			w.delete("P")
			w.Passed = nil
			if again, err := other.Delete(t.Context(), subsession.Root{ID: "P"}); err != nil || len(again.Deleted) != 0 {
				t.Errorf("afterwards: %+v, %v", again, err)
			}
			w.wantFinished("two deletions")
		})
	}
}

// A child that is claimed while the leases are taken is deleted with the rest.
func TestClaimRacesTheWalk(t *testing.T) {
	for _, d := range []store.Driver{jsonl.Driver{}, sqlite.Driver{}} {
		t.Run(d.Name(), func(t *testing.T) {
			racing := &racingDriver{Driver: d}
			w := newWorld(t, racing)
			w.make(family()...)
			other := newWorld(t, d)
			other.dir, other.repo = w.dir, w.open(d)
			racing.race = func() { other.make(session{id: "N", parent: "B"}) }
			done := w.delete("P")
			if w.left() != "F R" {
				t.Errorf("left is %q, deleted %v", w.left(), done.Deleted)
			}
		})
	}
}

// racingDriver lets somebody be faster than its first claim.
type racingDriver struct {
	store.Driver
	once sync.Once
	race func()
}

func (d *racingDriver) Claim(ctx context.Context, path string, o store.OpenOptions) (store.Claim, error) {
	d.once.Do(d.race)
	return d.Driver.Claim(ctx, path, o)
}

// What a killed deletion had begun to write goes with the next; what another is
// writing does not.
func TestHalfWrittenTombstones(t *testing.T) {
	w := newWorld(t, jsonl.Driver{})
	w.make(family()...)
	graves := filepath.Join(w.dir, ".tombstones")
	if err := os.Mkdir(graves, 0o700); err != nil {
		t.Fatal(err)
	}
	var temps []string
	for _, id := range []string{"G", "X"} {
		f, name, err := fsx.CreateTemp(fsx.OS{}, filepath.Join(graves, id+".json"))
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		temps = append(temps, name)
	}
	w.delete("P")
	if _, err := os.Stat(temps[0]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v", temps[0], err)
	}
	if _, err := os.Stat(temps[1]); err != nil {
		t.Error(err)
	}
}
