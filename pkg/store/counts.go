package store

import "context"

// Counts is how much a session holds.
type Counts struct {
	Entries  int64 `json:"entries"`
	Messages int64 `json:"messages"`
	Usage    int64 `json:"usage"`
	Values   int64 `json:"values"`
	Lists    int64 `json:"lists"` // lists, not their elements
	Lanes    int64 `json:"lanes"`
}

// CountOf counts a session's surviving records.
func CountOf(ctx context.Context, r Queries) (Counts, error) {
	snap, err := r.Snapshot(ctx)
	if err != nil {
		return Counts{}, err
	}
	defer snap.Close()
	var c Counts
	lists := make(map[Address]bool)
	for rec, err := range snap.Skeleton() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return Counts{}, err
		}
		c.add(&rec, lists[rec.Address])
		lists[rec.Address] = lists[rec.Address] || rec.Kind == KindList
	}
	return c, nil
}

// add counts one record; seen tells that its list is counted already.
func (c *Counts) add(r *Record, seen bool) {
	switch r.Kind {
	case KindEntry:
		c.Entries++
		if r.Entry.Type == TypeMessage {
			c.Messages++
		}
	case KindUsage:
		c.Usage++
	case KindValue:
		c.Values++
		if r.Address.Namespace == "pi.lane.leaf" {
			c.Lanes++
		}
	case KindList:
		if !seen {
			c.Lists++
		}
	}
}
