package sqlite

import (
	"database/sql"
	"fmt"
	"strconv"

	"github.com/drover-run/drover/pkg/store"
)

// The branch index is a set of segments (spec §2.6). A segment holds a run of a
// root path up to its tip, and stands on an older segment: its base, through the
// row with the number base_seq. Its chain is its own rows, then those of the
// base up to that row, and so on; it is the whole path. Sequence numbers rise
// along a path, so the path to any row of a segment is what lies at or below the
// row's number. Rows are only ever added above a tip: a path that was read once
// reads the same for ever, and segments that no lane uses any more stay valid.
const (
	// sqlGrow adds an entry to the segment that ends at its parent.
	sqlGrow = `INSERT INTO branch_entries(branch_id, entry_id, entry_seq, entry_type)
	SELECT branch_id, ?1, ?2, ?3 FROM branch_meta WHERE tip_entry_id = ?4`
	sqlMoveTip = `UPDATE branch_meta SET tip_entry_id = ?1, tip_seq = ?2 WHERE tip_entry_id = ?3`

	sqlNewSegment = `INSERT INTO branch_meta(branch_id, tip_entry_id, tip_seq, base_branch_id, base_seq)
	VALUES(?1, ?2, ?3, nullif(?4, ''), nullif(?5, 0))`
	sqlNewRow  = `INSERT INTO branch_entries(branch_id, entry_id, entry_seq, entry_type) VALUES(?, ?, ?, ?)`
	sqlCopyRun = `INSERT INTO branch_entries(branch_id, entry_id, entry_seq, entry_type)
	SELECT ?1, entry_id, entry_seq, entry_type FROM branch_entries
	WHERE branch_id = ?2 AND entry_seq > ?3 AND entry_seq <= ?4`

	sqlCover  = `SELECT branch_id, entry_seq FROM branch_entries WHERE entry_id = ? LIMIT 1`
	sqlBaseOf = `SELECT ifnull(base_branch_id, ''), ifnull(base_seq, 0) FROM branch_meta WHERE branch_id = ?`
)

// What one append copies where no compaction ends it: at least minCopied rows, so
// that a path has few links, and at most maxCopied, so that a commit does not
// grow with the length of its branch.
const (
	minCopied = 100
	maxCopied = 200
)

// segmentName names a segment after the number of the entry it was made for, which no
// other entry has.
func segmentName(seq int64) string { return strconv.FormatInt(seq, 10) }

// grow indexes an entry that the transaction has just inserted.
func (h *handle) grow(e *store.Structure) error {
	if e.ParentID == "" {
		return h.newSegment(e, base{})
	}
	n, err := h.exec(sqlGrow, e.ID, e.Seq, string(e.Type), e.ParentID)
	if err != nil {
		return err
	}
	if n == 0 {
		return h.diverge(e)
	}
	_, err = h.exec(sqlMoveTip, e.ID, e.Seq, e.ParentID)
	return err
}

// base is where a segment stands; the zero value is nowhere.
type base struct {
	segment string
	seq     int64 // of a row that the segment itself holds
}

// newSegment makes a segment that ends with an entry and gives it that row.
func (h *handle) newSegment(e *store.Structure, on base) error {
	name := segmentName(e.Seq)
	if _, err := h.exec(sqlNewRow, name, e.ID, e.Seq, string(e.Type)); err != nil {
		return err
	}
	_, err := h.exec(sqlNewSegment, name, e.ID, e.Seq, on.segment, on.seq)
	return err
}

// diverge makes a segment for an entry whose parent is no tip. The new segment
// gets copies of the rows between the newest compaction and the parent, so that
// a context is read from one segment or two, and stands on the rest.
func (h *handle) diverge(e *store.Structure) error {
	at, ok, err := h.cover(e.ParentID)
	if err != nil {
		return err
	}
	if !ok {
		return h.uncovered(e.ParentID)
	}
	var on base
	copied := 0
	err = h.chain(at, func(l link) (bool, error) {
		from, compacted, err := h.newestOf(l, store.TypeCompaction)
		if err != nil {
			return false, err
		}
		if compacted {
			l.low, l.on = from, base{l.segment, from}
		}
		n, _, err := h.newestRows(l, maxCopied-copied+1)
		if err != nil {
			return false, err
		}
		if n > maxCopied-copied {
			if _, l.low, err = h.newestRows(l, minCopied-copied+1); err != nil {
				return false, err
			}
			n, l.on = maxCopied, base{l.segment, l.low}
		}
		copied += n
		on = l.on
		_, err = h.exec(sqlCopyRun, segmentName(e.Seq), l.segment, l.low, l.high)
		return !compacted && copied < minCopied, err
	})
	if err != nil {
		return err
	}
	return h.newSegment(e, on)
}

// cover is a segment that holds an entry, and the entry's sequence number.
type cover struct {
	segment string
	seq     int64
}

// cover finds a segment whose own rows include the entry. A segment that only
// stands on one that does may stand on it below the entry, and then the entry
// is not on its path.
func (h *handle) cover(id string) (c cover, ok bool, err error) {
	ok, err = h.row(sqlCover, []any{id}, &c.segment, &c.seq)
	return c, ok, err
}

const sqlEntrySeq = `SELECT seq FROM entries WHERE id = ?`

// uncovered says what it means that no segment holds an entry.
func (h *handle) uncovered(id string) error {
	var seq int64
	ok, err := h.row(sqlEntrySeq, []any{id}, &seq)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("entry %s: %w", id, store.ErrNotFound)
	}
	return corrupt(h.path, "entry %s: the branch index has no row for it; it can be rebuilt from the entries", id)
}

// link is what one segment contributes to a path: its rows above low, through
// high. The rest of the path is what on covers.
type link struct {
	segment   string
	low, high int64
	on        base
}

// chain walks the path to an entry from its newest link to the oldest, until use
// returns false. Only the links that are used are looked up.
func (h *handle) chain(at cover, use func(link) (bool, error)) error {
	l := link{segment: at.segment, high: at.seq}
	for {
		ok, err := h.row(sqlBaseOf, []any{l.segment}, &l.on.segment, &l.on.seq)
		switch {
		case err != nil:
			return err
		case !ok:
			return corrupt(h.path, "branch index: segment %s is missing", l.segment)
		case l.on.seq >= l.high:
			// Nothing would bound a walk through such links.
			return corrupt(h.path, "branch index: segment %s stands above its rows", l.segment)
		}
		l.low = l.on.seq
		more, err := use(l)
		if err != nil || !more || l.on.segment == "" {
			return err
		}
		l = link{segment: l.on.segment, high: l.on.seq}
	}
}

const (
	sqlNewestOfType = `SELECT max(entry_seq) FROM branch_entries
	WHERE branch_id = ?1 AND entry_type = ?2 AND entry_seq > ?3 AND entry_seq <= ?4`
	sqlOldestOfType = `SELECT min(entry_seq) FROM branch_entries
	WHERE branch_id = ?1 AND entry_type = ?2 AND entry_seq > ?3 AND entry_seq <= ?4`
	sqlNewestRows = `SELECT count(*), ifnull(min(entry_seq), 0) FROM (SELECT entry_seq FROM branch_entries
	WHERE branch_id = ?1 AND entry_seq > ?2 AND entry_seq <= ?3 ORDER BY entry_seq DESC LIMIT ?4)`
)

func (h *handle) newestOf(l link, t store.EntryType) (seq int64, ok bool, err error) {
	return h.endOf(sqlNewestOfType, l, t)
}

func (h *handle) oldestOf(l link, t store.EntryType) (seq int64, ok bool, err error) {
	return h.endOf(sqlOldestOfType, l, t)
}

func (h *handle) endOf(text string, l link, t store.EntryType) (int64, bool, error) {
	var seq sql.NullInt64
	_, err := h.row(text, []any{l.segment, string(t), l.low, l.high}, &seq)
	return seq.Int64, seq.Valid, err
}

// newestRows counts the newest rows of a link, at most limit, and gives the
// number of the last one counted.
func (h *handle) newestRows(l link, limit int) (n int, lowest int64, err error) {
	_, err = h.row(sqlNewestRows, []any{l.segment, l.low, l.high, limit}, &n, &lowest)
	return n, lowest, err
}
