package search_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/search"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/sqlite"
)

// world is a repository with its index.
type world struct {
	t    *testing.T
	repo *store.Repo
	path string // of the index
	x    *search.Index
}

func newRepo(tb testing.TB, dir string) *store.Repo {
	tb.Helper()
	r, err := store.NewRepo(store.RepoOptions{Dir: dir, Drivers: []store.Driver{sqlite.Driver{}, jsonl.Driver{}}})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	repo := newRepo(t, filepath.Join(dir, "repo"))
	path, err := search.Path(filepath.Join(dir, "cache"), repo.Dir())
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, repo: repo, path: path, x: openIndex(t, path)}
}

func openIndex(tb testing.TB, path string) *search.Index {
	tb.Helper()
	x, err := search.Open(tb.Context(), path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := x.Close(); err != nil {
			tb.Error(err)
		}
	})
	return x
}

// create makes a session with one user message per text.
func (w *world) create(id, backend string, texts ...string) store.Ref {
	w.t.Helper()
	s, ref, err := w.repo.Create(w.t.Context(), store.CreateOptions{ID: id, Name: "name of " + id, Backend: backend})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.say(ref, texts...)
	return ref
}

// say appends messages to main.
func (w *world) say(ref store.Ref, texts ...string) {
	w.t.Helper()
	var messages []message.Message
	for _, text := range texts {
		messages = append(messages, message.NewUser(text, nil, 1))
	}
	w.append(ref, messages...)
}

func (w *world) append(ref store.Ref, messages ...message.Message) {
	w.t.Helper()
	s, err := w.repo.Open(w.t.Context(), ref)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range messages {
		if _, err := s.View(store.MainLane).AppendMessage(w.t.Context(), m); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) sync() search.Synced {
	w.t.Helper()
	done, err := w.x.Sync(w.t.Context(), w.repo, search.SyncOptions{Skipped: func(l store.Listed) {
		if l.Err == nil {
			w.t.Errorf("%s is skipped without a reason", l.Ref.Path)
		}
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	return done
}

// settle makes all files look as if they had been left alone for a while.
func (w *world) settle() {
	w.t.Helper()
	paths, err := filepath.Glob(filepath.Join(w.repo.Dir(), "*"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, p := range paths {
		fi, err := os.Lstat(p)
		if err != nil {
			w.t.Fatal(err)
		}
		at := fi.ModTime().Add(-time.Minute)
		if err := os.Chtimes(p, at, at); err != nil {
			w.t.Fatal(err)
		}
	}
}

// entries are the hits as SESSION:text, sorted.
func (w *world) entries(query string) []string {
	w.t.Helper()
	hits, err := w.x.Entries(w.t.Context(), search.Query{Text: query})
	if err != nil {
		w.t.Fatalf("search %q: %v", query, err)
	}
	found := []string{}
	for _, h := range hits {
		found = append(found, h.SessionID+":"+h.Text())
	}
	slices.Sort(found)
	return found
}

func (w *world) want(query string, want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), w.entries(query)); diff != "" {
		w.t.Errorf("search %q (-want +got):\n%s", query, diff)
	}
}

func TestSyncReadsWhatChanged(t *testing.T) {
	w := newWorld(t)
	a := w.create("aaaaaa", "sqlite", "the auth migration", "nothing here")
	w.create("bbbbbb", "jsonl", "an auth question")
	if diff := cmp.Diff(search.Synced{Sessions: 2, Changed: 2, Entries: 3}, w.sync()); diff != "" {
		t.Errorf("first sync (-want +got):\n%s", diff)
	}
	w.want("auth", "aaaaaa:the auth migration", "bbbbbb:an auth question")

	w.settle()
	w.sync() // which keeps what the files look like
	if diff := cmp.Diff(search.Synced{Sessions: 2}, w.sync()); diff != "" {
		t.Errorf("sync of what did not change (-want +got):\n%s", diff)
	}
	w.say(a, "auth again")
	if diff := cmp.Diff(search.Synced{Sessions: 2, Changed: 1, Entries: 1}, w.sync()); diff != "" {
		t.Errorf("sync of one message (-want +got):\n%s", diff)
	}
	w.want("auth", "aaaaaa:auth again", "aaaaaa:the auth migration", "bbbbbb:an auth question")
}

func TestSyncReadsNoSessionThatDidNotChange(t *testing.T) {
	dir := t.TempDir()
	w := &world{t: t, repo: newRepo(t, filepath.Join(dir, "repo"))}
	w.create("aaaaaa", "sqlite", "one")
	w.create("bbbbbb", "jsonl", "two")
	w.settle()
	var views atomic.Int64
	counted, err := store.NewRepo(store.RepoOptions{Dir: w.repo.Dir(), Drivers: []store.Driver{
		viewCounter{sqlite.Driver{}, &views}, viewCounter{jsonl.Driver{}, &views},
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.repo, w.x = counted, openIndex(t, filepath.Join(dir, "cache", "x.db"))
	w.sync()
	if views.Load() == 0 {
		t.Error("the first sync read nothing")
	}
	views.Store(0)
	w.sync()
	if n := views.Load(); n != 0 {
		t.Errorf("a sync without a change read %d times", n)
	}
}

func TestHit(t *testing.T) {
	w := newWorld(t)
	w.create("aaaaaa", "sqlite", "filler", "say\n\tmigration  twice: Migration, in a text of a few words", "migration")
	w.create("bbbbbb", "sqlite", "migration migration migration")
	w.sync()
	hits, err := w.x.Sessions(t.Context(), search.Query{Text: "migration", Limit: 1})
	if err != nil || len(hits) != 1 {
		t.Fatalf("%d hits, %v; want 1", len(hits), err)
	}
	hits, err = w.x.Sessions(t.Context(), search.Query{Text: "migration"})
	if err != nil || len(hits) != 2 || hits[0].Score < hits[1].Score || hits[1].Score <= 0 {
		t.Fatalf("not both sessions, the best first: %+v, %v", hits, err)
	}
	hits, err = w.x.Entries(t.Context(), search.Query{Text: "say migration"})
	if err != nil || len(hits) != 1 {
		t.Fatalf("%d hits, %v; want 1", len(hits), err)
	}
	want := []search.Piece{{Text: "say", Match: true}, {Text: " "}, {Text: "migration", Match: true}, {Text: " twice: "},
		{Text: "Migration", Match: true}, {Text: ", in a text of a few words"}}
	if diff := cmp.Diff(want, hits[0].Snippet); diff != "" {
		t.Errorf("snippet (-want +got):\n%s", diff)
	}
	if h := hits[0]; h.Name != "name of aaaaaa" || h.EntryID == "" || h.Timestamp == 0 || h.Seq == 0 {
		t.Errorf("hit %+v", h)
	}
}

func TestQueries(t *testing.T) {
	w := newWorld(t)
	texts := []string{
		`call fmt.Println("hello world") now`, "don't panic", "C++ and a-b-c", "naïve Straße", "see /etc/passwd AND weep", "prefixed",
		"world of hello",
	}
	w.create("aaaaaa", "jsonl", texts...)
	w.sync()
	for query, want := range map[string][]int{
		`hello world`:                   {0, 6},
		`"hello world"`:                 {0},
		`hello NOT now`:                 {6},
		`(panic OR weep)`:               {1, 4},
		`(panic OR weep) passwd`:        {4},
		`passwd (panic OR weep)`:        {4},
		`fmt.Println`:                   {0},
		`fmt.Println("hello world")`:    {0},
		`don't`:                         {1},
		`c++`:                           {2},
		`a-b-c`:                         {2},
		`naive strasse`:                 {},
		`naive`:                         {3},
		`/etc/passwd`:                   {4},
		`pre*`:                          {5},
		`"pre"*`:                        {5},
		`^world`:                        {6},
		`NEAR(world hello, 3) NOT call`: {6},
		`text:panic`:                    {},
		`- panic ?`:                     {1},
		`pa"nic`:                        nil,
		`(panic`:                        nil,
		`panic)`:                        nil,
		`()`:                            nil,
		`panic AND`:                     nil,
		`OR panic`:                      nil,
		`panic AND OR weep`:             nil,
		`"" ?`:                          nil,
		``:                              nil,
		`NEAR(world hello, x)`:          nil,
		`pan\x00ic ` + "\x00\x01\xff":   {},
		strings.Repeat("(", 5000) + "x": nil,
	} {
		if want == nil {
			_, err := w.x.Entries(t.Context(), search.Query{Text: query})
			if _, ok := errors.AsType[*search.SyntaxError](err); !ok {
				t.Errorf("search %q: %v, want a syntax error", query, err)
			}
			continue
		}
		found := []string{}
		for _, i := range want {
			found = append(found, "aaaaaa:"+texts[i])
		}
		slices.Sort(found)
		w.want(query, found...)
	}
	deep := strings.Repeat("(", 2000) + "panic" + strings.Repeat(")", 2000)
	_, err := w.x.Entries(t.Context(), search.Query{Text: deep})
	if _, ok := errors.AsType[*search.SyntaxError](err); !ok {
		t.Errorf("a query that is nested too deep: %v", err)
	}
}

func TestWhatIsIndexed(t *testing.T) {
	w := newWorld(t)
	ref := w.create("aaaaaa", "sqlite")
	w.append(ref,
		message.Message(`{"role":"user","content":[{"type":"text","text":"blocktext"},{"type":"image","data":"aW1hZ2VkYXRh","mimeType":"image/png"}],"timestamp":1}`),
		message.Message(`{"role":"bashExecution","command":"bashcommand","output":"bashoutput","exitCode":0,"cancelled":false,"truncated":false,"timestamp":1}`),
		message.Message(`{"role":"user","content":"half \ud800 a pair and zero \u0000 and marks \u0001\u0002","timestamp":1}`),
		message.Message(fmt.Sprintf(`{"role":"user","content":%s,"timestamp":1}`, rawjson.Quote("big "+strings.Repeat("lorem ipsum ", 1<<20)+"needle"))),
	)
	w.sync()
	for query, hits := range map[string]int{"blocktext": 1, "aW1hZ2VkYXRh": 0, "bashcommand": 1, "bashoutput": 1, "half pair zero marks": 1, "needle": 1, "user": 0} {
		if got := w.entries(query); len(got) != hits {
			t.Errorf("search %q: %d hits, want %d", query, len(got), hits)
		}
	}
}

func TestDamagedSessionsAreSkipped(t *testing.T) {
	w := newWorld(t)
	w.create("aaaaaa", "sqlite", "good")
	w.create("bbbbbb", "jsonl", "good too")
	w.sync()
	if err := os.WriteFile(filepath.Join(w.repo.Dir(), "bbbbbb.jsonl"), []byte("broken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.repo.Dir(), "cccccc.db"), []byte("broken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if done := w.sync(); done.Skipped != 2 || done.Removed != 0 {
		t.Errorf("%+v; want 2 skipped", done)
	}
	w.want("good", "aaaaaa:good", "bbbbbb:good too") // what was known of it stays
}

func TestIndexFilesArePrivate(t *testing.T) {
	w := newWorld(t)
	w.create("aaaaaa", "sqlite", "secret")
	w.sync()
	paths, err := filepath.Glob(filepath.Join(filepath.Dir(w.path), "*"))
	if err != nil || len(paths) < 2 {
		t.Fatalf("index files %q, %v", paths, err)
	}
	for _, p := range append(paths, filepath.Dir(w.path)) {
		fi, err := os.Stat(p)
		if err != nil || fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", p, fi.Mode(), err)
		}
	}
}

func TestPathIsOfTheRepositoryItself(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "repo"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("repo", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	path := func(repo string) string {
		p, err := search.Path("/cache", filepath.Join(dir, repo))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if path("repo") != path("link") || path("repo") == path("other") || filepath.Dir(path("repo")) != "/cache" {
		t.Errorf("paths %s, %s, %s", path("repo"), path("link"), path("other"))
	}
}

func TestNoIndexIsMadeByAsking(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.db")
	if _, err := search.OpenExisting(t.Context(), path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open: %v", err)
	}
	if err := search.Discard(t.Context(), path); err != nil {
		t.Errorf("discard: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an index was made: %v", err)
	}
}

// viewCounter counts how often a session is read, in whatever way.
type viewCounter struct {
	store.Driver
	views *atomic.Int64
}

func (c viewCounter) View(ctx context.Context, path string) (store.Reader, error) {
	c.views.Add(1)
	return c.Driver.View(ctx, path)
}

func (c viewCounter) Header(ctx context.Context, path string) (store.Header, error) {
	c.views.Add(1)
	return c.Driver.Header(ctx, path)
}
