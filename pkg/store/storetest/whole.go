package storetest

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/drover-run/drover/pkg/store"
)

// The rules of writing a whole store (spec §1.7, D13, D14).
var wholeRules = []rule{
	{"builds what a snapshot says", buildsSnapshot},
	{"keeps sequence numbers, their gaps and their high-water mark", keepsHighWater},
	{"a snapshot's skeleton is its records, with or without payloads of entries and usage rows", skeleton},
	{"keeps times that run backwards", keepsOldTimes},
	{"does not touch an existing store unless told", refusesExisting},
	{"replaces an existing store when told", replacesExisting},
	{"a failed build leaves what was there", failedBuild},
	{"lists stores in byte order", listsStores},
}

// sampleRecords holds one surviving record of every kind, with gaps.
func sampleRecords(t testing.TB) []store.Record {
	rs, _, err := store.Prepare(store.Tx{
		userEntry("e1", "", "x"), customEntry("e2", "e1", "app.c", raw(`{"a":1.0}`)), compactionEntry("e3", "e2"),
		valueA.Set(raw(`{"b":[1]}`)), store.LaneLeaf(store.MainLane).Set("e3"), listA.Append(raw("1")), listA.Append(raw("2")),
		usageWrite("u1", "e1", 3, 0.1), usageWrite("u2", "", 4, 0.2),
	}, store.Base{NextSeq: 10, Now: start, Lookup: func(string) (store.IDKind, error) { return store.IDFree, nil }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rs {
		rs[i].Seq += int64(i) // a gap after every record
		if rs[i].Entry != nil {
			rs[i].Entry.Seq = rs[i].Seq
		}
		if rs[i].Usage != nil {
			rs[i].Usage.Seq = rs[i].Seq
		}
	}
	return rs
}

func richHeader() store.Header {
	h := header("s1")
	h.CWD = "/tmp/a \"b\""
	h.ParentSessionID = "parent"
	h.LegacyParentSessionPath = "/old/path.jsonl"
	h.LegacySessionID = "../x"
	h.Spawn = raw(`{"by":"p","n":1.0}`)
	h.Generation = 3
	h.Source = raw(`{"kind":"v3","digest":"d"}`)
	h.Extra = []store.HeaderField{{Key: raw(`"novel"`), Value: raw(`[1.0]`)}}
	return h
}

func skeleton(t *testing.T, f *fixture) {
	rs := sampleRecords(t)
	f.build(t, "s1", store.NewSnapshot(richHeader(), rs))
	for name, r := range map[string]store.Reader{"owned": f.open(t, "s1"), "view": viewOf(t, f, "s1")} {
		snap, err := r.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []store.Record
		for range 2 { // it may be read again
			got = nil
			for rec, err := range snap.Skeleton() {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, bare(rec))
			}
		}
		want := make([]store.Record, len(rs))
		for i := range rs {
			want[i] = bare(rs[i])
		}
		same(t, name, got, want)
		if err := snap.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func viewOf(t *testing.T, f *fixture, id string) store.Reader {
	t.Helper()
	r, err := f.driver.View(t.Context(), f.path(id))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// bare is a record without what a skeleton may leave out.
func bare(r store.Record) store.Record {
	if r.Entry != nil {
		r.Entry = &store.Entry{Structure: r.Entry.Structure}
	}
	if r.Usage != nil {
		u := *r.Usage
		u.Usage, u.Details = nil, nil
		r.Usage = &u
	}
	return r
}

func buildsSnapshot(t *testing.T, f *fixture) {
	rs := sampleRecords(t)
	h := richHeader()
	f.build(t, "s1", store.NewSnapshot(h, rs))
	want := content{Records: rs}
	for _, r := range rs {
		want.Stats = want.Stats.Add(r)
	}
	b := f.open(t, "s1")
	same(t, "contents", contents(t, b), want)
	h.NextSeq = b.Header().NextSeq // how a store keeps its high-water mark is its own business
	same(t, "header", b.Header(), h)
	same(t, "branch", branchIDs(t, b, store.BranchQuery{Start: "e3"}), []string{"e3", "e2", "e1"})

	snap, err := b.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.build(t, "copy", snap)
	if err := snap.Close(); err != nil {
		t.Fatal(err)
	}
	copied := f.open(t, "copy")
	same(t, "contents of a copy", contents(t, copied), want)
}

func keepsHighWater(t *testing.T, f *fixture) {
	rs := sampleRecords(t)
	snap := store.NewSnapshot(header("s1"), rs)
	snap.NextSeq = 500
	f.build(t, "s1", snap)
	b := f.open(t, "s1")
	for range 2 {
		snap, err := b.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := snap.Close(); err != nil {
			t.Fatal(err)
		}
		if snap.NextSeq < 500 {
			t.Fatalf("next seq %d, want 500 at least", snap.NextSeq)
		}
		b = f.reopen(t, b)
	}
	res := commit(t, b, valueB.Set(raw("1")))
	if res.FirstSeq < 500 {
		t.Fatalf("seq %d was given below the high-water mark 500", res.FirstSeq)
	}
	wantList(t, b, listA.Address(), store.ListQuery{Cursor: rs[5].Seq}, element(rs[6].Seq, "2"))
}

func keepsOldTimes(t *testing.T, f *fixture) {
	rs := sampleRecords(t)
	times := []int64{start + 50, start - 1_000_000, start - 5}
	for i, ms := range times {
		rs[i].Entry.Timestamp = ms
	}
	f.build(t, "s1", store.NewSnapshot(header("s1"), rs))
	b := f.open(t, "s1")
	got, err := b.ScanEntries(t.Context(), store.EntryQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range got {
		same(t, "timestamp of "+e.ID, e.Timestamp, times[i])
	}
	same(t, "timestamp of the next commit", commit(t, b, userEntry("e4", "e3", "x")).Timestamp, start+50)
}

func refusesExisting(t *testing.T, f *fixture) {
	b := f.empty(t)
	commit(t, b, valueA.Set(raw("1")))
	want := contents(t, b)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	err := f.driver.Build(t.Context(), f.path("s1"), store.NewSnapshot(header("s1"), sampleRecords(t)), store.BuildOptions{})
	if !errors.Is(err, store.ErrExists) {
		t.Fatalf("build over a store: got %v, want ErrExists", err)
	}
	same(t, "contents", contents(t, f.open(t, "s1")), want)
}

func replacesExisting(t *testing.T, f *fixture) {
	b := f.empty(t)
	commit(t, b, valueB.Set(raw("1")), userEntry("old", "", "x"))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	rs := sampleRecords(t)
	err := f.driver.Build(t.Context(), f.path("s1"), store.NewSnapshot(header("s1"), rs), store.BuildOptions{Replace: true})
	if err != nil {
		t.Fatalf("replace: %v", err)
	}
	same(t, "records", records(t, f.open(t, "s1")), rs)
}

func failedBuild(t *testing.T, f *fixture) {
	errSource := errors.New("source is gone")
	rs := sampleRecords(t)
	broken := func() *store.Snapshot {
		snap := store.NewSnapshot(header("s1"), nil)
		snap.Records = func(yield func(store.Record, error) bool) {
			if yield(rs[0], nil) && yield(rs[1], nil) {
				yield(store.Record{}, errSource)
			}
		}
		return snap
	}
	if err := f.driver.Build(t.Context(), f.path("s1"), broken(), store.BuildOptions{}); !errors.Is(err, errSource) {
		t.Fatalf("build: got %v, want the source's error", err)
	}
	if _, err := f.driver.Header(t.Context(), f.path("s1")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("header after a failed build: got %v, want fs.ErrNotExist", err)
	}
	b := f.empty(t)
	commit(t, b, valueA.Set(raw("1")))
	want := contents(t, b)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.driver.Build(t.Context(), f.path("s1"), broken(), store.BuildOptions{Replace: true}); !errors.Is(err, errSource) {
		t.Fatalf("replace: got %v, want the source's error", err)
	}
	same(t, "contents after a failed replacement", contents(t, f.open(t, "s1")), want)
}

func listsStores(t *testing.T, f *fixture) {
	paths, err := f.driver.List(t.Context(), f.dir)
	if err != nil || len(paths) != 0 {
		t.Fatalf("list of an empty folder: %v, %v", paths, err)
	}
	var want []string
	for _, id := range []string{"B", "a", "a-1", "b"} {
		f.build(t, id, store.NewSnapshot(header(id), nil))
		want = append(want, f.path(id))
	}
	slices.Sort(want)
	b := f.open(t, "b") // an open store's side files are no stores
	commit(t, b, valueA.Set(raw("1")))
	paths, err = f.driver.List(t.Context(), f.dir)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "stores", paths, want)
}
