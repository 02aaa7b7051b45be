package export

import "iter"

// step is one thing to do in a walk over the whole tree.
type step struct {
	kind  stepKind
	entry int32
}

type stepKind uint8

const (
	stepEntry  stepKind = iota
	stepBranch          // a branch beside the path begins with the entry
	stepEnd             // it has ended
)

// steps walks the whole tree, parents before children. What leaves the path comes
// as a branch of its own before the path goes on; beside the path, it goes on
// towards the newest entry.
func (t *tree) steps() iter.Seq[step] {
	return func(yield func(step) bool) {
		c := t.children()
		stack := c.push(t, nil, none)
		for len(stack) > 0 {
			s := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if !yield(s) {
				return
			}
			if s.kind == stepEntry {
				stack = c.push(t, stack, s.entry)
			}
		}
	}
}

// children are the children of every entry in sequence order; those of none come
// first.
type children struct {
	start  []int32 // by entry + 1
	list   []int32
	newest []int32 // the newest entry of each subtree
}

func (t *tree) children() children {
	n := t.ids.len()
	c := children{start: make([]int32, n+2), list: make([]int32, n), newest: make([]int32, n)}
	for _, p := range t.parents {
		c.start[p+2]++
	}
	for i := range n + 1 {
		c.start[i+1] += c.start[i]
	}
	next := make([]int32, n+1)
	copy(next, c.start)
	for i, p := range t.parents {
		c.list[next[p+1]] = int32(i)
		next[p+1]++
	}
	for i := n - 1; i >= 0; i-- {
		c.newest[i] = max(c.newest[i], int32(i))
		if p := t.parents[i]; p != none {
			c.newest[p] = max(c.newest[p], c.newest[i])
		}
	}
	return c
}

// push puts the children of an entry on a stack, the first to come on top.
func (c *children) push(t *tree, stack []step, parent int32) []step {
	all := c.list[c.start[parent+1]:c.start[parent+2]]
	straight := none
	if beside := parent != none && t.marks[parent]&onPath == 0; beside {
		for _, child := range all {
			if straight == none || c.newest[child] > c.newest[straight] {
				straight = child
			}
		}
	} else {
		for _, child := range all {
			if t.marks[child]&onPath != 0 {
				straight = child
			}
		}
	}
	if straight != none {
		stack = append(stack, step{stepEntry, straight})
	}
	for i := len(all) - 1; i >= 0; i-- {
		if child := all[i]; child != straight {
			stack = append(stack, step{stepEnd, child}, step{stepEntry, child}, step{stepBranch, child})
		}
	}
	return stack
}
