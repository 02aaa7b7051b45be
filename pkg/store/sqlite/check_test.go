package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-run/drover/pkg/store"
)

// problemsOf checks a session through a reader.
func problemsOf(t testing.TB, path string) []store.Problem {
	t.Helper()
	r, err := openReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return slices.Collect(r.Problems(ctx))
}

// tree commits r - a - b - c and r - a - d, and a root of its own.
func tree(t testing.TB, path string) {
	t.Helper()
	b := open(t, path, store.OpenOptions{})
	commit(t, b, userEntry("r", ""), userEntry("a", "r"))
	commit(t, b, userEntry("b", "a"), userEntry("c", "b"), userEntry("d", "a"))
	commit(t, b, userEntry("root", ""))
	if diff := cmp.Diff([]store.Problem(nil), slices.Collect(b.Problems(ctx))); diff != "" {
		t.Fatalf("problems of a sound owner (-want +got):\n%s", diff)
	}
	mustClose(t, b)
}

func TestProblems(t *testing.T) {
	const segmentOfD = "segment 5"
	// onBase makes d's segment stand on another one.
	onBase := func(segment string, seq int) string {
		return fmt.Sprintf(`DELETE FROM branch_entries WHERE branch_id = '5' AND entry_id <> 'd';
			UPDATE branch_meta SET base_branch_id = %s, base_seq = %d WHERE branch_id = '5'`, segment, seq)
	}
	bad := func(code, where, message string) store.Problem {
		return store.Problem{Code: code, Severity: store.SeverityError, Where: where, Message: message}
	}
	cases := map[string]struct {
		damage string
		want   []store.Problem
	}{
		"none":            {`SELECT 1`, nil},
		"a missing index": {`DROP INDEX ix_usage_seq`, []store.Problem{bad("schema", "ix_usage_seq", "the table or index is missing")}},
		"a second session row": {`INSERT INTO session SELECT * FROM session`,
			[]store.Problem{bad("session_row", "session", "there are 2 session rows")}},
		"a column that differs from the metadata": {`UPDATE session SET parent_session_id = 'x'`,
			[]store.Problem{bad("session_row", "session", "creation time or parent session differ from the metadata")}},
		"no lease row": {`DELETE FROM writer_lease`, []store.Problem{bad("lease", "writer_lease", "there are 0 lease rows")}},
		"an unreadable lease": {`UPDATE writer_lease SET fence = 'x'`,
			[]store.Problem{{Code: "lease", Severity: store.SeverityWarning, Where: "writer_lease", Message: "the lease row cannot be read"}}},
		"a row of no entry": {`INSERT INTO branch_entries VALUES('5', 'x', 99, 'message'); UPDATE branch_meta SET tip_entry_id = 'x', tip_seq = 99 WHERE branch_id = '5'`,
			[]store.Problem{bad("branch_index", segmentOfD, "entry x does not exist")}},
		"a wrong type": {`UPDATE branch_entries SET entry_type = 'custom' WHERE branch_id = '5' AND entry_id = 'a'`,
			[]store.Problem{bad("branch_index", segmentOfD, "entry a is message 2, the index says custom 2")}},
		"a gap": {`DELETE FROM branch_entries WHERE branch_id = '5' AND entry_id = 'a'`,
			[]store.Problem{bad("branch_index", segmentOfD, `entry d follows "r", its parent is "a"`)}},
		"a foreign row": {`INSERT INTO branch_entries VALUES('5', 'c', 4, 'message')`,
			[]store.Problem{bad("branch_index", segmentOfD, `entry c follows "a", its parent is "b"`), bad("branch_index", segmentOfD, `entry d follows "c", its parent is "a"`)}},
		"a wrong tip": {`UPDATE branch_meta SET tip_entry_id = 'b' WHERE branch_id = '5'`,
			[]store.Problem{bad("branch_index", segmentOfD, "it ends at entry d, number 5; its tip is b, number 5")}},
		"a wrong number of the tip": {`UPDATE branch_meta SET tip_seq = 4 WHERE branch_id = '5'`,
			[]store.Problem{bad("branch_index", segmentOfD, "it ends at entry d, number 5; its tip is d, number 4")}},
		"no description": {`DELETE FROM branch_meta WHERE branch_id = '5'`,
			[]store.Problem{bad("branch_index", segmentOfD, "it has rows and no description")}},
		"an entry in no segment": {`DELETE FROM branch_entries WHERE branch_id = '5'; DELETE FROM branch_meta WHERE branch_id = '5'`,
			[]store.Problem{bad("branch_index", "entry d", "no segment holds the entry")}},
		"an empty segment": {`INSERT INTO branch_meta(branch_id, tip_entry_id, tip_seq) VALUES('e', 'a', 2)`,
			[]store.Problem{bad("branch_index", "segment e", "it has no rows")}},
		"a base": {onBase(`'1'`, 2), nil},
		"a base too far down": {onBase(`'1'`, 1),
			[]store.Problem{bad("branch_index", segmentOfD, `it stands on entry "r", the parent of its oldest entry is "a"`)}},
		"a base without the row": {onBase(`'6'`, 2),
			[]store.Problem{bad("branch_index", segmentOfD, "it stands on number 2 of segment 6, which has no such row")}},
		"a base that is missing": {onBase(`'x'`, 2),
			[]store.Problem{bad("branch_index", segmentOfD, "it stands on number 2 of segment x, which has no such row")}},
		"no base": {onBase(`NULL`, 2),
			[]store.Problem{bad("branch_index", segmentOfD, `it stands on entry "", the parent of its oldest entry is "a"`)}},
		"no base, but a number": {`UPDATE branch_meta SET base_seq = 2 WHERE base_branch_id IS NULL AND branch_id = '5'`,
			[]store.Problem{bad("branch_index", segmentOfD, "it stands on no segment, but at number 2")}},
		"no base, and a number that is none": {`UPDATE branch_meta SET base_seq = 'x' WHERE branch_id = '5'`,
			[]store.Problem{bad("branch_index", segmentOfD, "a column of its description holds something else than it should")}},
		"a row's number that is none": {`UPDATE branch_entries SET entry_seq = 'x' WHERE branch_id = '5' AND entry_id = 'd'`,
			[]store.Problem{
				bad("branch_index", segmentOfD, "a column of its description holds something else than it should"),
				bad("branch_index", segmentOfD, "a column of its row of entry d holds something else than it should"),
			}},
		"rows beside their base": {`UPDATE branch_meta SET base_branch_id = '1', base_seq = 2 WHERE branch_id = '5'`,
			[]store.Problem{bad("branch_index", segmentOfD, `it stands on entry "a", the parent of its oldest entry is ""`)}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := newSession(t)
			tree(t, path)
			foreign(t, path, c.damage)
			if diff := cmp.Diff(c.want, problemsOf(t, path)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			inIndex := func(p store.Problem) bool { return p.Code == "branch_index" }
			if got, want := vouched(t, path), !slices.ContainsFunc(c.want, inIndex); got != want {
				t.Errorf("vouched for the branch index: %v, want %v", got, want)
			}
		})
	}
}

// vouched tells whether the short check of the branch index is content.
func vouched(t testing.TB, path string) bool {
	t.Helper()
	h, _, err := openView(path)
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, closer(h.close))
	return h.vouch(ctx)
}

// TestProblemsBeside checks a file that is large enough for a second connection.
func TestProblemsBeside(t *testing.T) {
	path := newSession(t)
	b := open(t, path, store.OpenOptions{})
	commit(t, b, store.NewValue[string]("app", "large").Set(strings.Repeat("x", besideBytes)))
	mustClose(t, b)
	tree(t, path)
	if found := problemsOf(t, path); len(found) > 0 {
		t.Errorf("problems of a sound session: %v", found)
	}
	foreign(t, path, `UPDATE branch_entries SET entry_type = 'custom' WHERE entry_id = 'root'`)
	var codes []string
	for _, p := range problemsOf(t, path) {
		codes = append(codes, p.Code)
	}
	if want := []string{"branch_index"}; !slices.Equal(codes, want) {
		t.Errorf("problems %v, want %v", codes, want)
	}
}

// TestVouching damages the branch index at random: what is vouched for, the full
// checks have nothing against.
func TestVouching(t *testing.T) {
	sound := newSession(t)
	tree(t, sound)
	intact, err := os.ReadFile(sound)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "s1.db")
	name := rapid.SampledFrom([]string{"'1'", "'5'", "'6'", "'x'", "''"})
	id := rapid.SampledFrom([]string{"'r'", "'a'", "'b'", "'c'", "'d'", "'root'", "'x'", "''"})
	seq := rapid.SampledFrom([]string{"1", "2", "3", "4", "5", "6", "7", "'x'"})
	kind := rapid.SampledFrom([]string{"'message'", "'custom'", "''"})
	null := func(g *rapid.Generator[string]) *rapid.Generator[string] { return rapid.OneOf(g, rapid.Just("NULL")) }
	change := rapid.Custom(func(t *rapid.T) string {
		row := " WHERE branch_id = " + name.Draw(t, "of") + " AND entry_id = " + id.Draw(t, "at")
		switch rapid.IntRange(0, 8).Draw(t, "change") {
		case 0:
			return "UPDATE OR IGNORE branch_entries SET entry_seq = " + seq.Draw(t, "seq") + row
		case 1:
			return "UPDATE OR IGNORE branch_entries SET entry_type = " + kind.Draw(t, "type") + row
		case 2:
			return "UPDATE OR IGNORE branch_entries SET branch_id = " + name.Draw(t, "branch") + row
		case 3:
			return "DELETE FROM branch_entries" + row
		case 4:
			return fmt.Sprintf("INSERT OR IGNORE INTO branch_entries VALUES(%s, %s, %s, %s)",
				name.Draw(t, "branch"), id.Draw(t, "entry"), seq.Draw(t, "seq"), kind.Draw(t, "type"))
		case 5:
			return fmt.Sprintf("INSERT OR IGNORE INTO branch_meta VALUES(%s, %s, %s, %s, %s)", null(name).Draw(t, "branch"),
				id.Draw(t, "tip"), seq.Draw(t, "seq"), null(name).Draw(t, "base"), null(seq).Draw(t, "base seq"))
		case 6:
			return fmt.Sprintf("UPDATE branch_meta SET base_branch_id = %s, base_seq = %s WHERE branch_id = %s",
				null(name).Draw(t, "base"), null(seq).Draw(t, "base seq"), name.Draw(t, "of"))
		case 7:
			return "UPDATE entries SET parent_id = " + null(id).Draw(t, "parent") + " WHERE id = " + id.Draw(t, "entry")
		}
		return "UPDATE entries SET seq = " + seq.Draw(t, "seq") + " WHERE id = " + id.Draw(t, "entry")
	})
	rapid.Check(t, func(t *rapid.T) {
		if err := os.WriteFile(path, intact, 0o600); err != nil {
			t.Fatal(err)
		}
		h, err := openHandle(path, dsnBuild)
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range rapid.SliceOfN(change, 1, 3).Draw(t, "changes") {
			if err := h.run(statement); err != nil {
				t.Fatal(err)
			}
		}
		var found findings
		err = found.each(ctx, h, found.segments, found.segmentRows, found.uncovered)
		if vouched := h.vouch(ctx); vouched && (err != nil || len(found) > 0) {
			t.Errorf("vouched for %v, %v", found, err)
		}
		if err := h.close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestProblemsOfDamagedPages overwrites a part of the file that the other checks
// do not read.
func TestProblemsOfDamagedPages(t *testing.T) {
	path := newSession(t)
	tree(t, path)
	var page int64
	ask(t, path, `SELECT rootpage FROM sqlite_schema WHERE name = 'ix_entry_parent'`, &page)
	damage(t, path, (page-1)*8192+4000, make([]byte, 4192))
	found := problemsOf(t, path)
	if !slices.ContainsFunc(found, func(p store.Problem) bool { return p.Code == "integrity" || p.Code == "corrupt" }) {
		t.Errorf("problems: %v, want the damaged page", found)
	}
}

// damage overwrites bytes of a session that nobody has open.
func damage(t testing.TB, path string, at int64, with []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(with, at); err != nil {
		t.Fatal(err)
	}
}

func TestProblemsOfLeftovers(t *testing.T) {
	path := newSession(t)
	for _, name := range []string{".s1.db.tmp-0123abcd", ".s2.db.tmp-0123abcd", "s1.db.bak"} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := []store.Problem{{Code: "leftover", Severity: store.SeverityWarning, Where: ".s1.db.tmp-0123abcd",
		Message: "a temporary file of an interrupted replacement"}}
	if diff := cmp.Diff(want, problemsOf(t, path)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
