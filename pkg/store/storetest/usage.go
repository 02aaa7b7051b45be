package storetest

import (
	"testing"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// The rules of the ledger and of the projection over it (spec §1.6).
var usageRules = []rule{
	{"scans by range, order and limit", scansUsage},
	{"a range whose ends conflict is empty", conflictingUsageRange},
	{"an empty store has zero stats", zeroStats},
	{"counts message entries only", countsMessages},
	{"sums the ledger left to right", sumsLedger},
	{"optional counts appear with the first row that has them", optionalCounts},
}

func scansUsage(t *testing.T, f *fixture) {
	b := f.empty(t)
	same(t, "rows of an empty store", usageIDs(t, b, store.UsageQuery{}), []string{})
	res := commit(t, b, usageWrite("u1", "", 1, 0), valueA.Set(raw("1")), usageWrite("u2", "absent", 2, 0), usageWrite("u3", "", 3, 0))
	first, last := res.Seqs[0], res.Seqs[3]
	cases := map[string]struct {
		q    store.UsageQuery
		want []string
	}{
		"all":                 {store.UsageQuery{}, []string{"u1", "u2", "u3"}},
		"newest first":        {store.UsageQuery{Descending: true}, []string{"u3", "u2", "u1"}},
		"limit":               {store.UsageQuery{Limit: 2}, []string{"u1", "u2"}},
		"newest first, limit": {store.UsageQuery{Limit: 2, Descending: true}, []string{"u3", "u2"}},
		"from":                {store.UsageQuery{FromSeq: first + 1}, []string{"u2", "u3"}},
		"to":                  {store.UsageQuery{ToSeq: last - 1}, []string{"u1", "u2"}},
		"inclusive range":     {store.UsageQuery{FromSeq: first, ToSeq: last}, []string{"u1", "u2", "u3"}},
		"one number":          {store.UsageQuery{FromSeq: last, ToSeq: last}, []string{"u3"}},
		"beyond the end":      {store.UsageQuery{FromSeq: last + 1}, []string{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { same(t, "ids", usageIDs(t, b, c.q), c.want) })
	}
}

func conflictingUsageRange(t *testing.T, f *fixture) {
	b := f.empty(t)
	res := commit(t, b, usageWrite("u1", "", 1, 0), usageWrite("u2", "", 2, 0))
	q := store.UsageQuery{FromSeq: res.Seqs[1], ToSeq: res.Seqs[0]}
	same(t, "ascending", usageIDs(t, b, q), []string{})
	q.Descending = true
	same(t, "descending", usageIDs(t, b, q), []string{})
}

func zeroStats(t *testing.T, f *fixture) {
	b := f.empty(t)
	same(t, "stats", stats(t, b), store.Stats{})
	commit(t, b, valueA.Set(raw("1")), listA.Append(raw("1")))
	b = f.reopen(t, b)
	same(t, "stats after value writes", stats(t, b), store.Stats{})
}

func countsMessages(t *testing.T, f *fixture) {
	b := f.empty(t)
	commit(t, b, userEntry("e1", "", "x"), customEntry("e2", "e1", "app.c", nil), compactionEntry("e3", "e2"),
		store.InsertEntry(store.NewEntry{ID: "e4", ParentID: "e3", Type: store.TypeBranchSummary, Payload: raw(`{"fromId":"e1","summary":"s","fromHook":false}`)}))
	same(t, "stats", stats(t, b), store.Stats{MessageCount: 1})
	res := commit(t, b, userEntry("e5", "e1", "y"))
	same(t, "commit stats", res.Stats, store.Stats{MessageCount: 2})
	b = f.reopen(t, b)
	same(t, "stats", stats(t, b), store.Stats{MessageCount: 2})
}

func sumsLedger(t *testing.T, f *fixture) {
	b := f.empty(t)
	// The sum depends on its order: 0.1+0.2+0.3 is not 0.3+0.2+0.1.
	costs := []float64{0.1, 0.2, 0.3, 1e-9, 4.1, 0.7}
	want := store.Stats{}
	for i, cost := range costs {
		u := message.Usage{Input: int64(i), Output: 2, CacheRead: 3, CacheWrite: 4, TotalTokens: int64(i) + 9,
			Cost: message.Cost{Input: cost, Output: cost / 3, CacheRead: cost / 7, CacheWrite: cost / 11, Total: cost * 1.1}}
		want.Usage = want.Usage.Add(u)
		res := commit(t, b, store.InsertUsage(store.NewUsage{ID: entryID(i), Usage: u, Adjustment: i%2 == 0}))
		same(t, "commit stats", res.Stats, want)
		same(t, "stats", stats(t, b), want)
		if i == 2 {
			b = f.reopen(t, b)
		}
	}
	b = f.reopen(t, b)
	same(t, "stats after a reopen", stats(t, b), want)
}

func optionalCounts(t *testing.T, f *fixture) {
	b := f.empty(t)
	n := func(n int64) *int64 { return &n }
	rows := []message.Usage{{Input: 1}, {Reasoning: n(0)}, {Reasoning: n(5), CacheWrite1h: n(7)}, {Input: 1}, {CacheWrite1h: n(2)}}
	wants := []message.Usage{
		{Input: 1},
		{Input: 1, Reasoning: n(0)},
		{Input: 1, Reasoning: n(5), CacheWrite1h: n(7)},
		{Input: 2, Reasoning: n(5), CacheWrite1h: n(7)},
		{Input: 2, Reasoning: n(5), CacheWrite1h: n(9)},
	}
	for i, u := range rows {
		commit(t, b, store.InsertUsage(store.NewUsage{ID: entryID(i), Usage: u}))
		same(t, "stats", stats(t, b), store.Stats{Usage: wants[i]})
		b = f.reopen(t, b)
		same(t, "stats after a reopen", stats(t, b), store.Stats{Usage: wants[i]})
	}
}
