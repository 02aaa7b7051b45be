package storetest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/store"
)

// The rules of transactions (spec §1.4).
var transactionRules = []rule{
	{"commits mixed writes atomically in write order", commitsMixedWrites},
	{"numbers writes in strictly rising order", numbersWrites},
	{"an empty transaction changes nothing", emptyTransaction},
	{"rolls back every store when the last write fails", rollsBackEveryStore},
	{"keeps overwritten and deleted values when a transaction fails", keepsValuesOnFailure},
	{"entries and usage rows share one id namespace", sharesIDNamespace},
	{"parents are prior entries or earlier writes", resolvesParents},
	{"pending content is placed under its reserved id", placesPendingContent},
	{"a commit after a refused one continues", continuesAfterRefusal},
	{"back-to-back commits apply in admission order", admissionOrder},
	{"time never falls", timeNeverFalls},
	{"time never falls across a reopen", timeNeverFallsAcrossReopen},
}

func commitsMixedWrites(t *testing.T, f *fixture) {
	b := f.empty(t)
	res := commit(t, b,
		userEntry("e1", "", "hello"),
		valueA.Set(raw(`{"n":1}`)),
		usageWrite("u1", "e1", 7, 0.25))

	if len(res.Seqs) != 3 || res.Seqs[0] >= res.Seqs[1] || res.Seqs[1] >= res.Seqs[2] {
		t.Fatalf("seqs %v are not three rising numbers", res.Seqs)
	}
	want := store.CommitResult{
		FirstSeq: res.Seqs[0], Seqs: res.Seqs, Timestamp: start,
		Stats: store.Stats{MessageCount: 1, Usage: usageOf(7, 0.25)},
	}
	same(t, "commit result", res, want)
	same(t, "stats", stats(t, b), want.Stats)

	e1 := store.Entry{
		Structure: store.Structure{ID: "e1", Seq: res.Seqs[0], Timestamp: start, Type: store.TypeMessage},
		Payload:   raw(`{"message":` + userJSON("hello") + `}`),
	}
	same(t, "entries", entries(t, b, "e1", "u1", "absent"), map[string]store.Entry{"e1": e1})
	wantValue(t, b, valueA.Address(), res.Seqs[1], `{"n":1}`)
	rows, err := b.ScanUsage(t.Context(), store.UsageQuery{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "usage", rows, []store.UsageRow{{ID: "u1", Seq: res.Seqs[2], EntryID: "e1", Usage: usageJSON(t, usageOf(7, 0.25))}})
}

func numbersWrites(t *testing.T, f *fixture) {
	b := f.empty(t)
	var all []int64
	for range 3 {
		res := commit(t, b, valueA.Set(raw("1")), listA.Append(raw("2")), valueA.Delete(), listA.Delete())
		if res.FirstSeq != res.Seqs[0] {
			t.Fatalf("first seq %d, seqs %v", res.FirstSeq, res.Seqs)
		}
		all = append(all, res.Seqs...)
	}
	last := int64(0)
	for _, seq := range all {
		if seq <= last {
			t.Fatalf("seqs %v do not rise", all)
		}
		last = seq
	}
}

func emptyTransaction(t *testing.T, f *fixture) {
	b := f.empty(t)
	commit(t, b, userEntry("e1", "", "x"))
	before := contents(t, b)
	res := commit(t, b)
	if len(res.Seqs) != 0 || !cmp.Equal(res.Stats, before.Stats) {
		t.Fatalf("result %+v of an empty transaction, stats before it %+v", res, before.Stats)
	}
	same(t, "contents", contents(t, b), before)
}

func rollsBackEveryStore(t *testing.T, f *fixture) {
	b := f.empty(t)
	commit(t, b, usageWrite("u1", "", 3, 0.5))
	refuse(t, b,
		userEntry("e1", "", "x"),
		valueA.Set(raw("1")),
		listA.Append(raw("1")),
		usageWrite("u2", "e1", 1, 0.1),
		usageWrite("u1", "", 1, 0.1))
	same(t, "entries", entries(t, b, "e1"), map[string]store.Entry{})
	same(t, "usage", usageIDs(t, b, store.UsageQuery{}), []string{"u1"})
	same(t, "stats", stats(t, b), store.Stats{Usage: usageOf(3, 0.5)})
	wantAbsent(t, b, valueA.Address())
	wantList(t, b, listA.Address(), store.ListQuery{})
}

func keepsValuesOnFailure(t *testing.T, f *fixture) {
	b := f.empty(t)
	res := commit(t, b, userEntry("e1", "", "x"), valueA.Set(raw(`"old a"`)), valueB.Set(raw(`"old b"`)))
	refuse(t, b,
		valueA.Set(raw(`"new a"`)),
		valueB.Delete(),
		userEntry("e2", "e1", "y"),
		userEntry("e1", "", "again"))
	wantValue(t, b, valueA.Address(), res.Seqs[1], `"old a"`)
	wantValue(t, b, valueB.Address(), res.Seqs[2], `"old b"`)
	same(t, "entries", entries(t, b, "e2"), map[string]store.Entry{})
}

func sharesIDNamespace(t *testing.T, f *fixture) {
	b := f.empty(t)
	commit(t, b, userEntry("e1", "", "x"), usageWrite("u1", "", 1, 0))
	cases := map[string]store.Tx{
		"an entry under an entry's id":             {userEntry("e1", "", "y")},
		"usage under a usage row's id":             {usageWrite("u1", "", 1, 0)},
		"usage under an entry's id":                {usageWrite("e1", "", 1, 0)},
		"an entry under a usage row's id":          {userEntry("u1", "", "y")},
		"an entry, then usage, in one transaction": {userEntry("n", "", "y"), usageWrite("n", "", 1, 0)},
		"usage, then an entry, in one transaction": {usageWrite("n", "", 1, 0), userEntry("n", "", "y")},
		"two entries in one transaction":           {userEntry("n", "", "y"), userEntry("n", "", "z")},
		"two usage rows in one transaction":        {usageWrite("n", "", 1, 0), usageWrite("n", "", 2, 0)},
	}
	for name, tx := range cases {
		t.Run(name, func(t *testing.T) { refuse(t, b, tx...) })
	}
}

func resolvesParents(t *testing.T, f *fixture) {
	b := f.empty(t)
	commit(t, b, userEntry("e1", "", "x"), usageWrite("u1", "", 1, 0))
	cases := map[string]store.Tx{
		"a later write":   {userEntry("n1", "n2", "y"), userEntry("n2", "e1", "z")},
		"itself":          {userEntry("n1", "n1", "y")},
		"nothing":         {userEntry("n1", "absent", "y")},
		"a usage row":     {userEntry("n1", "u1", "y")},
		"a new usage row": {usageWrite("n2", "", 1, 0), userEntry("n1", "n2", "y")},
	}
	for name, tx := range cases {
		t.Run("refuses "+name, func(t *testing.T) { refuse(t, b, tx...) })
	}
	commit(t, b, userEntry("e2", "e1", "y"), userEntry("e3", "e2", "z"))
	same(t, "branch", branchIDs(t, b, store.BranchQuery{Start: "e3"}), []string{"e3", "e2", "e1"})
}

func placesPendingContent(t *testing.T, f *fixture) {
	b := f.empty(t)
	pending := store.Pending("e1")
	leaf := store.LaneLeaf(store.MainLane)
	content := store.PendingEntry{Type: store.TypeMessage, Payload: raw(userJSON("later"))}
	res := commit(t, b, pending.Set(content))
	wantValue(t, b, pending.Address(), res.FirstSeq, `{"type":"message","payload":`+userJSON("later")+`}`)
	same(t, "entries before placement", entries(t, b, "e1"), map[string]store.Entry{})

	f.now = start + 500
	res = commit(t, b, store.InsertEntry(content.Entry("e1", "")), pending.Delete(), leaf.Set("e1"))
	same(t, "entries", entries(t, b, "e1"), map[string]store.Entry{"e1": {
		Structure: store.Structure{ID: "e1", Seq: res.Seqs[0], Timestamp: start + 500, Type: store.TypeMessage},
		Payload:   raw(`{"message":` + userJSON("later") + `}`),
	}})
	wantAbsent(t, b, pending.Address())
	wantValue(t, b, leaf.Address(), res.Seqs[2], `"e1"`)
}

func continuesAfterRefusal(t *testing.T, f *fixture) {
	b := f.empty(t)
	first := commit(t, b, userEntry("e1", "", "x"))
	refuse(t, b, userEntry("e2", "absent", "y"))
	second := commit(t, b, userEntry("e2", "e1", "y"))
	if second.FirstSeq <= first.FirstSeq {
		t.Fatalf("seq %d after %d", second.FirstSeq, first.FirstSeq)
	}
	b = f.reopen(t, b)
	same(t, "branch", branchIDs(t, b, store.BranchQuery{Start: "e2"}), []string{"e2", "e1"})
	same(t, "stats", stats(t, b), store.Stats{MessageCount: 2})
}

func admissionOrder(t *testing.T, f *fixture) {
	b := f.empty(t)
	s := store.NewSession(b, store.SessionOptions{})
	var first, second store.CommitResult
	a := s.Enqueue("x", func(m *store.Mutator) (err error) {
		first, err = m.Commit(store.Tx{userEntry("e1", "", "x")})
		return err
	})
	c := s.Enqueue("x", func(m *store.Mutator) (err error) {
		second, err = m.Commit(store.Tx{userEntry("e2", "e1", "y"), usageWrite("u1", "e2", 4, 0)})
		return err
	})
	for _, ticket := range []*store.Ticket{a, c} {
		if err := ticket.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if second.FirstSeq <= first.FirstSeq {
		t.Fatalf("second commit got seq %d after %d", second.FirstSeq, first.FirstSeq)
	}
	same(t, "first stats", first.Stats, store.Stats{MessageCount: 1})
	same(t, "second stats", second.Stats, store.Stats{MessageCount: 2, Usage: usageOf(4, 0)})
}

func timeNeverFalls(t *testing.T, f *fixture) {
	b := f.empty(t)
	commit(t, b, userEntry("e1", "", "x"))
	f.now = start - 3_600_000
	res := commit(t, b, userEntry("e2", "e1", "y"))
	same(t, "timestamp of a commit after the clock went back", res.Timestamp, start)
	same(t, "timestamp of its entry", entries(t, b, "e2")["e2"].Timestamp, start)
	f.now = start + 5
	same(t, "timestamp once the clock has caught up", commit(t, b, userEntry("e3", "e2", "z")).Timestamp, start+5)
}

func timeNeverFallsAcrossReopen(t *testing.T, f *fixture) {
	b := f.empty(t)
	commit(t, b, userEntry("e1", "", "x"))
	f.now = start - 3_600_000
	b = f.reopen(t, b)
	same(t, "stored timestamp", entries(t, b, "e1")["e1"].Timestamp, start)
	same(t, "timestamp", commit(t, b, userEntry("e2", "e1", "y")).Timestamp, start)
}
