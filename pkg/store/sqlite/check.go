package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/store"
)

// maxFindings bounds what one check of a badly damaged file reports.
const maxFindings = 100

// Problems checks what only this encoding has: the database's own structure,
// its tables, the branch index against the entries, the lease row, leftovers
// (D7).
func (r *reader) Problems(ctx context.Context) iter.Seq[store.Problem] {
	return problems(ctx, func(f func(*handle) error) error { return r.lookup(ctx, f) })
}

// Problems checks the present moment of an owned session.
func (b *backend) Problems(ctx context.Context) iter.Seq[store.Problem] {
	return problems(ctx, func(f func(*handle) error) error {
		h, _, err := b.present(ctx)
		if err != nil {
			return err
		}
		return errors.Join(f(h), h.close())
	})
}

func problems(ctx context.Context, use func(func(*handle) error) error) iter.Seq[store.Problem] {
	return func(yield func(store.Problem) bool) {
		var found findings
		if err := use(func(h *handle) error { return found.check(ctx, h) }); err != nil {
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

func (f *findings) check(ctx context.Context, h *handle) error {
	for _, check := range []func(context.Context, *handle) error{
		f.integrity, f.schema, f.rows, f.segments, f.uncovered, f.leftovers,
	} {
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
			f.add(store.SeverityError, "integrity", "", "%s", text)
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
	for _, statement := range strings.Split(sqlTables+sqlIndexes, ";") {
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
	if leases != 1 {
		f.add(store.SeverityError, "lease", "writer_lease", "there are %d lease rows", leases)
	}
	if unreadable > 0 {
		f.add(store.SeverityWarning, "lease", "writer_lease", "the lease row cannot be read")
	}
	return nil
}

const sqlSegmentRows = `SELECT b.branch_id, b.entry_id, b.entry_seq, b.entry_type,
	ifnull(e.parent_id, ''), ifnull(e.seq, 0), ifnull(e.type, ''), ifnull(m.tip_entry_id, '')
	FROM branch_entries b LEFT JOIN entries e ON e.id = b.entry_id LEFT JOIN branch_meta m ON m.branch_id = b.branch_id
	ORDER BY b.branch_id, b.entry_seq`

// segmentRow is one row of the branch index beside what it should repeat.
type segmentRow struct {
	segment, id, kind      string
	seq                    int64
	parent, entryKind, tip string
	entrySeq               int64
}

// segments holds every segment to the rules of spec §2.6: from a root to its tip
// each row is the parent of the next.
func (f *findings) segments(ctx context.Context, h *handle) error {
	var last segmentRow
	end := func() {
		if last.id != last.tip {
			f.segment(last.segment, "it ends at entry %s, its tip is %q", last.id, last.tip)
		}
	}
	err := h.each(ctx, sqlSegmentRows, nil, func(rows *sql.Rows) (bool, error) {
		var r segmentRow
		err := rows.Scan(&r.segment, &r.id, &r.seq, &r.kind, &r.parent, &r.entrySeq, &r.entryKind, &r.tip)
		if err != nil {
			return false, err
		}
		before := last.id
		if r.segment != last.segment {
			end()
			before = ""
		}
		switch {
		case r.entryKind == "":
			f.segment(r.segment, "entry %s does not exist", r.id)
		case r.seq != r.entrySeq || r.kind != r.entryKind:
			f.segment(r.segment, "entry %s is %s %d, the index says %s %d", r.id, r.entryKind, r.entrySeq, r.kind, r.seq)
		case r.parent != before:
			f.segment(r.segment, "entry %s follows %q, its parent is %q", r.id, before, r.parent)
		}
		last = r
		return len(*f) < maxFindings, nil
	})
	if err == nil {
		end()
	}
	return err
}

func (f *findings) segment(segment, format string, args ...any) {
	f.add(store.SeverityError, "branch_index", "segment "+segment, format, args...)
}

const (
	sqlUncovered = `SELECT e.id FROM entries e
	WHERE NOT EXISTS (SELECT 1 FROM branch_entries b WHERE b.entry_id = e.id) ORDER BY e.seq LIMIT ?1`
	sqlEmptySegments = `SELECT m.branch_id FROM branch_meta m
	WHERE NOT EXISTS (SELECT 1 FROM branch_entries b WHERE b.branch_id = m.branch_id) LIMIT ?1`
)

// uncovered finds entries that no segment holds and segments that hold nothing.
func (f *findings) uncovered(ctx context.Context, h *handle) error {
	err := h.each(ctx, sqlUncovered, []any{maxFindings}, func(rows *sql.Rows) (bool, error) {
		var id string
		err := rows.Scan(&id)
		f.add(store.SeverityError, "branch_index", "entry "+id, "no segment holds the entry")
		return true, err
	})
	if err != nil {
		return err
	}
	return h.each(ctx, sqlEmptySegments, []any{maxFindings}, func(rows *sql.Rows) (bool, error) {
		var id string
		err := rows.Scan(&id)
		f.segment(id, "it has no rows")
		return true, err
	})
}

// leftovers finds what an interrupted build left beside the database.
func (f *findings) leftovers(_ context.Context, h *handle) error {
	files, err := os.ReadDir(filepath.Dir(h.path))
	if errors.Is(err, os.ErrPermission) {
		return nil // a folder that may be searched but not listed
	}
	if err != nil {
		return err
	}
	for _, file := range files {
		if fsx.IsTemp(file.Name()) && strings.HasPrefix(file.Name(), tempPrefix(h.path)) {
			f.add(store.SeverityWarning, "leftover", file.Name(), "a temporary file of an interrupted replacement")
		}
	}
	return nil
}
