package sqlite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/internal/fsx/fsxtest"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
)

// movers is a repository of both encodings over one file system. This package's
// driver has the seam, and JSONL's takes one.
func movers(t testing.TB, dir string, fsys fsx.FS) *store.Repo {
	t.Helper()
	r, err := store.NewRepo(store.RepoOptions{Dir: dir, Drivers: []store.Driver{Driver{system: fsys}, jsonl.Driver{FS: fsys}}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// movable is a closed session s1 in an encoding, and what it holds.
func movable(t testing.TB, dir, backend string) []store.Record {
	t.Helper()
	r := movers(t, dir, nil)
	s, _, err := r.Create(ctx, store.CreateOptions{ID: "s1", Backend: backend, Name: "moving", CWD: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	odd := store.NewValue[json.RawMessage]("app", "odd")
	err = s.Mutate(ctx, store.MainLane, func(m *store.Mutator) error {
		_, err := m.Commit(store.Tx{
			userEntry("a", ""), userEntry("b", "a"), userEntry("c", "a"), store.LaneLeaf(store.MainLane).Set("c"),
			odd.Set(json.RawMessage(`{"a":1.0,"a":"\ud800"}`)), marks.Append("1"), marks.Append("2"),
			store.InsertUsage(store.NewUsage{ID: "u", EntryID: "b", RawUsage: []byte(`{"input":1}`), Details: []byte(`{"x":1e3}`)}),
			store.NewValue[string]("app", "gone").Set("x"), store.NewValue[string]("app", "gone").Delete(),
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	got, _ := movedTo(t, dir)
	return got
}

// movedTo reads the one session that s1 means.
func movedTo(t testing.TB, dir string) ([]store.Record, store.Ref) {
	t.Helper()
	r := movers(t, dir, nil)
	ref, err := r.Resolve(ctx, "s1")
	if err != nil {
		t.Fatal(err)
	}
	listed, err := r.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	sound := slices.DeleteFunc(listed, func(l store.Listed) bool { return l.Err != nil })
	if len(sound) != 1 || sound[0].Ref.Path != ref.Path {
		t.Errorf("%s is the session, listed are %+v", ref.Path, listed)
	}
	v, err := r.View(ctx, ref)
	if err != nil {
		t.Fatal(err)
	}
	for p := range store.Verify(ctx, v) {
		if p.Code != "leftover" {
			t.Errorf("%+v", p)
		}
	}
	snap, err := v.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	records, err := store.Collect(snap)
	if err := errors.Join(err, v.Close()); err != nil {
		t.Fatal(err)
	}
	return records, ref
}

func sameRecords(t testing.TB, what string, got, want []store.Record) {
	t.Helper()
	exact := cmp.Comparer(func(a, b json.RawMessage) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) })
	if diff := cmp.Diff(want, got, exact); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

var moves = []struct{ from, to string }{{"sqlite", "jsonl"}, {"jsonl", "sqlite"}}

func other(backend string) string {
	if backend == "sqlite" {
		return "jsonl"
	}
	return "sqlite"
}

// A session that was moved there and back is the one that it was, and its numbers
// go on.
func TestMoveThereAndBack(t *testing.T) {
	for _, m := range moves {
		dir := t.TempDir()
		want := movable(t, dir, m.from)
		r := movers(t, dir, nil)
		_, ref := movedTo(t, dir)
		header, err := r.Header(ctx, ref)
		if err != nil {
			t.Fatal(err)
		}
		for i, to := range []string{m.to, m.from} {
			next, err := r.Move(ctx, ref, store.MoveOptions{Backend: to})
			if err != nil {
				t.Fatal(err)
			}
			got, found := movedTo(t, dir)
			sameRecords(t, "in "+to, got, want)
			if ref = found; next != ref || ref.Backend != to {
				t.Errorf("moved to %+v, found %+v", next, ref)
			}
			h, err := r.Header(ctx, ref)
			if err != nil {
				t.Fatal(err)
			}
			header.Generation++
			h.NextSeq, header.NextSeq = 0, 0
			if diff := cmp.Diff(header, h); diff != "" {
				t.Errorf("header after move %d: %s", i+1, diff)
			}
		}
		if want := []string{"s1.db.bak", "s1.jsonl.bak"}; !slices.Equal(backups(t, dir), want) {
			t.Errorf("backups %v", backups(t, dir))
		}
		var taken *store.BackupTaken
		if _, err := r.Move(ctx, ref, store.MoveOptions{Backend: m.to}); !errors.As(err, &taken) {
			t.Errorf("over a backup: %v", err)
		}
		if _, err := r.Move(ctx, ref, store.MoveOptions{Backend: m.to, Discard: true}); err != nil {
			t.Errorf("without one: %v", err)
		}
		s, err := r.Open(ctx, store.Ref{ID: "s1", Path: filepath.Join(dir, "s1"+map[string]string{"sqlite": ".db", "jsonl": ".jsonl"}[m.to]), Backend: m.to})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Mutate(ctx, store.MainLane, func(m *store.Mutator) error {
			res, err := m.Commit(store.Tx{userEntry("d", "c")})
			if last := want[len(want)-1].Seq; err == nil && res.FirstSeq <= last+2 {
				t.Errorf("goes on at %d after %d and what was deleted", res.FirstSeq, last)
			}
			return err
		})
		if err := errors.Join(err, s.Close()); err != nil {
			t.Error(err)
		}
	}
}

func backups(t testing.TB, dir string) []string {
	t.Helper()
	return slices.DeleteFunc(names(t, dir), func(name string) bool { return !strings.HasSuffix(name, ".bak") })
}

// A judge's no, and a session that somebody has, leave everything as it is.
func TestMoveRefused(t *testing.T) {
	for _, m := range moves {
		dir := t.TempDir()
		want := movable(t, dir, m.from)
		r := movers(t, dir, nil)
		_, ref := movedTo(t, dir)
		no := errors.New("not this")
		judge := func(context.Context, store.Reader) error { return no }
		if _, err := r.Move(ctx, ref, store.MoveOptions{Backend: m.to, Judge: judge}); !errors.Is(err, no) {
			t.Errorf("judged: %v", err)
		}
		s, err := movers(t, dir, nil).Open(ctx, ref)
		if err != nil {
			t.Fatal(err)
		}
		var held *store.Held
		if _, err := r.Move(ctx, ref, store.MoveOptions{Backend: m.to}); !errors.As(err, &held) {
			t.Errorf("owned: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		got, found := movedTo(t, dir)
		sameRecords(t, "after the refusals", got, want)
		if found != ref || len(backups(t, dir)) > 0 {
			t.Errorf("found %+v, backups %v", found, backups(t, dir))
		}
	}
}

// afterMove wants the session whole, in one encoding or the other, and a second
// attempt to finish what the first began.
func afterMove(t *testing.T, dir, from, to string, want []store.Record) (done bool) {
	t.Helper()
	got, ref := movedTo(t, dir)
	sameRecords(t, "found in "+ref.Backend, got, want)
	done = ref.Backend == to
	if _, err := movers(t, dir, nil).Move(ctx, ref, store.MoveOptions{Backend: to}); err != nil {
		t.Errorf("again: %v", err)
	}
	got, ref = movedTo(t, dir)
	sameRecords(t, "moved again", got, want)
	ext := map[string]string{"sqlite": ".db", "jsonl": ".jsonl"}
	left := slices.DeleteFunc(names(t, dir), func(name string) bool {
		// Readers of the new database leave these (D10).
		side := to == "sqlite" && (name == "s1.db-wal" || name == "s1.db-shm")
		return side || strings.HasSuffix(name, ".lock") || name == ".drover-catalog"
	})
	wantFiles := []string{"s1" + ext[from] + ".bak", "s1" + ext[to]}
	if slices.Sort(wantFiles); ref.Backend != to || !slices.Equal(left, wantFiles) {
		t.Errorf("in the end the folder has %v, the session is %+v", left, ref)
	}
	return done
}

// Every call to the file system fails once.
func TestMoveFaults(t *testing.T) {
	for _, m := range moves {
		t.Run("to "+m.to, func(t *testing.T) {
			for n := 0; ; n++ {
				dir := t.TempDir()
				want := movable(t, dir, m.from)
				_, ref := movedTo(t, dir)
				fsys := &fsxtest.FS{Lazy: true}
				fsys.Fail(fsxtest.Rule{Skip: n, Err: syscall.EIO})
				_, err := movers(t, dir, fsys).Move(ctx, ref, store.MoveOptions{Backend: m.to})
				if hits := fsys.Hits(); len(hits) > 0 && err != nil && !errors.Is(err, syscall.EIO) {
					t.Errorf("call %d, %v: %v", n, hits, err)
				}
				fsys.Heal()
				if t.Run(fmt.Sprint("call ", n), func(t *testing.T) { afterMove(t, dir, m.from, m.to, want) }); len(fsys.Hits()) == 0 {
					if n < 12 {
						t.Errorf("only %d calls were made", n)
					}
					return
				}
			}
		})
	}
}

// childMove moves a session with a file system that ends it before the n-th call.
func childMove(args []string) error {
	n, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return err
	}
	k := killer{left: &atomic.Int64{}}
	k.left.Store(n)
	r, err := store.NewRepo(store.RepoOptions{Dir: args[0], Drivers: []store.Driver{Driver{system: k}, jsonl.Driver{FS: k}}})
	if err != nil {
		return err
	}
	path := filepath.Join(args[0], "s1"+map[string]string{"sqlite": ".jsonl", "jsonl": ".db"}[args[1]])
	_, err = r.Move(ctx, store.Ref{ID: "s1", Path: path, Backend: other(args[1])}, store.MoveOptions{Backend: args[1]})
	if err == nil {
		fmt.Println("moved")
	}
	return err
}

// TestB53KilledMove: whichever step kill -9 comes before.
func TestB53KilledMove(t *testing.T) {
	for _, m := range moves {
		t.Run("to "+m.to, func(t *testing.T) {
			before, after := 0, 0
			for n := 0; ; n++ {
				dir := t.TempDir()
				want := movable(t, dir, m.from)
				c := startChild(t, "move", dir, m.to, strconv.Itoa(n))
				line, _ := c.out.ReadString('\n')
				_ = c.cmd.Wait()
				if c.err.Len() > 0 {
					t.Fatalf("child %d: %s", n, c.err)
				}
				if line == "moved\n" {
					break
				}
				t.Run(fmt.Sprint("call ", n), func(t *testing.T) {
					if afterMove(t, dir, m.from, m.to, want) {
						after++
					} else {
						before++
					}
				})
			}
			if before < 3 || after < 2 {
				t.Errorf("killed %d times before the new store counted, %d times after", before, after)
			}
		})
	}
}

// What was written to the old file after an interrupted move is not given up.
func TestMoveKeepsWhatDiverged(t *testing.T) {
	dir := t.TempDir()
	movable(t, dir, "jsonl")
	_, ref := movedTo(t, dir)
	old, err := os.ReadFile(ref.Path)
	if err != nil {
		t.Fatal(err)
	}
	r := movers(t, dir, nil)
	if ref, err = r.Move(ctx, ref, store.MoveOptions{Backend: "sqlite", Discard: true}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s1.jsonl")
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := r.Open(ctx, store.Ref{ID: "s1", Path: path, Backend: "jsonl"})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Mutate(ctx, store.MainLane, func(m *store.Mutator) error {
		_, err := m.Commit(store.Tx{userEntry("lost", "c")})
		return err
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Move(ctx, ref, store.MoveOptions{Backend: "sqlite"}); !errors.Is(err, store.ErrExists) {
		t.Errorf("the diverged file: %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	if _, found := movedTo(t, dir); found != ref {
		t.Errorf("the session is %+v, want %+v", found, ref)
	}
}
