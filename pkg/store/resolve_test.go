package store_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/memory"
)

const (
	idA = "018bcfe5-6800-7abc-8000-0000000aaaaa"
	idB = "018bcfe5-6800-7abd-8000-0000000bbbbb"
)

// A session is found by its id when its file has another name; what a file is named
// after comes first, and costs no look at the others.
func TestResolveRenamed(t *testing.T) {
	r, _, _ := twoBackends(t)
	a := make1(t, r, store.CreateOptions{ID: idA})
	b := make1(t, r, store.CreateOptions{ID: idB, Backend: "jsonl"})
	short := make1(t, r, store.CreateOptions{ID: "s1"})
	rename := func(ref *store.Ref, name string) {
		path := filepath.Join(filepath.Dir(ref.Path), name)
		if err := os.Rename(ref.Path, path); err != nil {
			t.Fatal(err)
		}
		ref.Path = path
	}
	rename(&a, "moved.jsonl")
	rename(&short, "x.jsonl")
	for arg, want := range map[string]store.Ref{
		idA: a, "0aaaaa": a, "moved": a, "018bcfe5-6800-7abc": a, idB: b, "018bcf": b, "s1": short, "x": short,
	} {
		got, err := r.Resolve(t.Context(), arg)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", arg, got, err, want)
		}
	}
	rename(&b, "y.jsonl")
	if got, err := r.Resolve(t.Context(), "-6800-"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what is in the middle of ids: got %+v, %v", got, err)
	}
	_, err := r.Resolve(t.Context(), "018bcfe5-68")
	if ambiguous, ok := errors.AsType[*store.Ambiguous](err); !ok || len(ambiguous.Candidates) != 2 {
		t.Errorf("what begins both ids: got %v", err)
	}
}

func TestResolve(t *testing.T) {
	r, _, _ := twoBackends(t)
	a := make1(t, r, store.CreateOptions{ID: idA, Name: "first"})
	b := make1(t, r, store.CreateOptions{ID: idB, Name: "twin", Backend: "memory"})
	c := make1(t, r, store.CreateOptions{ID: "other.jsonl", Name: "twin"})
	outside := filepath.Join(t.TempDir(), "x.txt")
	text, err := os.ReadFile(a.Path)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, outside, string(text))
	t.Chdir(filepath.Dir(outside))
	out := store.Ref{ID: idA, Path: outside, Backend: "jsonl"}
	writeFile(t, "old.jsonl", `{"type":"session","version":3,"id":"l","timestamp":"2026-01-01T00:00:00Z","cwd":"/"}`+"\n")
	legacy := store.Ref{ID: "old", Path: filepath.Join(filepath.Dir(outside), "old.jsonl"), Backend: "jsonl", Legacy: true}
	writeFile(t, "junk.jsonl", "junk")
	junk := store.Ref{ID: "junk", Path: filepath.Join(filepath.Dir(outside), "junk.jsonl"), Backend: "jsonl"}

	found := map[string]store.Ref{
		idA: a, idB: b, "other.jsonl": c,
		"aaaaa": {}, "0aaaaa": a, "0000bbbbb": b, // five characters are too few
		idA[:len(idA)-1]: a,
		"name:first":     a,
		a.Path:           a,
		outside:          out, "./x.txt": out,
		"old.jsonl": legacy, "./junk.jsonl": junk,
	}
	for arg, want := range found {
		got, err := r.Resolve(t.Context(), arg)
		if want == (store.Ref{}) {
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s: got %+v, %v; want ErrNotFound", arg, got, err)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", arg, got, err, want)
		}
	}
	for arg, want := range map[string][]store.Ref{
		"018bcf":    {a, b},
		"name:twin": {b, c},
	} {
		_, err := r.Resolve(t.Context(), arg)
		var ambiguous *store.Ambiguous
		if !errors.As(err, &ambiguous) {
			t.Errorf("%s: got %v, want *Ambiguous", arg, err)
			continue
		}
		if diff := cmp.Diff(&store.Ambiguous{Arg: arg, Candidates: want}, ambiguous, cmpopts.SortSlices(func(x, y store.Ref) bool { return x.Path < y.Path })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", arg, diff)
		}
	}
	for _, arg := range []string{"", "x", "absent-id", "name:", "name:nobody", "@first", "./absent", "absent.db", "../x", "a/b/" + idA, "\x00", "*"} {
		if got, err := r.Resolve(t.Context(), arg); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%q: got %+v, %v; want ErrNotFound", arg, got, err)
		}
	}
	var damaged *store.Corrupt
	if _, err := r.Resolve(t.Context(), "./"); !errors.As(err, &damaged) {
		t.Errorf("a folder: %v", err)
	}
}

// TestResolveTellsTheEncoding: by the name first, then by what lies beside the
// file, and only then by its content: a database that this process owns must
// not be opened.
func TestResolveTellsTheEncoding(t *testing.T) {
	lite := &renamed{Driver: &memory.Driver{}}
	r, err := store.NewRepo(store.RepoOptions{Dir: t.TempDir(), Drivers: []store.Driver{jsonl.Driver{}, lite}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	magic := "SQLite format 3\x00"
	for name, c := range map[string]struct{ text, want string }{
		"a.jsonl": {magic, "jsonl"}, "b": {magic, "sqlite"}, "c.db": {"", "sqlite"}, "d.db": {`{"v":4}`, "sqlite"}, "e.jsonl": {"", "jsonl"},
		"f": {`{"v":4}`, "jsonl"}, "g": {"", "jsonl"}, "owned": {"", "sqlite"}, "other-owned": {`{"v":4}`, "sqlite"},
	} {
		path := filepath.Join(dir, name)
		writeFile(t, path, c.text)
		if strings.HasSuffix(name, "owned") {
			writeFile(t, path+"-shm", "")
		}
		link := filepath.Join(dir, "link-to-"+strings.ReplaceAll(name, ".", "-"))
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{path, link} {
			if ref, err := r.Resolve(t.Context(), p); err != nil || ref.Backend != c.want {
				t.Errorf("%s: got %+v, %v; want %s", p, ref, err, c.want)
			}
		}
	}
	only, err := store.NewRepo(store.RepoOptions{Dir: t.TempDir(), Drivers: []store.Driver{&memory.Driver{}}})
	if err != nil {
		t.Fatal(err)
	}
	if ref, err := only.Resolve(t.Context(), filepath.Join(dir, "b")); err == nil {
		t.Errorf("a repository without the encoding resolved %+v", ref)
	}
}

type renamed struct{ store.Driver }

func (*renamed) Name() string { return "sqlite" }
func (*renamed) Ext() string  { return ".db" }

// B37: what one session costs does not depend on the others.
func TestB37ExactIDReadsNoOtherSession(t *testing.T) {
	r, files, ram := twoBackends(t)
	ref := make1(t, r, store.CreateOptions{ID: "mine"})
	for _, id := range []string{"other-1", "other-2", "mine-too"} {
		make1(t, r, store.CreateOptions{ID: id})
	}
	files.headers, files.bodies, ram.headers, ram.bodies = nil, nil, nil, nil
	got, err := r.Resolve(t.Context(), "mine")
	if err != nil || got != ref {
		t.Fatalf("resolved %+v, %v", got, err)
	}
	s, err := r.Open(t.Context(), got)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	make1(t, r, store.CreateOptions{ID: "new"})
	for _, name := range append(files.headers, files.bodies...) {
		if name != "mine.jsonl" && name != "new.jsonl" {
			t.Errorf("read %s", name)
		}
	}
	if len(ram.bodies) > 0 {
		t.Errorf("read %v", ram.bodies)
	}
}

func TestLastIsTheSessionChangedLast(t *testing.T) {
	r, _, _ := twoBackends(t)
	a := make1(t, r, store.CreateOptions{ID: "a"})
	b := make1(t, r, store.CreateOptions{ID: "b"})
	base := time.Now().Add(-time.Hour)
	touch := func(path string, after time.Duration) {
		t.Helper()
		if err := os.Chtimes(path, base.Add(after), base.Add(after)); err != nil {
			t.Fatal(err)
		}
	}
	last := func(what string, want store.Ref) {
		t.Helper()
		if got, err := r.Resolve(t.Context(), "@last"); err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %s", what, got, err, want.ID)
		}
	}
	touch(a.Path, time.Second)
	touch(b.Path, 0)
	last("the newer file", a)
	touch(b.Path, time.Second)
	last("a tie", b)
	writeFile(t, a.Path+"-wal", "")
	touch(a.Path+"-wal", time.Minute)
	last("an empty log is no change", b)
	writeFile(t, a.Path+"-wal", "frames")
	touch(a.Path+"-wal", time.Minute)
	last("a log that holds something", a)
	listed, err := r.List(t.Context())
	if err != nil || !listed[0].ModTime.Equal(base.Add(time.Minute).Truncate(time.Nanosecond)) {
		t.Errorf("listed %+v, %v", listed[0].ModTime, err)
	}
}

func TestLegacyFilesAreReadAndNothingElse(t *testing.T) {
	r, _, _ := twoBackends(t)
	path := filepath.Join(t.TempDir(), "old.jsonl")
	text := `{"type":"session","version":3,"id":"l","timestamp":"2026-01-01T00:00:00Z","cwd":"/"}` + "\n"
	writeFile(t, path, text)
	ref, err := r.Resolve(t.Context(), path)
	if err != nil || !ref.Legacy {
		t.Fatalf("resolved %+v, %v", ref, err)
	}
	var legacy *store.Legacy
	if _, err := r.Open(t.Context(), ref); !errors.As(err, &legacy) || legacy.Path != path {
		t.Errorf("open: %v", err)
	}
	if err := r.Delete(t.Context(), ref); !errors.As(err, &legacy) {
		t.Errorf("delete: %v", err)
	}
	v, err := r.View(t.Context(), ref)
	if err != nil {
		t.Fatalf("view: %v", err)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, []byte(text)) {
		t.Errorf("the file is now %q, %v", after, err)
	}
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
		t.Errorf("files beside it: %v, %v", files, err)
	}
}
