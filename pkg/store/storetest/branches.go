package storetest

import (
	"errors"
	"testing"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// The rules of branch queries (spec §2.5).
var branchRules = []rule{
	{"stops before filters, cursors before limits", branchSemantics},
	{"an unknown start is not found", unknownStart},
	{"branches share prefixes", branchesShare},
	{"structure has no payload", structureWithoutPayload},
	{"structure scans obey the same rules", structureSemantics},
	{"a branch of 20,000 entries reads whole", deepBranch},
	{"a tree with many leaves reads each of them", manyLeaves},
	{"a cut branch reads on across a reopen", branchAfterReopen},
}

// branchCase is one query over the branch that branchTree commits.
type branchCase struct {
	q    store.BranchQuery
	want []string
}

// branchTree commits m1 - a1 - c1 - m2 - b1 - a2 - m3, and m4 beside m2.
func branchTree(t *testing.T, b store.Backend) (seqs map[string]int64, cases map[string]branchCase) {
	t.Helper()
	res := commit(t, b,
		userEntry("m1", "", "1"), customEntry("a1", "m1", "app.a", nil), compactionEntry("c1", "a1"),
		userEntry("m2", "c1", "2"), valueA.Set(raw("1")), customEntry("b1", "m2", "app.b", nil),
		customEntry("a2", "b1", "app.a", nil), userEntry("m3", "a2", "3"), userEntry("m4", "c1", "4"))
	seqs = map[string]int64{}
	for i, id := range []string{"m1", "a1", "c1", "m2", "", "b1", "a2", "m3", "m4"} {
		seqs[id] = res.Seqs[i]
	}
	type q = store.BranchQuery
	const msg, custom, compaction = store.TypeMessage, store.TypeCustom, store.TypeCompaction
	return seqs, map[string]branchCase{
		"newest first by default":               {q{Start: "m3"}, []string{"m3", "a2", "b1", "m2", "c1", "a1", "m1"}},
		"oldest first":                          {q{Start: "m3", OldestFirst: true}, []string{"m1", "a1", "c1", "m2", "b1", "a2", "m3"}},
		"a root":                                {q{Start: "m1"}, []string{"m1"}},
		"an inner start":                        {q{Start: "m2"}, []string{"m2", "c1", "a1", "m1"}},
		"limit":                                 {q{Start: "m3", Limit: 2}, []string{"m3", "a2"}},
		"limit, oldest first":                   {q{Start: "m3", Limit: 2, OldestFirst: true}, []string{"m1", "a1"}},
		"stop type is inclusive":                {q{Start: "m3", StopAtType: compaction}, []string{"m3", "a2", "b1", "m2", "c1"}},
		"stop type, filter drops the stop":      {q{Start: "m3", StopAtType: compaction, Type: msg}, []string{"m3", "m2"}},
		"stop id is inclusive":                  {q{Start: "m3", StopAtID: "b1"}, []string{"m3", "a2", "b1"}},
		"stop id, oldest first":                 {q{Start: "m3", StopAtID: "m2", OldestFirst: true}, []string{"m1", "a1", "c1", "m2"}},
		"stop type, oldest first":               {q{Start: "m3", StopAtType: custom, OldestFirst: true}, []string{"m1", "a1"}},
		"stop id off the branch":                {q{Start: "m3", StopAtID: "m4"}, []string{"m3", "a2", "b1", "m2", "c1", "a1", "m1"}},
		"stop at the start":                     {q{Start: "m3", StopAtID: "m3"}, []string{"m3"}},
		"stop at a start that the filter drops": {q{Start: "m3", StopAtType: msg, Type: custom}, []string{}},
		"either stop ends it":                   {q{Start: "m3", StopAtType: compaction, StopAtID: "a2"}, []string{"m3", "a2"}},
		"type":                                  {q{Start: "m3", Type: msg}, []string{"m3", "m2", "m1"}},
		"custom type alone":                     {q{Start: "m3", CustomType: "app.a"}, []string{"a2", "a1"}},
		"both types":                            {q{Start: "m3", Type: custom, CustomType: "app.b"}, []string{"b1"}},
		"cursor, newest first":                  {q{Start: "m3", Cursor: seqs["b1"]}, []string{"m2", "c1", "a1", "m1"}},
		"cursor, oldest first":                  {q{Start: "m3", Cursor: seqs["b1"], OldestFirst: true}, []string{"a2", "m3"}},
		"cursor before limit":                   {q{Start: "m3", Cursor: seqs["a2"], Limit: 2}, []string{"b1", "m2"}},
		"cursor before limit, oldest first":     {q{Start: "m3", Cursor: seqs["a1"], Limit: 2, OldestFirst: true}, []string{"c1", "m2"}},
		"filter before limit":                   {q{Start: "m3", Type: msg, Limit: 2}, []string{"m3", "m2"}},
		"cursor does not move the stop":         {q{Start: "m3", Cursor: seqs["m2"], StopAtType: compaction}, []string{"c1"}},
		"stop outside the cursor still stops":   {q{Start: "m3", Cursor: seqs["a2"], StopAtID: "a2"}, []string{}},
		"cursor beyond both ends":               {q{Start: "m3", Cursor: seqs["m1"]}, []string{}},
		"everything at once": {q{Start: "m3", StopAtType: compaction, Type: custom, CustomType: "app.a", Cursor: seqs["m3"], Limit: 1},
			[]string{"a2"}},
		"the other branch": {q{Start: "m4"}, []string{"m4", "c1", "a1", "m1"}},
	}
}

func branchSemantics(t *testing.T, f *fixture) {
	b := f.empty(t)
	_, cases := branchTree(t, b)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { same(t, "branch", branchIDs(t, b, c.q), c.want) })
	}
}

func structureSemantics(t *testing.T, f *fixture) {
	b := f.empty(t)
	_, cases := branchTree(t, b)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			rows, err := b.ScanBranchStructure(t.Context(), c.q)
			if err != nil {
				t.Fatal(err)
			}
			ids := make([]string, len(rows))
			for i, s := range rows {
				ids[i] = s.ID
			}
			same(t, "branch", ids, c.want)
		})
	}
}

func unknownStart(t *testing.T, f *fixture) {
	b := f.empty(t)
	commit(t, b, userEntry("e1", "", "x"), usageWrite("u1", "", 1, 0))
	for _, start := range []string{"absent", "u1", ""} {
		if es, err := b.ScanBranch(t.Context(), store.BranchQuery{Start: start}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("branch of %q: %d entries, error %v, want ErrNotFound", start, len(es), err)
		}
		if ss, err := b.ScanBranchStructure(t.Context(), store.BranchQuery{Start: start}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("structure of %q: %d entries, error %v, want ErrNotFound", start, len(ss), err)
		}
	}
}

func branchesShare(t *testing.T, f *fixture) {
	b := f.empty(t)
	commit(t, b, userEntry("r", "", "x"), userEntry("a", "r", "x"), userEntry("b", "r", "x"), userEntry("other", "", "x"))
	commit(t, b, userEntry("aa", "a", "x"))
	commit(t, b, userEntry("ab", "a", "x"), userEntry("bb", "b", "x"))
	for start, want := range map[string][]string{
		"aa": {"aa", "a", "r"}, "ab": {"ab", "a", "r"}, "bb": {"bb", "b", "r"}, "a": {"a", "r"}, "other": {"other"},
	} {
		same(t, "branch of "+start, branchIDs(t, b, store.BranchQuery{Start: start}), want)
	}
}

func structureWithoutPayload(t *testing.T, f *fixture) {
	b := f.empty(t)
	res := commit(t, b, userEntry("e1", "", "x"), customEntry("e2", "e1", "app.c", raw("1")))
	rows, err := b.ScanBranchStructure(t.Context(), store.BranchQuery{Start: "e2"})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "structure", rows, []store.Structure{
		{ID: "e2", ParentID: "e1", Seq: res.Seqs[1], Timestamp: start, Type: store.TypeCustom, CustomType: "app.c"},
		{ID: "e1", Seq: res.Seqs[0], Timestamp: start, Type: store.TypeMessage},
	})
}

func deepBranch(t *testing.T, f *fixture) {
	const depth = 20_000
	want := make([]string, depth)
	records := make([]store.Record, depth) // 20,000 inserts one by one take long
	parent := ""
	for i := range records {
		want[i] = entryID(i)
		e := store.MessageEntry(want[i], parent, message.Message(userJSON("x")))
		records[i] = store.Record{Kind: store.KindEntry, Seq: int64(i + 1), Entry: &store.Entry{
			Structure: store.Structure{ID: e.ID, ParentID: e.ParentID, Seq: int64(i + 1), Timestamp: start, Type: e.Type}, Payload: e.Payload,
		}}
		parent = want[i]
	}
	f.build(t, "s1", store.NewSnapshot(header("s1"), records))
	b := f.open(t, "s1")
	for range 2 {
		same(t, "oldest first", branchIDs(t, b, store.BranchQuery{Start: parent, OldestFirst: true}), want)
		same(t, "tail", branchIDs(t, b, store.BranchQuery{Start: parent, Limit: 2}), []string{want[depth-1], want[depth-2]})
		same(t, "head", branchIDs(t, b, store.BranchQuery{Start: parent, OldestFirst: true, Limit: 1}), want[:1])
		same(t, "middle", branchIDs(t, b, store.BranchQuery{Start: want[depth/2], StopAtID: want[depth/2-1]}), []string{want[depth/2], want[depth/2-1]})
		b = f.reopen(t, b)
	}
	commit(t, b, userEntry("branch", want[depth/2], "y"), userEntry("tip", parent, "z"))
	same(t, "a branch from the middle", len(branchIDs(t, b, store.BranchQuery{Start: "branch"})), depth/2+2)
	same(t, "the grown branch", len(branchIDs(t, b, store.BranchQuery{Start: "tip"})), depth+1)
}

func manyLeaves(t *testing.T, f *fixture) {
	b := f.empty(t)
	commit(t, b, userEntry("r1", "", "x"), compactionEntry("r2", "r1"), userEntry("r3", "r2", "x"))
	const leaves = 300
	for i := range leaves {
		commit(t, b, userEntry(entryID(2*i), "r3", "x"), userEntry(entryID(2*i+1), entryID(2*i), "y"))
	}
	for range 2 {
		for i := range leaves {
			same(t, "branch", branchIDs(t, b, store.BranchQuery{Start: entryID(2*i + 1)}),
				[]string{entryID(2*i + 1), entryID(2 * i), "r3", "r2", "r1"})
		}
		b = f.reopen(t, b)
	}
}

func branchAfterReopen(t *testing.T, f *fixture) {
	b := f.empty(t)
	commit(t, b, userEntry("e1", "", "x"), compactionEntry("c1", "e1"))
	b = f.reopen(t, b)
	commit(t, b, userEntry("e2", "c1", "y"), userEntry("e3", "e1", "z"))
	b = f.reopen(t, b)
	commit(t, b, userEntry("e4", "e2", "y"), compactionEntry("c2", "e3"))
	same(t, "first branch", branchIDs(t, b, store.BranchQuery{Start: "e4"}), []string{"e4", "e2", "c1", "e1"})
	same(t, "second branch", branchIDs(t, b, store.BranchQuery{Start: "c2"}), []string{"c2", "e3", "e1"})
	same(t, "up to the compaction", branchIDs(t, b, store.BranchQuery{Start: "e4", StopAtType: store.TypeCompaction}), []string{"e4", "e2", "c1"})
}
