package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/subsession"
)

// newFamily makes a parent with two children and a grandchild.
func newFamily(t *testing.T, backend string) killWorld {
	t.Helper()
	w := killWorld{repo: t.TempDir(), session: "P"}
	repo, err := store.NewRepo(store.RepoOptions{Dir: w.repo, Drivers: drivers()})
	if err != nil {
		t.Fatal(err)
	}
	for id, children := range map[string][]string{"P": {"A", "B"}, "A": {"G"}, "B": nil, "G": nil} {
		s, _, err := repo.Create(t.Context(), store.CreateOptions{ID: id, Backend: backend})
		if err != nil {
			t.Fatal(err)
		}
		var tx store.Tx
		for _, c := range children {
			raw := json.RawMessage(fmt.Sprintf(`{"subSessionId":%q,"location":"local","outcomeGeneration":1}`, c))
			tx = append(tx, store.NewValue[json.RawMessage](subsession.Refs().Address().Namespace, "c:"+c).Set(raw))
		}
		if len(tx) > 0 {
			err = s.Mutate(t.Context(), store.MainLane, func(m *store.Mutator) error {
				_, err := m.Commit(tx)
				return err
			})
		}
		if err := firstOf(err, s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w killWorld) deletion(t *testing.T, killAfter int) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("drover-kill")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "delete", "P", "--yes")
	cmd.Env = append(os.Environ(), "DROVER_REPO="+w.repo, "HOME=/", fmt.Sprint("KILL_AFTER=", killAfter))
	return cmd
}

// wantDeleted deletes what is left, and looks at the folder.
func (w killWorld) wantDeleted(t *testing.T) {
	t.Helper()
	if code, out := w.here("verify", "--all"); code != exitOK {
		t.Errorf("a session is damaged: %d %s", code, out)
	}
	if code, out := w.here("delete", "P", "--yes", "--json"); code != exitOK {
		t.Errorf("deleting again: %d %s", code, out)
	}
	files, err := os.ReadDir(w.repo)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if name := f.Name(); name != ".tombstones" && name != ".drover-catalog" {
			t.Errorf("%s is left", name)
		}
	}
	if files, err := os.ReadDir(w.repo + "/.tombstones"); err != nil || len(files) != 4 {
		t.Errorf("%v, %v", files, err)
	}
	graves, err := (subsession.Tombstones{Dir: w.repo}).List()
	if err != nil || len(graves) != 4 || graves[3].Tombstone.GenerationFloor != 2 {
		t.Errorf("tombstones %+v, %v", graves, err)
	}
}

// A deletion that is killed after any of its steps is finished by the next one.
func TestDeleteIsKilledAfterEveryStep(t *testing.T) {
	for _, backend := range []string{"sqlite", "jsonl"} {
		t.Run(backend, func(t *testing.T) {
			for k := 1; ; k++ {
				w := newFamily(t, backend)
				err := w.deletion(t, k).Run()
				if err != nil && !wasKilled(err) {
					t.Fatalf("step %d: %v", k, err)
				}
				w.wantDeleted(t)
				if t.Failed() {
					t.Fatalf("after a kill at step %d", k)
				}
				if err == nil {
					if k <= 16 {
						t.Errorf("the deletion had only %d steps", k-1)
					}
					return
				}
			}
		})
	}
}

// The same at random instants (D64).
func TestDeleteIsKilledAtRandom(t *testing.T) {
	kills := 10
	if os.Getenv("DROVER_TEST_LONG") != "" {
		kills = 50
	}
	for _, backend := range []string{"sqlite", "jsonl"} {
		t.Run(backend, func(t *testing.T) {
			for k := newInstants(kills); k.more(t); {
				w := newFamily(t, backend)
				k.kill(t, w.deletion(t, 0))
				w.wantDeleted(t)
			}
		})
	}
}

// At a terminal the question is asked, and only yes is yes.
func TestDeleteAsks(t *testing.T) {
	for answer, want := range map[string]exitCode{"y\n": exitOK, "YES\n": exitOK, "n\n": exitRefused, "\n": exitRefused, "": exitRefused} {
		w := newFamily(t, "jsonl")
		var stdout, stderr strings.Builder
		f := newFactory([]string{"HOME=/", "DROVER_REPO=" + w.repo}, newStreams(strings.NewReader(answer), &stdout, &stderr))
		f.io.inTTY = true
		if code := run(f, []string{"delete", "P"}); code != want {
			t.Errorf("%q: exit code %d, want %d: %s", answer, code, want, stderr.String())
		}
		if !strings.Contains(stderr.String(), "delete G  ref  depth 2") || !strings.Contains(stderr.String(), "Delete 4 session(s)? [y/N]") {
			t.Errorf("%q: asked %q", answer, stderr.String())
		}
		_, err := os.Stat(w.repo + "/P.jsonl")
		if gone := os.IsNotExist(err); gone != (want == exitOK) {
			t.Errorf("%q: gone is %v", answer, gone)
		}
	}
}
