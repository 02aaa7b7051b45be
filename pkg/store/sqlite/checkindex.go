package sqlite

import (
	"context"
	"database/sql"

	"github.com/drover-run/drover/pkg/store"
)

// The branch index is sound when every segment is: its rows follow each other as
// child and parent up to its tip, and its oldest row is a root or the child of
// the row that it stands on, which its base holds itself. Then every chain is
// exactly the path to a root, and all chains through an entry agree below it
// (spec §2.6).
const (
	sqlSegments = `SELECT m.branch_id, m.tip_entry_id, m.tip_seq, ifnull(m.base_branch_id, ''), ifnull(m.base_seq, 0),
	ifnull((SELECT b.entry_id FROM branch_entries b WHERE b.branch_id = m.base_branch_id AND b.entry_seq = m.base_seq), ''),
	ifnull((SELECT e.parent_id FROM branch_entries b CROSS JOIN entries e ON e.id = b.entry_id
		WHERE b.branch_id = m.branch_id ORDER BY b.entry_seq LIMIT 1), ''),
	ifnull((SELECT b.entry_id FROM branch_entries b WHERE b.branch_id = m.branch_id ORDER BY b.entry_seq DESC LIMIT 1), ''),
	ifnull((SELECT max(b.entry_seq) FROM branch_entries b WHERE b.branch_id = m.branch_id), 0)
	FROM branch_meta m ORDER BY m.tip_seq`

	sqlSegmentRows = `SELECT b.branch_id, b.entry_id, b.entry_seq, b.entry_type, ifnull(e.parent_id, ''), ifnull(e.seq, 0), ifnull(e.type, '')
	FROM branch_entries b LEFT JOIN entries e ON e.id = b.entry_id ORDER BY b.branch_id, b.entry_seq`

	sqlUnindexed = `SELECT e.id FROM entries e
	WHERE NOT EXISTS (SELECT 1 FROM branch_entries b WHERE b.entry_id = e.id) ORDER BY e.seq LIMIT ?1`
	sqlUndescribed = `SELECT DISTINCT b.branch_id FROM branch_entries b
	WHERE NOT EXISTS (SELECT 1 FROM branch_meta m WHERE m.branch_id = b.branch_id) LIMIT ?1`
)

// segments checks both ends of every segment.
func (f *findings) segments(ctx context.Context, h *handle) error {
	err := h.each(ctx, sqlSegments, nil, func(rows *sql.Rows) (bool, error) {
		var name, tip, on, foot, parent, newest string
		var tipSeq, onSeq, newestSeq int64
		if err := rows.Scan(&name, &tip, &tipSeq, &on, &onSeq, &foot, &parent, &newest, &newestSeq); err != nil {
			f.segment(name, "a column of its description holds something else than it should")
			return len(*f) < maxFindings, nil
		}
		switch {
		case newest == "":
			f.segment(name, "it has no rows")
		case newest != tip || newestSeq != tipSeq:
			f.segment(name, "it ends at entry %s, number %d; its tip is %s, number %d", newest, newestSeq, tip, tipSeq)
		case on != "" && foot == "":
			f.segment(name, "it stands on number %d of segment %s, which has no such row", onSeq, on)
		case foot != parent:
			f.segment(name, "it stands on entry %q, the parent of its oldest entry is %q", foot, parent)
		case on == "" && onSeq != 0:
			f.segment(name, "it stands on no segment, but at number %d", onSeq)
		}
		return len(*f) < maxFindings, nil
	})
	if err != nil {
		return err
	}
	return h.each(ctx, sqlUndescribed, []any{maxFindings}, func(rows *sql.Rows) (bool, error) {
		var name string
		err := rows.Scan(&name)
		f.segment(name, "it has rows and no description")
		return true, err
	})
}

// segmentRows compares every row with its entry and with the row before it.
func (f *findings) segmentRows(ctx context.Context, h *handle) error {
	var segment, before string
	return h.each(ctx, sqlSegmentRows, nil, func(rows *sql.Rows) (bool, error) {
		var name, id, kind, parent, entryKind string
		var seq, entrySeq int64
		if err := rows.Scan(&name, &id, &seq, &kind, &parent, &entrySeq, &entryKind); err != nil {
			f.segment(name, "a column of its row of entry %s holds something else than it should", id)
			return len(*f) < maxFindings, nil
		}
		switch {
		case entryKind == "":
			f.segment(name, "entry %s does not exist", id)
		case seq != entrySeq || kind != entryKind:
			f.segment(name, "entry %s is %s %d, the index says %s %d", id, entryKind, entrySeq, kind, seq)
		case name == segment && parent != before:
			f.segment(name, "entry %s follows %q, its parent is %q", id, before, parent)
		}
		segment, before = name, id
		return len(*f) < maxFindings, nil
	})
}

func (f *findings) segment(name, format string, args ...any) {
	f.add(store.SeverityError, "branch_index", "segment "+name, format, args...)
}

// uncovered finds entries that no segment holds.
func (f *findings) uncovered(ctx context.Context, h *handle) error {
	return h.each(ctx, sqlUnindexed, []any{maxFindings}, func(rows *sql.Rows) (bool, error) {
		var id string
		err := rows.Scan(&id)
		f.add(store.SeverityError, "branch_index", "entry "+id, "no segment holds the entry")
		return true, err
	})
}
