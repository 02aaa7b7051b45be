package sqlite

import "github.com/drover-run/drover/pkg/store"

// pathCheck follows the rows of a branch scan from parent to child: the index is
// no authority, and a row of it whose entry is gone, or an entry that it does not
// list, would make the path look shorter than it is. It looks at nothing but what
// is read, so a scan that leaves entries out by their type is not followed.
type pathCheck struct {
	h    *handle
	q    store.BranchQuery
	rows int
	last store.Structure
	gap  string // the first entry that should have come and did not
	by   string // what stands on it
}

func (c *pathCheck) next(row store.Structure) {
	if c.gap == "" {
		switch {
		case c.rows == 0 && c.q.Cursor != 0: // where the path enters is not known
		case c.q.OldestFirst:
			c.expect(row.ParentID, c.last.ID, "entry "+row.ID)
		case c.rows == 0:
			c.expect(c.q.Start, row.ID, "the branch index")
		default:
			c.expect(c.last.ParentID, row.ID, "entry "+c.last.ID)
		}
	}
	c.rows++
	c.last = row
}

func (c *pathCheck) expect(want, got, by string) {
	if want != got {
		c.gap, c.by = want, by
	}
}

// end judges a scan that has come to its end.
func (c *pathCheck) end() error {
	if c.q.Type != "" || c.q.CustomType != "" {
		return nil
	}
	if c.gap == "" && !c.complete() {
		if c.q.OldestFirst || c.rows == 0 {
			c.expect(c.q.Start, "", "the branch index")
		} else {
			c.expect(c.last.ParentID, "", "entry "+c.last.ID)
		}
	}
	if c.gap == "" {
		return nil
	}
	var seq int64
	there, err := c.h.row(sqlEntrySeq, []any{c.gap}, &seq)
	if err != nil {
		return err
	}
	damage := store.MissingEntry(c.gap, c.by)
	if there {
		damage = corrupt(c.h.path, "entry %s: the branch index leaves it out; it can be rebuilt from the entries", c.gap)
	}
	damage.Path = c.h.path
	return damage
}

// complete reports whether the last row may be where the scan ends.
func (c *pathCheck) complete() bool {
	switch {
	case c.q.Cursor != 0 && c.rows == 0:
		return true
	case c.q.Limit > 0 && c.rows >= c.q.Limit, c.rows > 0 && c.q.Stops(c.last):
		return true
	case c.q.OldestFirst:
		return c.rows > 0 && c.last.ID == c.q.Start
	}
	return c.rows > 0 && c.last.ParentID == ""
}
