package sqlite

import (
	"context"
	"database/sql"
	"slices"

	"github.com/drover-run/drover/pkg/store"
)

// ScanBranch reads the ranges of a path's segments, joined to the entries.
func (r *reads) ScanBranch(ctx context.Context, q store.BranchQuery) ([]store.Entry, error) {
	var out []store.Entry
	err := r.branch(ctx, q, entryColumns, func(rows *sql.Rows) (store.Structure, error) {
		e, err := scanEntry(rows)
		out = append(out, e)
		return e.Structure, err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ScanBranchStructure is the same without the payload column.
func (r *reads) ScanBranchStructure(ctx context.Context, q store.BranchQuery) ([]store.Structure, error) {
	var out []store.Structure
	err := r.branch(ctx, q, structureColumns, func(rows *sql.Rows) (store.Structure, error) {
		var s store.Structure
		err := rows.Scan(fields(&s)...)
		out = append(out, s)
		return s, err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (r *reads) branch(ctx context.Context, q store.BranchQuery, columns string, read func(*sql.Rows) (store.Structure, error)) error {
	return r.scan(ctx, func(h *handle) error {
		at, ok, err := h.cover(q.Start)
		if err != nil {
			return err
		}
		if !ok {
			return h.uncovered(q.Start)
		}
		s := branchScan{ctx: ctx, h: h, q: q, text: branchSQL(q, columns), left: q.Limit, read: read, path: pathCheck{h: h, q: q}}
		if err := s.links(at); err != nil {
			return err
		}
		return s.path.end()
	})
}

// links reads the links of a path in the query's order.
func (s *branchScan) links(at cover) error {
	if !s.q.OldestFirst {
		return s.h.chain(at, s.link)
	}
	var links []link
	if err := s.h.chain(at, func(l link) (bool, error) { links = append(links, l); return true, nil }); err != nil {
		return err
	}
	for _, l := range slices.Backward(links) {
		if more, err := s.link(l); err != nil || !more {
			return err
		}
	}
	return nil
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
	WHERE b.branch_id = ?1 AND b.entry_seq > ?2 AND b.entry_seq <= ?3 AND `+byType+`
	AND (?5 = '' OR e.custom_type = ?5) ORDER BY b.entry_seq`, !q.OldestFirst) + ` LIMIT ?6`
}

// branchScan answers a query link by link. Links come in the query's order and
// do not overlap, so what each of them yields is the next part of the answer:
// filters hold per row, the limit counts down, and the first stop ends it.
type branchScan struct {
	ctx  context.Context
	h    *handle
	q    store.BranchQuery
	text string
	left int // rows that may still come, with a limit
	read func(*sql.Rows) (store.Structure, error)
	path pathCheck
}

// link reads one link; it returns false when the answer is complete.
func (s *branchScan) link(l link) (bool, error) {
	stop, stopped, err := s.stop(l)
	if err != nil {
		return false, err
	}
	switch {
	case stopped && s.q.OldestFirst:
		l.high = stop
	case stopped:
		l.low = max(l.low, stop-1)
	}
	switch {
	case s.q.Cursor == 0:
	case s.q.OldestFirst:
		l.low = max(l.low, s.q.Cursor)
	default:
		l.high = min(l.high, s.q.Cursor-1)
	}
	if l.low < l.high {
		args := []any{l.segment, l.low, l.high, string(s.q.Type), s.q.CustomType, rowLimit(s.left)}
		err = s.h.each(s.ctx, s.text, args, func(rows *sql.Rows) (bool, error) {
			s.left--
			row, err := s.read(rows)
			if err == nil {
				s.path.next(row)
			}
			return true, err
		})
	}
	return !stopped && (s.q.Limit <= 0 || s.left > 0), err
}

const sqlSeqInLink = `SELECT entry_seq FROM branch_entries
	WHERE branch_id = ?1 AND entry_id = ?2 AND entry_seq > ?3 AND entry_seq <= ?4`

// stop finds the first entry of a link, in the query's order, that ends the
// scan.
func (s *branchScan) stop(l link) (seq int64, ok bool, err error) {
	if s.q.StopAtType != "" {
		end := s.h.newestOf
		if s.q.OldestFirst {
			end = s.h.oldestOf
		}
		if seq, ok, err = end(l, s.q.StopAtType); err != nil {
			return 0, false, err
		}
	}
	if s.q.StopAtID == "" {
		return seq, ok, nil
	}
	var byID int64
	there, err := s.h.row(sqlSeqInLink, []any{l.segment, s.q.StopAtID, l.low, l.high}, &byID)
	switch {
	case err != nil || !there:
		return seq, ok, err
	case !ok:
		return byID, true, nil
	case s.q.OldestFirst:
		return min(seq, byID), true, nil
	}
	return max(seq, byID), true, nil
}
