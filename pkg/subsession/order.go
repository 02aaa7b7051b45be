package subsession

import (
	"cmp"
	"slices"
)

// Step is one session of a walk.
type Step struct {
	ID       string
	Depth    int
	Parent   string   // who led to it first, "" for the root
	Children []string // all that it names, known ones too
}

// DeleteOrder walks breadth-first from root and returns the sessions in the order
// in which they may be deleted: the deepest first, the root last, by id within one
// depth, so that whatever ends a deletion early leaves every other one reachable.
// Each session is visited once, however often it is named. children is asked for
// every session, the root first; false leaves a session and what is below it out.
func DeleteOrder(root string, children func(id, parent string, depth int) ([]string, bool, error)) ([]Step, error) {
	steps := []Step{{ID: root}}
	seen := map[string]bool{root: true}
	kept := 0
	for i := 0; i < len(steps); i++ {
		s := steps[i]
		below, ok, err := children(s.ID, s.Parent, s.Depth)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		s.Children = below
		steps[kept] = s
		kept++
		for _, id := range below {
			if !seen[id] {
				seen[id] = true
				steps = append(steps, Step{ID: id, Depth: s.Depth + 1, Parent: s.ID})
			}
		}
	}
	steps = steps[:kept]
	slices.SortFunc(steps, func(a, b Step) int {
		return cmp.Or(cmp.Compare(b.Depth, a.Depth), cmp.Compare(a.ID, b.ID))
	})
	return steps, nil
}

// cycles returns the groups of sessions that name each other in a circle, and
// those that name themselves, each in the order of ids.
func cycles(steps []Step) [][]string {
	forward, backward := make(map[string][]string), make(map[string][]string)
	for _, s := range steps {
		forward[s.ID] = s.Children
		for _, c := range s.Children {
			backward[c] = append(backward[c], s.ID)
		}
	}
	var finished []string // in the order in which a walk leaves them
	seen := make(map[string]bool)
	for _, s := range steps {
		explore(s.ID, forward, seen, func(id string) { finished = append(finished, id) })
	}
	var found [][]string
	seen = make(map[string]bool)
	for _, id := range slices.Backward(finished) {
		var group []string
		explore(id, backward, seen, func(id string) {
			if _, known := forward[id]; known {
				group = append(group, id)
			}
		})
		if len(group) > 1 || len(group) == 1 && slices.Contains(forward[id], id) {
			slices.Sort(group)
			found = append(found, group)
		}
	}
	slices.SortFunc(found, slices.Compare)
	return found
}

// explore walks depth-first without recursion: a chain may be of any length.
func explore(from string, edges map[string][]string, seen map[string]bool, leave func(string)) {
	if seen[from] {
		return
	}
	seen[from] = true
	type place struct {
		id   string
		next int
	}
	stack := []place{{id: from}}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.next == len(edges[top.id]) {
			leave(top.id)
			stack = stack[:len(stack)-1]
			continue
		}
		id := edges[top.id][top.next]
		top.next++
		if !seen[id] {
			seen[id] = true
			stack = append(stack, place{id: id})
		}
	}
}
