package sqlite

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/internal/fsx/fsxtest"
	"github.com/drover-run/drover/pkg/store"
)

// wasted makes a session that is mostly free pages, with a branch, a list whose
// head was deleted, and a number that was used last by what is gone.
func wasted(t testing.TB) string {
	t.Helper()
	path := newSession(t)
	tree(t, path)
	b := open(t, path, store.OpenOptions{})
	big := store.NewList[string]("app.big", "")
	for range 20 {
		commit(t, b, big.Append(strings.Repeat("x", 50_000)))
	}
	commit(t, b, marks.Append("1"), marks.Append("2"), store.InsertUsage(store.NewUsage{ID: "u1"}), store.LaneLeaf("main").Set("c"))
	commit(t, b, big.Delete())
	mustClose(t, b)
	return path
}

// observed is everything that a session tells.
type observed struct {
	Header  store.Header
	Next    int64
	Records []store.Record
	Stats   store.Stats
}

func observe(t testing.TB, q store.Queries) observed {
	t.Helper()
	snap, err := q.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	o := observed{Header: snap.Header, Next: snap.NextSeq}
	if o.Records, err = store.Collect(snap); err != nil {
		t.Fatal(err)
	}
	if o.Stats, err = q.Stats(ctx); err != nil {
		t.Fatal(err)
	}
	return o
}

func sizeOf(t testing.TB, path string) (n int64) {
	t.Helper()
	for _, name := range []string{path, walPath(path)} {
		if info, err := os.Stat(name); err == nil {
			n += info.Size()
		} else if !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return n
}

// TestCompact: the file shrinks, nothing that a reader sees changes, and the
// owner goes on with the same claim.
func TestCompact(t *testing.T) {
	path := wasted(t)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	before := sizeOf(t, path) // the claim is nothing to be compacted
	b := open(t, path, store.OpenOptions{PowerSafe: true})
	if got := pathOf(t, b, "c"); len(got) != 4 { // connects the scans
		t.Fatalf("branch: %v", got)
	}
	want, claim := observe(t, b), b.claim
	c, err := b.Compact(ctx, store.CompactOptions{MinDead: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	after := sizeOf(t, path)
	if diff := cmp.Diff(store.Compaction{BytesBefore: before, BytesAfter: after, RecordsBefore: 10, RecordsAfter: 10, Changed: true}, c); diff != "" {
		t.Errorf("compaction (-want +got):\n%s", diff)
	}
	if after > before/2 {
		t.Errorf("%d bytes are left of %d", after, before)
	}
	if diff := cmp.Diff(want, observe(t, b)); diff != "" {
		t.Errorf("contents (-before +after):\n%s", diff)
	}
	if err := b.Check(ctx); err != nil || b.claim != claim {
		t.Errorf("the claim %+v, %v, want %+v", b.claim, err, claim)
	}
	var held *store.Held
	if _, err := openOwner(ctx, path, store.OpenOptions{}); !errors.As(err, &held) || held.Lease.Fence != claim.fence {
		t.Errorf("a second owner: %v, want *Held", err)
	}
	if res := commit(t, b, marks.Append("3"), userEntry("d2", "d")); res.FirstSeq != want.Next {
		t.Errorf("the next number is %d, want %d", res.FirstSeq, want.Next)
	}
	if got := pathOf(t, b, "d2"); !slices.Equal(got, []string{"d2", "d", "a", "r"}) {
		t.Errorf("branch %v", got)
	}
	var level int
	h, err := b.near.take(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.row("PRAGMA synchronous", nil, &level); err != nil || level != 2 {
		t.Errorf("synchronous %d, %v, want 2", level, err)
	}
	b.near.give(h)
	mustClose(t, b)
	if got := names(t, filepath.Dir(path)); !slices.Equal(got, []string{"s1.db"}) {
		t.Errorf("the folder holds %v", got)
	}
	if found := problemsOf(t, path); len(found) > 0 {
		t.Errorf("problems: %v", found)
	}
	state := stateOf(t, path)
	if size := binary.BigEndian.Uint16(state.content[16:]); size != 8192 || state.content[18] != 2 || state.mode != 0o640 {
		t.Errorf("page size %d, file format %d, mode %v, want 8192, 2, 0640", size, state.content[18], state.mode)
	}
	if got := readMarks(t, open(t, path, store.OpenOptions{})); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("marks %v", got)
	}
}

// TestCompactDropsWhatIsNotSmaller: nothing is replaced for nothing (D17).
func TestCompactDropsWhatIsNotSmaller(t *testing.T) {
	path := wasted(t)
	b := open(t, path, store.OpenOptions{})
	if _, err := b.Compact(ctx, store.CompactOptions{}); err != nil {
		t.Fatal(err)
	}
	commit(t, b, marks.Append("3"))
	before, id := sizeOf(t, path), b.id
	if info, err := os.Stat(walPath(path)); err != nil || info.Size() == 0 {
		t.Fatalf("the WAL is empty: %v", err)
	}
	c, err := b.Compact(ctx, store.CompactOptions{})
	if err != nil {
		t.Fatal(err)
	}
	after := sizeOf(t, path)
	if diff := cmp.Diff(store.Compaction{BytesBefore: after, BytesAfter: after, RecordsBefore: 11, RecordsAfter: 11}, c); diff != "" {
		t.Errorf("compaction (-want +got):\n%s", diff)
	}
	if err := id.present(path); err != nil || after >= before {
		t.Errorf("the file was replaced, or its WAL kept: %v, %d bytes of %d", err, after, before)
	}
	if got := names(t, filepath.Dir(path)); !slices.Equal(got, []string{"s1.db", "s1.db-shm", "s1.db-wal"}) {
		t.Errorf("the folder holds %v", got)
	}
	commit(t, b, marks.Append("4"))
}

// TestCompactConditions: a threshold that is not reached, and a closed owner.
func TestCompactConditions(t *testing.T) {
	path := wasted(t)
	before := sizeOf(t, path)
	b := open(t, path, store.OpenOptions{})
	same := store.Compaction{BytesBefore: before, BytesAfter: before, RecordsBefore: 10, RecordsAfter: 10}
	c, err := b.Compact(ctx, store.CompactOptions{MinDead: 0.99})
	if diff := cmp.Diff(same, c); err != nil || diff != "" {
		t.Errorf("below the threshold: %v (-want +got):\n%s", err, diff)
	}
	mustClose(t, b)
	if _, err := b.Compact(ctx, store.CompactOptions{}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("compact after close: got %v, want ErrClosed", err)
	}
}

// TestCompactPlan: what is planned is what happens, of a session that is compacted
// and of one that needs nothing; the plan writes nothing beside it.
func TestCompactPlan(t *testing.T) {
	path := wasted(t)
	plan := func(o store.CompactOptions) store.Compaction {
		t.Helper()
		r, err := openReader(path)
		if err != nil {
			t.Fatal(err)
		}
		c, err := r.PlanCompaction(ctx, o)
		if err := errors.Join(err, r.Close()); err != nil {
			t.Fatal(err)
		}
		return c
	}
	dir := filepath.Dir(path)
	plan(store.CompactOptions{}) // leaves what a reader does
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, changed := range []bool{true, false} {
		for _, o := range []store.CompactOptions{{MinDead: 0.99}, {}} {
			want := plan(o)
			if want.Changed != (changed && o.MinDead == 0) || !want.Changed && want.BytesBefore != want.BytesAfter {
				t.Errorf("planned is %+v", want)
			}
			if now, err := os.Stat(dir); err != nil || !now.ModTime().Equal(info.ModTime()) {
				t.Errorf("the plan wrote to the folder: %v", err)
			}
			b := open(t, path, store.OpenOptions{})
			got, err := b.Compact(ctx, o)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("compaction: %v (-planned +got):\n%s", err, diff)
			}
			mustClose(t, b)
			if size := sizeOf(t, path); size != want.BytesAfter {
				t.Errorf("%d bytes are left, planned %d", size, want.BytesAfter)
			}
			plan(o) // again a reader's files
			if info, err = os.Stat(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestCompactBesideReaders: a view that needs the WAL stands in the way; one
// that does not keeps its moment through the exchange.
func TestCompactBesideReaders(t *testing.T) {
	path := wasted(t)
	b := open(t, path, store.OpenOptions{})
	old, err := openReader(path) // the WAL holds the claim
	if err != nil {
		t.Fatal(err)
	}
	commit(t, b, marks.Append("3"))
	if _, err := b.Compact(ctx, store.CompactOptions{}); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("compact beside a reader: got %v, want EBUSY", err)
	}
	if got := readMarks(t, old); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("the reader sees %v", got)
	}
	mustClose(t, old)
	if err := b.lookup(ctx, (*handle).foldWAL); err != nil {
		t.Fatal(err)
	}
	if old, err = openReader(path); err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if c, err := b.Compact(ctx, store.CompactOptions{}); err != nil || !c.Changed {
		t.Errorf("compact: %+v, %v", c, err)
	}
	commit(t, b, marks.Append("4"))
	if got := readMarks(t, old); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("the reader sees %v", got)
	}
	mustClose(t, old)
	if got := readMarks(t, b); !slices.Equal(got, []string{"1", "2", "3", "4"}) {
		t.Errorf("the owner sees %v", got)
	}
	mustClose(t, b)
	if got := names(t, filepath.Dir(path)); !slices.Equal(got, []string{"s1.db"}) {
		t.Errorf("the folder holds %v", got)
	}
	if found := problemsOf(t, path); len(found) > 0 {
		t.Errorf("problems: %v", found)
	}
}

// TestCompactByAReplacedOwner: who lost the session replaces nothing.
func TestCompactByAReplacedOwner(t *testing.T) {
	path := wasted(t)
	b := open(t, path, store.OpenOptions{})
	foreign(t, path, `UPDATE writer_lease SET owner_id = 'other', fence = fence + 1`)
	before := sizeOf(t, path)
	var lost *store.Lost
	if _, err := b.Compact(ctx, store.CompactOptions{}); !errors.As(err, &lost) || lost.Reason != "fenced" {
		t.Errorf("compact: got %v, want *Lost, fenced", err)
	}
	if _, err := b.Commit(ctx, store.Tx{marks.Append("3")}); !errors.As(err, &lost) {
		t.Errorf("commit: got %v, want *Lost", err)
	}
	if after := sizeOf(t, path); after > before || len(names(t, filepath.Dir(path))) != 3 {
		t.Errorf("%d bytes became %d, the folder holds %v", before, after, names(t, filepath.Dir(path)))
	}
}

// TestCompactFails at every call that it makes. Before the side files go, the
// session is as usable as before; from then on nothing more is written, and the
// next owner finds all of it.
func TestCompactFails(t *testing.T) {
	cases := []struct {
		name   string
		rule   fsxtest.Rule
		usable bool
	}{
		{"opening the copy", fsxtest.Rule{Op: fsxtest.Open}, true},
		{"its mode", fsxtest.Rule{Op: fsxtest.Chmod}, true},
		{"its fsync", fsxtest.Rule{Op: fsxtest.Sync}, true},
		{"its closing", fsxtest.Rule{Op: fsxtest.Close}, true},
		{"removal of the WAL", fsxtest.Rule{Op: fsxtest.Remove, Name: "s1.db-wal"}, false},
		{"removal of the shared memory", fsxtest.Rule{Op: fsxtest.Remove, Name: "s1.db-shm"}, false},
		{"fsync of the folder", fsxtest.Rule{Op: fsxtest.SyncDir}, false},
		{"the rename", fsxtest.Rule{Op: fsxtest.Rename}, false},
		{"fsync of the folder after it", fsxtest.Rule{Op: fsxtest.SyncDir, Skip: 1}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := wasted(t)
			system := &fsxtest.FS{}
			s, err := Driver{system: system}.Open(ctx, path, store.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			b := s.(*backend)
			want := observe(t, b)
			c.rule.Err = syscall.EIO
			system.Fail(c.rule)
			if _, err := b.Compact(ctx, store.CompactOptions{}); !errors.Is(err, syscall.EIO) {
				t.Fatalf("compact: got %v, want EIO", err)
			}
			if got := observe(t, b); !cmp.Equal(want, got) {
				t.Errorf("contents (-before +after):\n%s", cmp.Diff(want, got))
			}
			_, err = b.Commit(ctx, store.Tx{marks.Append("3")})
			if (err == nil) != c.usable || (err != nil && !errors.Is(err, syscall.EIO)) {
				t.Errorf("the next commit: %v", err)
			}
			mustClose(t, b)
			if got := names(t, filepath.Dir(path)); !slices.Equal(got, []string{"s1.db"}) {
				t.Errorf("the folder holds %v", got)
			}
			next := open(t, path, store.OpenOptions{})
			marksWant := []string{"1", "2", "3"}
			if !c.usable {
				marksWant = marksWant[:2]
				if got := observe(t, next); !cmp.Equal(want, got) {
					t.Errorf("contents for the next owner (-before +after):\n%s", cmp.Diff(want, got))
				}
			}
			if got := readMarks(t, next); !slices.Equal(got, marksWant) {
				t.Errorf("marks %v, want %v", got, marksWant)
			}
			mustClose(t, next)
			if found := problemsOf(t, path); len(found) > 0 {
				t.Errorf("problems: %v", found)
			}
		})
	}
}

// TestRemoveFiles: a copy that failed for want of room may have left a journal.
func TestRemoveFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, ".s1.db.tmp-1")
	for _, name := range []string{path, path + "-wal", path + "-shm", path + "-journal"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeFiles(fsx.OS{}, path); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
