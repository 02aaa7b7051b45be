package storetest

import (
	"testing"

	"github.com/drover-run/drover/pkg/store"
)

// The rules of lists (spec §1.4, §1.5).
var listRules = []rule{
	{"pages by global sequence number in both directions", pagesBySequence},
	{"deletes whole lists", deletesWholeLists},
	{"clamps one page without limiting growth", clampsPages},
	{"refuses a negative limit", refusesNegativeLimit},
	{"commits and rolls back with its siblings", listsAreAtomic},
	{"cursors survive a reopen", cursorsSurvive},
}

func pagesBySequence(t *testing.T, f *fixture) {
	b := f.empty(t)
	addr := listA.Address()
	wantList(t, b, addr, store.ListQuery{})
	r1 := commit(t, b, listA.Append(raw("1")), valueA.Set(raw("0")), listA.Append(raw("2")))
	r2 := commit(t, b, listB.Append(raw("9")), listA.Append(raw("3")))
	one, two, three := element(r1.Seqs[0], "1"), element(r1.Seqs[2], "2"), element(r2.Seqs[1], "3")

	wantList(t, b, addr, store.ListQuery{}, one, two, three)
	wantList(t, b, addr, store.ListQuery{Limit: 2}, one, two)
	wantList(t, b, addr, store.ListQuery{Limit: 2, Cursor: two.Seq}, three)
	wantList(t, b, addr, store.ListQuery{Cursor: one.Seq}, two, three)
	wantList(t, b, addr, store.ListQuery{Cursor: one.Seq + 1}, two, three)
	wantList(t, b, addr, store.ListQuery{Cursor: three.Seq})
	wantList(t, b, addr, store.ListQuery{Descending: true}, three, two, one)
	wantList(t, b, addr, store.ListQuery{Descending: true, Limit: 1}, three)
	wantList(t, b, addr, store.ListQuery{Descending: true, Cursor: three.Seq}, two, one)
	wantList(t, b, addr, store.ListQuery{Descending: true, Cursor: two.Seq, Limit: 5}, one)
	wantList(t, b, addr, store.ListQuery{Descending: true, Cursor: one.Seq})
}

func deletesWholeLists(t *testing.T, f *fixture) {
	b := f.empty(t)
	commit(t, b, listA.Append(raw("1")), listA.Append(raw("2")), listB.Append(raw("3")))
	res := commit(t, b, listA.Delete(), listA.Delete(), listA.Append(raw("4")))
	wantList(t, b, listA.Address(), store.ListQuery{}, element(res.Seqs[2], "4"))
	commit(t, b, listA.Delete())
	b = f.reopen(t, b)
	wantList(t, b, listA.Address(), store.ListQuery{})
	if got := list(t, b, listB.Address(), store.ListQuery{}); len(got) != 1 {
		t.Fatalf("the other list has %d elements, want 1", len(got))
	}
}

func clampsPages(t *testing.T, f *fixture) {
	b := f.empty(t)
	const n = store.MaxListPage + 1
	tx := make(store.Tx, n)
	for i := range tx {
		tx[i] = listA.Append(raw("0"))
	}
	res := commit(t, b, tx...)
	addr := listA.Address()
	sizes := func(q store.ListQuery) []int64 {
		els := list(t, b, addr, q)
		return []int64{int64(len(els)), els[0].Seq, els[len(els)-1].Seq}
	}
	same(t, "default page", sizes(store.ListQuery{}), []int64{store.DefaultListPage, res.Seqs[0], res.Seqs[store.DefaultListPage-1]})
	same(t, "largest page", sizes(store.ListQuery{Limit: 20_000}), []int64{store.MaxListPage, res.Seqs[0], res.Seqs[n-2]})
	same(t, "largest page backwards", sizes(store.ListQuery{Limit: 20_000, Descending: true}), []int64{store.MaxListPage, res.Seqs[n-1], res.Seqs[1]})
	same(t, "rest", sizes(store.ListQuery{Limit: 20_000, Cursor: res.Seqs[n-2]}), []int64{1, res.Seqs[n-1], res.Seqs[n-1]})
}

func refusesNegativeLimit(t *testing.T, f *fixture) {
	b := f.empty(t)
	commit(t, b, listA.Append(raw("1")))
	if els, err := b.ReadList(t.Context(), listA.Address(), store.ListQuery{Limit: -1}); err == nil {
		t.Fatalf("a page of -1 elements returned %d, want an error", len(els))
	}
}

func listsAreAtomic(t *testing.T, f *fixture) {
	b := f.empty(t)
	res := commit(t, b, listA.Append(raw("1")), userEntry("e1", "", "x"), valueA.Set(raw("1")), usageWrite("u1", "e1", 1, 0))
	refuse(t, b, listA.Append(raw("2")), listB.Append(raw("3")), valueA.Set(raw("2")), usageWrite("e1", "", 1, 0))
	refuse(t, b, listA.Delete(), userEntry("u1", "", "y"))
	wantList(t, b, listA.Address(), store.ListQuery{}, element(res.Seqs[0], "1"))
	wantList(t, b, listB.Address(), store.ListQuery{})
	wantValue(t, b, valueA.Address(), res.Seqs[2], "1")
}

func cursorsSurvive(t *testing.T, f *fixture) {
	b := f.empty(t)
	r1 := commit(t, b, listA.Append(raw("1")), listA.Append(raw("2")))
	b = f.reopen(t, b)
	r2 := commit(t, b, listA.Append(raw("3")))
	wantList(t, b, listA.Address(), store.ListQuery{Cursor: r1.Seqs[0]}, element(r1.Seqs[1], "2"), element(r2.FirstSeq, "3"))
}
