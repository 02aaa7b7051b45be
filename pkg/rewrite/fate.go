package rewrite

import (
	"iter"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Fate is what becomes of an entry that a plan does not leave where and as it is. It
// tells nothing of what the entry says.
type Fate struct {
	EntryID string
	Type    store.EntryType
	Role    message.Role // of a message
	Dropped bool
	// With is the tool call or result that a dropped entry goes along with, "" when it
	// was chosen itself.
	With string
	// Derived tells that the content was made from what is dropped.
	Derived bool
	// Moved tells that a kept entry hangs on Parent now, "" at the root.
	Moved  bool
	Parent string
}

// Fates are those of a plan, in the order of the entries. Ids are those from before.
func (p *Plan) Fates() iter.Seq[Fate] {
	return func(yield func(Fate) bool) {
		if p.cut == nil {
			return
		}
		for i := range p.cut.nodes {
			if f, ok := p.cut.fate(int32(i)); ok && !yield(f) {
				return
			}
		}
	}
}

func (c *cut) fate(i int32) (f Fate, ok bool) {
	n := &c.nodes[i]
	f = Fate{EntryID: n.ID, Type: n.Type, Role: n.role, Dropped: c.drop[i], Derived: c.derived[i]}
	if with, paired := c.with[i]; paired {
		f.With = c.nodes[with].ID
	}
	if f.Moved = !f.Dropped && n.parent != none && c.drop[n.parent]; f.Moved {
		if at := c.stand[n.parent]; at != none {
			f.Parent = c.nodes[at].ID
		}
	}
	return f, f.Dropped || f.Derived || f.Moved
}
