package sqlite

import (
	"fmt"
	"iter"
	"path/filepath"
	"reflect"
	"strings"
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
		`UPDATE usage_ledger SET adjustment = 'true', entry_id = '' WHERE id = 'u2'`,
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
	sameList(t, "entry", entries, gotEntries)
	sameList(t, "ledger row", rows, gotRows)
}

// sameList names the first difference of lists that may be long.
func sameList[T any](t *testing.T, what string, queried, got []T) {
	t.Helper()
	if len(queried) != len(got) {
		t.Errorf("a query finds %d times %s, a snapshot has %d", len(queried), what, len(got))
	}
	for i := range min(len(queried), len(got)) {
		if !reflect.DeepEqual(queried[i], got[i]) {
			t.Errorf("%s %d (-queried +snapshot):\n%s", what, i, cmp.Diff(queried[i], got[i]))
			return
		}
	}
}

// TestRowsThatAreNone: what cannot be part of a session is damage that every scan
// tells, and none passes over or goes round in circles at.
func TestRowsThatAreNone(t *testing.T) {
	big := strings.Repeat("x", pageBytes) // a page of its own
	const given, border = "has been given before", "2 rows have the sequence number"
	for _, c := range []struct{ damage, want string }{
		{`UPDATE entries SET seq = 0 WHERE id = 'b'`, "entry b: 0 is no sequence number"},
		{`UPDATE entries SET seq = -7 WHERE id = 'b'`, "entry b: -7 is no sequence number"},
		{`UPDATE entries SET seq = 9223372036854775807 WHERE id = 'c'`, "entry c: 9223372036854775807 is no sequence number"},
		{`UPDATE entries SET seq = CAST(CAST(seq AS TEXT) AS BLOB) WHERE id = 'b'`, "entry b: its id, number or parent is of a kind that none is"},
		{`UPDATE entries SET seq = (SELECT seq FROM entries WHERE id = 'a') WHERE id = 'b'`, given},
		{`UPDATE entries SET id = CAST('b' AS BLOB) WHERE id = 'b'`, "entry b: its id, number or parent is of a kind that none is"},
		{`UPDATE entries SET parent_id = CAST(parent_id AS BLOB) WHERE id = 'b'`, "entry b: its id, number or parent is of a kind that none is"},
		{`UPDATE entries SET payload = '{"x":"` + big + `"}', seq = (SELECT seq FROM entries WHERE id = 'b') WHERE id = 'a'`, border},
		{`UPDATE entries SET seq = CASE id WHEN 'r' THEN 1 WHEN 'a' THEN 4 WHEN 'c' THEN 4 WHEN 'b' THEN 5 ELSE 10 + seq END;
			UPDATE entries SET payload = '{"x":"` + big + `"}' WHERE id = 'r'`, border},
		{`UPDATE usage_ledger SET seq = 0 WHERE id = 'u2'`, "usage u2: 0 is no sequence number"},
		{`UPDATE usage_ledger SET seq = -1 WHERE id = 'u2'`, "usage u2: -1 is no sequence number"},
		{`UPDATE usage_ledger SET seq = CAST('9' AS BLOB) WHERE id = 'u2'`, "usage u2: its id, number or entry is of a kind that none is"},
		{`UPDATE usage_ledger SET id = CAST('u2' AS BLOB) WHERE id = 'u2'`, "usage u2: its id, number or entry is of a kind that none is"},
		{`UPDATE usage_ledger SET seq = (SELECT seq FROM usage_ledger WHERE id = 'u1') WHERE id = 'u2'`, given},
		{`UPDATE usage_ledger SET usage = '{"x":"` + big + `"}', seq = (SELECT seq FROM usage_ledger WHERE id = 'u2')`, border},
		{`INSERT INTO scalar_values VALUES('n', 'k', 0, '1')`, "0 is no sequence number"},
	} {
		t.Run(c.damage[:min(len(c.damage), 60)], func(t *testing.T) {
			path := newSession(t)
			tree(t, path)
			b := open(t, path, store.OpenOptions{})
			commit(t, b, store.InsertUsage(store.NewUsage{ID: "u1", EntryID: "c"}), store.InsertUsage(store.NewUsage{ID: "u2", Adjustment: true}))
			mustClose(t, b)
			foreign(t, path, c.damage)
			err := readAll(t, path, func(s *store.Snapshot) iter.Seq2[store.Record, error] { return s.Records })
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if c.want == border {
				c.want = given // without payloads the rows share a page
			}
			err = readAll(t, path, func(s *store.Snapshot) iter.Seq2[store.Record, error] { return s.Outline })
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("an outline gives %v, want %q", err, c.want)
			}
		})
	}
}

// readAll reads a snapshot to its end, or up to its error.
func readAll(t *testing.T, path string, records func(*store.Snapshot) iter.Seq2[store.Record, error]) error {
	t.Helper()
	r, err := openReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	snap, err := r.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer snap.Close()
	for _, err := range records(snap) {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestRowsInAnyOrderOfIDs: a snapshot goes through a table by its ids while these rise
// with the numbers. It gives every row in the order of the numbers in any case, over
// several pages.
func TestRowsInAnyOrderOfIDs(t *testing.T) {
	const rows = 3000 // of a kilobyte: some pages
	orders := map[string]func(i int) int{
		"rising":             func(i int) int { return i },
		"falling":            func(i int) int { return rows - i },
		"back once":          func(i int) int { return (i + rows/2) % rows },
		"the last one first": func(i int) int { return (i + 1) % rows },
		"neighbours swapped": func(i int) int { return i ^ 1 },
		"mixed":              func(i int) int { return i * 1009 % rows },
		"one far away":       func(i int) int { return map[bool]int{true: 2 * rows, false: i}[i == 700] },
	}
	for name, order := range orders {
		t.Run(name, func(t *testing.T) {
			path := newSession(t)
			b := open(t, path, store.OpenOptions{})
			var writes []store.Write
			parent := ""
			for i := range rows {
				id := fmt.Sprintf("e%06d", order(i))
				payload := fmt.Sprintf(`{"message":{"role":"user","content":"%0900d"}}`, i)
				writes = append(writes,
					store.InsertEntry(store.NewEntry{ID: id, ParentID: parent, Type: "message", Payload: []byte(payload)}),
					store.InsertUsage(store.NewUsage{ID: fmt.Sprintf("u%06d", order(i)), EntryID: id, Details: fmt.Appendf(nil, `{"n":"%0500d"}`, i)}))
				parent = id
			}
			commit(t, b, writes...)
			mustClose(t, b)
			sameRows(t, path)
		})
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
