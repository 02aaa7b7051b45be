package v3import

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// tree is the structure of an indexed file, ready to be written as entries.
type tree struct {
	*index
	order []int32 // all records, parents before children, else in file order
	near  []int32 // nearest kept ancestor, or the record itself
	depth []int32
	tails []int32 // nearest ancestor or self that a retained tail looks at
	bytes []int64 // of all such up to here
	above []int32 // nearest compaction above
	in    []int32 // preorder number
	below []int32 // how many records the subtree has
	leaf  int32
	marks []mark // labels that stay, in file order
}

// mark is one label as it is stored.
type mark struct {
	entry int32
	text  string
	at    int32 // the record it came from
}

// resolve turns names into indexes and finds the shape of the tree.
func (x *index) resolve() (*tree, error) {
	t := &tree{index: x, leaf: none}
	x.reportTypes()
	x.settleTimes()
	linear, err := t.isLinear()
	if err != nil {
		return nil, err
	}
	if linear {
		t.chain()
	} else if err := t.join(); err != nil {
		return nil, err
	}
	if cycle := t.sort(); cycle != nil {
		return nil, t.cycleFailure(cycle)
	}
	t.lift()
	t.number()
	t.references(linear)
	t.findLeaf()
	t.placeLabels()
	if err := t.checkTails(); err != nil {
		return nil, err
	}
	x.links, x.byID, x.twins = nil, nil, nil
	return t, nil
}

// reportTypes warns about the types this package does not know.
func (x *index) reportTypes() {
	for typ, t := range x.unknown {
		how := "a record of unknown type %q kept as a custom entry " + UnknownPrefix + "%s"
		if t.seen > 1 {
			how += fmt.Sprintf(", and %d more like it", t.seen-1)
		}
		x.warn(t.first.Line, t.first.Offset, "unknown_type", how, typ, typ)
	}
}

// settleTimes gives the records in front of the first known time that of the
// session, and the session that of the first record.
func (x *index) settleTimes() {
	if x.head.created == noTime {
		for i := range x.records {
			if !x.records[i].flags.has(flagNoTime) && x.records[i].kind != kindCopy {
				x.head.created = x.records[i].ts
				break
			}
		}
	}
	if x.head.created == noTime {
		x.head.created = x.o.Now()
	}
	for i := range x.records {
		if x.records[i].ts == noTime {
			x.records[i].ts = x.head.created
		}
	}
}

// isLinear tells whether the file order is the chain: below version 2, unless
// the ids that are there form a tree.
func (t *tree) isLinear() (bool, error) {
	if t.version >= 2 || len(t.records) == 0 || t.odd == t.named() {
		return t.version < 2, nil
	}
	if t.odd == 0 && t.consistent() {
		t.warn(t.head.line, t.head.off, "version_missing", "header states no version above 1 but the ids form a tree: it is kept")
		return false, nil
	}
	t.warn(t.head.line, t.head.off, "ids_ignored", "the ids of this version 1 file form no tree: the order of the lines is kept")
	return true, nil
}

// named counts the records that could have an id.
func (t *tree) named() (n int64) {
	for i := range t.records {
		if k := t.records[i].kind; k != kindLost && k != kindRaw && k != kindCopy {
			n++
		}
	}
	return n
}

// consistent tells whether ids and parents of a file that need not have any form
// a tree: no id stands for two records, every parent is there, nothing hangs on
// itself, and something hangs on something.
func (t *tree) consistent() bool {
	if len(t.twins) > 0 {
		return false
	}
	linked := len(t.records) == 1
	for i := range t.records {
		r, ln := &t.records[i], &t.links[i]
		r.parent = none
		switch {
		case r.kind == kindCopy:
			r.parent = r.ref
		case r.kind == kindLost || r.kind == kindRaw:
			r.parent = int32(i) - 1
		case ln.how.has(parentGiven):
			p, ok := t.byID[ln.parent]
			if !ok && ln.parent != t.head.id {
				return false
			}
			if ok {
				r.parent, linked = p, true
			}
		case !ln.how.has(parentEmpty) && i > 0:
			return false
		}
	}
	return linked && t.sort() == nil
}

// chain hangs every record on the one in front of it.
func (t *tree) chain() {
	for i := range t.records {
		t.records[i].parent = int32(i) - 1
	}
}

// join hangs every record on the one its parentId names.
func (t *tree) join() error {
	if err := t.checkTwins(); err != nil {
		return err
	}
	missing := t.odd
	if missing > 1 && missing == t.named() {
		t.warnAt(0, "missing_id", "no record has an id: each gets one")
		missing = 0
	}
	inSession := false
	for i := range t.records {
		i := int32(i)
		r, ln := &t.records[i], &t.links[i]
		switch {
		case r.kind == kindCopy:
			r.parent = r.ref
			continue
		case r.kind == kindLost || r.kind == kindRaw:
			r.parent = i - 1
			continue
		}
		if ln.id == "" && missing > 0 {
			t.warnAt(i, "missing_id", "record without an id gets one")
		}
		r.parent = t.parentOf(i, ln, &inSession)
	}
	return nil
}

func (t *tree) parentOf(i int32, ln *links, inSession *bool) int32 {
	switch {
	case ln.how.has(parentBlank):
		t.warnAt(i, "empty_parent", `parentId "" read as null`)
		return none
	case ln.how.has(parentEmpty):
		return none
	case !ln.how.has(parentGiven) && ln.id == "":
		return i - 1
	case !ln.how.has(parentGiven):
		if i > 0 {
			t.warnAt(i, "missing_parent", "record without a parentId becomes a root")
		}
		return none
	}
	if p := t.find(ln.parent, i); p != none {
		return p
	}
	if ln.parent == t.head.id {
		if !*inSession {
			*inSession = true
			t.warnAt(i, "parent_is_session", "parentId is the session's id: the record is a root")
		}
		return none
	}
	if p := t.lostParent(i); p != none {
		t.warnAt(i, "missing_parent", "parent %q is missing: hung on the record in front of the malformed line", ln.parent)
		return p
	}
	t.warnAt(i, "missing_parent", "parent %q is missing: the record becomes a root", ln.parent)
	return none
}

// lostParent is the nearest unreadable line in front of i: where the missing
// parent of a salvaged record most likely stood.
func (t *tree) lostParent(i int32) int32 {
	n, _ := slices.BinarySearch(t.lostLines, i)
	if n == 0 {
		return none
	}
	return t.lostLines[n-1]
}

// find is the record of an id as seen from record i: of several, the nearest in
// front of it.
func (t *tree) find(id string, i int32) int32 {
	first, ok := t.byID[id]
	if !ok {
		return none
	}
	if twins := t.twins[id]; len(twins) > 0 {
		if n, _ := slices.BinarySearch(twins, i); n > 0 {
			return twins[n-1]
		}
	}
	return first
}

// checkTwins refuses ids that stand for records of different content.
func (t *tree) checkTwins() error {
	if len(t.twins) == 0 {
		return nil
	}
	for i := range t.records {
		id := t.links[i].id
		first, ok := t.byID[id]
		if !ok || first == int32(i) {
			continue
		}
		r, line := &t.records[i], t.records[first].line
		if !t.o.Salvage {
			f := t.fail(r.line, r.off, "id %q is used again for another record; line %d has it first", id, line)
			f.Salvageable = true
			return f
		}
		t.warnAt(int32(i), "duplicate_id", "id %q is used again for another record; line %d has it first; both are kept", id, line)
	}
	return nil
}

// sort puts parents in front of their children, and leaves the rest in file
// order. It returns the records of a cycle when there is one.
func (t *tree) sort() (cycle []int32) {
	n := len(t.records)
	t.order = make([]int32, 0, n)
	const fresh, open, done = 0, 1, 2
	state := make([]uint8, n)
	var path []int32
	for i := range n {
		path = path[:0]
		at := int32(i)
		for at != none && state[at] == fresh {
			state[at] = open
			path = append(path, at)
			at = t.records[at].parent
		}
		if at != none && state[at] == open {
			return path[slices.Index(path, at):]
		}
		for _, r := range slices.Backward(path) {
			state[r] = done
			t.order = append(t.order, r)
		}
	}
	return nil
}

// cycleFailure names the records that are their own ancestors.
func (t *tree) cycleFailure(cycle []int32) error {
	slices.Sort(cycle)
	var who []string
	for _, i := range cycle[:min(len(cycle), 8)] {
		who = append(who, fmt.Sprintf("%q in line %d", t.links[i].id, t.records[i].line))
	}
	if more := len(cycle) - len(who); more > 0 {
		who = append(who, strconv.Itoa(more)+" more")
	}
	what := "records are their own ancestors: "
	if len(cycle) == 1 {
		what = "record is its own parent: "
	}
	r := &t.records[cycle[0]]
	return t.fail(r.line, r.off, "%s%s", what, strings.Join(who, ", "))
}
