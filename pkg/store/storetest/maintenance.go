package storetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/store"
)

// The rules of maintenance on an open session (spec §1.7, §2.6).
var maintenanceRules = []rule{
	{"B31: a compaction of the file changes nothing that is read", compactionKeeps},
	{"a plan of a compaction changes not a byte, needs no ownership, and tells what happens", planKeeps},
	{"B53: what an interrupted replacement left goes with the next one, and with the session", sweepsLeftovers},
	{"a session in a folder that may not be listed is compacted and deleted", unlistedFolder},
	{"a repair of the index changes nothing that is read", repairKeeps},
}

// worn is a session with two compaction entries, a lane that stands between
// them, and much that is dead.
func (f *fixture) worn(t *testing.T) (*store.Repo, *store.Session, store.Ref) {
	t.Helper()
	r := f.repo(t)
	s, ref := create(t, r, store.CreateOptions{ID: "s1", Config: &forkConfig})
	commitAs(t, s, userEntry("e1", "", "one"), compactionEntry("c1", "e1"), userEntry("e2", "c1", "two"),
		compactionEntry("c2", "e2"), userEntry("e3", "c2", "three"), store.LaneLeaf(store.MainLane).Set("e3"),
		listA.Append(raw(`"kept"`)), listB.Append(raw(`"dead"`)), usageWrite("u1", "e3", 5, 1))
	if _, err := s.CreateLane(t.Context(), "between", "e2", forkConfig); err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		commitAs(t, s, valueA.Set(raw(fmt.Sprintf(`"%0200d"`, i))), listB.Append(raw(fmt.Sprintf(`"%0200d"`, i))))
	}
	commitAs(t, s, listB.Delete(), listA.Append(raw(`"kept too"`)), valueB.Set(raw("1")), valueB.Delete())
	return r, s, ref
}

func commitAs(t *testing.T, s *store.Session, writes ...store.Write) {
	t.Helper()
	err := s.Mutate(t.Context(), store.MainLane, func(m *store.Mutator) error {
		_, err := m.Commit(store.Tx(writes))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// paths are what every lane would send, and the list's cursors.
func paths(t *testing.T, s *store.Session) map[string][]store.Entry {
	t.Helper()
	all := map[string][]store.Entry{}
	lanes, err := s.Lanes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, lane := range lanes {
		if all[lane], err = s.View(lane).FindEntriesOnBranch(t.Context(), store.BranchQuery{}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func compact(t *testing.T, s *store.Session, o store.CompactOptions) store.Compaction {
	t.Helper()
	done, err := s.Compact(t.Context(), o)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("this storage has no file to compact")
	}
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func compactionKeeps(t *testing.T, f *fixture) {
	r, s, ref := f.worn(t)
	before, lanes := contents(t, s), paths(t, s)
	done := compact(t, s, store.CompactOptions{})
	if !done.Changed || done.BytesAfter >= done.BytesBefore || done.RecordsAfter > done.RecordsBefore {
		t.Fatalf("compaction %+v", done)
	}
	same(t, "contents", contents(t, s), before)
	same(t, "paths", paths(t, s), lanes)
	closeSession(t, s)
	s = openSession(t, r, ref)
	same(t, "contents, opened again", contents(t, s), before)
	same(t, "paths, opened again", paths(t, s), lanes)
	last := before.Records[len(before.Records)-1].Seq
	commitAs(t, s, valueB.Set(raw("2")))
	if v, _ := value(t, s, valueB.Address()); v.Seq <= last+2 { // two numbers are dead
		t.Fatalf("goes on at %d after %d and two more", v.Seq, last)
	}
	if again := compact(t, s, store.CompactOptions{MinDead: 0.9}); again.Changed {
		t.Fatalf("compacted again: %+v", again)
	}
}

func planKeeps(t *testing.T, f *fixture) {
	r, s, ref := f.worn(t)
	plan := func(what string, min float64) store.Compaction {
		t.Helper()
		before, err := os.Stat(ref.Path)
		if err != nil {
			t.Skip("this storage has no file to compact")
		}
		bytes := readFile(t, ref.Path)
		c, err := r.PlanCompaction(t.Context(), ref, store.CompactOptions{MinDead: min})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		after, err := os.Stat(ref.Path)
		if err != nil {
			t.Fatal(err)
		}
		if !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) || bytes != readFile(t, ref.Path) {
			t.Errorf("%s: the file was changed", what)
		}
		return c
	}
	before := contents(t, s)
	beside := plan("beside its owner", 0)
	if !beside.Changed || beside.BytesAfter >= beside.BytesBefore || beside.RecordsAfter > beside.RecordsBefore {
		t.Fatalf("plan %+v", beside)
	}
	same(t, "contents", contents(t, s), before)
	closeSession(t, s)
	planned := plan("owned by nobody", 0)
	same(t, "left over", temporaries(t, ref.Path), []string(nil))
	same(t, "below its threshold", plan("not dead enough", 0.999), store.Compaction{
		BytesBefore: planned.BytesBefore, BytesAfter: planned.BytesBefore, RecordsBefore: planned.RecordsBefore, RecordsAfter: planned.RecordsBefore,
	})
	if l, err := r.Lease(t.Context(), ref); l != nil || err != nil {
		t.Errorf("somebody owns it: %+v, %v", l, err)
	}
	s = openSession(t, r, ref)
	done := compact(t, s, store.CompactOptions{})
	same(t, "records", []int64{done.RecordsBefore, done.RecordsAfter}, []int64{planned.RecordsBefore, planned.RecordsAfter})
	same(t, "size after", done.BytesAfter, planned.BytesAfter)
	closeSession(t, s)
	if again := plan("compacted", 0); again.Changed {
		t.Errorf("compacted already: %+v", again)
	}
}

// onDisk makes a closed session, of a storage that has files.
func (f *fixture) onDisk(t *testing.T) (*store.Repo, store.Ref) {
	t.Helper()
	r, s, ref := f.worn(t)
	closeSession(t, s)
	if _, err := os.Stat(ref.Path); err != nil {
		t.Skip("this storage has no files")
	}
	return r, ref
}

func sweepsLeftovers(t *testing.T, f *fixture) {
	r, ref := f.onDisk(t)
	leave := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(f.dir, name), []byte("half"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	ext := f.driver.Ext()
	ours, others := ".s1"+ext+".tmp-0123abcd", []string{".s1" + ext + ".tmp-0123abcd" + ext + ".tmp-89abcdef", ".s11" + ext + ".tmp-0123abcd"}
	leave(append(others, ours)...)
	listed, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "listed", len(listed), 1)
	s := openSession(t, r, ref)
	compact(t, s, store.CompactOptions{})
	same(t, "after a compaction", temporaries(t, ref.Path), others)
	before := contents(t, s)
	closeSession(t, s)
	leave(ours)
	snap := store.NewSnapshot(header("s1"), before.Records)
	if _, err := r.Import(t.Context(), snap, store.ImportOptions{Replace: true}); err != nil {
		t.Fatal(err)
	}
	same(t, "after a replacement", temporaries(t, ref.Path), others)
	leave(ours)
	if err := r.Delete(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	same(t, "after the deletion", temporaries(t, ref.Path), others)
}

func unlistedFolder(t *testing.T, f *fixture) {
	if os.Geteuid() == 0 {
		t.Skip("root may list every folder")
	}
	r, ref := f.onDisk(t)
	if err := os.Chmod(f.dir, 0o300); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(f.dir, 0o700) })
	s := openSession(t, r, ref)
	if done := compact(t, s, store.CompactOptions{}); !done.Changed {
		t.Errorf("compaction %+v", done)
	}
	closeSession(t, s)
	if err := r.Delete(t.Context(), ref); err != nil {
		t.Errorf("delete: %v", err)
	}
}

// temporaries are the names of the temporary files beside a session.
func temporaries(t *testing.T, path string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if fsx.IsTemp(f.Name()) {
			names = append(names, f.Name())
		}
	}
	return names
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func repairKeeps(t *testing.T, f *fixture) {
	r, s, ref := f.worn(t)
	before, lanes := contents(t, s), paths(t, s)
	if err := s.RepairIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, "contents", contents(t, s), before)
	same(t, "paths", paths(t, s), lanes)
	commitAs(t, s, userEntry("e4", "e3", "four"), store.LaneLeaf(store.MainLane).Set("e4"))
	closeSession(t, s)
	v, err := r.View(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for p := range store.Verify(t.Context(), v) {
		t.Errorf("%+v", p)
	}
}
