package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"syscall"
	"time"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/drover-run/drover/pkg/store"
)

// The options of every connection, as the sessions' own: error texts that belong to
// the failed statement, no writes around the schema, no strings in double quotes.
// Waiting for a lock is short, and repeated for as long as the caller waits.
const dsn = "?mode=rw&_busy_timeout=1000&_dqs=0&_defensive=1&_error_rc=1&_txlock=immediate&_synchronous=NORMAL" +
	"&_pragma=wal_autocheckpoint(2000)&_pragma=cache_size(-16000)"

// patience is how long a writer waits for the others.
const patience = time.Minute

// conn is one SQLite connection and its kept statements. One caller uses it at a
// time.
type conn struct {
	path string
	db   *sql.DB
	c    *sql.Conn
	kept map[string]*sql.Stmt // by SQL text
}

// connect opens the database at an absolute path; it creates none.
func connect(path string) (*conn, error) {
	// Escaped, or a path with ?, # or % would be cut or read as options.
	uri := (&url.URL{Scheme: "file", Path: path}).EscapedPath()
	connector, err := sqlite.NewConnector("file:" + uri + dsn)
	if err != nil {
		return nil, classify(path, err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	c, err := db.Conn(context.Background())
	if err != nil {
		return nil, errors.Join(classify(path, err), db.Close())
	}
	return &conn{path: path, db: db, c: c, kept: make(map[string]*sql.Stmt)}, nil
}

// close ends the connection; an open transaction is rolled back.
func (c *conn) close() error {
	var errs []error
	for _, s := range c.kept {
		errs = append(errs, s.Close())
	}
	return classify(c.path, errors.Join(append(errs, c.c.Close(), c.db.Close())...))
}

// Statements run without a cancellable context: one that was interrupted half way
// would leave the transaction in doubt. Callers look at theirs between statements.

func (c *conn) stmt(text string) (*sql.Stmt, error) {
	if s, ok := c.kept[text]; ok {
		return s, nil
	}
	s, err := c.c.PrepareContext(context.Background(), text)
	if err != nil {
		return nil, classify(c.path, err)
	}
	c.kept[text] = s
	return s, nil
}

// exec runs a kept statement and returns the number of rows it changed.
func (c *conn) exec(text string, args ...any) (int64, error) {
	s, err := c.stmt(text)
	if err != nil {
		return 0, err
	}
	res, err := s.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, classify(c.path, err)
	}
	n, err := res.RowsAffected()
	return n, classify(c.path, err)
}

// script executes several statements without keeping them.
func (c *conn) script(text string) error {
	_, err := c.c.ExecContext(context.Background(), text)
	return classify(c.path, err)
}

// row reads the only row of a kept query into dest, false when there is none.
func (c *conn) row(text string, args []any, dest ...any) (bool, error) {
	s, err := c.stmt(text)
	if err != nil {
		return false, err
	}
	err = s.QueryRowContext(context.Background(), args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, classify(c.path, err)
}

// each reads the rows of a kept query.
func (c *conn) each(ctx context.Context, text string, args []any, read func(*sql.Rows) error) (err error) {
	s, err := c.stmt(text)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(context.Background(), args...)
	if err != nil {
		return classify(c.path, err)
	}
	defer func() { err = errors.Join(err, classify(c.path, rows.Close())) }()
	for rows.Next() {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := read(rows); err != nil {
			return classify(c.path, err)
		}
	}
	return classify(c.path, rows.Err())
}

// write runs f as one transaction: all of it or, when f or the commit fails, none.
// It takes the write lock first, as a transaction that reads before it writes could
// otherwise find its snapshot stale, which no waiting can mend (spec §1.7).
func (c *conn) write(ctx context.Context, f func() error) error {
	err := c.begin(ctx)
	if err == nil {
		err = f()
	}
	if err == nil {
		_, err = c.exec("COMMIT")
	}
	if err != nil {
		// SQLite has rolled back by itself after some failures, or never begun;
		// then this one only says so.
		_, _ = c.exec("ROLLBACK")
	}
	return err
}

// begin waits for the write lock, which others hold for a batch at a time.
func (c *conn) begin(ctx context.Context) error {
	for end := time.Now().Add(patience); ; {
		_, err := c.exec("BEGIN IMMEDIATE")
		if !errors.Is(err, syscall.EBUSY) || time.Now().After(end) {
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
	}
}

// read runs f on one coherent moment.
func (c *conn) read(f func() error) error {
	_, err := c.exec("BEGIN")
	if err == nil {
		err = f()
	}
	_, end := c.exec("ROLLBACK")
	if err == nil {
		err = end
	}
	return err
}

// resultCode is SQLite's extended result code, 0 for an error of another kind.
func resultCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// classify gives an error of SQLite the type its reader needs: *SyntaxError for a
// query that FTS5 does not understand, *store.Corrupt for a file that has to be made
// again, else one that wraps the system's error number.
func classify(path string, err error) error {
	code := resultCode(err)
	switch code & 0xff {
	case lib.SQLITE_OK:
		return err
	case lib.SQLITE_ERROR:
		if _, why, ok := strings.Cut(err.Error(), "fts5: "); ok {
			return &SyntaxError{Msg: why}
		}
		return corrupt(path, err)
	case lib.SQLITE_SCHEMA, lib.SQLITE_CONSTRAINT, lib.SQLITE_MISMATCH, lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_FORMAT:
		return corrupt(path, err)
	}
	if code == lib.SQLITE_IOERR_SHORT_READ {
		return corrupt(path, err)
	}
	return fmt.Errorf("search index %s: %w: %w", path, errnoOf(code), err)
}

func corrupt(path string, err error) *store.Corrupt {
	return &store.Corrupt{Path: path, Offset: -1, Msg: "search index cannot be trusted: " + err.Error()}
}

func errnoOf(code int) syscall.Errno {
	switch code & 0xff {
	case lib.SQLITE_FULL:
		return syscall.ENOSPC
	case lib.SQLITE_NOMEM:
		return syscall.ENOMEM
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_PROTOCOL:
		return syscall.EBUSY
	case lib.SQLITE_TOOBIG:
		return syscall.EFBIG
	case lib.SQLITE_READONLY:
		return syscall.EROFS
	case lib.SQLITE_PERM, lib.SQLITE_AUTH, lib.SQLITE_CANTOPEN:
		return syscall.EACCES
	}
	return syscall.EIO
}
