package repair_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/bulk"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/repair"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/sqlite"
)

// What a dry run promises is what the repair does, and the session is sound
// afterwards unless something is left.
func TestMendKeepsThePromiseOfItsDryRun(t *testing.T) {
	cases := map[string]struct {
		damage string // as SQL
		index  bool   // only the index is mended
		ok     bool
	}{
		"sound":                     {"SELECT 1", false, true},
		"no branch rows":            {"DELETE FROM branch_entries", false, true},
		"no branch index":           {"DROP TABLE branch_entries; DROP TABLE branch_meta", true, true},
		"no segments":               {"DROP TABLE branch_meta", false, true},
		"an index of it is missing": {"DROP INDEX ix_be_seq", true, true},
		"totals":                    {"UPDATE session SET message_count = 7", true, true},
		"an index is missing":       {"DROP INDEX ix_entry_seq", false, true},
		"and stays so":              {"DROP INDEX ix_usage_seq", true, false},
		"an entry is missing":       {"DELETE FROM entries WHERE id = '" + bulk.EntryID(3) + "'", false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path, _ := build(t, sqlite.Driver{})
			execute(t, path, c.damage)
			repo, err := store.NewRepo(store.RepoOptions{Dir: filepath.Dir(path), Drivers: []store.Driver{sqlite.Driver{}, jsonl.Driver{}}})
			if err != nil {
				t.Fatal(err)
			}
			mend := func(dry bool) repair.Mended {
				m, err := repair.Mend(t.Context(), repo, store.Ref{ID: shape.ID, Path: path, Backend: "sqlite"},
					repair.MendOptions{IndexOnly: c.index, DryRun: dry, Checks: []store.Check{engine.Check}})
				if err != nil {
					t.Fatal(err)
				}
				return m
			}
			before, err := os.ReadFile(path)
			promised := mend(true)
			after, readErr := os.ReadFile(path)
			if err := errors.Join(err, readErr); err != nil {
				t.Fatal(err)
			}
			if string(before) != string(after) {
				t.Error("the dry run changed the file")
			}
			done := mend(false)
			if diff := cmp.Diff(promised.Mended, done.Mended); diff != "" {
				t.Errorf("mended (-promised +done):\n%s", diff)
			}
			if done.OK() != c.ok {
				t.Errorf("ok is %v, left: %v", done.OK(), done.Left)
			}
		})
	}
}

func execute(t *testing.T, path, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), statements)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}
