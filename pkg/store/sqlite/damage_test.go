package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/store"
)

// TestUnusableFiles opens what is no session, in every way. Nothing is created
// and nothing is changed.
func TestUnusableFiles(t *testing.T) {
	write := func(content []byte) func(testing.TB, string) {
		return func(t testing.TB, path string) {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	session := func(script string) func(testing.TB, string) {
		return func(t testing.TB, path string) {
			build(t, path, store.NewSnapshot(header("s1"), nil))
			if script != "" {
				foreign(t, path, script)
			}
		}
	}
	isCorrupt := func(path string, err error) bool {
		var bad *store.Corrupt
		return errors.As(err, &bad) && bad.Path == path
	}
	cases := map[string]struct {
		make func(testing.TB, string)
		want func(path string, err error) bool
	}{
		"nothing":    {func(testing.TB, string) {}, func(_ string, err error) bool { return errors.Is(err, fs.ErrNotExist) }},
		"empty":      {write(nil), isCorrupt},
		"text":       {write([]byte(strings.Repeat("no database\n", 1000))), isCorrupt},
		"short text": {write([]byte("x")), isCorrupt},
		"only magic": {write([]byte("SQLite format 3\x00")), isCorrupt},
		"a folder":   {func(t testing.TB, path string) { _ = os.Mkdir(path, 0o700) }, isCorrupt},
		"cut":        {func(t testing.TB, path string) { session("")(t, path); _ = os.Truncate(path, 8192*2+100) }, isCorrupt},
		"another database": {func(t testing.TB, path string) {
			write(nil)(t, path)
			h, err := openHandle(path, dsnBuild)
			if err != nil {
				t.Fatal(err)
			}
			if err := h.run("CREATE TABLE t(x); INSERT INTO t VALUES(1)"); err != nil {
				t.Fatal(err)
			}
			mustClose(t, closer(h.close))
		}, isCorrupt},
		"no session row":           {session(`DELETE FROM session`), isCorrupt},
		"broken metadata":          {session(`UPDATE session SET metadata = '{"v":4'`), isCorrupt},
		"metadata of no session":   {session(`UPDATE session SET metadata = '{}'`), isCorrupt},
		"a version that differs":   {session(`UPDATE session SET metadata = replace(metadata, '"storageVersion":2', '"storageVersion":1')`), isCorrupt},
		"a version that is text":   {session(`UPDATE session SET storage_version = 'one'`), isCorrupt},
		"a column of another kind": {session(`UPDATE session SET next_seq = 'soon'`), isCorrupt},
		"a newer version": {session(`UPDATE session SET storage_version = 3, metadata = 'what it will be'`), func(path string, err error) bool {
			var newer *store.NewerVersion
			return errors.As(err, &newer) && *newer == store.NewerVersion{Path: path, Found: 3, Supported: store.StorageVersion}
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s1.db")
			c.make(t, path)
			regular := false
			if info, err := os.Stat(path); err == nil {
				regular = info.Mode().IsRegular()
			}
			var before fileState
			if regular {
				before = stateOf(t, path)
			}
			errs := lookAll(path)
			_, errs["Open"] = Driver{}.Open(ctx, path, store.OpenOptions{})
			errs["Delete"] = Driver{}.Delete(ctx, path, store.OpenOptions{})
			for what, err := range errs {
				if !c.want(path, err) {
					t.Errorf("%s: got %T %v", what, err, err)
				}
			}
			if regular {
				if after := stateOf(t, path); !slices.Equal(before.content, after.content) {
					t.Errorf("the file was changed")
				}
			} else if name == "nothing" {
				if got := names(t, filepath.Dir(path)); len(got) > 0 {
					t.Errorf("reading created %v", got)
				}
			}
		})
	}
}

// TestB06FullDatabase: a commit for which there is no room applies nothing, ends
// the writing, and the next owner finds the last good commit (B06).
func TestB06FullDatabase(t *testing.T) {
	path := newSession(t)
	b := open(t, path, store.OpenOptions{})
	commit(t, b, marks.Append("before"), userEntry("e1", ""))
	limitPages(t, b, 4)
	big := store.NewValue[string]("app", "big")
	_, err := b.Commit(ctx, store.Tx{marks.Append("never"), userEntry("e2", "e1"), big.Set(strings.Repeat("x", 1<<20))})
	var io *IOError
	if !errors.As(err, &io) || io.Path != path || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("commit into a full file: got %v, want *IOError, ENOSPC", err)
	}
	if _, again := b.Commit(ctx, store.Tx{marks.Append("later")}); !errors.Is(again, syscall.ENOSPC) {
		t.Errorf("the next commit: got %v, want the same failure", again)
	}
	if got := readMarks(t, b); !slices.Equal(got, []string{"before"}) {
		t.Errorf("marks %v, want only what was committed", got)
	}
	mustClose(t, b)
	if l, err := (Driver{}).Lease(ctx, path); l != nil || err != nil {
		t.Errorf("after close: lease %v, error %v", l, err)
	}
	next := open(t, path, store.OpenOptions{})
	if got := readMarks(t, next); !slices.Equal(got, []string{"before"}) {
		t.Errorf("the next owner sees %v", got)
	}
	if res := commit(t, next, marks.Append("after")); res.FirstSeq != 3 {
		t.Errorf("the next number is %d, want 3", res.FirstSeq)
	}
	mustClose(t, next)
	if found := problemsOf(t, path); len(found) > 0 {
		t.Errorf("problems: %v", found)
	}
}

// TestFailureAtEveryStatement: whichever statement of a commit fails, none of
// them took effect and the next owner goes on.
func TestFailureAtEveryStatement(t *testing.T) {
	state := store.NewValue[int]("app", "state")
	for _, event := range []string{
		"INSERT ON entries", "INSERT ON branch_entries", "INSERT ON branch_meta", "UPDATE ON branch_meta", "INSERT ON scalar_values",
		"UPDATE ON scalar_values", "DELETE ON scalar_values", "INSERT ON list_values", "DELETE ON list_values", "INSERT ON usage_ledger", "UPDATE ON session",
	} {
		t.Run(event, func(t *testing.T) {
			path := newSession(t)
			b := open(t, path, store.OpenOptions{})
			gone := store.NewValue[int]("app", "gone")
			commit(t, b, userEntry("e1", ""), userEntry("e2", "e1"), state.Set(1), gone.Set(1), marks.Append("before"))
			before, err := b.Snapshot(ctx)
			if err != nil {
				t.Fatal(err)
			}
			want, err := store.Collect(before)
			if err != nil {
				t.Fatal(err)
			}
			foreign(t, path, `CREATE TRIGGER fail BEFORE `+event+` BEGIN SELECT RAISE(ABORT, 'injected'); END`)
			_, err = b.Commit(ctx, store.Tx{
				marks.Delete(), marks.Append("never"), state.Set(2), gone.Delete(), store.NewValue[int]("app", "new").Set(3),
				userEntry("e3", "e2"), userEntry("e4", "e1"), store.InsertUsage(store.NewUsage{ID: "u1", EntryID: "e3"}),
			})
			if err == nil || !strings.Contains(err.Error(), "injected") {
				t.Fatalf("commit: %v, want the injected failure", err)
			}
			if _, err := b.Commit(ctx, store.Tx{marks.Append("later")}); err == nil {
				t.Error("the next commit succeeded")
			}
			mustClose(t, b)
			foreign(t, path, `DROP TRIGGER fail`)
			next := open(t, path, store.OpenOptions{})
			after, err := next.Snapshot(ctx)
			if err != nil {
				t.Fatal(err)
			}
			got, err := store.Collect(after)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("contents after the failure (-want +got):\n%s", diff)
			}
			if res := commit(t, next, userEntry("e3", "e2")); res.FirstSeq != 6 {
				t.Errorf("the next number is %d, want 6", res.FirstSeq)
			}
			mustClose(t, next)
			if found := problemsOf(t, path); len(found) > 0 {
				t.Errorf("problems: %v", found)
			}
		})
	}
}

// limitPages lets the database grow by so many pages and no more.
func limitPages(t testing.TB, b *backend, more int) {
	t.Helper()
	h, err := b.near.take(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer b.near.give(h)
	var pages int
	if _, err := h.row("PRAGMA page_count", nil, &pages); err != nil {
		t.Fatal(err)
	}
	if _, err := h.row("PRAGMA max_page_count = "+strconv.Itoa(pages+more), nil, &pages); err != nil {
		t.Fatal(err)
	}
}

// TestRefusedTransactions leave the owner able to commit.
func TestRefusedTransactions(t *testing.T) {
	path := newSession(t)
	b := open(t, path, store.OpenOptions{})
	commit(t, b, userEntry("e1", ""))
	var invalid *store.InvalidWrite
	for range 2 {
		if _, err := b.Commit(ctx, store.Tx{marks.Append("x"), userEntry("e1", "")}); !errors.As(err, &invalid) || invalid.Index != 1 {
			t.Fatalf("commit: got %v, want *InvalidWrite of write 1", err)
		}
	}
	if res := commit(t, b, userEntry("e2", "e1")); res.FirstSeq != 2 {
		t.Errorf("the next number is %d, want 2", res.FirstSeq)
	}
}

// TestFailedLookup: a failure of the store while it answers about ids is no
// fault of the transaction.
func TestFailedLookup(t *testing.T) {
	path := newSession(t)
	b := open(t, path, store.OpenOptions{})
	commit(t, b, userEntry("e1", ""), userEntry("e2", "e1"))
	foreign(t, path, `ALTER TABLE usage_ledger RENAME TO usage_gone`)
	_, err := b.Commit(ctx, store.Tx{userEntry("e3", "e1")}) // e1 must be looked up
	var invalid *store.InvalidWrite
	var bad *store.Corrupt
	if errors.As(err, &invalid) || !errors.As(err, &bad) {
		t.Errorf("commit: got %v, want *Corrupt and no *InvalidWrite", err)
	}
}

// TestB18ReadBeforeWrite: a transaction that has read is not refused because
// another connection committed meanwhile (spec §1.7).
func TestB18ReadBeforeWrite(t *testing.T) {
	path := newSession(t)
	b := open(t, path, store.OpenOptions{})
	commit(t, b, marks.Append("1"))
	if _, err := b.Stats(ctx); err != nil {
		t.Fatal(err)
	}
	foreign(t, path, `UPDATE session SET newest_timestamp = 9000000000000`)
	res := commit(t, b, marks.Append("2"))
	if res.Timestamp != 9_000_000_000_000 {
		t.Errorf("timestamp %d: the commit did not see what was committed before it", res.Timestamp)
	}
	// Every transaction takes the write lock before it reads.
	h, err := openHandle(path, dsnOwner)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	err = h.write(func() error {
		if _, err := h.session(); err != nil {
			return err
		}
		other, err := openHandle(path, strings.Replace(dsnOwner, "_busy_timeout=5000", "_busy_timeout=1", 1))
		if err != nil {
			return err
		}
		defer other.close()
		err = other.run(`UPDATE session SET newest_timestamp = 1`)
		if !errors.Is(err, syscall.EBUSY) {
			t.Errorf("another connection wrote inside the transaction: %v", err)
		}
		_, err = h.exec(`UPDATE session SET newest_timestamp = 2`)
		return err
	})
	if err != nil {
		t.Errorf("read, then write: %v", err)
	}
}

// TestPowerSafe commits with an fsync each.
func TestPowerSafe(t *testing.T) {
	for safe, want := range map[bool]int{false: 1, true: 2} {
		b := open(t, newSession(t), store.OpenOptions{PowerSafe: safe})
		h, err := b.near.take(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var level, mmap int
		if _, err := h.row("PRAGMA synchronous", nil, &level); err != nil {
			t.Fatal(err)
		}
		if _, err := h.row("PRAGMA mmap_size", nil, &mmap); err != nil {
			t.Fatal(err)
		}
		b.near.give(h)
		if level != want || mmap != 0 {
			t.Errorf("power-safe %v: synchronous %d, mmap %d, want %d, 0", safe, level, mmap, want)
		}
		mustClose(t, b)
	}
}
