package store_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/memory"
)

// today is the time of the clock in these tests.
var today = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func agedRepo(t *testing.T, dir string) *store.Repo {
	t.Helper()
	r, err := store.NewRepo(store.RepoOptions{
		Dir: dir, Drivers: []store.Driver{jsonl.Driver{}, &memory.Driver{}},
		Now: func() int64 { return today.UnixMilli() },
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// oldFolder is a repository with temporary files of every kind.
func oldFolder(t *testing.T) (r *store.Repo, left []string) {
	t.Helper()
	dir := t.TempDir()
	r = agedRepo(t, dir)
	make1(t, r, store.CreateOptions{ID: "there"})
	file := func(name string, age time.Duration) string {
		path := filepath.Join(dir, name)
		writeFile(t, path, "half")
		if err := os.Chtimes(path, time.Time{}, today.Add(-age)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, name := range []string{
		"..drover-catalog.tmp-0a1b2c3d", ".gone.jsonl.tmp-0a1b2c3d", ".gone.mem.tmp-0a1b2c3d", ".gone.mem.tmp-0a1b2c3d-wal",
	} {
		left = append(left, file(name, 2*time.Hour))
	}
	file(".young.jsonl.tmp-0a1b2c3d", time.Minute) // somebody may be writing it
	file(".ahead.jsonl.tmp-0a1b2c3d", -2*time.Hour)
	file(".there.jsonl.tmp-0a1b2c3d", 2*time.Hour) // its owner's
	file(".notes.txt.tmp-0a1b2c3d", 2*time.Hour)   // somebody else's
	file(".gone.jsonl.tmp-word", 2*time.Hour)
	file("gone.jsonl.tmp-0a1b2c3d", 2*time.Hour)
	if err := os.Mkdir(filepath.Join(dir, ".folder.jsonl.tmp-0a1b2c3d"), 0o700); err != nil {
		t.Fatal(err)
	}
	return r, left
}

func names(t *testing.T, r *store.Repo) []string {
	t.Helper()
	files, err := os.ReadDir(r.Dir())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		out = append(out, filepath.Join(r.Dir(), f.Name()))
	}
	return out
}

// B53: what a killed creation left is told, and the next one in another process
// removes it, but nothing that somebody may still be writing or that is not ours.
func TestB53LeftoversOfSessionsThatNeverWere(t *testing.T) {
	for what, create := range map[string]func(*store.Repo) error{
		"create": func(r *store.Repo) error {
			s, _, err := r.Create(t.Context(), store.CreateOptions{ID: "next"})
			if err != nil {
				return err
			}
			return s.Close()
		},
		"import": func(r *store.Repo) error {
			snap := store.NewSnapshot(store.Header{ID: "next", StorageVersion: store.StorageVersion, Generation: 1}, nil)
			_, err := r.Import(t.Context(), snap, store.ImportOptions{})
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			r, want := oldFolder(t)
			got, err := r.Leftovers(t.Context())
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Fatalf("left over (-want +got):\n%s%v", diff, err)
			}
			before := names(t, r)
			next := agedRepo(t, r.Dir())
			if err := create(next); err != nil {
				t.Fatal(err)
			}
			after := slices.DeleteFunc(names(t, r), func(path string) bool { return strings.HasPrefix(filepath.Base(path), "next.") })
			before = slices.DeleteFunc(before, func(path string) bool { return slices.Contains(want, path) })
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("the folder (-want +got):\n%s", diff)
			}
		})
	}
}

// A creation removes nothing that belongs to one that runs beside it.
func TestLeftoversSpareARunningImport(t *testing.T) {
	dir := t.TempDir()
	repo := func() *store.Repo {
		r, err := store.NewRepo(store.RepoOptions{Dir: dir, Drivers: []store.Driver{jsonl.Driver{}}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	snap := store.NewSnapshot(store.Header{ID: "slow", StorageVersion: store.StorageVersion, Generation: 1}, nil)
	snap.Records = func(func(store.Record, error) bool) {
		if temps, err := filepath.Glob(filepath.Join(dir, ".slow.jsonl.tmp-*")); len(temps) != 1 || err != nil {
			t.Errorf("it is being written to %v, %v", temps, err)
		}
		make1(t, repo(), store.CreateOptions{ID: "quick"})
	}
	if _, err := repo().Import(t.Context(), snap, store.ImportOptions{}); err != nil {
		t.Errorf("the slow import: %v", err)
	}
}

// SweepDead removes what a killed process left a moment ago, of sessions that never
// were and beside those that nobody owns, and spares what a living one writes.
func TestSweepDead(t *testing.T) {
	r, _, _ := twoBackends(t)
	free, owned := make1(t, r, store.CreateOptions{ID: "free"}), make1(t, r, store.CreateOptions{ID: "owned"})
	owner, err := r.Open(t.Context(), owned)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	temp := func(ref store.Ref) string {
		return filepath.Join(r.Dir(), "."+filepath.Base(ref.Path)+".tmp-0123abcd")
	}
	spared, also := temp(owned), filepath.Join(r.Dir(), ".notes.txt")
	dead := []string{temp(free), filepath.Join(r.Dir(), ".never."+free.Backend+".tmp-0123abcd"), filepath.Join(r.Dir(), "..drover-catalog.tmp-0123abcd")}
	for _, path := range append(dead, spared, also) {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	snap := store.NewSnapshot(store.Header{ID: "slow", StorageVersion: store.StorageVersion, Generation: 1}, nil)
	snap.Records = func(func(store.Record, error) bool) { // somebody is at work
		if err := r.SweepDead(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Import(t.Context(), snap, store.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	want := append([]string{spared, also}, dead...)
	for range 2 {
		var left []string
		for _, path := range want {
			if _, err := os.Lstat(path); err == nil {
				left = append(left, path)
			}
		}
		if diff := cmp.Diff(want, left); diff != "" {
			t.Fatalf("left (-want +got):\n%s", diff)
		}
		want = []string{spared, also}
		if err := r.SweepDead(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range dead {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}
}
