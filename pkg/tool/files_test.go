package tool

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

func TestLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocks()
		unlock, err := l.lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		ctx, cancel := context.WithCancel(t.Context())
		wait := func(ctx context.Context, who string) {
			unlock, err := l.lock(ctx, "a")
			got = append(got, fmt.Sprint(who, " ", err))
			if err == nil {
				unlock()
			}
		}
		go wait(ctx, "impatient")
		synctest.Wait()
		go wait(t.Context(), "patient")
		other, err := l.lock(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got != nil {
			t.Errorf("did not wait: %q", got)
		}
		cancel()
		synctest.Wait()
		unlock()
		synctest.Wait()
		other()
		want := []string{"impatient wait for another change of a: context canceled", "patient <nil>"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if len(l.byPath) != 0 {
			t.Errorf("locks are left: %v", l.byPath)
		}
	})
}

// TestParallelEdits edits one file through two names at once: no edit is lost.
func TestParallelEdits(t *testing.T) {
	dir := t.TempDir()
	const n = 20
	path := put(t, dir, "real/f", strings.ReplaceAll(numbered(10, 9+n), "\n", ".\n"))
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	e := toolNamed("edit", Options{CWD: dir})
	results := make(chan outcome, n)
	for i := range n {
		name := []string{"real/f", "link/f"}[i%2]
		go func() {
			results <- callWith(t.Context(), e, editArgs(name, fmt.Sprint(10+i, "."), fmt.Sprint(10+i, "!")), nil)
		}()
	}
	for range n {
		if r := <-results; r.Err != "" {
			t.Error(r.Err)
		}
	}
	if got, want := content(t, path), strings.ReplaceAll(numbered(10, 9+n), "\n", "!\n"); got != want {
		t.Errorf("the file holds %q", got)
	}
}

func TestRealPath(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "real/f", "")
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"link/f":         "real/f",
		"link/new":       "real/new",
		"link/new/new/f": "real/new/new/f",
		"none/f":         "none/f",
	} {
		if got := realPath(filepath.Join(dir, path)); got != filepath.Join(dir, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
}
