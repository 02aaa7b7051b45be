package store

import "context"

// FindQuery reads the whole tree by sequence, every branch of it (spec §5.3):
// filter, then the exclusive cursor, then the limit.
type FindQuery struct {
	Type        EntryType // "": all
	CustomType  string
	OldestFirst bool  // the default is newest first
	Cursor      int64 // exclusive sequence number, 0 for none
	Limit       int   // 0: unlimited
}

// FindEntries returns the entries that the query selects.
func (t *Tree) FindEntries(ctx context.Context, q FindQuery) ([]Entry, error) {
	scan := EntryQuery{Type: q.Type, CustomType: q.CustomType, Descending: !q.OldestFirst, Limit: q.Limit}
	switch {
	case q.Cursor == 0:
	case q.OldestFirst:
		scan.FromSeq = q.Cursor + 1
	case q.Cursor <= 1: // nothing comes before the first number; 0 would be no end
		return nil, nil
	default:
		scan.ToSeq = q.Cursor - 1
	}
	return t.ScanEntries(ctx, scan)
}

// FindEntry returns the first entry that the query selects.
func (t *Tree) FindEntry(ctx context.Context, q FindQuery) (Entry, bool, error) {
	q.Limit = 1
	return first(t.FindEntries(ctx, q))
}

// FindEntriesOnBranch reads the path from q.Start, the lane's leaf when it is
// empty, towards the root (spec §2.5).
func (t *Tree) FindEntriesOnBranch(ctx context.Context, q BranchQuery) ([]Entry, error) {
	if q.Start == "" {
		leaf, err := t.LeafID(ctx)
		if err != nil || leaf == "" {
			return nil, err
		}
		q.Start = string(leaf)
	}
	return t.ScanBranch(ctx, q)
}

// FindEntryOnBranch returns the first entry that the query selects.
func (t *Tree) FindEntryOnBranch(ctx context.Context, q BranchQuery) (Entry, bool, error) {
	q.Limit = 1
	return first(t.FindEntriesOnBranch(ctx, q))
}

func first(found []Entry, err error) (Entry, bool, error) {
	if err != nil || len(found) == 0 {
		return Entry{}, false, err
	}
	return found[0], true, nil
}
