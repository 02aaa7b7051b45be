package store_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
)

// catalogued is a repository of JSONL sessions whose reads are counted.
func catalogued(t *testing.T, names ...string) (*store.Repo, *spy) {
	t.Helper()
	s := &spy{Driver: jsonl.Driver{}}
	r, err := store.NewRepo(store.RepoOptions{Dir: filepath.Join(t.TempDir(), "repo"), Drivers: []store.Driver{s}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		make1(t, r, store.CreateOptions{ID: "id-" + name, Name: name, CWD: "/w"})
	}
	s.headers, s.bodies = nil, nil
	return r, s
}

func catalogPath(r *store.Repo) string { return filepath.Join(r.Dir(), ".drover-catalog") }

// summaries lists and completes the list; a session's name by its id.
func summaries(t *testing.T, r *store.Repo) map[string]string {
	t.Helper()
	listed, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []*store.Listed
	for i := range listed {
		all = append(all, &listed[i])
	}
	if err := r.Summarize(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, l := range listed {
		if l.Err != nil {
			t.Errorf("%s: %v", l.Ref.Path, l.Err)
			continue
		}
		got[l.Header.ID] = l.Summary.Name
	}
	return got
}

// wantNames wants these names, having read the bodies of these sessions only.
func wantNames(t *testing.T, r *store.Repo, s *spy, names []string, read ...string) {
	t.Helper()
	s.mu.Lock()
	s.headers, s.bodies = nil, nil
	s.mu.Unlock()
	want := map[string]string{}
	for _, name := range names {
		id, _, _ := strings.Cut(name, " ")
		want["id-"+id] = name
	}
	if diff := cmp.Diff(want, summaries(t, r)); diff != "" {
		t.Fatalf("names (-want +got):\n%s", diff)
	}
	var files []string
	for _, name := range read {
		files = append(files, "id-"+name+".jsonl")
	}
	slices.Sort(s.bodies)
	if !slices.Equal(s.bodies, files) {
		t.Fatalf("read %v, want %v", s.bodies, files)
	}
}

// age makes the files look as if they had been left alone.
func age(t *testing.T, r *store.Repo, names ...string) {
	t.Helper()
	for _, name := range names {
		then := time.Now().Add(-time.Hour)
		if err := os.Chtimes(filepath.Join(r.Dir(), "id-"+name+".jsonl"), then, then); err != nil {
			t.Fatal(err)
		}
	}
}

// B55: a list reads no session that it knows already.
func TestB55ClosedSessionsAreCatalogued(t *testing.T) {
	r, s := catalogued(t, "a", "b")
	wantNames(t, r, s, []string{"a", "b"})
	if len(s.headers) > 0 {
		t.Fatalf("read the headers %v", s.headers)
	}
	listed, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := &store.Summary{Name: "a", Lanes: []string{"main"}}
	if diff := cmp.Diff(want, listed[0].Summary); diff != "" || listed[0].Header.CWD != "/w" {
		t.Fatalf("header %+v, summary (-want +got):\n%s", listed[0].Header, diff)
	}
	if fi, err := os.Stat(catalogPath(r)); err != nil || fi.Mode().Perm() != 0o600 {
		t.Fatalf("catalog %v, %v", fi, err)
	}
}

func TestCatalogKnowsWhatIsOpen(t *testing.T) {
	r, _ := catalogued(t, "a")
	listed, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	open, err := r.Open(t.Context(), listed[0].Ref)
	if err != nil {
		t.Fatal(err)
	}
	main := open.View(store.MainLane)
	if _, err := main.AppendMessage(t.Context(), message.Message(`{"role":"user","content":"x","timestamp":1}`)); err != nil {
		t.Fatal(err)
	}
	if err := store.SetValue(t.Context(), main, store.LaneStateOf(store.MainLane), store.LaneState{CurrentOperationID: "op"}); err != nil {
		t.Fatal(err)
	}
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
	if listed, err = r.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := &store.Summary{Name: "a", Lanes: []string{"main"}, Open: true, Stats: store.Stats{MessageCount: 1}}
	if diff := cmp.Diff(want, listed[0].Summary); diff != "" {
		t.Fatalf("summary (-want +got):\n%s", diff)
	}
}

func TestStaleSummariesAreRead(t *testing.T) {
	r, s := catalogued(t, "a", "b")
	path := filepath.Join(r.Dir(), "id-a.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	renamed := strings.Replace(string(text), `"a"}`, `"a changed"}`, 1)
	if renamed == string(text) {
		t.Fatalf("no name in %s", text)
	}
	writeFile(t, path, renamed)
	age(t, r, "a")
	wantNames(t, r, s, []string{"a changed", "b"}, "a")
	wantNames(t, r, s, []string{"a changed", "b"})

	// As long as before: only its time, or its inode, tells.
	writeFile(t, path, strings.Replace(renamed, "a changed", "a altered", 1))
	wantNames(t, r, s, []string{"a altered", "b"}, "a")
	age(t, r, "a")
	wantNames(t, r, s, []string{"a altered", "b"}, "a")
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path+".new", strings.Replace(renamed, "a changed", "a swapped", 1))
	if err := os.Chtimes(path+".new", fi.ModTime(), fi.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	wantNames(t, r, s, []string{"a swapped", "b"}, "a")
}

func TestFreshFilesAreReadAndNotCatalogued(t *testing.T) {
	r, s := catalogued(t, "a")
	if err := os.Remove(catalogPath(r)); err != nil {
		t.Fatal(err)
	}
	wantNames(t, r, s, []string{"a"}, "a") // just written: another write could look the same
	wantNames(t, r, s, []string{"a"}, "a")
	age(t, r, "a")
	wantNames(t, r, s, []string{"a"}, "a")
	wantNames(t, r, s, []string{"a"})
}

func TestBrokenCatalogs(t *testing.T) {
	flip := func(text []byte) []byte {
		i := strings.Index(string(text), `"name":"a"`) + len(`"name":"`)
		text[i] = 'x' // a lie that is sound JSON
		return text
	}
	for name, broken := range map[string]func(text []byte) []byte{
		"empty":        func([]byte) []byte { return nil },
		"noise":        func([]byte) []byte { return []byte("\x00\xff\n{}\n\n12345678 {}\n") },
		"another name": flip,
		"cut":          func(text []byte) []byte { return text[:len(text)-30] },
		"headless":     func(text []byte) []byte { return text[30:] },
	} {
		t.Run(name, func(t *testing.T) {
			r, s := catalogued(t, "a", "b")
			age(t, r, "a", "b")
			wantNames(t, r, s, []string{"a", "b"}, "a", "b")
			text, err := os.ReadFile(catalogPath(r))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(catalogPath(r), broken(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s.bodies = nil
			if diff := cmp.Diff(map[string]string{"id-a": "a", "id-b": "b"}, summaries(t, r)); diff != "" {
				t.Fatal(diff)
			}
			wantNames(t, r, s, []string{"a", "b"}) // rebuilt
		})
	}
}

// What lies there instead of the catalog is neither followed nor waited for, and
// a folder that cannot be written is listed all the same.
func TestUnusableCatalogs(t *testing.T) {
	for name, put := range map[string]func(t *testing.T, path string){
		"a folder": func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		},
		"a link": func(t *testing.T, path string) {
			target := filepath.Join(t.TempDir(), "target")
			writeFile(t, target, "kept")
			if err := os.Symlink(target, path); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if text, err := os.ReadFile(target); err != nil || string(text) != "kept" {
					t.Errorf("the link's target holds %q, %v", text, err)
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := catalogued(t, "a")
			if err := os.Remove(catalogPath(r)); err != nil {
				t.Fatal(err)
			}
			put(t, catalogPath(r))
			age(t, r, "a")
			wantNames(t, r, s, []string{"a"}, "a")
			wantNames(t, r, s, []string{"a"}, "a")
		})
	}
}

// Many repositories over one folder write, list and lose the catalog at once:
// every answer is right.
func TestConcurrentCatalogs(t *testing.T) {
	first, _ := catalogued(t, "a", "b", "c")
	age(t, first, "a", "b", "c")
	want := map[string]string{"id-a": "a", "id-b": "b", "id-c": "c"}
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			r, err := store.NewRepo(store.RepoOptions{Dir: first.Dir(), Drivers: []store.Driver{jsonl.Driver{}}})
			if err != nil {
				t.Error(err)
				return
			}
			for range 30 {
				if diff := cmp.Diff(want, summaries(t, r)); diff != "" {
					t.Error(diff)
				}
				if i == 0 {
					_ = os.Remove(catalogPath(r))
				}
				if i == 1 {
					_ = os.WriteFile(catalogPath(r), []byte("noise"), 0o600)
				}
			}
		})
	}
	wg.Wait()
}

// The catalog stays in proportion: a line that was replaced goes in time.
func TestCatalogDoesNotGrow(t *testing.T) {
	r, s := catalogued(t, "a")
	for range 200 {
		listed, err := r.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		open, err := r.Open(t.Context(), listed[0].Ref)
		if err != nil {
			t.Fatal(err)
		}
		if err := open.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wantNames(t, r, s, []string{"a"})
	fi, err := os.Stat(catalogPath(r))
	if err != nil || fi.Size() > 60<<10 {
		t.Fatalf("catalog of %d bytes, %v", fi.Size(), err)
	}
}

// B44: what the catalog knew of a session, now and before, is gone once it is
// forgotten; the others stay known.
func TestB44CatalogForgets(t *testing.T) {
	r, _ := catalogued(t, "a", "b")
	age(t, r, "a", "b")
	summaries(t, r)
	if text, err := os.ReadFile(catalogPath(r)); err != nil || !strings.Contains(string(text), "id-a") {
		t.Fatalf("%s, %v", text, err)
	}
	listed, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Who died while it wrote the catalog has left what it said.
	f, rest, err := fsx.CreateTemp(fsx.OS{}, catalogPath(r))
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	for _, l := range listed {
		if l.Header.ID == "id-a" {
			if err := r.Forget(l.Ref); err != nil {
				t.Fatal(err)
			}
		}
	}
	text, err := os.ReadFile(catalogPath(r))
	if err != nil || strings.Contains(string(text), "id-a") || !strings.Contains(string(text), "id-b") {
		t.Errorf("the catalog says %s, %v", text, err)
	}
	if _, err := os.Lstat(rest); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", rest, err)
	}
	if got := summaries(t, r); got["id-a"] != "a" || got["id-b"] != "b" {
		t.Errorf("listed as %v", got)
	}
}

// What was read of a session is current while its stamp is the same.
func TestStamp(t *testing.T) {
	r, _ := catalogued(t, "a")
	stamp := func() string {
		t.Helper()
		listed, err := r.List(t.Context())
		if err != nil || len(listed) != 1 {
			t.Fatalf("%d sessions, %v; want 1", len(listed), err)
		}
		return listed[0].Stamp()
	}
	age(t, r, "a")
	first := stamp()
	if first == "" || stamp() != first {
		t.Errorf("stamps %q and %q of a file that was left alone", first, stamp())
	}
	path := filepath.Join(r.Dir(), "id-a.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	// The same bytes and time in another file, as a copy with its times kept has.
	writeFile(t, path+".new", string(text))
	if err := os.Chtimes(path+".new", fi.ModTime(), fi.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if second := stamp(); second == "" || second == first {
		t.Errorf("stamp %q of another file, %q before", second, first)
	}
	future := time.Now().Add(time.Hour) // no moment is known to lie after it
	if err := os.Chtimes(path, future, future); err != nil {
		t.Fatal(err)
	}
	if s := stamp(); s != "" {
		t.Errorf("stamp %q of a file whose next change may look the same", s)
	}
}
