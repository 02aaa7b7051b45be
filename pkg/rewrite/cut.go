package rewrite

import "github.com/drover-run/drover/pkg/store"

// cut is what is decided about the entries.
type cut struct {
	*tree
	drop  []bool
	stand []int32 // the nearest kept entry at or above, none at the root
	// derived are the entries whose content was made from what is dropped, and that
	// are not dropped themselves, unless for that.
	derived []bool
	ids     []string            // the new ids, nil where they stay
	kept    map[uint64]struct{} // the hashes of kept messages, for retained tails
	paired  int                 // entries that go because of their tool call or result
	with    map[int32]int32     // that call or result, of those
}

func (c *cut) dropped(id string) bool {
	i, ok := c.index[id]
	return ok && c.drop[i]
}

// standIn is the id of the nearest kept entry at or above, "" when there is none.
// An id that is no entry's stays.
func (c *cut) standIn(id string) string {
	i, ok := c.index[id]
	if !ok {
		return id
	}
	if i = c.stand[i]; i == none {
		return ""
	}
	return c.idOf(i)
}

func (c *cut) idOf(i int32) string {
	if c.ids != nil {
		return c.ids[i]
	}
	return c.nodes[i].ID
}

// settle follows what was dropped to what has to go with it, until nothing more
// does.
func (c *cut) settle(d Derived) {
	for more := true; more; {
		more = c.pair()
		c.derive()
		if d != DerivedDrop {
			continue
		}
		for i := range c.nodes {
			if c.derived[i] && !c.drop[i] {
				c.drop[i], more = true, true
			}
		}
	}
	if c.hashes == nil {
		return
	}
	c.kept = make(map[uint64]struct{})
	for i := range c.nodes {
		if !c.drop[i] {
			c.kept[c.hashes[i]] = struct{}{}
		}
	}
}

// pair lets tool calls and their results go together, and reports whether any
// more went. The message that made a call stays when all that goes of its results
// is beside what goes on from it: nothing that is kept has seen them.
func (c *cut) pair() (more bool) {
	goes := func(i, with int32) {
		if !c.drop[i] {
			c.drop[i], more = true, true
			c.paired++
			c.with[i] = with
		}
	}
	lives := c.living()
	goesOn := c.goingOn(lives)
	for i, n := range c.nodes {
		if n.call != none && c.drop[i] && (lives[i] || !goesOn[n.call]) {
			goes(n.call, int32(i))
		}
	}
	for i, n := range c.nodes {
		if n.call != none && c.drop[n.call] {
			goes(int32(i), n.call)
		}
	}
	return more
}

// living marks what a kept entry or a lane stands on.
func (c *cut) living() []bool {
	lives := make([]bool, len(c.nodes))
	for _, i := range c.leaves {
		if i != none {
			lives[i] = true
		}
	}
	for i := len(c.nodes) - 1; i >= 0; i-- {
		lives[i] = lives[i] || !c.drop[i]
		if p := c.nodes[i].parent; p != none {
			lives[p] = lives[p] || lives[i]
		}
	}
	return lives
}

// goingOn marks what is continued, by a lane or by an entry that is no result,
// without a dropped result on the way.
func (c *cut) goingOn(lives []bool) []bool {
	on := make([]bool, len(c.nodes))
	for _, i := range c.leaves {
		if i != none {
			on[i] = true
		}
	}
	for i := len(c.nodes) - 1; i >= 0; i-- {
		n := c.nodes[i]
		if n.parent != none && (n.call == none && lives[i] || n.call != none && !c.drop[i] && on[i]) {
			on[n.parent] = true
		}
	}
	return on
}

func (c *cut) standing() {
	c.stand = make([]int32, len(c.nodes))
	for i, n := range c.nodes {
		switch {
		case !c.drop[i]:
			c.stand[i] = int32(i)
		case n.parent == none:
			c.stand[i] = none
		default:
			c.stand[i] = c.stand[n.parent]
		}
	}
}

func (c *cut) remint(ids store.IDSource) {
	c.ids = make([]string, len(c.nodes))
	for i, n := range c.nodes {
		c.ids[i] = ids.At(n.Timestamp)
	}
}
