package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/drover-run/drover/pkg/store"
)

// breaker is a driver whose n-th statement fails (D21).
type breaker struct {
	driver.Connector
	left  int  // statements until the one that fails; negative is none
	after bool // the statement takes effect before its failure is reported
	err   error
	hit   string // the statement that failed
}

func (b *breaker) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := b.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return brokenConn{c, b}, nil
}

type brokenConn struct {
	driver.Conn
	b *breaker
}

func (c brokenConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	s, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	return brokenStmt{s, c.b, text}, nil
}

type brokenStmt struct {
	driver.Stmt
	b    *breaker
	text string
}

// fails counts a statement.
func (s brokenStmt) fails() bool {
	if s.b.left < 0 || s.b.hit != "" {
		return false
	}
	s.b.left--
	if s.b.left >= 0 {
		return false
	}
	s.b.hit = s.text
	return true
}

func (s brokenStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	fails := s.fails()
	if fails && !s.b.after {
		return nil, s.b.err
	}
	res, err := s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
	if fails && err == nil {
		err = s.b.err
	}
	return res, err
}

func (s brokenStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if s.fails() {
		return nil, s.b.err
	}
	return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}

// breakStatements gives an owner a connection whose statements can fail. The
// old one stays open until the test ends: its closing would take the locks of
// the process away.
func breakStatements(t *testing.T, b *backend) *breaker {
	t.Helper()
	h, err := b.near.take(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newConnector(b.path, dsnOwner)
	if err != nil {
		t.Fatal(err)
	}
	broken := &breaker{Connector: c, left: -1}
	next, err := openConnector(b.path, broken)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.close(); err != nil {
		t.Fatal(err)
	}
	b.near.give(next)
	return broken
}

// sqliteErrors are real failures of SQLite, one of each kind, made by what
// causes them.
func sqliteErrors(t *testing.T) map[int]error {
	t.Helper()
	found := make(map[int]error)
	note := func(script string, h *handle) {
		t.Helper()
		_, err := h.conn.ExecContext(ctx, script)
		var e *sqlite.Error
		if !errors.As(err, &e) {
			t.Fatalf("%s: got %v, want an error of SQLite", script, err)
		}
		found[e.Code()&0xff] = err
	}
	path := newSession(t)
	h, err := openHandle(path, strings.Replace(dsnOwner, "_busy_timeout=5000", "_busy_timeout=1", 1))
	if err != nil {
		t.Fatal(err)
	}
	other, err := openHandle(path, dsnOwner)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.write(func() error { note("BEGIN IMMEDIATE", h); return nil }); err != nil {
		t.Fatal(err)
	}
	mustClose(t, closer(other.close))
	var pages int
	if _, err := h.row("PRAGMA max_page_count = 1", nil, &pages); err != nil {
		t.Fatal(err)
	}
	note("INSERT INTO list_values VALUES('n', 'k', 1, hex(randomblob(100000)))", h)
	if err := h.run("PRAGMA query_only = 1"); err != nil {
		t.Fatal(err)
	}
	note("DELETE FROM list_values", h)
	mustClose(t, closer(h.close))

	bad := newSession(t)
	var page int64
	ask(t, bad, "SELECT rootpage FROM sqlite_schema WHERE name = 'list_values'", &page)
	damage(t, bad, (page-1)*8192, make([]byte, 8192))
	if h, err = openHandle(bad, dsnOwner); err != nil {
		t.Fatal(err)
	}
	note("SELECT * FROM list_values", h)
	// No file may grow beyond a page for a moment.
	var room syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &room); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 8192, Max: room.Max}); err != nil {
		t.Fatal(err)
	}
	note("UPDATE session SET metadata = hex(randomblob(100000))", h)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &room); err != nil {
		t.Fatal(err)
	}
	mustClose(t, closer(h.close))
	return found
}

// TestB23EveryStatementFails: whichever statement of a commit fails and however,
// all of the commit is there or nothing, the owner writes nothing more, and the
// next one goes on (D21).
func TestB23EveryStatementFails(t *testing.T) {
	state := store.NewValue[int]("app", "state")
	kinds := sqliteErrors(t)
	wants := map[int]error{
		lib.SQLITE_FULL: syscall.ENOSPC, lib.SQLITE_BUSY: syscall.EBUSY, lib.SQLITE_READONLY: syscall.EROFS,
		lib.SQLITE_IOERR: syscall.EIO, lib.SQLITE_CORRUPT: nil,
	}
	for code, want := range wants {
		for _, after := range []bool{false, true} {
			if after && code != lib.SQLITE_FULL {
				continue
			}
			for n, last := 0, false; !last; n++ {
				name := fmt.Sprintf("code %d after %v statement %d", code, after, n)
				path := newSession(t)
				b := open(t, path, store.OpenOptions{})
				commit(t, b, userEntry("e1", ""), state.Set(1), marks.Append("before"))
				before := observe(t, b)
				broken := breakStatements(t, b)
				broken.left, broken.after, broken.err = n, after, kinds[code]
				_, err := b.Commit(ctx, store.Tx{
					marks.Append("new"), state.Set(2), userEntry("e2", "e1"),
					store.InsertUsage(store.NewUsage{ID: "u1", EntryID: "e2"}),
				})
				broken.left = -1
				if broken.hit == "" {
					if err != nil || n < 8 {
						t.Fatalf("%s: %d statements, %v", name, n, err)
					}
					last = true
					mustClose(t, b)
					continue
				}
				var failed *IOError
				var bad *store.Corrupt
				switch {
				case want != nil && (!errors.As(err, &failed) || !errors.Is(err, want)):
					t.Errorf("%s, %s: got %v, want *IOError, %v", name, broken.hit, err, want)
				case want == nil && !errors.As(err, &bad):
					t.Errorf("%s, %s: got %v, want *Corrupt", name, broken.hit, err)
				}
				if _, again := b.Commit(ctx, store.Tx{marks.Append("later")}); again == nil {
					t.Errorf("%s: the next commit succeeded", name)
				}
				mustClose(t, b)
				next := open(t, path, store.OpenOptions{})
				got := observe(t, next)
				landed := after && broken.hit == "COMMIT"
				if landed != (len(got.Records) == len(before.Records)+3) || (!landed && !cmp.Equal(before, got)) {
					t.Errorf("%s, %s: %s", name, broken.hit, cmp.Diff(before, got))
				}
				if res := commit(t, next, marks.Append("after")); res.FirstSeq != got.Next {
					t.Errorf("%s: the next number is %d, want %d", name, res.FirstSeq, got.Next)
				}
				mustClose(t, next)
				if found := problemsOf(t, path); len(found) > 0 {
					t.Errorf("%s: %v", name, found)
				}
			}
		}
	}
}
