package rewrite

import (
	"hash/maphash"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
)

// derive marks what was made from dropped content, directly or through another
// summary: a compaction by any entry above it, the summary of a branch by any of
// the branch. What goes by itself is none: only what would stay is to be decided about.
func (c *cut) derive() {
	tainted := make([]bool, len(c.nodes)) // the entry, or one above it
	for i, n := range c.nodes {
		above := n.parent != none && tainted[n.parent]
		switch {
		case !n.derives, c.drop[i] && !c.derived[i]:
			c.derived[i] = false
		case c.from[int32(i)] != "":
			c.derived[i] = c.branchTainted(int32(i))
		default:
			c.derived[i] = above
		}
		tainted[i] = above || c.drop[i] || c.derived[i]
	}
}

// branchTainted looks at the branch that a summary is of: from where it was left
// up to the path of the summary.
func (c *cut) branchTainted(i int32) bool {
	a, ok := c.index[c.from[i]]
	if !ok {
		return false
	}
	for b := c.nodes[i].parent; a != b; {
		if a > b {
			if c.drop[a] || c.derived[a] {
				return true
			}
			a = c.nodes[a].parent
		} else {
			b = c.nodes[b].parent
		}
	}
	return false
}

// removed stands in the place of derived content that went.
const removed = "[redacted]"

// withoutDerived takes out of a summary's payload what was made from dropped
// content. Of a retained tail stays what is also a kept message.
func (c *cut) withoutDerived(e *store.Entry) ([]byte, error) {
	payload := []byte(e.Payload)
	if m := e.Message(); m != nil {
		next, err := withoutSummary(m)
		if err != nil {
			return nil, err
		}
		return rawjson.Set(payload, "message", next)
	}
	payload, err := withoutSummary(payload)
	if err != nil {
		return nil, err
	}
	tail, ok := rawjson.Get(payload, "retainedTail")
	if !ok || rawjson.KindOf(tail) != rawjson.Array {
		return payload, nil
	}
	kept := []byte{'['}
	err = rawjson.ElementsFunc(tail, func(start, end int) bool {
		if _, ok := c.kept[maphash.Bytes(c.seed, tail[start:end])]; ok {
			if len(kept) > 1 {
				kept = append(kept, ',')
			}
			kept = append(kept, tail[start:end]...)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	return rawjson.Set(payload, "retainedTail", append(kept, ']'))
}

func withoutSummary(obj []byte) ([]byte, error) {
	obj, err := rawjson.Set(obj, "summary", rawjson.Quote(removed))
	if err != nil {
		return nil, err
	}
	return rawjson.Delete(obj, "details")
}
