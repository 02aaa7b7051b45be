package storetest

import (
	"testing"

	"github.com/drover-run/drover/pkg/store"
)

// The rules of reading entries by id and by sequence (spec §1.5, §2.1).
var entryRules = []rule{
	{"custom entries have data or none", customData},
	{"returns exactly the entries that exist", returnsExisting},
	{"scans by range, filter, order and limit", scansEntries},
	{"a range whose ends conflict is empty", conflictingEntryRange},
	{"returns entries complete", returnsComplete},
}

func customData(t *testing.T, f *fixture) {
	b := f.empty(t)
	res := commit(t, b,
		customEntry("e1", "", "app.none", nil),
		customEntry("e2", "e1", "app.some", raw(`{"a":[1]}`)),
		customEntry("e3", "e2", "app.null", raw(`null`)))
	custom := func(id, parent, customType string, seq int64, payload string) store.Entry {
		return store.Entry{
			Structure: store.Structure{ID: id, ParentID: parent, Seq: seq, Timestamp: start, Type: store.TypeCustom, CustomType: customType},
			Payload:   raw(payload),
		}
	}
	want := map[string]store.Entry{
		"e1": custom("e1", "", "app.none", res.Seqs[0], `{}`),
		"e2": custom("e2", "e1", "app.some", res.Seqs[1], `{"data":{"a":[1]}}`),
		"e3": custom("e3", "e2", "app.null", res.Seqs[2], `{"data":null}`),
	}
	for range 2 {
		same(t, "entries", entries(t, b, "e1", "e2", "e3"), want)
		b = f.reopen(t, b)
	}
}

func returnsExisting(t *testing.T, f *fixture) {
	b := f.empty(t)
	commit(t, b, userEntry("e1", "", "x"), usageWrite("u1", "", 1, 0), store.Pending("e2").Set(store.PendingEntry{Type: store.TypeCustom, CustomType: "c"}))
	same(t, "no ids", entries(t, b), map[string]store.Entry{})
	same(t, "ids that name no entry", entries(t, b, "u1", "e2", "absent", ""), map[string]store.Entry{})
	got := entries(t, b, "absent", "e1", "e1")
	if len(got) != 1 || got["e1"].ID != "e1" {
		t.Fatalf("entries %v, want e1 alone", got)
	}
	many := make([]string, 40_000)
	for i := range many {
		many[i] = entryID(i)
	}
	many[len(many)-1] = "e1"
	if got := entries(t, b, many...); len(got) != 1 {
		t.Fatalf("%d entries for 40,000 ids, want 1", len(got))
	}
}

func scansEntries(t *testing.T, f *fixture) {
	b := f.empty(t)
	same(t, "ids of an empty store", entryIDs(t, b, store.EntryQuery{}), []string{})
	res := commit(t, b,
		userEntry("m1", "", "x"),
		customEntry("a1", "m1", "app.a", nil),
		valueA.Set(raw("1")),
		customEntry("b1", "a1", "app.b", nil),
		compactionEntry("c1", "b1"),
		customEntry("a2", "c1", "app.a", nil),
		userEntry("m2", "m1", "y"))
	seq := func(i int) int64 { return res.Seqs[i] }
	cases := map[string]struct {
		q    store.EntryQuery
		want []string
	}{
		"all":                           {store.EntryQuery{}, []string{"m1", "a1", "b1", "c1", "a2", "m2"}},
		"newest first":                  {store.EntryQuery{Descending: true}, []string{"m2", "a2", "c1", "b1", "a1", "m1"}},
		"limit":                         {store.EntryQuery{Limit: 2}, []string{"m1", "a1"}},
		"newest first, limit":           {store.EntryQuery{Limit: 2, Descending: true}, []string{"m2", "a2"}},
		"type":                          {store.EntryQuery{Type: store.TypeMessage}, []string{"m1", "m2"}},
		"type, limit":                   {store.EntryQuery{Type: store.TypeCustom, Limit: 2}, []string{"a1", "b1"}},
		"custom type":                   {store.EntryQuery{CustomType: "app.a"}, []string{"a1", "a2"}},
		"both types":                    {store.EntryQuery{Type: store.TypeCustom, CustomType: "app.a", Descending: true}, []string{"a2", "a1"}},
		"types that exclude each other": {store.EntryQuery{Type: store.TypeMessage, CustomType: "app.a"}, []string{}},
		"from":                          {store.EntryQuery{FromSeq: seq(3)}, []string{"b1", "c1", "a2", "m2"}},
		"to":                            {store.EntryQuery{ToSeq: seq(3)}, []string{"m1", "a1", "b1"}},
		"inclusive range":               {store.EntryQuery{FromSeq: seq(1), ToSeq: seq(4)}, []string{"a1", "b1", "c1"}},
		"range of a value's number":     {store.EntryQuery{FromSeq: seq(2), ToSeq: seq(2)}, []string{}},
		"everything at once": {store.EntryQuery{Type: store.TypeCustom, CustomType: "app.a", FromSeq: seq(1), ToSeq: seq(5), Descending: true, Limit: 1},
			[]string{"a2"}},
		"beyond the end": {store.EntryQuery{FromSeq: seq(6) + 1}, []string{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { same(t, "ids", entryIDs(t, b, c.q), c.want) })
	}
}

func conflictingEntryRange(t *testing.T, f *fixture) {
	b := f.empty(t)
	res := commit(t, b, userEntry("e1", "", "x"), userEntry("e2", "e1", "y"))
	q := store.EntryQuery{FromSeq: res.Seqs[1], ToSeq: res.Seqs[0]}
	same(t, "ascending", entryIDs(t, b, q), []string{})
	q.Descending = true
	same(t, "descending", entryIDs(t, b, q), []string{})
}

func returnsComplete(t *testing.T, f *fixture) {
	b := f.empty(t)
	payload := `{"message":{"role":"toolResult","toolCallId":"c","content":[]},"terminate":true,"novel":[1.0]}`
	res := commit(t, b, store.InsertEntry(store.NewEntry{ID: "e1", Type: store.TypeMessage, Payload: raw(payload)}), compactionEntry("e2", "e1"))
	want := []store.Entry{
		{Structure: store.Structure{ID: "e1", Seq: res.Seqs[0], Timestamp: start, Type: store.TypeMessage}, Payload: raw(payload)},
		{Structure: store.Structure{ID: "e2", ParentID: "e1", Seq: res.Seqs[1], Timestamp: start, Type: store.TypeCompaction}, Payload: raw(compactionPayload)},
	}
	for range 2 {
		got, err := b.ScanEntries(t.Context(), store.EntryQuery{})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "scanned", got, want)
		branch, err := b.ScanBranch(t.Context(), store.BranchQuery{Start: "e2", OldestFirst: true})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "on the branch", branch, want)
		same(t, "by id", entries(t, b, "e1", "e2"), map[string]store.Entry{"e1": want[0], "e2": want[1]})
		b = f.reopen(t, b)
	}
}
