package sqlite

import (
	"errors"
	"slices"
	"testing"

	"github.com/drover-run/drover/pkg/store"
)

// TestPathsWithGaps takes entries away by hand from the path r, c, a, b, d, where
// c is a compaction: a scan that would read over the gap says which entry is
// missing, one that ends before it answers.
func TestPathsWithGaps(t *testing.T) {
	type q = store.BranchQuery
	forms := map[string]struct {
		q    q
		want []string // of the whole path
	}{
		"to the root":           {q{Start: "d"}, []string{"d", "b", "a", "c", "r"}},
		"to the leaf":           {q{Start: "d", OldestFirst: true}, []string{"r", "c", "a", "b", "d"}},
		"to the compaction":     {q{Start: "d", StopAtType: store.TypeCompaction}, []string{"d", "b", "a", "c"}},
		"to an entry":           {q{Start: "d", StopAtID: "a"}, []string{"d", "b", "a"}},
		"to a limit":            {q{Start: "d", Limit: 2}, []string{"d", "b"}},
		"below a cursor":        {q{Start: "d", Cursor: 4}, []string{"a", "c", "r"}},
		"above a cursor":        {q{Start: "d", OldestFirst: true, Cursor: 3}, []string{"b", "d"}},
		"the oldest of a limit": {q{Start: "d", OldestFirst: true, Limit: 2}, []string{"r", "c"}},
	}
	gone := func(id string) string { return `DELETE FROM entries WHERE id = '` + id + `'` }
	everywhere := func(id string) string {
		return gone(id) + `; DELETE FROM branch_entries WHERE entry_id = '` + id + `'`
	}
	damages := map[string]struct {
		script  string
		missing string   // id in the error
		sound   []string // forms that do not meet the gap
	}{
		"nothing": {script: `SELECT 1`, sound: []string{"to the root", "to the leaf", "to the compaction", "to an entry",
			"to a limit", "below a cursor", "above a cursor", "the oldest of a limit"}},
		"a middle entry": {script: gone("a"), missing: "a",
			sound: []string{"to a limit", "above a cursor", "the oldest of a limit", "below a cursor"}},
		"a middle entry and its index row": {script: everywhere("a"), missing: "a",
			sound: []string{"to a limit", "above a cursor", "the oldest of a limit", "below a cursor"}},
		"the compaction": {script: gone("c"), missing: "c",
			sound: []string{"to an entry", "to a limit", "above a cursor"}},
		"the root": {script: gone("r"), missing: "r",
			sound: []string{"to the compaction", "to an entry", "to a limit", "above a cursor"}},
		"the leaf": {script: gone("d"), missing: "d",
			sound: []string{"below a cursor", "the oldest of a limit"}},
		"an index row": {script: `DELETE FROM branch_entries WHERE entry_id = 'b'`,
			sound: []string{"below a cursor", "the oldest of a limit", "above a cursor"}},
	}
	for damage, tt := range damages {
		t.Run(damage, func(t *testing.T) {
			path := newSession(t)
			b := open(t, path, store.OpenOptions{})
			commit(t, b, userEntry("r", ""), compactionEntry("c", "r"), userEntry("a", "c"), userEntry("b", "a"), userEntry("d", "b"))
			foreign(t, path, tt.script)
			for name, form := range forms {
				rows, err := b.ScanBranchStructure(ctx, form.q)
				_, payloadErr := b.ScanBranch(ctx, form.q)
				if (err == nil) != (payloadErr == nil) {
					t.Errorf("%s: with payloads %v, without %v", name, payloadErr, err)
				}
				if slices.Contains(tt.sound, name) {
					var ids []string
					for _, s := range rows {
						ids = append(ids, s.ID)
					}
					if damage == "nothing" && !slices.Equal(ids, form.want) || err != nil {
						t.Errorf("%s: got %v, %v, want %v", name, ids, err, form.want)
					}
					continue
				}
				var bad *store.Corrupt
				if !errors.As(err, &bad) || bad.Entry != tt.missing || bad.Path != path {
					t.Errorf("%s: got %v, want entry %q missing in %s", name, err, tt.missing, path)
				}
			}
			// What leaves entries out on purpose is not followed.
			if _, err := b.ScanBranch(ctx, q{Start: "d", Type: store.TypeCompaction}); err != nil {
				t.Errorf("by type: %v", err)
			}
		})
	}
}
