package sqlite

import (
	"errors"
	"fmt"
	"math/bits"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/memory"
)

// drawTree draws entries of all types, each below an earlier one or a root.
func drawTree(rt *rapid.T, prefix string) []store.NewEntry {
	n := rapid.IntRange(1, 40).Draw(rt, "entries")
	out := make([]store.NewEntry, n)
	for i := range out {
		parent := ""
		// Mostly the newest entry, as a conversation grows.
		if at := rapid.IntRange(-1, 2*i).Draw(rt, "parent"); i > 0 && at >= 0 {
			parent = out[min(at, i-1)].ID
		}
		id := fmt.Sprintf("%s-%02d", prefix, i)
		switch kind := rapid.SampledFrom([]store.EntryType{store.TypeMessage, store.TypeMessage, store.TypeCompaction, store.TypeCustom}).Draw(rt, "type"); kind {
		case store.TypeMessage:
			out[i] = *userEntry(id, parent).Entry
		case store.TypeCustom:
			out[i] = store.CustomEntry(id, parent, rapid.SampledFrom([]string{"app.a", "app.b"}).Draw(rt, "custom type"), nil)
		default:
			out[i] = store.NewEntry{ID: id, ParentID: parent, Type: kind, Payload: []byte(`{"summary":"s"}`)}
		}
	}
	return out
}

func drawQuery(rt *rapid.T, seqs map[string]int64, ids []string) store.BranchQuery {
	types := rapid.SampledFrom([]store.EntryType{"", store.TypeMessage, store.TypeCompaction, store.TypeCustom, store.TypeBranchSummary})
	anID := rapid.SampledFrom(append([]string{"", "absent"}, ids...))
	q := store.BranchQuery{
		Start:       rapid.SampledFrom(ids).Draw(rt, "start"),
		StopAtType:  types.Draw(rt, "stop type"),
		StopAtID:    anID.Draw(rt, "stop id"),
		Type:        types.Draw(rt, "type filter"),
		CustomType:  rapid.SampledFrom([]string{"", "app.a"}).Draw(rt, "custom type filter"),
		OldestFirst: rapid.Bool().Draw(rt, "oldest first"),
		Limit:       rapid.IntRange(0, 4).Draw(rt, "limit"),
	}
	q.Cursor = seqs[anID.Draw(rt, "cursor")]
	return q
}

// oracle opens an empty memory session.
func oracle(t testing.TB) store.Backend {
	t.Helper()
	d := &memory.Driver{}
	path := filepath.Join(t.TempDir(), "s1")
	if err := d.Build(ctx, path, store.NewSnapshot(header("s1"), nil), store.BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	b, err := d.Open(ctx, path, store.OpenOptions{Now: func() int64 { return 1 }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// TestChainsLikeMemory: whatever grows, branches and is compacted, every query
// over every branch is answered as by walking parents in memory; also after the
// index was repaired, and in a copy (spec §2.6, §9.3).
func TestChainsLikeMemory(t *testing.T) {
	path := newSession(t)
	b := open(t, path, store.OpenOptions{Now: func() int64 { return 1 }})
	want := oracle(t)
	all := make(map[string]int64)
	trees := 0
	rapid.Check(t, func(rt *rapid.T) {
		trees++
		var tx store.Tx
		var ids []string
		flush := func() {
			got, exp := commit(t, b, tx...), commit(t, want, tx...)
			if diff := cmp.Diff(exp.Seqs, got.Seqs); diff != "" {
				rt.Fatalf("sequence numbers (-memory +sqlite):\n%s", diff)
			}
			for i, seq := range got.Seqs {
				all[ids[len(ids)-len(tx)+i]] = seq
			}
			tx = nil
		}
		for _, e := range drawTree(rt, fmt.Sprint("t", trees)) {
			ids = append(ids, e.ID)
			tx = append(tx, store.InsertEntry(e))
			if rapid.Bool().Draw(rt, "commit") {
				flush()
			}
		}
		flush()
		if rapid.IntRange(0, 30).Draw(rt, "repair") == 0 {
			if err := b.RepairIndex(ctx); err != nil {
				rt.Fatal(err)
			}
		}
		for _, id := range ids {
			compareBranch(rt, b, want, store.BranchQuery{Start: id, OldestFirst: rapid.Bool().Draw(rt, "oldest first")})
		}
		for range 5 {
			compareBranch(rt, b, want, drawQuery(rt, all, ids))
		}
	})
	snap, err := b.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(filepath.Dir(path), "copy.db")
	build(t, copied, snap)
	mustClose(t, closer(snap.Close))
	mustClose(t, b)
	for _, p := range []string{path, copied} {
		if found := problemsOf(t, p); len(found) > 0 {
			t.Errorf("%s: %v", p, found)
		}
	}
	r, err := openReader(copied)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	longest := bits.Len(uint(len(all))) // floor(log2) + 1
	for id := range all {
		if n := len(linksOf(t, r.near, id)); n > longest {
			t.Errorf("the copy has %d links to entry %s, more than %d", n, id, longest)
		}
		compareBranch(t, r, want, store.BranchQuery{Start: id})
	}
	var rows int
	ask(t, copied, `SELECT count(*) FROM branch_entries`, &rows)
	if rows != len(all) {
		t.Errorf("the copy has %d index rows for %d entries", rows, len(all))
	}
}

type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// compareBranch compares both forms of a query's answer.
func compareBranch(t fataler, got, want store.Queries, q store.BranchQuery) {
	t.Helper()
	wantRows, err := want.ScanBranchStructure(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := got.ScanBranchStructure(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(wantRows, rows) {
		t.Fatalf("%+v (-memory +sqlite):\n%s", q, cmp.Diff(wantRows, rows))
	}
	wantFull, err := want.ScanBranch(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	full, err := got.ScanBranch(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	same := func(a, b store.Entry) bool {
		return a.Structure == b.Structure && string(a.Payload) == string(b.Payload)
	}
	if !slices.EqualFunc(wantFull, full, same) {
		t.Fatalf("%+v with payloads (-memory +sqlite):\n%s", q, cmp.Diff(wantFull, full))
	}
}

// linksOf is the chain of an entry, newest link first.
func linksOf(t testing.TB, s *slot, id string) []link {
	t.Helper()
	h, err := s.take(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer s.give(h)
	at, ok, err := h.cover(id)
	if err != nil || !ok {
		t.Fatalf("entry %s is in no segment: %v", id, err)
	}
	var links []link
	if err := h.chain(at, func(l link) (bool, error) { links = append(links, l); return true, nil }); err != nil {
		t.Fatal(err)
	}
	return links
}

func compactionEntry(id, parent string) store.Write {
	return store.InsertEntry(store.NewEntry{ID: id, ParentID: parent, Type: store.TypeCompaction, Payload: []byte(`{"summary":"s"}`)})
}

// TestCopiedRows alternates branching and appending across several compactions
// and counts what each append copies: the rows between the newest compaction and
// the parent, wherever in the chain that compaction is (spec §2.6, §9.3).
func TestCopiedRows(t *testing.T) {
	path := newSession(t)
	b := open(t, path, store.OpenOptions{})
	rows := func() (n int) {
		t.Helper()
		ask(t, path, `SELECT count(*) FROM branch_entries`, &n)
		return n
	}
	type node struct {
		parent string
		since  int // entries after the newest compaction, through this one
	}
	nodes := map[string]node{"": {}}
	depth := 0
	add := func(parent string, compaction bool, copied int) (id string) {
		t.Helper()
		id = fmt.Sprintf("e%03d", len(nodes))
		before := rows()
		if compaction {
			nodes[id] = node{parent, 0}
			commit(t, b, compactionEntry(id, parent))
		} else {
			nodes[id] = node{parent, nodes[parent].since + 1}
			commit(t, b, userEntry(id, parent))
		}
		if got := rows() - before; got != copied+1 {
			t.Fatalf("%s below %s: %d rows, want its own and %d copies", id, parent, got, copied)
		}
		return id
	}
	at := add("", false, 0)
	for i := range 40 {
		for range 3 + i%4 {
			at = add(at, false, 0)
		}
		if i%5 == 4 {
			at = add(at, true, 0)
		}
		fork := at
		add(add(at, false, 0), false, 0)
		// The conversation goes on from before the last two entries; every third
		// time from further up, beyond where the newest segment begins.
		for range i % 3 * 2 {
			if up := nodes[fork].parent; up != "" {
				fork = up
			}
		}
		at = add(fork, false, nodes[fork].since)
		if i%7 == 6 { // now segments stand where no compaction is
			if err := b.RepairIndex(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	for id := at; id != ""; id = nodes[id].parent {
		depth++
	}
	whole, err := b.ScanBranchStructure(ctx, store.BranchQuery{Start: at})
	if err != nil {
		t.Fatal(err)
	}
	id := at
	for _, s := range whole {
		if s.ID != id {
			t.Fatalf("the branch goes on with %s, want %s", s.ID, id)
		}
		id = nodes[id].parent
	}
	if len(whole) != depth || len(linksOf(t, b.far, at)) < 3 {
		t.Errorf("%d entries of %d, in %v", len(whole), depth, linksOf(t, b.far, at))
	}
	mustClose(t, b)
	if found := problemsOf(t, path); len(found) > 0 {
		t.Errorf("problems: %v", found)
	}
}

// TestCopyIsBounded: where no compaction bounds it, a constant does.
func TestCopyIsBounded(t *testing.T) {
	const n = 3000
	records := make([]store.Record, n)
	for i := range records {
		e := &store.Entry{Structure: store.Structure{ID: fmt.Sprintf("e%04d", i), Seq: int64(i + 1), Type: store.TypeMessage}, Payload: []byte(`{}`)}
		if i > 0 {
			e.ParentID = records[i-1].Entry.ID
		}
		records[i] = store.Record{Kind: store.KindEntry, Seq: e.Seq, Entry: e}
	}
	path := filepath.Join(t.TempDir(), "s1.db")
	build(t, path, store.NewSnapshot(header("s1"), records))
	b := open(t, path, store.OpenOptions{})
	commit(t, b, userEntry("f", "e2500"), userEntry("g", "f"))
	commit(t, b, userEntry("h", "f"))
	var copied [2]int
	ask(t, path, `SELECT (SELECT count(*) FROM branch_entries WHERE branch_id = '3001'), (SELECT count(*) FROM branch_entries WHERE branch_id = '3003')`,
		&copied[0], &copied[1])
	if copied != [2]int{minCopied + 2, minCopied + 2} { // with f and g, f and h
		t.Errorf("the segments have %v rows", copied)
	}
	want := []link{{"3003", 2401, 3003, base{"3000", 2401}}, {"3000", 0, 2401, base{}}}
	if diff := cmp.Diff(want, linksOf(t, b.near, "h"), cmp.AllowUnexported(link{}, base{})); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	rows, err := b.ScanBranchStructure(ctx, store.BranchQuery{Start: "h", Limit: 1200})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range rows {
		got = append(got, s.ID)
	}
	exp := []string{"h", "f"}
	for i := 2500; len(exp) < 1200; i-- {
		exp = append(exp, fmt.Sprintf("e%04d", i))
	}
	if diff := cmp.Diff(exp, got); diff != "" {
		t.Errorf("branch (-want +got):\n%s", diff)
	}
}

// TestRunTimeNeedsTheIndex: an entry without a row is damage to whoever reads or
// writes, nothing to walk around (spec §2.6).
func TestRunTimeNeedsTheIndex(t *testing.T) {
	path := newSession(t)
	tree(t, path)
	b := open(t, path, store.OpenOptions{})
	foreign(t, path, `DELETE FROM branch_entries WHERE entry_id = 'b'; DELETE FROM branch_entries WHERE entry_id = 'd'`)
	r, err := openReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var bad *store.Corrupt
	for _, q := range []store.Queries{b, r} {
		if got, err := q.ScanBranch(ctx, store.BranchQuery{Start: "b"}); !errors.As(err, &bad) {
			t.Errorf("scan of an entry without a row: got %v, %v, want *Corrupt", got, err)
		}
		if _, err := q.ScanBranch(ctx, store.BranchQuery{Start: "absent"}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("scan of nothing: got %v, want ErrNotFound", err)
		}
	}
	if _, err := b.Commit(ctx, store.Tx{userEntry("b2", "b")}); !errors.As(err, &bad) {
		t.Errorf("commit below an entry without a row: got %v, want *Corrupt", err)
	}
}

// TestBrokenChains: a chain that does not end is damage, not a loop.
func TestBrokenChains(t *testing.T) {
	for name, damage := range map[string]string{
		"a loop":             `UPDATE branch_meta SET base_branch_id = branch_id, base_seq = 2`,
		"a missing base":     `UPDATE branch_meta SET base_branch_id = 'x'`,
		"no description":     `DELETE FROM branch_meta`,
		"a base above a row": `UPDATE branch_meta SET base_seq = 99`,
	} {
		t.Run(name, func(t *testing.T) {
			path := newSession(t)
			tree(t, path)
			b := open(t, path, store.OpenOptions{})
			foreign(t, path, damage)
			var bad *store.Corrupt
			for _, oldest := range []bool{false, true} {
				if got, err := b.ScanBranch(ctx, store.BranchQuery{Start: "d", OldestFirst: oldest}); !errors.As(err, &bad) {
					t.Errorf("scan: got %v, %v, want *Corrupt", got, err)
				}
			}
			if err := b.RepairIndex(ctx); err != nil {
				t.Fatal(err)
			}
			if got := pathOf(t, b, "d"); !slices.Equal(got, []string{"d", "a", "r"}) {
				t.Errorf("after the repair: %v", got)
			}
		})
	}
}

func pathOf(t testing.TB, q store.Queries, start string) (ids []string) {
	t.Helper()
	rows, err := q.ScanBranchStructure(ctx, store.BranchQuery{Start: start})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range rows {
		ids = append(ids, s.ID)
	}
	return ids
}
