package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/bulk"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// TestIndexOfAnOlderFile: an owner gives a file without an index its index, and
// keeps one that has another shape; a reader, who may not write, says what is
// wrong (D20).
func TestIndexOfAnOlderFile(t *testing.T) {
	const none = `DELETE FROM branch_entries; DELETE FROM branch_meta`
	cases := map[string]struct {
		script  string
		missing bool // for a reader of d
	}{
		"no index":  {none, true},
		"no tables": {`DROP TABLE branch_entries; DROP TABLE branch_meta`, true},
		"one table": {`DROP TABLE branch_meta`, true},
		"a leaf without a row": {`INSERT INTO scalar_values VALUES('pi.lane.leaf', 'side', 99, '"d"');
			DELETE FROM branch_entries WHERE entry_id = 'd'; DELETE FROM branch_meta WHERE tip_entry_id = 'd'`, true},
		"one full segment per leaf": {none + `; INSERT INTO branch_meta VALUES('c', 'c', 4, NULL, NULL), ('d', 'd', 5, NULL, NULL), ('root', 'root', 6, NULL, NULL);
			INSERT INTO branch_entries SELECT 'c', id, seq, type FROM entries WHERE id IN ('r', 'a', 'b', 'c');
			INSERT INTO branch_entries SELECT 'd', id, seq, type FROM entries WHERE id IN ('r', 'a', 'd');
			INSERT INTO branch_entries SELECT 'root', id, seq, type FROM entries WHERE id = 'root'`, false},
		"a leaf that is no string": {`INSERT INTO scalar_values VALUES('pi.lane.leaf', 'side', 99, 'd'), ('pi.lane.leaf', 'other', 99, '["d"]'),
			('pi.lane.leaf', 'none', 99, 'null'), ('pi.lane.leaf', 'gone', 99, '"gone"')`, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := newSession(t)
			tree(t, path)
			foreign(t, path, c.script)
			r, err := openReader(path)
			if err != nil {
				t.Fatal(err)
			}
			var bad *store.Corrupt
			if _, err := r.ScanBranch(ctx, store.BranchQuery{Start: "d"}); errors.As(err, &bad) != c.missing {
				t.Errorf("a reader's scan: got %v", err)
			}
			mustClose(t, r)
			b := open(t, path, store.OpenOptions{})
			commit(t, b, userEntry("c2", "c"), userEntry("d2", "d"), userEntry("b2", "b"), userEntry("root2", "root"))
			for start, want := range map[string][]string{
				"c2": {"c2", "c", "b", "a", "r"}, "c": {"c", "b", "a", "r"}, "d2": {"d2", "d", "a", "r"}, "b2": {"b2", "b", "a", "r"}, "root2": {"root2", "root"},
			} {
				if diff := cmp.Diff(want, pathOf(t, b, start)); diff != "" {
					t.Errorf("branch of %s (-want +got):\n%s", start, diff)
				}
			}
			mustClose(t, b)
			if found := problemsOf(t, path); len(found) > 0 {
				t.Errorf("problems afterwards: %v", found)
			}
		})
	}
}

// TestBrokenParents: a tree that is none is never indexed, and what was there
// stays.
func TestBrokenParents(t *testing.T) {
	for name, damage := range map[string]string{
		"missing":    `DELETE FROM entries WHERE id = 'r'`,
		"cycle":      `UPDATE entries SET parent_id = 'c' WHERE id = 'a'`,
		"own parent": `UPDATE entries SET parent_id = 'a' WHERE id = 'a'`,
	} {
		t.Run(name, func(t *testing.T) {
			path := newSession(t)
			tree(t, path)
			foreign(t, path, damage)
			b := open(t, path, store.OpenOptions{})
			var bad *store.Corrupt
			if err := b.RepairIndex(ctx); !errors.As(err, &bad) {
				t.Errorf("repair: got %v, want *Corrupt", err)
			}
			commit(t, b, marks.Append("still usable"))
			mustClose(t, b)
			var rows int
			ask(t, path, `SELECT count(*) FROM branch_entries`, &rows)
			if rows != 8 {
				t.Errorf("%d index rows, want the 8 there were", rows)
			}
			foreign(t, path, `DELETE FROM branch_entries; DELETE FROM branch_meta`)
			if _, err := openOwner(ctx, path, store.OpenOptions{}); !errors.As(err, &bad) {
				t.Errorf("open without an index: got %v, want *Corrupt", err)
			}
			if l, err := (Driver{}).Lease(ctx, path); l != nil || err != nil {
				t.Errorf("after the failed open: lease %v, %v", l, err)
			}
		})
	}
}

// TestRepairIndex: whatever is wrong with what is derived, it is made anew from
// entries and ledger, and the owner counts on with it (spec §2.6, D61).
func TestRepairIndex(t *testing.T) {
	usage := func(id string, tokens int64) store.Write {
		return store.InsertUsage(store.NewUsage{ID: id, Usage: message.Usage{Input: tokens, TotalTokens: tokens, Cost: message.Cost{Total: 0.1}}})
	}
	for name, damage := range map[string]string{
		"nothing":       `SELECT 1`,
		"foreign rows":  `INSERT INTO branch_entries SELECT branch_id, 'root', 6, 'message' FROM branch_meta WHERE tip_entry_id = 'x'`,
		"missing rows":  `DELETE FROM branch_entries WHERE entry_id IN ('a', 'd')`,
		"a loop":        `UPDATE branch_meta SET base_branch_id = branch_id, base_seq = 1`,
		"no index":      `DELETE FROM branch_entries; DELETE FROM branch_meta`,
		"wrong numbers": `UPDATE session SET message_count = 77, usage_payload = '{"input":1}'`,
	} {
		t.Run(name, func(t *testing.T) {
			path := newSession(t)
			tree(t, path)
			b := open(t, path, store.OpenOptions{})
			commit(t, b, usage("u1", 1), usage("u2", 2), usage("u3", 4), store.InsertEntry(store.CustomEntry("x", "c", "app.x", nil)))
			want, err := b.Stats(ctx)
			if err != nil {
				t.Fatal(err)
			}
			foreign(t, path, damage)
			if err := b.RepairIndex(ctx); err != nil {
				t.Fatal(err)
			}
			got, err := b.Stats(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("stats (-want +got):\n%s", diff)
			}
			res := commit(t, b, userEntry("d2", "d"), userEntry("a2", "a"))
			if want.MessageCount += 2; res.Stats.MessageCount != want.MessageCount {
				t.Errorf("the next commit counts %d messages, want %d", res.Stats.MessageCount, want.MessageCount)
			}
			for start, want := range map[string][]string{"x": {"x", "c", "b", "a", "r"}, "d2": {"d2", "d", "a", "r"}, "a2": {"a2", "a", "r"}} {
				if got := pathOf(t, b, start); !slices.Equal(got, want) {
					t.Errorf("branch of %s: %v, want %v", start, got, want)
				}
			}
			mustClose(t, b)
			r, err := openReader(path)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			for p := range store.Verify(ctx, r) {
				if p.Code != "no_main" { // which a session of the repository has
					t.Errorf("problem: %+v", p)
				}
			}
		})
	}
}

// TestRepairIsOneTransaction: one that fails in the middle changes nothing, and
// one whose owner was replaced writes nothing.
func TestRepairIsOneTransaction(t *testing.T) {
	path := newSession(t)
	tree(t, path)
	b := open(t, path, store.OpenOptions{})
	foreign(t, path, `CREATE TRIGGER fail BEFORE UPDATE ON session BEGIN SELECT RAISE(ABORT, 'injected'); END`)
	if err := b.RepairIndex(ctx); err == nil {
		t.Error("the repair succeeded")
	}
	if got := pathOf(t, b, "c"); !slices.Equal(got, []string{"c", "b", "a", "r"}) {
		t.Errorf("after the failed repair: %v", got)
	}
	foreign(t, path, `DROP TRIGGER fail; UPDATE writer_lease SET owner_id = 'other'; DELETE FROM branch_entries; DELETE FROM branch_meta`)
	var lost *store.Lost
	if err := b.RepairIndex(ctx); !errors.As(err, &lost) {
		t.Errorf("repair by a replaced owner: got %v, want *Lost", err)
	}
	var rows int
	ask(t, path, `SELECT count(*) FROM branch_entries`, &rows)
	if rows != 0 {
		t.Errorf("a replaced owner wrote %d rows", rows)
	}
	mustClose(t, b)
	if err := b.RepairIndex(ctx); !errors.Is(err, store.ErrClosed) {
		t.Errorf("repair after close: got %v, want ErrClosed", err)
	}
}

// TestIndexOfManyEntries: the index is the same whether its rows fit in memory or
// wait in a table, and whether the entries come along or are read again.
func TestIndexOfManyEntries(t *testing.T) {
	for _, n := range []int{indexPage - 1, indexPage, indexPage + 1, 2*indexPage + 3} {
		path, err := bulk.Build(ctx, Driver{}, t.TempDir(), bulk.Shape{ID: "s", Entries: n, Text: 1})
		if err != nil {
			t.Fatal(err)
		}
		built := indexRows(t, path)
		if found := problemsOf(t, path); len(found) > 0 {
			t.Errorf("%d entries: %v", n, found)
		}
		b := open(t, path, store.OpenOptions{})
		if err := b.RepairIndex(ctx); err != nil {
			t.Fatal(err)
		}
		mustClose(t, b)
		if diff := cmp.Diff(built, indexRows(t, path)); diff != "" || len(built) != n {
			t.Errorf("%d entries: %d rows when built; made anew (-built +anew):\n%s", n, len(built), diff)
		}
	}
}

// TestTreeNodesAreFew: a build forgets what would be too much, and reads it again.
func TestTreeNodesAreFew(t *testing.T) {
	var tree treeNodes
	for seq := range int64(keptNodes) {
		tree.add(&store.Structure{ID: fmt.Sprint(seq), ParentID: fmt.Sprint(seq - 1), Seq: seq})
	}
	if kept := tree.newestFirst(); len(kept) != keptNodes || kept[0].id != fmt.Sprint(keptNodes-1) {
		t.Errorf("%d entries are kept", len(kept))
	}
	for range 2 {
		tree.add(&store.Structure{ID: "one more"})
		if kept := tree.newestFirst(); kept != nil {
			t.Errorf("%d entries are kept", len(kept))
		}
	}
}

func indexRows(t *testing.T, path string) (rows []string) {
	t.Helper()
	h, err := openHandle(path, dsnReader)
	if err != nil {
		t.Fatal(err)
	}
	const query = `SELECT branch_id || ' ' || entry_id || ' ' || entry_seq || ' ' || entry_type FROM branch_entries ORDER BY entry_seq`
	err = h.each(ctx, query, nil, func(r *sql.Rows) (bool, error) {
		var row string
		err := r.Scan(&row)
		rows = append(rows, row)
		return true, err
	})
	if err := errors.Join(err, h.close()); err != nil {
		t.Fatal(err)
	}
	return rows
}
