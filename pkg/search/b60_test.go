package search_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/bulk"
	"github.com/drover-run/drover/pkg/search"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/sqlite"
)

// childEnv makes this binary a process that syncs: index and repository.
const childEnv = "DROVER_TEST_SEARCH_SYNC"

// everyText is a word that every text of these tests has.
const everyText = "drover"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		os.Exit(syncChild(path, os.Args[len(os.Args)-1]))
	}
	os.Exit(m.Run())
}

// copyFile puts a file beside another, as a person would.
func (w *world) copyFile(from, to string) {
	w.t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func TestB60HitsAreWhatIsInTheFiles(t *testing.T) {
	w := newWorld(t)
	a := w.create("aaaaaa", "jsonl", "alpha one", "alpha two")
	b := w.create("bbbbbb", "sqlite", "alpha three")
	w.sync()
	w.want("alpha", "aaaaaa:alpha one", "aaaaaa:alpha two", "bbbbbb:alpha three")

	// A session that arrives by copy.
	elsewhere := &world{t: t, repo: newRepo(t, t.TempDir())}
	c := elsewhere.create("cccccc", "jsonl", "alpha four")
	w.copyFile(c.Path, filepath.Join(w.repo.Dir(), "cccccc.jsonl"))
	w.sync()
	w.want("alpha", "aaaaaa:alpha one", "aaaaaa:alpha two", "bbbbbb:alpha three", "cccccc:alpha four")

	// One that is deleted.
	if err := w.repo.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if done := w.sync(); done.Removed != 1 {
		t.Errorf("%+v; want one removed", done)
	}
	w.want("alpha", "aaaaaa:alpha one", "aaaaaa:alpha two", "cccccc:alpha four")

	// One that is forked: both have the history.
	if _, err := w.repo.Fork(t.Context(), a, nil, store.ForkOptions{ID: "dddddd"}); err != nil {
		t.Fatal(err)
	}
	w.sync()
	w.want("alpha", "aaaaaa:alpha one", "aaaaaa:alpha two", "cccccc:alpha four", "dddddd:alpha one", "dddddd:alpha two")

	// One whose whole store is replaced: its generation is another.
	d := elsewhere.create("aaaaaa", "jsonl", "alpha five")
	v, err := elsewhere.repo.View(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	snap, err := v.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.repo.Import(t.Context(), snap, store.ImportOptions{Replace: true}); err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	w.sync()
	w.want("alpha", "aaaaaa:alpha five", "cccccc:alpha four", "dddddd:alpha one", "dddddd:alpha two")

	// One that is put back by hand as it was, in the same generation.
	w.copyFile(d.Path, a.Path)
	w.sync()
	w.copyFile(d.Path, a.Path+".kept")
	elsewhere.say(d, "alpha six")
	w.copyFile(d.Path, a.Path)
	w.sync()
	w.want("alpha", "aaaaaa:alpha five", "aaaaaa:alpha six", "cccccc:alpha four", "dddddd:alpha one", "dddddd:alpha two")
	w.copyFile(a.Path+".kept", a.Path)
	w.sync()
	w.want("alpha", "aaaaaa:alpha five", "cccccc:alpha four", "dddddd:alpha one", "dddddd:alpha two")

	// An index that is made anew says the same.
	before := w.entries("alpha")
	if err := w.x.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.want("alpha")
	w.sync()
	w.want("alpha", before...)
}

// bulkRepo is a repository of n sessions with some entries each.
func bulkRepo(tb testing.TB, n, entries int) *store.Repo {
	tb.Helper()
	repo := newRepo(tb, tb.TempDir())
	for i := range n {
		snap, err := bulk.Shape{ID: "bulk" + strconv.Itoa(1000+i), Entries: entries}.Snapshot()
		if err != nil {
			tb.Fatal(err)
		}
		backend := []string{"jsonl", "sqlite"}[i%2]
		if _, err := repo.Import(tb.Context(), snap, store.ImportOptions{Backend: backend}); err != nil {
			tb.Fatal(err)
		}
	}
	return repo
}

// rows are all that an index has, each entry as often as it is in it.
func rows(t *testing.T, x *search.Index) []string {
	t.Helper()
	hits, err := x.Entries(t.Context(), search.Query{Text: everyText})
	if err != nil {
		t.Fatal(err)
	}
	all := []string{}
	for _, h := range hits {
		all = append(all, h.SessionID+" "+h.EntryID)
	}
	slices.Sort(all)
	return all
}

// wantWhole checks that each entry of the repository is in the index once.
func wantWhole(t *testing.T, x *search.Index, repo *store.Repo) {
	t.Helper()
	want := []string{}
	listed, err := repo.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range listed {
		v, err := repo.View(t.Context(), l.Ref)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := v.ScanEntries(t.Context(), store.EntryQuery{Type: store.TypeMessage})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Message().Text() != "" {
				want = append(want, l.Ref.ID+" "+e.ID)
			}
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, rows(t, x)); diff != "" || len(want) == 0 {
		t.Errorf("the index of %d entries (-want +got):\n%.2000s", len(want), diff)
	}
}

// syncChild is a process that syncs and ends.
func syncChild(path, repoDir string) int {
	ctx := context.Background()
	repo, err := store.NewRepo(store.RepoOptions{Dir: repoDir, Drivers: []store.Driver{sqlite.Driver{}, jsonl.Driver{}}})
	if err != nil {
		return 1
	}
	x, err := search.Open(ctx, path)
	if err != nil {
		return 1
	}
	if _, err := x.Sync(ctx, repo, search.SyncOptions{}); err != nil {
		return 1
	}
	if err := x.Close(); err != nil {
		return 1
	}
	return 0
}

func syncProcess(t *testing.T, path string, repo *store.Repo) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], repo.Dir())
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	cmd.Stderr = os.Stderr
	return cmd
}

// A sync that is killed at any moment, again and again, leaves an index that the
// next one completes.
func TestB60KilledSync(t *testing.T) {
	repo := bulkRepo(t, 6, 400)
	path := filepath.Join(t.TempDir(), "index.db")
	rounds := 12
	if os.Getenv("DROVER_TEST_LONG") != "" {
		rounds = 100
	}
	seed := uint64(os.Getpid())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	killed := 0
	for range rounds {
		cmd := syncProcess(t, path, repo)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(random.IntN(300))*time.Millisecond, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		if err == nil { // it came through: begin again
			if err := search.Discard(t.Context(), path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
			t.Fatalf("a sync after a kill fails: %v", err)
		}
		killed++
	}
	if killed == 0 {
		t.Log("no sync was killed")
	}
	x := openIndex(t, path)
	if x.Discarded() != nil {
		t.Errorf("a kill damaged the index: %v", x.Discarded())
	}
	if _, err := x.Sync(t.Context(), repo, search.SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	wantWhole(t, x, repo)
}

// Processes that sync the same repository at once have each entry in the index once.
func TestB60SyncsAtOnce(t *testing.T) {
	repo := bulkRepo(t, 6, 300)
	path := filepath.Join(t.TempDir(), "index.db")
	var all []*exec.Cmd
	for range 4 {
		cmd := syncProcess(t, path, repo)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, cmd)
	}
	x := openIndex(t, path)
	if _, err := x.Sync(t.Context(), repo, search.SyncOptions{}); err != nil {
		t.Errorf("the sync of this process: %v", err)
	}
	for _, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Errorf("one of them: %v", err)
		}
	}
	wantWhole(t, x, repo)
}

// So do goroutines with an Index each, while the sessions grow.
func TestB60SyncsWhileSessionsGrow(t *testing.T) {
	w := newWorld(t)
	a := w.create("aaaaaa", "sqlite", everyText)
	b := w.create("bbbbbb", "jsonl", everyText)
	done := make(chan struct{})
	var syncs sync.WaitGroup
	for range 3 {
		x := openIndex(t, w.path)
		syncs.Go(func() {
			for {
				if _, err := x.Sync(t.Context(), w.repo, search.SyncOptions{}); err != nil {
					t.Error(err)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for range 10 {
		w.say(a, everyText, everyText)
		w.say(b, everyText)
	}
	close(done)
	syncs.Wait()
	w.sync()
	wantWhole(t, w.x, w.repo)
}

// An index that somebody discards again and again is in nobody's way: who has it
// open goes on, and the next one begins anew.
func TestB60DiscardedWhileInUse(t *testing.T) {
	repo := bulkRepo(t, 4, 50)
	path := filepath.Join(t.TempDir(), "index.db")
	done := make(chan struct{})
	var users sync.WaitGroup
	for range 3 {
		users.Go(func() {
			for {
				if err := useIndex(t.Context(), path, repo); err != nil {
					t.Error(err)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for range 25 {
		if err := search.Discard(t.Context(), path); err != nil {
			t.Error(err)
		}
		if err := useIndex(t.Context(), path, repo); err != nil {
			t.Error(err)
		}
	}
	close(done)
	users.Wait()
	x := openIndex(t, path)
	if x.Discarded() != nil {
		t.Errorf("what is left cannot be used: %v", x.Discarded())
	}
	if _, err := x.Sync(t.Context(), repo, search.SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	wantWhole(t, x, repo)
}

func useIndex(ctx context.Context, path string, repo *store.Repo) error {
	x, err := search.Open(ctx, path)
	if err != nil {
		return err
	}
	_, err = x.Sync(ctx, repo, search.SyncOptions{})
	if err == nil {
		_, err = x.Entries(ctx, search.Query{Text: everyText, Limit: 5})
	}
	return errors.Join(err, x.Discarded(), x.Close())
}
