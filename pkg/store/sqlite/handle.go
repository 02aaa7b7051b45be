package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net/url"

	"modernc.org/sqlite"
)

// The options of every connection: error texts that belong to the failed
// statement, no writes around the schema, no strings in double quotes.
const (
	dsnCommon = dsnBasic + "&_defensive=1"
	dsnBasic  = "_busy_timeout=5000&_dqs=0&_error_rc=1"
	// dsnOwner never creates a file. A checkpoint comes every 16 MB of WAL:
	// the default of 1,000 pages makes one commit in hundreds wait for fsync.
	dsnOwner = "?mode=rw&" + dsnCommon + "&_txlock=immediate&_synchronous=NORMAL" +
		"&_pragma=wal_autocheckpoint(2000)&_pragma=cache_size(-16000)"
	// Scans read most pages once. All connections of a process share one lock for
	// their caches: what is allocated and freed there keeps the others waiting.
	dsnReader    = "?mode=ro&" + dsnCommon + "&_pragma=cache_size(-400)"
	dsnImmutable = dsnReader + immutable
	immutable    = "&immutable=1"
	// With a writable schema, which goes without the defences, SQLite reads on in a
	// file that is shorter than its header says. Nothing is written: it is read-only.
	dsnSalvage = "?mode=ro&" + dsnBasic + "&_pragma=writable_schema(1)"
	// dsnBuild fills a file that nobody else can know; the page size must be
	// set before the first page is written and before WAL. Rows come in the order
	// of their pages, which are not needed again: every page more in the cache is
	// memory to get and to give back, and with it half of the time of a small build.
	dsnBuild = "?mode=rw&" + dsnCommon + "&_journal_mode=MEMORY&_synchronous=OFF" +
		pageSize + "&_pragma=cache_size(-250)"
	dsnScratch = "?mode=memory&" + dsnCommon + pageSize
	pageSize   = "&_pragma=page_size(8192)"
)

// handle is one SQLite connection, pinned for its whole life, and its kept
// statements. One caller uses it at a time.
type handle struct {
	path string
	db   *sql.DB
	conn *sql.Conn
	kept map[string]*sql.Stmt // by SQL text
}

// openHandle connects to the database at an absolute path.
func openHandle(path, dsn string) (*handle, error) {
	c, err := newConnector(path, dsn)
	if err != nil {
		return nil, classify(path, err)
	}
	return openConnector(path, c)
}

func newConnector(path, dsn string) (driver.Connector, error) {
	// Escaped, or a path with ?, # or % would be cut or read as options.
	uri := (&url.URL{Scheme: "file", Path: path}).EscapedPath()
	return sqlite.NewConnector("file:" + uri + dsn)
}

func openConnector(path string, c driver.Connector) (*handle, error) {
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(context.Background())
	if err != nil {
		return nil, errors.Join(classify(path, err), db.Close())
	}
	return &handle{path: path, db: db, conn: conn, kept: make(map[string]*sql.Stmt)}, nil
}

// close ends the connection; an open transaction is rolled back.
func (h *handle) close() error {
	var errs []error
	for _, s := range h.kept {
		errs = append(errs, s.Close())
	}
	errs = append(errs, h.conn.Close(), h.db.Close())
	if err := errors.Join(errs...); err != nil {
		return classify(h.path, err)
	}
	return nil
}

// Statements run without a cancellable context: one that was interrupted half
// way would leave the transaction in doubt, and watching a context costs a
// goroutine per statement. Scans look at their context between rows.

func (h *handle) stmt(text string) (*sql.Stmt, error) {
	if s, ok := h.kept[text]; ok {
		return s, nil
	}
	s, err := h.conn.PrepareContext(context.Background(), text)
	if err != nil {
		return nil, classify(h.path, err)
	}
	h.kept[text] = s
	return s, nil
}

// exec runs a kept statement and returns the number of rows it changed.
func (h *handle) exec(text string, args ...any) (int64, error) {
	s, err := h.stmt(text)
	if err != nil {
		return 0, err
	}
	res, err := s.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, classify(h.path, err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return 0, classify(h.path, err)
	}
	return n, nil
}

// row reads the only row of a kept query into dest, false when there is none.
func (h *handle) row(text string, args []any, dest ...any) (bool, error) {
	s, err := h.stmt(text)
	if err != nil {
		return false, err
	}
	err = s.QueryRowContext(context.Background(), args...).Scan(dest...)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case resultCode(err) == 0:
		// A column of another type than ours holds what nobody here wrote.
		return false, corrupt(h.path, "%v", err)
	}
	return false, classify(h.path, err)
}

// each reads the rows of a kept query until read returns false.
func (h *handle) each(ctx context.Context, text string, args []any, read func(*sql.Rows) (bool, error)) (err error) {
	s, err := h.stmt(text)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(context.Background(), args...)
	if err != nil {
		return classify(h.path, err)
	}
	defer func() {
		if e := rows.Close(); err == nil && e != nil {
			err = classify(h.path, e)
		}
	}()
	for rows.Next() {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		more, err := read(rows)
		if err != nil {
			return corrupt(h.path, "%v", err)
		}
		if !more {
			return nil
		}
	}
	if err := rows.Err(); err != nil {
		return classify(h.path, err)
	}
	return nil
}

// run executes a script without keeping it.
func (h *handle) run(script string) error {
	if _, err := h.conn.ExecContext(context.Background(), script); err != nil {
		return classify(h.path, err)
	}
	return nil
}

// write runs f as one transaction: all of it or, when f or the commit fails,
// none. It takes the write lock first: a transaction that reads before it writes
// could otherwise find its snapshot stale, which no waiting can mend
// (spec §1.7).
func (h *handle) write(f func() error) error {
	_, err := h.exec("BEGIN IMMEDIATE")
	if err == nil {
		err = f()
	}
	if err == nil {
		_, err = h.exec("COMMIT")
	}
	if err != nil {
		// SQLite has rolled back by itself after some failures, or never
		// begun; then this one only says so.
		_, _ = h.exec("ROLLBACK")
	}
	return err
}
