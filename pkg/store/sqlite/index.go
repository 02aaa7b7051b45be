package sqlite

import (
	"context"
	"database/sql"
	"slices"

	"github.com/drover-run/drover/pkg/store"
)

const (
	// sqlIndexMissing finds the index of a file that was written without one: no
	// segment at all, or a lane whose leaf no segment holds (D20).
	sqlIndexMissing = `SELECT 1 FROM (SELECT 1 FROM entries LIMIT 1) WHERE NOT EXISTS (SELECT 1 FROM branch_meta)
	UNION ALL
	SELECT 1 FROM scalar_values v CROSS JOIN entries e ON e.id = CASE WHEN json_valid(v.value) THEN v.value ->> '$' END
	WHERE v.namespace = ?1 AND NOT EXISTS (SELECT 1 FROM branch_entries b WHERE b.entry_id = e.id)
	LIMIT 1`

	// indexTables is how many tables the branch index has.
	indexTables    = 2
	sqlIndexTables = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('branch_entries', 'branch_meta')`

	sqlStructureBefore = `SELECT ` + structureColumns + ` FROM entries e WHERE e.seq < ?1 ORDER BY e.seq DESC LIMIT ?2`
)

// indexMissing reports a session whose branch index has to be made before it can
// be used.
func (h *handle) indexMissing() (bool, error) {
	var one int
	missing, err := h.row(sqlIndexMissing, []any{store.LaneLeaves().Address().Namespace}, &one)
	if err == nil {
		return missing, nil
	}
	// Without its tables there is no index either.
	var tables int
	if _, countErr := h.row(sqlIndexTables, nil, &tables); countErr == nil && tables < indexTables {
		return true, nil
	}
	return false, err
}

// reindex makes the branch index anew from the entries, which alone have
// authority. The caller owns the session and has opened a transaction.
func (h *handle) reindex(ctx context.Context) error {
	if err := h.run(`DROP TABLE IF EXISTS branch_entries; DROP TABLE IF EXISTS branch_meta`); err != nil {
		return err
	}
	return h.index(ctx, nil)
}

// The rows are found from the newest to the oldest and stored the other way
// round: pages that are filled from their end stay half empty. Those of a long
// session wait in a table.
const (
	sqlBeginRows = `CREATE TEMP TABLE found_rows(
		entry_seq INTEGER PRIMARY KEY, branch_id TEXT NOT NULL, entry_id TEXT NOT NULL, entry_type TEXT NOT NULL)`
	sqlFoundRow = `INSERT INTO temp.found_rows(entry_seq, branch_id, entry_id, entry_type) VALUES(?1, ?2, ?3, ?4)`
	sqlMoveRows = `INSERT INTO branch_entries(branch_id, entry_id, entry_seq, entry_type)
	SELECT branch_id, entry_id, entry_seq, entry_type FROM temp.found_rows ORDER BY entry_seq;
	DROP TABLE temp.found_rows`
)

// index creates and fills the branch index, inside a transaction. all are the
// entries from the newest to the oldest, or nil: then they are read.
func (h *handle) index(ctx context.Context, all []store.Structure) error {
	if err := h.run(sqlBranchTables); err != nil {
		return err
	}
	ix := indexer{h: h, waiting: make(map[string]*fork)}
	find := ix.findSegments
	if all != nil {
		find = func(context.Context) error { return ix.addAll(all) }
	}
	if err := find(ctx); err != nil {
		return err
	}
	if err := ix.end(); err != nil {
		return err
	}
	return h.run(sqlBranchIndexes)
}

// structurePage is how many entries, and rows of the index, are held in memory.
const structurePage = 4096

// findSegments goes through the entries from the newest to the oldest, so that
// every entry comes after all that lies below it, and needs memory for the open
// branches only.
func (ix *indexer) findSegments(ctx context.Context) error {
	page := make([]store.Structure, 0, structurePage)
	for before := openEnd(0); ; {
		page = page[:0]
		err := ix.h.each(ctx, sqlStructureBefore, []any{before, structurePage}, func(rows *sql.Rows) (bool, error) {
			var s store.Structure
			err := rows.Scan(fields(&s)...)
			page = append(page, s)
			return true, err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		if err := ix.addAll(page); err != nil {
			return err
		}
		before = page[len(page)-1].Seq
	}
}

func (ix *indexer) addAll(entries []store.Structure) error {
	for i := range entries {
		if err := ix.add(&entries[i]); err != nil {
			return err
		}
	}
	return nil
}

// indexer lays every entry into exactly one segment: an entry continues the
// segment of its child with the most entries below it, the segments of the other
// children stand on that one. So in a tree of n entries no path has more than
// log2(n)+1 links, and nothing is copied.
type indexer struct {
	h       *handle
	waiting map[string]*fork // by the id of an entry that is still to come
	found   []foundRow       // the newest first
	spilled bool             // the table of found rows is there, with earlier ones
}

// foundRow is a row of the index: the segment that an entry lies in.
type foundRow struct {
	segment, id, kind string
	seq               int64
}

// fork is what lies below an entry that is still to come.
type fork struct {
	child  string // one of its children
	size   int    // of all that lies below
	main   tip    // the segment that the entry will continue
	mainly int    // how much lies below on that side
	others []tip
}

// tip is a segment whose lower end is not known yet.
type tip struct {
	segment string
	id      string
	seq     int64
}

func (ix *indexer) add(e *store.Structure) error {
	below := ix.waiting[e.ID]
	delete(ix.waiting, e.ID)
	if below == nil {
		below = &fork{main: tip{segmentName(e), e.ID, e.Seq}}
	}
	for _, t := range below.others {
		if err := ix.finish(t, base{below.main.segment, e.Seq}); err != nil {
			return err
		}
	}
	ix.found = append(ix.found, foundRow{below.main.segment, e.ID, string(e.Type), e.Seq})
	if len(ix.found) == structurePage {
		if err := ix.spill(); err != nil {
			return err
		}
	}
	if e.ParentID == "" {
		return ix.finish(below.main, base{})
	}
	ix.wait(e, below.main, below.size+1)
	return nil
}

// wait keeps a segment until the parent of its oldest entry comes.
func (ix *indexer) wait(e *store.Structure, t tip, size int) {
	f := ix.waiting[e.ParentID]
	if f == nil {
		f = &fork{child: e.ID}
		ix.waiting[e.ParentID] = f
	}
	f.size += size
	if size <= f.mainly {
		f.others = append(f.others, t)
		return
	}
	if f.mainly > 0 {
		f.others = append(f.others, f.main)
	}
	f.main, f.mainly = t, size
}

func (ix *indexer) finish(t tip, on base) error {
	_, err := ix.h.exec(sqlNewSegment, t.segment, t.id, t.seq, on.segment, on.seq)
	return err
}

// spill moves the found rows out of memory.
func (ix *indexer) spill() error {
	if !ix.spilled {
		if err := ix.h.run(sqlBeginRows); err != nil {
			return err
		}
		ix.spilled = true
	}
	for _, r := range ix.found {
		if _, err := ix.h.exec(sqlFoundRow, r.seq, r.segment, r.id, r.kind); err != nil {
			return err
		}
	}
	ix.found = ix.found[:0]
	return nil
}

// end stores the rows. It refuses a tree of which a part hangs on nothing. A parent
// that is younger than its child has gone by before the child came.
func (ix *indexer) end() error {
	for _, f := range ix.waiting {
		return corrupt(ix.h.path, "entry %s: parent is missing or younger", f.child)
	}
	if ix.spilled {
		if err := ix.spill(); err != nil {
			return err
		}
		return ix.h.run(sqlMoveRows)
	}
	for _, r := range slices.Backward(ix.found) {
		if _, err := ix.h.exec(sqlNewRow, r.segment, r.id, r.seq, r.kind); err != nil {
			return err
		}
	}
	return nil
}
