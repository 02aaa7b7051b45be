package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/drover-run/drover/pkg/store"
)

// The branch index holds one full segment per leaf: the rows of a segment are
// the whole path from a root to its tip (D20). Sequence numbers rise along a
// path, so the path to any entry of a segment is what lies at or below its
// number. Segments whose tip has been left behind stay valid.
const (
	// sqlGrow adds an entry to the segment that ends at its parent.
	sqlGrow = `INSERT INTO branch_entries(branch_id, entry_id, entry_seq, entry_type)
	SELECT branch_id, ?1, ?2, ?3 FROM branch_meta WHERE tip_entry_id = ?4`
	sqlMoveTip = `UPDATE branch_meta SET tip_entry_id = ?1, tip_seq = ?2 WHERE tip_entry_id = ?3`

	// A segment is named after the entry it was made for.
	sqlNewSegment = `INSERT INTO branch_meta(branch_id, tip_entry_id, tip_seq) VALUES(?1, ?1, ?2)`
	sqlFirstRow   = `INSERT INTO branch_entries(branch_id, entry_id, entry_seq, entry_type) VALUES(?1, ?1, ?2, ?3)`
	sqlCopyPath   = `INSERT INTO branch_entries(branch_id, entry_id, entry_seq, entry_type)
	SELECT ?1, entry_id, entry_seq, entry_type FROM branch_entries WHERE branch_id = ?2 AND entry_seq <= ?3`

	sqlCover = `SELECT branch_id, entry_seq FROM branch_entries WHERE entry_id = ? LIMIT 1`

	// sqlWalk makes the rows of a segment from the entries themselves. A
	// parent precedes its child, so that a cycle cannot be followed for ever.
	sqlWalk = `WITH RECURSIVE path(id, parent_id, seq, type) AS (
		SELECT id, parent_id, seq, type FROM entries WHERE id = ?2
		UNION ALL
		SELECT e.id, e.parent_id, e.seq, e.type FROM path p CROSS JOIN entries e ON e.id = p.parent_id
		WHERE e.seq < p.seq)
	INSERT INTO branch_entries(branch_id, entry_id, entry_seq, entry_type)
	SELECT ?1, id, seq, type FROM path`
	sqlOldest = `SELECT e.id, e.parent_id IS NULL FROM branch_entries b CROSS JOIN entries e ON e.id = b.entry_id
	WHERE b.branch_id = ? ORDER BY b.entry_seq LIMIT 1`
)

// grow indexes an entry that the transaction has just inserted.
func (h *handle) grow(e *store.Entry) error {
	if e.ParentID != "" {
		n, err := h.exec(sqlGrow, e.ID, e.Seq, string(e.Type), e.ParentID)
		if err != nil {
			return err
		}
		if n == 1 {
			_, err := h.exec(sqlMoveTip, e.ID, e.Seq, e.ParentID)
			return err
		}
		if err := h.copyPath(e.ID, e.ParentID); err != nil {
			return err
		}
	}
	if _, err := h.exec(sqlFirstRow, e.ID, e.Seq, string(e.Type)); err != nil {
		return err
	}
	_, err := h.exec(sqlNewSegment, e.ID, e.Seq)
	return err
}

// copyPath fills a new segment with the path to an entry that is no tip.
func (h *handle) copyPath(segment, to string) error {
	c, ok, err := h.cover(to)
	if err != nil {
		return err
	}
	if !ok {
		return h.walk(segment, to)
	}
	_, err = h.exec(sqlCopyPath, segment, c.segment, c.seq)
	return err
}

// walk fills a new segment with the path to an entry by following parents.
func (h *handle) walk(segment, to string) error {
	if _, err := h.exec(sqlWalk, segment, to); err != nil {
		return err
	}
	var oldest string
	var isRoot bool
	ok, err := h.row(sqlOldest, []any{segment}, &oldest, &isRoot)
	if err != nil {
		return err
	}
	if ok && !isRoot {
		return corrupt(h.path, "entry %s: parent is missing or younger", oldest)
	}
	return nil
}

// rebuild makes the segment of an existing entry that no segment covers. The
// caller owns the session and has opened a transaction.
func (h *handle) rebuild(id string, seq int64) error {
	if err := h.walk(id, id); err != nil {
		return err
	}
	_, err := h.exec(sqlNewSegment, id, seq)
	return err
}

// cover is a segment that holds an entry, and the entry's sequence number.
type cover struct {
	segment string
	seq     int64
}

func (h *handle) cover(id string) (c cover, ok bool, err error) {
	ok, err = h.row(sqlCover, []any{id}, &c.segment, &c.seq)
	return c, ok, err
}

const sqlEntrySeq = `SELECT seq FROM entries WHERE id = ?`

// errUncovered is an entry that the branch index has no rows for.
var errUncovered = errors.New("branch index has no rows for the entry")

// start finds the segment of a scan's first entry.
func (h *handle) start(id string) (cover, error) {
	c, ok, err := h.cover(id)
	if err != nil || ok {
		return c, err
	}
	ok, err = h.row(sqlEntrySeq, []any{id}, &c.seq)
	switch {
	case err != nil:
		return c, err
	case !ok:
		return c, fmt.Errorf("entry %s: %w", id, store.ErrNotFound)
	}
	return c, errUncovered
}

// ScanBranch reads one range of one segment, joined to the entries.
func (r *reads) ScanBranch(ctx context.Context, q store.BranchQuery) ([]store.Entry, error) {
	var out []store.Entry
	err := r.branch(ctx, q, entryColumns, func(rows *sql.Rows) (bool, error) {
		e, err := scanEntry(rows)
		out = append(out, e)
		return true, err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ScanBranchStructure is the same without the payload column.
func (r *reads) ScanBranchStructure(ctx context.Context, q store.BranchQuery) ([]store.Structure, error) {
	var out []store.Structure
	err := r.branch(ctx, q, structureColumns, func(rows *sql.Rows) (bool, error) {
		var s store.Structure
		err := rows.Scan(fields(&s)...)
		out = append(out, s)
		return true, err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (r *reads) branch(ctx context.Context, q store.BranchQuery, columns string, read func(*sql.Rows) (bool, error)) error {
	scan := func(h *handle) error { return h.branch(ctx, q, columns, read) }
	err := r.scan(ctx, scan)
	if errors.Is(err, errUncovered) {
		if err = r.mend(ctx, q.Start); err == nil {
			err = r.scan(ctx, scan)
		}
	}
	return err
}

func (h *handle) branch(ctx context.Context, q store.BranchQuery, columns string, read func(*sql.Rows) (bool, error)) error {
	at, err := h.start(q.Start)
	if err != nil {
		return err
	}
	low, high, err := h.bounds(q, at)
	if err != nil {
		return err
	}
	args := []any{at.segment, low, high, string(q.Type), q.CustomType, rowLimit(q.Limit)}
	return h.each(ctx, branchSQL(q, columns), args, read)
}

// branchSQL is the query of spec §1.7. CROSS JOIN makes branch_entries the outer
// loop; without it the planner may scan entries and sort.
func branchSQL(q store.BranchQuery, columns string) string {
	// The type is a term of its own, or ix_be_type would not be used.
	byType := `?4 = ''`
	if q.Type != "" {
		byType = `b.entry_type = ?4`
	}
	return ordered(`SELECT `+columns+` FROM branch_entries b CROSS JOIN entries e ON e.id = b.entry_id
	WHERE b.branch_id = ?1 AND b.entry_seq >= ?2 AND b.entry_seq <= ?3 AND `+byType+`
	AND (?5 = '' OR e.custom_type = ?5) ORDER BY b.entry_seq`, !q.OldestFirst) + ` LIMIT ?6`
}

const (
	sqlNewestOfType = `SELECT max(entry_seq) FROM branch_entries WHERE branch_id = ?1 AND entry_type = ?2 AND entry_seq <= ?3`
	sqlOldestOfType = `SELECT min(entry_seq) FROM branch_entries WHERE branch_id = ?1 AND entry_type = ?2 AND entry_seq <= ?3`
	sqlSeqInSegment = `SELECT entry_seq FROM branch_entries WHERE branch_id = ?1 AND entry_id = ?2 AND entry_seq <= ?3`
)

// bounds turns stops and cursor into one range of sequence numbers: along a path
// "before the first stop" and "beyond the cursor" are ranges (spec §2.5).
func (h *handle) bounds(q store.BranchQuery, at cover) (low, high int64, err error) {
	low, high = 0, at.seq
	stop := func(seq int64) {
		if q.OldestFirst {
			high = min(high, seq)
		} else {
			low = max(low, seq)
		}
	}
	if q.StopAtType != "" {
		text := sqlNewestOfType
		if q.OldestFirst {
			text = sqlOldestOfType
		}
		var seq sql.NullInt64
		if _, err := h.row(text, []any{at.segment, string(q.StopAtType), at.seq}, &seq); err != nil {
			return 0, 0, err
		}
		if seq.Valid {
			stop(seq.Int64)
		}
	}
	if q.StopAtID != "" {
		var seq int64
		ok, err := h.row(sqlSeqInSegment, []any{at.segment, q.StopAtID, at.seq}, &seq)
		if err != nil {
			return 0, 0, err
		}
		if ok {
			stop(seq)
		}
	}
	switch {
	case q.Cursor == 0:
	case q.OldestFirst && q.Cursor < math.MaxInt64:
		low = max(low, q.Cursor+1)
	case q.OldestFirst:
		low = math.MaxInt64
	default:
		high = min(high, q.Cursor-1)
	}
	return low, high, nil
}
