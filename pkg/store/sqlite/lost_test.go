package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/drover-run/drover/pkg/store"
)

// TestLostFile: an owner notices that its file was taken away, and its end
// touches nothing that lies under the name now (D12).
func TestLostFile(t *testing.T) {
	isLost := func(t *testing.T, err error, reason string) {
		t.Helper()
		var lost *store.Lost
		if !errors.As(err, &lost) || lost.Reason != reason {
			t.Errorf("got %v, want *Lost, %s", err, reason)
		}
	}
	t.Run("deleted", func(t *testing.T) {
		path := newSession(t)
		b := open(t, path, store.OpenOptions{})
		commit(t, b, marks.Append("1"))
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		isLost(t, b.Check(ctx), "deleted")
		_, err := b.Commit(ctx, store.Tx{marks.Append("2")})
		isLost(t, err, "deleted")
		mustClose(t, b)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the file is back: %v", err)
		}
	})
	t.Run("replaced", func(t *testing.T) {
		path := newSession(t)
		b := open(t, path, store.OpenOptions{})
		if err := errors.Join(os.Remove(path), os.Rename(walPath(path), path+".old-wal"), os.Remove(shmPath(path))); err != nil {
			t.Fatal(err)
		}
		build(t, path, store.NewSnapshot(header("other"), nil))
		next := open(t, path, store.OpenOptions{})
		commit(t, next, marks.Append("1"))
		isLost(t, b.Check(ctx), "replaced")
		mustClose(t, b)
		commit(t, next, marks.Append("2"))
		r, err := openReader(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := readMarks(t, r); !slices.Equal(got, []string{"1", "2"}) {
			t.Errorf("a reader sees %v: the old owner took the new WAL away", got)
		}
		mustClose(t, r)
		mustClose(t, next)
		if found := problemsOf(t, path); len(found) > 0 {
			t.Errorf("problems: %v", found)
		}
	})
	t.Run("found by the renewal", func(t *testing.T) {
		path := newSession(t)
		b := open(t, path, store.OpenOptions{})
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		h, err := b.near.take(ctx)
		if err != nil {
			t.Fatal(err)
		}
		b.tend(h)
		b.near.give(h)
		_, err = b.Commit(ctx, store.Tx{marks.Append("2")})
		isLost(t, err, "deleted")
	})
	t.Run("while a contender waits", func(t *testing.T) {
		path := newSession(t)
		b := open(t, path, store.OpenOptions{})
		waiting, cancel := context.WithCancel(ctx)
		defer cancel()
		done := make(chan error)
		go func() {
			_, err := openOwner(waiting, path, store.OpenOptions{Wait: 1 << 40})
			done <- err
		}()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("open: got %v, want fs.ErrNotExist", err)
		}
		mustClose(t, b)
	})
}

// TestDeleteTakesTheWALAlong: nothing of a killed owner's session stays.
func TestDeleteTakesTheWALAlong(t *testing.T) {
	path := killedSession(t)
	if err := (Driver{}).Delete(ctx, path, store.OpenOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := names(t, filepath.Dir(path)); len(got) > 0 {
		t.Errorf("the folder holds %v", got)
	}
	build(t, path, store.NewSnapshot(header("s1"), nil))
	if got := readMarks(t, open(t, path, store.OpenOptions{})); len(got) > 0 {
		t.Errorf("a new session of the name holds %v", got)
	}
}
