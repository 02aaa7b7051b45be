package store_test

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

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/memory"
	"github.com/drover-run/drover/pkg/store/storetest"
)

// spy is a driver that notes which stores are read and how deep.
type spy struct {
	store.Driver
	mu              sync.Mutex // sessions are read on every core
	headers, bodies []string
	openErr         error
}

func (s *spy) Header(ctx context.Context, path string) (store.Header, error) {
	s.mu.Lock()
	s.headers = append(s.headers, filepath.Base(path))
	s.mu.Unlock()
	return s.Driver.Header(ctx, path)
}

func (s *spy) View(ctx context.Context, path string) (store.Reader, error) {
	s.mu.Lock()
	s.bodies = append(s.bodies, filepath.Base(path))
	s.mu.Unlock()
	return s.Driver.View(ctx, path)
}

func (s *spy) Open(ctx context.Context, path string, o store.OpenOptions) (store.Backend, error) {
	if s.openErr != nil {
		return nil, s.openErr
	}
	s.bodies = append(s.bodies, filepath.Base(path))
	return s.Driver.Open(ctx, path, o)
}

// twoBackends is a repository of JSONL files and memory stores.
func twoBackends(t *testing.T) (r *store.Repo, files, ram *spy) {
	t.Helper()
	files, ram = &spy{Driver: jsonl.Driver{}}, &spy{Driver: &memory.Driver{}}
	r, err := store.NewRepo(store.RepoOptions{
		Dir: filepath.Join(t.TempDir(), "a", "repo"), Drivers: []store.Driver{files, ram}, Now: func() int64 { return 1000 },
	})
	if err != nil {
		t.Fatal(err)
	}
	return r, files, ram
}

func make1(t *testing.T, r *store.Repo, o store.CreateOptions) store.Ref {
	t.Helper()
	s, ref, err := r.Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return ref
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestNewRepoTouchesNothing(t *testing.T) {
	if _, err := store.NewRepo(store.RepoOptions{Dir: t.TempDir()}); err == nil {
		t.Error("a repository without drivers was accepted")
	}
	r, _, _ := twoBackends(t)
	if l, err := r.ListFolder(t.Context(), store.ListHeaders); err != nil || len(l.Sessions)+len(l.Backups) > 0 {
		t.Errorf("an absent repository lists %+v, %v", l, err)
	}
	if _, err := r.Resolve(t.Context(), "@last"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("@last of an absent repository: %v", err)
	}
	if _, err := os.Stat(r.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading made the folder: %v", err)
	}
}

func TestRepositoryFilesArePrivate(t *testing.T) {
	r, _, _ := twoBackends(t)
	ref := make1(t, r, store.CreateOptions{})
	for path, want := range map[string]fs.FileMode{filepath.Dir(r.Dir()): 0o700, r.Dir(): 0o700, ref.Path: 0o600} {
		fi, err := os.Stat(path)
		if err != nil || fi.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want mode %v", path, fi.Mode(), err, want)
		}
	}
}

func TestAnIDIsTakenInEveryEncoding(t *testing.T) {
	r, _, _ := twoBackends(t)
	make1(t, r, store.CreateOptions{ID: "ram", Backend: "memory"})
	make1(t, r, store.CreateOptions{ID: "file", Backend: "jsonl"})
	writeFile(t, filepath.Join(r.Dir(), "broken.jsonl"), "no session")
	if err := os.Symlink("nowhere", filepath.Join(r.Dir(), "dangling.jsonl")); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"ram", "file", "broken", "dangling"} {
		for _, backend := range []string{"jsonl", "memory"} {
			if _, _, err := r.Create(t.Context(), store.CreateOptions{ID: id, Backend: backend}); !errors.Is(err, store.ErrExists) {
				t.Errorf("create %s in %s: got %v, want ErrExists", id, backend, err)
			}
		}
	}
	if _, _, err := r.Create(t.Context(), store.CreateOptions{Backend: "postgres"}); err == nil || !strings.Contains(err.Error(), `"postgres"`) {
		t.Errorf("an unknown backend: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(r.Dir(), "broken.jsonl")); err != nil || string(text) != "no session" {
		t.Errorf("the broken file is now %q, %v", text, err)
	}
}

func TestCreateThatCannotOpenLeavesNothing(t *testing.T) {
	r, files, _ := twoBackends(t)
	files.openErr = errors.New("no lock today")
	if _, _, err := r.Create(t.Context(), store.CreateOptions{ID: "s1"}); !errors.Is(err, files.openErr) {
		t.Errorf("create: %v", err)
	}
	files.openErr = nil
	make1(t, r, store.CreateOptions{ID: "s1"})
}

func TestOpenReleasesItsClaimOnFailure(t *testing.T) {
	r, files, _ := twoBackends(t)
	ref := make1(t, r, store.CreateOptions{ID: "s1"})
	files.openErr = errors.New("no lock today")
	for range 2 {
		if _, err := r.Open(t.Context(), ref); !errors.Is(err, files.openErr) {
			t.Errorf("open: %v", err)
		}
	}
	files.openErr = nil
	s, err := r.Open(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := r.Open(t.Context(), store.Ref{ID: "x", Backend: "none", Path: ref.Path}); err == nil {
		t.Error("opened in an unknown backend")
	}
}

// TestImportJudgesWhatItReplaces keeps what the judge refuses to give up.
func TestImportJudgesWhatItReplaces(t *testing.T) {
	r, _, _ := twoBackends(t)
	old := make1(t, r, store.CreateOptions{ID: "s1", Backend: "jsonl"})
	precious := errors.New("precious")
	var judged string
	_, err := r.Import(t.Context(), store.NewSnapshot(store.Header{ID: "s1", StorageVersion: 1, Generation: 1}, nil), store.ImportOptions{
		Backend: "memory", Replace: true,
		Judge: func(_ context.Context, old store.Reader) error { judged = old.Header().ID; return precious },
	})
	if !errors.Is(err, precious) || judged != "s1" {
		t.Errorf("judged %q: %v", judged, err)
	}
	if h, err := r.Header(t.Context(), old); err != nil || h.Generation != 1 {
		t.Errorf("what was kept: generation %d, %v", h.Generation, err)
	}
	if lease, err := r.Lease(t.Context(), old); lease != nil || err != nil {
		t.Errorf("it is still owned: %+v, %v", lease, err)
	}
}

func TestImportReplacesAcrossEncodings(t *testing.T) {
	r, _, _ := twoBackends(t)
	old := make1(t, r, store.CreateOptions{ID: "s1", Backend: "memory"})
	snap := func() *store.Snapshot {
		return store.NewSnapshot(store.Header{ID: "s1", StorageVersion: 1, Generation: 1}, nil)
	}
	same, err := r.Import(t.Context(), snap(), store.ImportOptions{Replace: true})
	if err != nil || same != old {
		t.Errorf("replaced into %+v, %v; want its own encoding", same, err)
	}
	moved, err := r.Import(t.Context(), snap(), store.ImportOptions{Backend: "jsonl", Replace: true})
	if err != nil || moved.Backend != "jsonl" {
		t.Fatalf("replaced into %+v, %v", moved, err)
	}
	if _, err := r.View(t.Context(), old); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the replaced store: %v", err)
	}
	if h, err := r.Header(t.Context(), moved); err != nil || h.Generation != 3 {
		t.Errorf("generation %d, %v; want 3", h.Generation, err)
	}
	writeFile(t, moved.Path, "damaged\n")
	if _, err := r.Import(t.Context(), snap(), store.ImportOptions{Replace: true}); err != nil {
		t.Errorf("replace a damaged session: %v", err)
	}
	if h, err := r.Header(t.Context(), moved); err != nil || h.Generation != 1 {
		t.Errorf("generation %d, %v; a damaged session has none to continue", h.Generation, err)
	}
	newer := `{"v":4,"kind":"header","id":"s1","storageVersion":99}` + "\n"
	writeFile(t, moved.Path, newer)
	var version *store.NewerVersion
	if _, err := r.Import(t.Context(), snap(), store.ImportOptions{Replace: true}); !errors.As(err, &version) {
		t.Errorf("replace a newer session: %v", err)
	}
	if text, err := os.ReadFile(moved.Path); err != nil || string(text) != newer {
		t.Errorf("the newer session is now %q, %v", text, err)
	}
}

// B56: what is bad is listed as such and hides nothing. B53: what an interrupted
// replacement left is no session.
func TestB56ListLeavesNothingOut(t *testing.T) {
	r, files, _ := twoBackends(t)
	good := make1(t, r, store.CreateOptions{ID: "good"})
	make1(t, r, store.CreateOptions{ID: "ram", Backend: "memory"})
	goodText, err := os.ReadFile(good.Path)
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(r.Dir(), name) }
	header := `{"v":4,"kind":"header","id":"ID","storageVersion":1}` + "\n"
	writeFile(t, file("a-copy.jsonl"), string(goodText))
	writeFile(t, file("bare.jsonl"), strings.Replace(header, "ID", "bare", 1))
	writeFile(t, file("binary.jsonl"), "\x00\x01\x02")
	writeFile(t, file(".good.jsonl.tmp-0a1b2c3d"), string(goodText))
	writeFile(t, file(".drover-catalog.tmp-0a1b2c3d"), "half")
	writeFile(t, file("empty.jsonl"), "")
	writeFile(t, file("good.jsonl.bak"), string(goodText))
	writeFile(t, file("legacy.jsonl"), `{"type":"session","version":3,"id":"l","timestamp":"2026-01-01T00:00:00Z","cwd":"/"}`+"\n")
	writeFile(t, file("newer.jsonl"), strings.Replace(header, `"ID","storageVersion":1`, `"newer","storageVersion":9`, 1))
	writeFile(t, file("notes.txt"), "no session")
	if err := os.Mkdir(file("folder.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", file("dangling.jsonl")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(file("fifo.jsonl"), 0o600); err != nil {
		t.Fatal(err)
	}
	files.headers, files.bodies = nil, nil
	listed, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Name, ID    string
		Legacy, Bad bool
	}
	var got []row
	for _, l := range listed {
		got = append(got, row{filepath.Base(l.Ref.Path), l.Ref.ID, l.Ref.Legacy, l.Err != nil})
		if l.Ref.Backend == "jsonl" && l.Err == nil && l.ModTime.IsZero() {
			t.Errorf("%s has no time", l.Ref.Path)
		}
	}
	want := []row{
		{"a-copy.jsonl", "good", false, true}, // the id is in good.jsonl as well
		{"bare.jsonl", "bare", false, false},
		{"binary.jsonl", "binary", false, true},
		{"dangling.jsonl", "dangling", false, true},
		{"empty.jsonl", "empty", false, true},
		{"fifo.jsonl", "fifo", false, true},
		{"folder.jsonl", "folder", false, true},
		{"good.jsonl", "good", false, false},
		{"legacy.jsonl", "legacy", true, false},
		{"newer.jsonl", "newer", false, true},
		{"ram.mem", "ram", false, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	if len(files.bodies) > 0 {
		t.Errorf("listing read the bodies of %v", files.bodies)
	}
	for _, name := range []string{"fifo", "folder", "dangling"} { // none of them blocks
		ref, err := r.Resolve(t.Context(), name)
		if err != nil || ref.Path != file(name+".jsonl") {
			t.Errorf("resolve %s: %+v, %v", name, ref, err)
		}
		_, viewErr := r.View(t.Context(), ref)
		_, openErr := r.Open(t.Context(), ref)
		if viewErr == nil || openErr == nil {
			t.Errorf("%s: view %v, open %v", name, viewErr, openErr)
		}
	}
	listing, err := r.ListFolder(t.Context(), store.ListHeaders)
	if want := []string{file("good.jsonl.bak")}; err != nil || !cmp.Equal(listing.Backups, want) {
		t.Errorf("backups %v, %v", listing.Backups, err)
	}
}

func TestListStopsWithItsContext(t *testing.T) {
	r, _, _ := twoBackends(t)
	make1(t, r, store.CreateOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if listed, err := r.List(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("listed %d, %v", len(listed), err)
	}
}

func TestWrapDecoratesOpenedBackends(t *testing.T) {
	var rec *storetest.Recorder
	d := storetest.Wrap(&memory.Driver{}, func(b store.Backend) store.Backend {
		rec = storetest.NewRecorder(b)
		return rec
	})
	r, err := store.NewRepo(store.RepoOptions{Dir: t.TempDir(), Drivers: []store.Driver{d}})
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := r.Create(t.Context(), store.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.View("main").SetName(t.Context(), "n"); err != nil {
		t.Fatal(err)
	}
	wantTrace(t, rec, `TX[ upsert pi.session.name = "n" ]`)
}
