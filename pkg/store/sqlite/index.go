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

	sqlNodesBefore = `SELECT id, ifnull(parent_id, ''), seq FROM entries WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2`
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
// round: pages that are filled from their end stay half empty. What is kept of them
// meanwhile is runs of entries that lie in one segment; many runs wait in a table.
const (
	sqlBeginRuns = `CREATE TEMP TABLE found_runs(oldest INTEGER PRIMARY KEY, newest INTEGER NOT NULL, branch_id TEXT NOT NULL)`
	sqlFoundRun  = `INSERT INTO temp.found_runs(oldest, newest, branch_id) VALUES(?1, ?2, ?3)`
	sqlMoveRuns  = `INSERT INTO branch_entries(branch_id, entry_id, entry_seq, entry_type)
	SELECT r.branch_id, e.id, e.seq, e.type FROM temp.found_runs r CROSS JOIN entries e
	WHERE e.seq BETWEEN r.oldest AND r.newest ORDER BY r.oldest, e.seq;
	DROP TABLE temp.found_runs`
	sqlNewRows = `INSERT INTO branch_entries(branch_id, entry_id, entry_seq, entry_type)
	SELECT ?3, id, seq, type FROM entries WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq`
)

// index creates and fills the branch index, inside a transaction. all are the
// entries from the newest to the oldest, or nil: then they are read.
func (h *handle) index(ctx context.Context, all []treeNode) error {
	if err := h.run(sqlBranchTables); err != nil {
		return err
	}
	if err := h.fillIndex(ctx, all); err != nil {
		return err
	}
	return h.run(sqlBranchIndexes)
}

// fillIndex fills the tables of the branch index.
func (h *handle) fillIndex(ctx context.Context, all []treeNode) error {
	ix := indexer{h: h, waiting: make(map[string]*fork)}
	find := ix.findSegments
	if all != nil {
		find = func(context.Context) error { return ix.addAll(all) }
	}
	if err := find(ctx); err != nil {
		return err
	}
	return ix.end()
}

// indexPage is how many entries, and runs of the index, are held in memory.
const indexPage = 4096

// findSegments goes through the entries from the newest to the oldest, so that
// every entry comes after all that lies below it, and needs memory for the open
// branches only.
func (ix *indexer) findSegments(ctx context.Context) error {
	page := make([]treeNode, 0, indexPage)
	for before := openEnd(0); ; {
		page = page[:0]
		err := ix.h.each(ctx, sqlNodesBefore, []any{before, indexPage}, func(rows *sql.Rows) (bool, error) {
			var n treeNode
			err := rows.Scan(&n.id, &n.parent, &n.seq)
			page = append(page, n)
			return true, err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		if err := ix.addAll(page); err != nil {
			return err
		}
		before = page[len(page)-1].seq
	}
}

func (ix *indexer) addAll(entries []treeNode) error {
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
	found   []run            // the newest first
	spilled bool             // the table of found runs is there, with newer ones
}

// run is a range of sequence numbers of which every entry lies in one segment.
type run struct {
	segment        string
	oldest, newest int64
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

func (ix *indexer) add(e *treeNode) error {
	below := ix.waiting[e.id]
	delete(ix.waiting, e.id)
	if below == nil {
		below = &fork{main: tip{segmentName(e.seq), e.id, e.seq}}
	}
	for _, t := range below.others {
		if err := ix.finish(t, base{below.main.segment, e.seq}); err != nil {
			return err
		}
	}
	if err := ix.lay(below.main.segment, e.seq); err != nil {
		return err
	}
	if e.parent == "" {
		return ix.finish(below.main, base{})
	}
	ix.wait(e, below.main, below.size+1)
	return nil
}

// wait keeps a segment until the parent of its oldest entry comes.
func (ix *indexer) wait(e *treeNode, t tip, size int) {
	f := ix.waiting[e.parent]
	if f == nil {
		f = &fork{child: e.id}
		ix.waiting[e.parent] = f
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

// lay puts the next older entry into a segment.
func (ix *indexer) lay(segment string, seq int64) error {
	if n := len(ix.found); n > 0 && ix.found[n-1].segment == segment {
		ix.found[n-1].oldest = seq
		return nil
	}
	if len(ix.found) == indexPage {
		if err := ix.spill(); err != nil {
			return err
		}
	}
	ix.found = append(ix.found, run{segment, seq, seq})
	return nil
}

// spill moves the found runs out of memory.
func (ix *indexer) spill() error {
	if !ix.spilled {
		if err := ix.h.run(sqlBeginRuns); err != nil {
			return err
		}
		ix.spilled = true
	}
	for _, r := range ix.found {
		if _, err := ix.h.exec(sqlFoundRun, r.oldest, r.newest, r.segment); err != nil {
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
		return ix.h.run(sqlMoveRuns)
	}
	for _, r := range slices.Backward(ix.found) {
		if _, err := ix.h.exec(sqlNewRows, r.oldest, r.newest, r.segment); err != nil {
			return err
		}
	}
	return nil
}
