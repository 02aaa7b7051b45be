package storetest

import (
	"testing"

	"github.com/drover-run/drover/pkg/store"
)

// The rules of who owns which bytes (spec §1.5): a commit copies what it is
// given, and what a read returned never changes.
var isolationRules = []rule{
	{"a commit keeps nothing of the caller's buffers", copiesInput},
	{"results do not change with later commits", resultsAreFixed},
	{"changing a returned collection changes no store", collectionsAreCopies},
	{"a snapshot is one moment", snapshotIsOneMoment},
	{"commits go on beside an open snapshot", commitsBesideSnapshot},
}

func copiesInput(t *testing.T, f *fixture) {
	b := f.empty(t)
	payload, val, usage := raw(`{"data":"payload"}`), raw(`"value"`), raw(`{"input":1}`)
	res := commit(t, b,
		store.InsertEntry(store.NewEntry{ID: "e1", Type: store.TypeCustom, CustomType: "c", Payload: payload}),
		valueA.Set(val), listA.Append(val),
		store.InsertUsage(store.NewUsage{ID: "u1", RawUsage: usage, Details: val}))
	for _, buf := range [][]byte{payload, val, usage} {
		for i := range buf {
			buf[i] = 'X'
		}
	}
	same(t, "payload", string(entries(t, b, "e1")["e1"].Payload), `{"data":"payload"}`)
	wantValue(t, b, valueA.Address(), res.Seqs[1], `"value"`)
	wantList(t, b, listA.Address(), store.ListQuery{}, element(res.Seqs[2], `"value"`))
	rows, err := b.ScanUsage(t.Context(), store.UsageQuery{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "usage", rows, []store.UsageRow{{ID: "u1", Seq: res.Seqs[3], Usage: raw(`{"input":1}`), Details: raw(`"value"`)}})
}

func resultsAreFixed(t *testing.T, f *fixture) {
	b := f.empty(t)
	res := commit(t, b, userEntry("e1", "", "x"), valueA.Set(raw("1")), listA.Append(raw("1")), usageWrite("u1", "", 1, 0))
	v, _ := value(t, b, valueA.Address())
	els := list(t, b, listA.Address(), store.ListQuery{})
	es := entries(t, b, "e1")
	st := stats(t, b)
	wantEntry := es["e1"]
	wantEntry.Payload = append(raw(""), wantEntry.Payload...)

	commit(t, b, valueA.Set(raw("2")), listA.Append(raw("2")), userEntry("e2", "e1", "y"), usageWrite("u2", "", 5, 0))
	commit(t, b, valueA.Delete(), listA.Delete())
	same(t, "value", v, store.StoredValue{Address: valueA.Address(), Seq: res.Seqs[1], Value: raw("1")})
	same(t, "list", els, []store.ListElement{element(res.Seqs[2], "1")})
	same(t, "entries", es, map[string]store.Entry{"e1": wantEntry})
	same(t, "stats", st, store.Stats{MessageCount: 1, Usage: usageOf(1, 0)})
	same(t, "commit result", res.Stats, store.Stats{MessageCount: 1, Usage: usageOf(1, 0)})
}

func collectionsAreCopies(t *testing.T, f *fixture) {
	b := f.empty(t)
	res := commit(t, b, userEntry("e1", "", "x"), userEntry("e2", "e1", "y"), valueA.Set(raw("1")), listA.Append(raw("1")), listA.Append(raw("2")), usageWrite("u1", "", 1, 0))
	want := contents(t, b)

	es := entries(t, b, "e1", "e2")
	delete(es, "e1")
	clear(list(t, b, listA.Address(), store.ListQuery{}))
	clear(res.Seqs)
	vs, err := b.ScanValues(t.Context(), valueA.Address())
	if err != nil {
		t.Fatal(err)
	}
	clear(vs)
	scanned, err := b.ScanEntries(t.Context(), store.EntryQuery{})
	if err != nil {
		t.Fatal(err)
	}
	clear(scanned)
	branch, err := b.ScanBranch(t.Context(), store.BranchQuery{Start: "e2"})
	if err != nil {
		t.Fatal(err)
	}
	clear(branch)
	structure, err := b.ScanBranchStructure(t.Context(), store.BranchQuery{Start: "e2"})
	if err != nil {
		t.Fatal(err)
	}
	clear(structure)
	rows, err := b.ScanUsage(t.Context(), store.UsageQuery{})
	if err != nil {
		t.Fatal(err)
	}
	clear(rows)

	same(t, "contents", contents(t, b), want)
	same(t, "branch", branchIDs(t, b, store.BranchQuery{Start: "e2"}), []string{"e2", "e1"})
}

func snapshotIsOneMoment(t *testing.T, f *fixture) {
	b := f.empty(t)
	commit(t, b, userEntry("e1", "", "x"), valueA.Set(raw("1")), listA.Append(raw("1")), listB.Append(raw("2")), usageWrite("u1", "e1", 1, 0))
	res := commit(t, b, valueB.Set(raw("3")), valueB.Delete())
	want := records(t, b)
	if len(want) != 5 {
		t.Fatalf("snapshot has %d records, want the 5 that survive", len(want))
	}
	snap, err := b.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if snap.NextSeq <= res.Seqs[1] {
		t.Errorf("next seq %d of the snapshot is not above %d", snap.NextSeq, res.Seqs[1])
	}
	same(t, "header", snap.Header, b.Header())
	commit(t, b, userEntry("e2", "e1", "y"), valueA.Set(raw("9")), listA.Delete(), listB.Append(raw("9")))
	got, err := store.Collect(snap)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "records", got, want)
	last := int64(0)
	for _, r := range records(t, b) {
		if r.Seq <= last {
			t.Fatalf("record %d comes after %d", r.Seq, last)
		}
		last = r.Seq
	}
}

func commitsBesideSnapshot(t *testing.T, f *fixture) {
	b := f.empty(t)
	commit(t, b, userEntry("e1", "", "x"), userEntry("e2", "e1", "y"), userEntry("e3", "e2", "z"))
	snap, err := b.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	n := 0
	for _, err := range snap.Records {
		if err != nil {
			t.Fatal(err)
		}
		n++
		commit(t, b, userEntry(entryID(n), "e3", "beside"))
	}
	same(t, "records", n, 3)
	same(t, "entries", len(entryIDs(t, b, store.EntryQuery{})), 6)
}
