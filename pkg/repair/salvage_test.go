package repair_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-run/drover/internal/bulk"
	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/repair"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/sqlite"
)

var shape = bulk.Shape{ID: "damaged", Entries: 40, Text: 3000}

// build makes a session and returns the bytes of its file.
func build(t *testing.T, d store.Driver) (path string, good []byte) {
	t.Helper()
	path, err := bulk.Build(t.Context(), d, t.TempDir(), shape)
	if err == nil {
		good, err = os.ReadFile(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path, good
}

// tb is what a test and a rapid one have in common.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

// salvage saves a damaged file and wants a session that passes verify and an
// untouched source. A file of which nothing can be read gives an empty session.
func salvage(t tb, from store.Driver, path string, to store.Driver, out string) (repair.Salvaged, map[string]string) {
	t.Helper()
	ctx := context.Background()
	before, stat := state(t, path)
	s, err := repair.Salvage(ctx, repair.SalvageOptions{From: from, Path: path, To: to, Out: out, Checks: []store.Check{engine.Check}})
	after, now := state(t, path)
	if !bytes.Equal(before, after) || !now.ModTime().Equal(stat.ModTime()) {
		t.Fatalf("the source was changed")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(out), ".*.salvage*")); len(left) > 0 {
		t.Fatalf("left behind: %v", left)
	}
	if err != nil {
		t.Fatalf("salvage: %v", err)
	}
	return s, parents(t, to, out)
}

// Of several attempts at one file, one saves the session and the others find it there;
// what a killed one left goes once none is at work.
func TestSalvageAtOnce(t *testing.T) {
	for _, d := range []store.Driver{jsonl.Driver{}, sqlite.Driver{}} {
		path, _ := build(t, d)
		out := filepath.Join(t.TempDir(), "saved"+d.Ext())
		o := repair.SalvageOptions{From: d, Path: path, To: d, Out: out, Checks: []store.Check{engine.Check}}
		left := filepath.Join(filepath.Dir(out), ".saved"+d.Ext()+".salvage-1")
		if err := os.Mkdir(left, 0o700); err != nil {
			t.Fatal(err)
		}
		_, release := fsx.LockFolder(filepath.Dir(out), false)
		errs := make(chan error)
		const attempts = 4
		for range attempts {
			go func() {
				_, err := repair.Salvage(context.Background(), o)
				errs <- err
			}()
		}
		saved := 0
		for range attempts {
			err := <-errs
			if err == nil {
				saved++
			} else if !errors.Is(err, store.ErrExists) {
				t.Errorf("%s: %v", d.Name(), err)
			}
		}
		if saved != 1 {
			t.Errorf("%s: saved %d times", d.Name(), saved)
		}
		if _, err := os.Stat(left); err != nil {
			t.Errorf("what another attempt may be using is gone: %v", err)
		}
		release()
		o.Out = filepath.Join(filepath.Dir(out), "more"+d.Ext())
		more := filepath.Join(filepath.Dir(out), ".more"+d.Ext()+".salvage-1")
		if err := os.Rename(left, more); err != nil {
			t.Fatal(err)
		}
		if _, err := repair.Salvage(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(more); err == nil {
			t.Error("what a killed attempt left is still there")
		}
	}
}

func state(t tb, path string) ([]byte, os.FileInfo) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v", err)
	}
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return b, fi
}

// parents verifies a session and returns the parent of every entry.
func parents(t tb, d store.Driver, path string) map[string]string {
	t.Helper()
	ctx := context.Background()
	r, err := d.View(ctx, path)
	if err != nil {
		t.Fatalf("open the result: %v", err)
	}
	defer r.Close()
	for p := range store.Verify(ctx, r, engine.Check) {
		if p.Severity == store.SeverityError {
			t.Fatalf("the result has %s: %s (%s)", p.Code, p.Message, p.Where)
		}
	}
	entries, err := r.ScanEntries(ctx, store.EntryQuery{})
	if err != nil {
		t.Fatalf("%v", err)
	}
	all := make(map[string]string)
	for _, e := range entries {
		all[e.ID] = e.ParentID
	}
	return all
}

// Whatever page of a database is overwritten, what the others hold is saved, and
// every entry that is missing is told by its id or by its table.
func TestSalvageWithoutAnyOnePage(t *testing.T) {
	const page = 8192
	path, good := build(t, sqlite.Driver{})
	whole := parents(t, sqlite.Driver{}, path)
	for p := 0; p*page < len(good); p++ {
		bad := bytes.Clone(good)
		for i := range page {
			bad[p*page+i] = byte(i*7 + 3)
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		s, kept := salvage(t, sqlite.Driver{}, path, jsonl.Driver{}, filepath.Join(t.TempDir(), fmt.Sprintf("saved-%d.jsonl", p)))
		allTold(t, fmt.Sprintf("page %d", p+1), whole, kept, s.Lost)
	}
}

// allTold wants every entry that is missing to be told by its id or by its table.
func allTold(t *testing.T, where string, whole, kept map[string]string, lost []store.Loss) {
	t.Helper()
	told := ""
	for _, l := range lost {
		told += l.Code + " " + l.Where + "\n"
	}
	for id := range whole {
		if _, there := kept[id]; !there && !strings.Contains(told, id) && !strings.Contains(told, "table entries") {
			t.Errorf("%s: entry %s is gone and nobody says so:\n%s", where, id, told)
		}
	}
}

// Wherever a database is cut off, at a page or within one, what comes before is
// saved, and the more of it there is, the more is kept. Of nothing there is nothing.
func TestSalvageOfACutDatabase(t *testing.T) {
	const page = 8192
	path, good := build(t, sqlite.Driver{})
	whole := parents(t, sqlite.Driver{}, path)
	before := -1
	for size := 0; size < len(good); size += page / 2 {
		if err := os.WriteFile(path, good[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		s, kept := salvage(t, sqlite.Driver{}, path, jsonl.Driver{}, filepath.Join(t.TempDir(), "saved.jsonl"))
		allTold(t, fmt.Sprintf("cut at %d", size), whole, kept, s.Lost)
		if len(kept) < before {
			t.Errorf("of %d bytes %d entries are kept, of %d were %d", size, len(kept), size-page/2, before)
		}
		before = len(kept)
	}
	if before != len(whole) {
		t.Errorf("without the end, %d of %d entries are kept", before, len(whole))
	}
}

// Whatever line is cut in its middle, all others are kept; the damaged one is
// named with its number and offset, and its children hang on its parent.
func TestSalvageWithoutAnyOneLine(t *testing.T) {
	path, good := build(t, jsonl.Driver{})
	whole := parents(t, jsonl.Driver{}, path)
	lines := bytes.SplitAfter(good, []byte("\n"))
	lines = lines[:len(lines)-1]
	offset := len(lines[0])
	for n := 1; n < len(lines); n++ {
		line := lines[n]
		cut := line[:len(line)*3/4]
		bad := bytes.Join([][]byte{good[:offset], cut, []byte("\n"), good[offset+len(line):]}, nil)
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		s, kept := salvage(t, jsonl.Driver{}, path, jsonl.Driver{}, filepath.Join(t.TempDir(), "saved.jsonl"))
		if len(s.Lost) == 0 {
			t.Fatalf("line %d: nothing is lost", n+1)
		}
		if want := fmt.Sprintf("line %d, byte %d", n+1, offset+len(cut)); s.Lost[0].Where != want {
			t.Errorf("line %d: the loss is at %q, want %q", n+1, s.Lost[0].Where, want)
		}
		if diff := cmp.Diff(without(whole, s.Lost[0].EntryID), kept); diff != "" {
			t.Errorf("line %d (-want +got):\n%s", n+1, diff)
		}
		offset += len(line)
	}
}

// without is a tree from which an entry was taken.
func without(tree map[string]string, id string) map[string]string {
	rest := make(map[string]string)
	for child, parent := range tree {
		if parent == id && id != "" {
			parent = tree[id]
		}
		if child != id {
			rest[child] = parent
		}
	}
	return rest
}

// A damaged sequence number costs its own line, not those behind it.
func TestSalvageOfAStrayNumber(t *testing.T) {
	path, good := build(t, jsonl.Driver{})
	lines := bytes.SplitAfter(good, []byte("\n"))
	lines[10] = bytes.Replace(lines[10], []byte(`"seq":`), []byte(`"seq":99`), 1)
	if err := os.WriteFile(path, bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	s, kept := salvage(t, jsonl.Driver{}, path, sqlite.Driver{}, filepath.Join(t.TempDir(), "saved.db"))
	if len(s.Lost) != 1 || s.Lost[0].Code != "order" || len(kept) < shape.Entries-1 {
		t.Errorf("kept %d of %d entries, lost %v", len(kept), shape.Entries, s.Lost)
	}
}

// Bytes that change anywhere, in either encoding, never make a session that does
// not pass verify, and never touch the source.
func TestSalvageOfAnyDamage(t *testing.T) {
	drivers := []store.Driver{jsonl.Driver{}, sqlite.Driver{}}
	for _, from := range drivers {
		t.Run(from.Name(), func(t *testing.T) {
			path, good := build(t, from)
			dir, n := t.TempDir(), 0
			rapid.Check(t, func(t *rapid.T) {
				bad := bytes.Clone(good)
				for range rapid.IntRange(1, 20).Draw(t, "changes") {
					at := rapid.IntRange(0, len(bad)-1).Draw(t, "at")
					size := min(rapid.IntRange(1, 200).Draw(t, "size"), len(bad)-at)
					copy(bad[at:], rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "bytes"))
				}
				if err := os.WriteFile(path, bad, 0o600); err != nil {
					t.Fatalf("%v", err)
				}
				n++
				to := drivers[n%2]
				salvage(t, from, path, to, filepath.Join(dir, fmt.Sprintf("saved-%d%s", n, to.Ext())))
			})
		})
	}
}
