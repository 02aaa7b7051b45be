package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	lib "modernc.org/sqlite/lib"

	"github.com/drover-run/drover/pkg/store"
)

func TestIntegrityFindings(t *testing.T) {
	const page = "the page cannot be read"
	for text, want := range map[string][]finding{
		"*** in database main ***\nTree 6 page 6: btreeInitPage() returns error code 11\nTree 8 page 12: btreeInitPage() returns error code 11": {
			{"page 6", page}, {"page 12", page}},
		"*** in database main ***\nPage 7: never used":          {{"page 7", "the database's structure is damaged: Page 7: never used"}},
		"Tree 3 page 9: unable to get the page. error code=522": {{"page 9", page}},
		"Tree 3 page 9 cell 1: invalid page number 17":          {{"page 17", "the database's structure is damaged: the file has no such page"}},
		"wrong # of entries in index ix_usage_seq":              {{"index ix_usage_seq", "the index does not have an entry for every row"}},
		"row 5 missing from index ix_be_type":                   {{"index ix_be_type", "the database's structure is damaged: row 5 missing from index ix_be_type"}},
		"NULL value in entries.payload":                         {{"", "the database's structure is damaged: NULL value in entries.payload"}},
		"*** in database main ***":                              nil,
	} {
		if got := structural(text); !slices.Equal(got, want) {
			t.Errorf("%q: %s", text, cmp.Diff(want, got, cmp.AllowUnexported(finding{})))
		}
	}
}

// What the system refuses is said in the system's words, with the path.
func TestSystemFailures(t *testing.T) {
	there := newSession(t)
	for code, want := range map[int]string{
		lib.SQLITE_FULL:          there + ": no space left on device",
		lib.SQLITE_IOERR | 10<<8: there + ": input/output error",
		lib.SQLITE_BUSY:          there + ": another process keeps the database locked",
		lib.SQLITE_CANTOPEN:      there + ": permission denied",
		lib.SQLITE_READONLY:      there + ": read-only file system",
		lib.SQLITE_NOLFS:         there + ": its own words",
	} {
		err := &IOError{Code: code, Path: there, Err: errors.New("its own words")}
		if got := err.Error(); got != want {
			t.Errorf("code %d: %q, want %q", code, got, want)
		}
	}
	gone := &IOError{Code: lib.SQLITE_CANTOPEN, Path: there + "x", Err: errors.New("x")}
	if want := there + "x: no such file or directory"; gone.Error() != want || !errors.Is(gone, fs.ErrNotExist) {
		t.Errorf("got %q, want %q", gone, want)
	}
}

// What a damaged file is said to be is ours to word, on every way to it.
func TestDamageIsWordedByUs(t *testing.T) {
	path := newSession(t)
	b := open(t, path, store.OpenOptions{})
	commit(t, b, userEntry("a", ""), userEntry("b", "a"))
	mustClose(t, b)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const pageSize = 8192
	var rootPage int
	ask(t, path, `SELECT rootpage FROM sqlite_schema WHERE name = 'entries'`, &rootPage)
	copy(content[(rootPage-1)*pageSize:rootPage*pageSize], strings.Repeat("\xff", 64))
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Driver{}.View(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	codes := map[string]bool{}
	for p := range store.Verify(ctx, r) {
		codes[p.Code] = true
		for _, foreign := range []string{"***", "database main", "btree", "malformed", "\n", "(11)", "#"} {
			if strings.Contains(p.Message, foreign) {
				t.Errorf("%s says %q", p.Code, p.Message)
			}
		}
	}
	if !codes["integrity"] || !codes["corrupt"] {
		t.Errorf("got problems %v, want integrity and corrupt", codes)
	}
}
