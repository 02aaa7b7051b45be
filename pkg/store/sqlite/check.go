package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"

	"github.com/drover-run/drover/pkg/store"
)

// maxFindings bounds what one check of a badly damaged file reports.
const maxFindings = 100

// Problems checks what only this encoding has: the database's own structure,
// its tables, the branch index against the entries, the lease row, leftovers
// (D7). It has connections of its own, so that the view can be read meanwhile.
func (r *reader) Problems(ctx context.Context) iter.Seq[store.Problem] {
	return problems(ctx, func() (*handle, sessionRow, error) {
		if err := r.lookup(ctx, func(*handle) error { return nil }); err != nil {
			return nil, sessionRow{}, err // closed
		}
		return openView(r.path)
	})
}

// Problems checks the present moment of an owned session.
func (b *backend) Problems(ctx context.Context) iter.Seq[store.Problem] {
	return problems(ctx, func() (*handle, sessionRow, error) { return b.present(ctx) })
}

// opening connects one more reader.
type opening func() (*handle, sessionRow, error)

func problems(ctx context.Context, open opening) iter.Seq[store.Problem] {
	return func(yield func(store.Problem) bool) {
		var found findings
		if err := found.checkWith(ctx, open); err != nil {
			found = append(found, store.ProblemOf(err))
		}
		for _, p := range found {
			if !yield(p) {
				return
			}
		}
	}
}

// findings collects problems; they are handed out once the connection is free.
type findings []store.Problem

func (f *findings) add(severity store.Severity, code, where, format string, args ...any) {
	*f = append(*f, store.Problem{Code: code, Severity: severity, Message: fmt.Sprintf(format, args...), Where: where})
}

func (f *findings) checkWith(ctx context.Context, open opening) error {
	h, _, err := open()
	if err != nil {
		return err
	}
	sound := vouching(ctx, h, open)
	err = f.check(ctx, h, sound)
	sound() // whose connection is gone then, too
	return errors.Join(err, h.close())
}

// check makes all checks; those of the branch index are left out when something
// else says that they would find nothing.
func (f *findings) check(ctx context.Context, h *handle, sound func() bool) error {
	if err := f.each(ctx, h, f.integrity, f.schema, f.rows); err != nil {
		return err
	}
	if !sound() || len(*f) > 0 {
		if err := f.index(ctx, h); err != nil {
			return err
		}
	}
	return f.leftovers(ctx, h)
}

// index checks the branch index. Of one without its tables, that they are missing is
// all there is to say.
func (f *findings) index(ctx context.Context, h *handle) error {
	var tables int
	if _, err := h.row(sqlIndexTables, nil, &tables); err != nil || tables < indexTables {
		return err
	}
	return f.each(ctx, h, f.segments, f.segmentRows, f.uncovered)
}

func (f *findings) each(ctx context.Context, h *handle, checks ...func(context.Context, *handle) error) error {
	for _, check := range checks {
		if err := check(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// integrity asks SQLite to check its pages, its indexes and its constraints.
func (f *findings) integrity(ctx context.Context, h *handle) error {
	return h.each(ctx, "PRAGMA integrity_check(100)", nil, func(rows *sql.Rows) (bool, error) {
		var text string
		err := rows.Scan(&text)
		if err == nil && text != "ok" {
			for _, damage := range structural(text) {
				f.add(store.SeverityError, "integrity", damage.where, "%s", damage.said)
			}
		}
		return true, err
	})
}

const sqlSchemaNames = `SELECT name FROM sqlite_schema WHERE type IN ('table', 'index')`

// schema looks for missing tables and indexes: without an index every answer is
// right and slow.
func (f *findings) schema(ctx context.Context, h *handle) error {
	there := make(map[string]bool)
	err := h.each(ctx, sqlSchemaNames, nil, func(rows *sql.Rows) (bool, error) {
		var name string
		err := rows.Scan(&name)
		there[name] = true
		return true, err
	})
	if err != nil {
		return err
	}
	for _, name := range schemaNames() {
		if !there[name] {
			f.add(store.SeverityError, "schema", name, "the table or index is missing")
		}
	}
	return nil
}

// schemaNames are the tables and indexes that a session has.
func schemaNames() []string {
	var names []string
	for _, statement := range strings.Split(sqlTables+sqlIndexes+sqlBranchTables+sqlBranchIndexes, ";") {
		_, rest, ok := strings.Cut(statement, "CREATE ")
		if !ok {
			continue
		}
		rest = strings.TrimPrefix(rest, "UNIQUE ")
		_, rest, _ = strings.Cut(rest, " ") // TABLE or INDEX
		names = append(names, rest[:strings.IndexAny(rest, " (")])
	}
	return names
}

const sqlOtherGeneration = `SELECT count(*) FROM session WHERE generation IS NOT ?1`

const sqlRowCounts = `SELECT (SELECT count(*) FROM session), (SELECT count(*) FROM writer_lease),
	(SELECT count(*) FROM session s WHERE s.created_at IS NOT ?1 OR ifnull(s.parent_session_id, '') IS NOT ?2),
	(SELECT count(*) FROM writer_lease WHERE typeof(fence) <> 'integer' OR fence < 0
		OR (owner_id IS NOT NULL AND (typeof(owner_id) <> 'text' OR typeof(expires_at_ms) <> 'integer' OR typeof(pid) <> 'integer')))`

// rows checks the two tables that hold one row.
func (f *findings) rows(_ context.Context, h *handle) error {
	s, err := h.session()
	if err != nil {
		return err
	}
	var sessions, leases, copies, unreadable int
	args := []any{s.header.CreatedAt, s.header.ParentSessionID}
	if _, err := h.row(sqlRowCounts, args, &sessions, &leases, &copies, &unreadable); err != nil {
		return err
	}
	if sessions != 1 {
		f.add(store.SeverityError, "session_row", "session", "there are %d session rows", sessions)
	}
	if copies > 0 {
		f.add(store.SeverityError, "session_row", "session", "creation time or parent session differ from the metadata")
	}
	if err := f.generation(h, s.header); err != nil {
		return err
	}
	if leases != 1 {
		f.add(store.SeverityError, "lease", "writer_lease", "there are %d lease rows", leases)
	}
	if unreadable > 0 {
		f.add(store.SeverityWarning, "lease", "writer_lease", "the lease row cannot be read")
	}
	return nil
}

func (f *findings) generation(h *handle, header store.Header) error {
	if header.StorageVersion < generationVersion {
		return nil
	}
	var other int
	if _, err := h.row(sqlOtherGeneration, []any{header.Generation}, &other); err != nil {
		return err
	}
	if other > 0 {
		f.add(store.SeverityError, "session_row", "session", "the generation differs from the metadata")
	}
	return nil
}

// leftovers finds what an interrupted build left beside the database.
func (f *findings) leftovers(_ context.Context, h *handle) error {
	names, err := leftovers(h.path)
	for _, name := range names {
		f.add(store.SeverityWarning, "leftover", filepath.Base(name), "a temporary file of an interrupted replacement")
	}
	return err
}
