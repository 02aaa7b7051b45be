package store

import "fmt"

// BranchQuery reads the path from Start towards the root (spec §2.5): the path
// is ordered, cut after the first stop match, filtered, then the exclusive
// cursor and the limit apply.
type BranchQuery struct {
	Start      string
	StopAtType EntryType // "": no stop
	StopAtID   string
	Type       EntryType // "": all
	CustomType string
	// OldestFirst orders root to leaf; the default is newest first.
	OldestFirst bool
	// Cursor is a sequence number, exclusive; 0 means none.
	Cursor int64
	Limit  int // 0: unlimited
}

// EntryQuery reads the whole tree in sequence order (spec §1.5). FromSeq and
// ToSeq are inclusive, 0 leaves that end open.
type EntryQuery struct {
	Type       EntryType
	CustomType string
	FromSeq    int64
	ToSeq      int64
	Descending bool
	Limit      int // 0: unlimited
}

// UsageQuery reads the ledger in sequence order (spec §1.6).
type UsageQuery struct {
	FromSeq    int64
	ToSeq      int64
	Descending bool
	Limit      int // 0: unlimited
}

// The page sizes of a list read (spec §1.5).
const (
	DefaultListPage = 1_000
	MaxListPage     = 10_000
)

// ListQuery reads one page of a list. Cursor is an exclusive sequence number, 0
// for none; Limit 0 means DefaultListPage, more than MaxListPage is clamped, a
// negative one is refused.
type ListQuery struct {
	Cursor     int64
	Descending bool
	Limit      int
}

// PageSize gives the effective limit of the query.
func (q ListQuery) PageSize() (int, error) {
	switch {
	case q.Limit < 0:
		return 0, fmt.Errorf("list limit %d is negative", q.Limit)
	case q.Limit == 0:
		return DefaultListPage, nil
	}
	return min(q.Limit, MaxListPage), nil
}

// Matches reports whether the entry passes the type filters.
func (q BranchQuery) Matches(s Structure) bool {
	return (q.Type == "" || q.Type == s.Type) && (q.CustomType == "" || q.CustomType == s.CustomType)
}

// Stops reports whether the scan ends, inclusively, at this entry.
func (q BranchQuery) Stops(s Structure) bool {
	return (q.StopAtType != "" && q.StopAtType == s.Type) || (q.StopAtID != "" && q.StopAtID == s.ID)
}

// Select applies stop, filter, cursor and limit, in this order, to a path that
// is already in the query's order. Every backend shares it (spec §2.5).
func (q BranchQuery) Select(path func(yield func(Structure) bool)) []Structure {
	var out []Structure
	path(func(s Structure) bool {
		keep := q.Matches(s) && q.afterCursor(s.Seq)
		if keep {
			out = append(out, s)
		}
		full := q.Limit > 0 && len(out) >= q.Limit
		return !full && !q.Stops(s)
	})
	return out
}

func (q BranchQuery) afterCursor(seq int64) bool {
	switch {
	case q.Cursor == 0:
		return true
	case q.OldestFirst:
		return seq > q.Cursor
	}
	return seq < q.Cursor
}
