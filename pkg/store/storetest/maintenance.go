package storetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/drover-run/drover/pkg/store"
)

// The rules of maintenance on an open session (spec §1.7, §2.6).
var maintenanceRules = []rule{
	{"B31: a compaction of the file changes nothing that is read", compactionKeeps},
	{"a dry compaction changes nothing at all", dryCompaction},
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

func dryCompaction(t *testing.T, f *fixture) {
	_, s, _ := f.worn(t)
	before := contents(t, s)
	planned := compact(t, s, store.CompactOptions{DryRun: true})
	if !planned.Changed || planned.BytesAfter >= planned.BytesBefore {
		t.Fatalf("plan %+v", planned)
	}
	same(t, "contents", contents(t, s), before)
	done := compact(t, s, store.CompactOptions{})
	same(t, "size before", done.BytesBefore, planned.BytesBefore)
	same(t, "records", []int64{done.RecordsBefore, done.RecordsAfter}, []int64{planned.RecordsBefore, planned.RecordsAfter})
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
