package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-run/drover/pkg/store"
)

// drawTree draws entries of all types, each below an earlier one or a root.
func drawTree(rt *rapid.T) []store.NewEntry {
	n := rapid.IntRange(1, 30).Draw(rt, "entries")
	out := make([]store.NewEntry, n)
	for i := range out {
		parent := ""
		// Mostly the newest entry, as a conversation grows.
		if at := rapid.IntRange(-1, 2*i).Draw(rt, "parent"); i > 0 && at >= 0 {
			parent = out[min(at, i-1)].ID
		}
		id := fmt.Sprintf("e%02d", i)
		switch kind := rapid.SampledFrom([]store.EntryType{store.TypeMessage, store.TypeMessage, store.TypeCompaction, store.TypeCustom}).Draw(rt, "type"); kind {
		case store.TypeMessage:
			out[i] = userEntry(id, parent).Entry
		case store.TypeCustom:
			out[i] = store.CustomEntry(id, parent, rapid.SampledFrom([]string{"app.a", "app.b"}).Draw(rt, "custom type"), nil)
		default:
			out[i] = store.NewEntry{ID: id, ParentID: parent, Type: kind, Payload: []byte(`{"summary":"s"}`)}
		}
	}
	return out
}

func drawQuery(rt *rapid.T, entries map[string]store.Entry, ids []string) store.BranchQuery {
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
	if at, ok := entries[anID.Draw(rt, "cursor")]; ok {
		q.Cursor = at.Seq
	}
	return q
}

// walked answers a query by following parents, with the filter that all
// encodings share.
func walked(entries map[string]store.Entry, q store.BranchQuery) []store.Structure {
	var path []store.Structure
	for id := q.Start; id != ""; id = entries[id].ParentID {
		path = append(path, entries[id].Structure)
	}
	if q.OldestFirst {
		slices.Reverse(path)
	}
	return q.Select(slices.Values(path))
}

// TestBranchesLikeWalks compares the index with a walk along parents, on a tree
// that was committed, on the same tree built whole, and checks the index.
func TestBranchesLikeWalks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		path := filepath.Join(t.TempDir(), "s.db")
		build(t, path, store.NewSnapshot(header("s"), nil))
		b := open(t, path, store.OpenOptions{})
		tree := drawTree(rt)
		var tx store.Tx
		ids := make([]string, len(tree))
		for i, e := range tree {
			ids[i] = e.ID
			tx = append(tx, store.InsertEntry(e))
			if rapid.Bool().Draw(rt, "commit") {
				commit(t, b, tx...)
				tx = nil
			}
		}
		commit(t, b, tx...)
		snap, err := b.Snapshot(ctx)
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(filepath.Dir(path), "copy.db")
		build(t, copied, snap)
		mustClose(t, closer(snap.Close))
		entries, err := b.Entries(ctx, ids)
		if err != nil {
			t.Fatal(err)
		}
		mustClose(t, b)
		for _, p := range []string{path, copied} {
			if found := problemsOf(t, p); len(found) > 0 {
				rt.Fatalf("%s: %v", p, found)
			}
			r, err := openReader(p)
			if err != nil {
				t.Fatal(err)
			}
			for range 5 {
				compareWalk(rt, r, entries, drawQuery(rt, entries, ids))
			}
			mustClose(t, r)
		}
	})
}

func compareWalk(rt *rapid.T, r store.Reader, entries map[string]store.Entry, q store.BranchQuery) {
	rt.Helper()
	want := walked(entries, q)
	got, err := r.ScanBranchStructure(ctx, q)
	if err != nil {
		rt.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		rt.Fatalf("%+v (-walk +index):\n%s", q, diff)
	}
	full, err := r.ScanBranch(ctx, q)
	if err != nil {
		rt.Fatal(err)
	}
	var wantFull []store.Entry
	for _, s := range want {
		wantFull = append(wantFull, entries[s.ID])
	}
	if diff := cmp.Diff(wantFull, full); diff != "" {
		rt.Fatalf("%+v with payloads (-walk +index):\n%s", q, diff)
	}
}

// TestUncoveredEntry: an owner gives an entry without rows a segment and uses it
// from then on; a reader, who may not, says what is wrong (D20).
func TestUncoveredEntry(t *testing.T) {
	path := newSession(t)
	tree(t, path)
	foreign(t, path, `DELETE FROM branch_entries; DELETE FROM branch_meta`)
	q := store.BranchQuery{Start: "c"}
	r, err := openReader(path)
	if err != nil {
		t.Fatal(err)
	}
	var bad *store.Corrupt
	if _, err := r.ScanBranch(ctx, q); !errors.As(err, &bad) {
		t.Errorf("a reader's scan: got %v, want *Corrupt", err)
	}
	if _, err := r.ScanBranch(ctx, store.BranchQuery{Start: "absent"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a reader's scan of nothing: got %v, want ErrNotFound", err)
	}
	mustClose(t, r)

	b := open(t, path, store.OpenOptions{})
	ids := func(start string) (ids []string) {
		t.Helper()
		rows, err := b.ScanBranchStructure(ctx, store.BranchQuery{Start: start})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range rows {
			ids = append(ids, s.ID)
		}
		return ids
	}
	commit(t, b, userEntry("c2", "c")) // its parent is in no segment
	commit(t, b, userEntry("d2", "d"))
	for start, want := range map[string][]string{
		"c2": {"c2", "c", "b", "a", "r"}, "c": {"c", "b", "a", "r"}, "d2": {"d2", "d", "a", "r"}, "root": {"root"},
	} {
		if diff := cmp.Diff(want, ids(start)); diff != "" {
			t.Errorf("branch of %s (-want +got):\n%s", start, diff)
		}
	}
	commit(t, b, userEntry("c3", "c2"), userEntry("root2", "root"))
	if diff := cmp.Diff([]string{"root2", "root"}, ids("root2")); diff != "" {
		t.Errorf("branch of root2 (-want +got):\n%s", diff)
	}
	mustClose(t, b)
	if found := problemsOf(t, path); len(found) > 0 {
		t.Errorf("problems after the rebuild: %v", found)
	}
	var segments int
	ask(t, path, `SELECT count(*) FROM branch_meta`, &segments)
	if segments != 3 {
		t.Errorf("%d segments, want 3: one per leaf", segments)
	}
}

// TestBrokenParents: a path that reaches no root is never indexed.
func TestBrokenParents(t *testing.T) {
	for name, damage := range map[string]string{
		"missing": `DELETE FROM entries WHERE id = 'r'`,
		"cycle":   `UPDATE entries SET parent_id = 'c' WHERE id = 'a'`,
	} {
		t.Run(name, func(t *testing.T) {
			path := newSession(t)
			tree(t, path)
			foreign(t, path, damage+`; DELETE FROM branch_entries; DELETE FROM branch_meta`)
			b := open(t, path, store.OpenOptions{})
			var bad *store.Corrupt
			if _, err := b.ScanBranch(ctx, store.BranchQuery{Start: "c"}); !errors.As(err, &bad) {
				t.Errorf("scan: got %v, want *Corrupt", err)
			}
			var rows int
			ask(t, path, `SELECT count(*) FROM branch_entries`, &rows)
			if rows != 0 {
				t.Errorf("%d rows were indexed", rows)
			}
		})
	}
}
