package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/store"
)

// TestPlainRows reads rows whose columns somebody else wrote: a snapshot says of
// them what a query says, which takes its rows from database/sql.
func TestPlainRows(t *testing.T) {
	for _, damage := range []string{
		`SELECT 1`,
		`UPDATE entries SET payload = x'7b7d' WHERE id = 'b'`,
		`UPDATE entries SET payload = '' WHERE id = 'b'`,
		`UPDATE entries SET payload = 5 WHERE id = 'b'`,
		`UPDATE entries SET custom_type = x'6b' WHERE id = 'b'`,
		`UPDATE entries SET custom_type = 7, type = 8 WHERE id = 'b'`,
		`UPDATE entries SET timestamp = 'soon' WHERE id = 'b'`,
		`UPDATE entries SET timestamp = 1.5 WHERE id = 'r'`,
		`UPDATE usage_ledger SET details = '' WHERE id = 'u2'`,
		`UPDATE usage_ledger SET details = x'7b7d' WHERE id = 'u2'`,
		`UPDATE usage_ledger SET usage = x'7b7d' WHERE id = 'u2'`,
		`UPDATE usage_ledger SET usage = '' WHERE id = 'u1'`,
		`UPDATE usage_ledger SET adjustment = 2 WHERE id = 'u2'`,
		`UPDATE usage_ledger SET adjustment = 'true', entry_id = x'61' WHERE id = 'u2'`,
	} {
		t.Run(damage, func(t *testing.T) {
			path := newSession(t)
			tree(t, path)
			b := open(t, path, store.OpenOptions{})
			commit(t, b, store.InsertUsage(store.NewUsage{ID: "u1", EntryID: "c"}),
				store.InsertUsage(store.NewUsage{ID: "u2", Adjustment: true, Details: []byte(`{"a":1}`)}))
			mustClose(t, b)
			foreign(t, path, damage)
			sameRows(t, path)
		})
	}
}

// sameRows compares the entries and the ledger of a snapshot with those that
// queries find.
func sameRows(t *testing.T, path string) {
	t.Helper()
	r, err := openReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	entries, entriesErr := r.ScanEntries(ctx, store.EntryQuery{})
	rows, rowsErr := r.ScanUsage(ctx, store.UsageQuery{})
	snap, err := r.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	var gotEntries []store.Entry
	var gotRows []store.UsageRow
	var gotErr error
	for rec, err := range snap.Records {
		switch {
		case err != nil:
			gotErr = err
		case rec.Entry != nil:
			gotEntries = append(gotEntries, *rec.Entry)
		case rec.Usage != nil:
			gotRows = append(gotRows, *rec.Usage)
		}
	}
	want := entriesErr
	if want == nil {
		want = rowsErr
	}
	if fmt.Sprint(gotErr) != fmt.Sprint(want) {
		t.Errorf("a snapshot fails with %v, a query with %v", gotErr, want)
	}
	if want != nil {
		return
	}
	if diff := cmp.Diff(entries, gotEntries); diff != "" {
		t.Errorf("entries (-queried +snapshot):\n%s", diff)
	}
	if diff := cmp.Diff(rows, gotRows); diff != "" {
		t.Errorf("ledger (-queried +snapshot):\n%s", diff)
	}
}

// TestPlainRowsOfAnotherEncoding: blobs of a database in UTF-16 are no text.
func TestPlainRowsOfAnotherEncoding(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s1.db")
	metadata, err := header("s1").AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	h, err := openHandle(path, "?mode=rwc&"+dsnCommon)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.run(`PRAGMA encoding = 'UTF-16le'; PRAGMA journal_mode = wal`); err != nil {
		t.Fatal(err)
	}
	if err := h.write(func() error { return h.fill(ctx, store.NewSnapshot(header("s1"), nil)) }); err != nil {
		t.Fatal(err)
	}
	if _, err := h.exec(`UPDATE session SET usage_payload = '{}', metadata = ?`, string(metadata)); err != nil {
		t.Fatal(err)
	}
	if err := h.run(`INSERT INTO entries VALUES('a', NULL, 1, 'message', NULL, 1, '{"message":{}}')`); err != nil {
		t.Fatal(err)
	}
	mustClose(t, closer(h.close))
	sameRows(t, path)
}
