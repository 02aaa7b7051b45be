package v3import

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/drover-run/drover/pkg/store"
)

// lift finds for every record the nearest one above that stays an entry, and
// what retained tails need to walk no further than they are long.
func (t *tree) lift() {
	n := len(t.records)
	t.near, t.depth, t.tails, t.above = make([]int32, n), make([]int32, n), make([]int32, n), make([]int32, n)
	t.bytes = make([]int64, n)
	for _, i := range t.order {
		r := &t.records[i]
		t.near[i], t.tails[i], t.above[i] = none, none, none
		if p := r.parent; p != none {
			t.near[i], t.tails[i], t.above[i], t.bytes[i] = t.near[p], t.tails[p], t.above[p], t.bytes[p]
			t.depth[i] = t.depth[p] + 1
			if t.records[p].kind == kindCompaction {
				t.above[i] = p
			}
		}
		if !r.kind.kept() {
			continue
		}
		t.near[i] = i
		if r.flags.has(flagTail) || r.kind == kindEdit {
			t.tails[i] = i
			t.bytes[i] += int64(r.size)
		}
	}
}

// number gives every record a place such that a subtree is a run of places, so
// that isAbove needs no walk.
func (t *tree) number() {
	n := len(t.records)
	t.in, t.below = make([]int32, n), make([]int32, n)
	for _, i := range slices.Backward(t.order) {
		t.below[i]++
		if p := t.records[i].parent; p != none {
			t.below[p] += t.below[i]
		}
	}
	next := make([]int32, n) // the next free place inside a subtree
	var root int32
	for _, i := range t.order {
		free := &root
		if p := t.records[i].parent; p != none {
			free = &next[p]
		}
		t.in[i] = *free
		*free += t.below[i]
		next[i] = t.in[i] + 1
	}
}

// isAbove tells whether a is an ancestor of b, or b itself.
func (t *tree) isAbove(a, b int32) bool {
	return t.in[a] <= t.in[b] && t.in[b] < t.in[a]+t.below[a]
}

// references resolves what records name beside their parents. In a linear file
// no name can be right: its writer gave every record another id.
func (t *tree) references(linear bool) {
	for i := range t.records {
		i := int32(i)
		r, ln := &t.records[i], &t.links[i]
		target := int32(none)
		if ln.how.has(refGiven) && !linear {
			target = t.find(ln.ref, i)
		}
		switch r.kind {
		case kindCompaction:
			if !r.flags.has(flagOwnTail) {
				r.ref = t.keptFrom(i, ln, target)
			}
		case kindSummary:
			r.ref = t.summarized(i, ln, target)
		case kindEdit:
			r.ref = t.edited(i, ln, target)
		case kindLabel:
			r.ref = target
		case kindLeaf:
			if r.ref = target; target == none && !ln.how.has(refNull) {
				t.warnAt(i, "leaf_target", "leaf record names a missing record and is ignored")
			}
		}
	}
}

// keptFrom is the record at which a compaction's kept range starts, none when it
// keeps nothing.
func (t *tree) keptFrom(i int32, ln *links, target int32) int32 {
	nothing := func(format string, args ...any) int32 {
		t.warnAt(i, "kept_range", format+"; nothing is kept in front of the compaction", args...)
		return none
	}
	name := strconv.Quote(ln.ref)
	switch {
	case ln.how.has(refIndex):
		name = "record " + ln.ref + " of the file"
		n, err := strconv.ParseInt(ln.ref, 10, 32)
		if err != nil || n <= 0 {
			return nothing("firstKeptEntryIndex %s names no record", ln.ref)
		}
		at, _ := slices.BinarySearchFunc(t.records, int32(n), func(r record, slot int32) int { return cmp.Compare(r.slot, slot) })
		if at == len(t.records) {
			return nothing("firstKeptEntryIndex %s is behind the end of the file", ln.ref)
		}
		target = int32(at)
	case ln.how.has(refNull):
		return nothing("compaction does not say what it keeps")
	case target == none:
		return nothing("the first kept record %s is missing", name)
	}
	switch {
	case target == i: // how the agent says that nothing is kept
		return none
	case t.isAbove(i, target):
		return nothing("the first kept record, %s, comes after the compaction", name)
	case !t.isAbove(target, i):
		return nothing("the first kept record, %s, is not on the compaction's branch", name)
	}
	return target
}

// summarized is the entry that a branch summary was made from.
func (t *tree) summarized(i int32, ln *links, target int32) int32 {
	switch {
	case !ln.how.has(refGiven):
		t.warnAt(i, "from_id", "branch summary has no fromId; it becomes null")
		return none
	case target == none && ln.ref == "root":
		t.warnAt(i, "from_id", `fromId "root" becomes null`)
		return none
	case target == none:
		t.warnAt(i, "from_id", "fromId %q names no record and becomes null", ln.ref)
		return none
	case t.near[target] == none:
		t.warnAt(i, "from_id", "fromId %q names a record that left the tree, with nothing kept above it; it becomes null", ln.ref)
	case t.near[target] != target:
		t.warnAt(i, "from_id", "fromId %q names a record that left the tree; it becomes the entry of line %d", ln.ref, t.records[t.near[target]].line)
	}
	return t.near[target]
}

// edited is the entry that a context edit changes.
func (t *tree) edited(i int32, ln *links, target int32) int32 {
	if target == none || t.near[target] != target {
		t.warnAt(i, "edit_target", "context edit names %q, which is no entry; it changes nothing", ln.ref)
		return none
	}
	// A tail holds copies: what is in it can no longer be edited by name.
	if c := t.above[i]; c != none && t.records[c].ref != none && t.isAbove(target, c) && t.isAbove(t.records[c].ref, target) {
		t.warnAt(i, "edit_target", "context edit of %q comes after the compaction that kept it; it no longer acts", ln.ref)
	}
	return target
}

// findLeaf follows the newest record that moves the leaf.
func (t *tree) findLeaf() {
	for i := len(t.records) - 1; i >= 0; i-- {
		r := &t.records[i]
		switch {
		case r.kind == kindLost:
		case r.kind != kindLeaf:
			t.leaf = t.near[i]
			return
		case r.ref != none:
			t.leaf = t.near[r.ref]
			return
		case t.links[i].how.has(refNull):
			return
		}
	}
}

// placeLabels finds the labels that stay. Each target has its newest; of targets
// that come down to one entry the newest label wins.
func (t *tree) placeLabels() {
	newest := make(map[int32]label)
	for _, l := range t.labels {
		target := t.records[l.at].ref
		if target == none {
			if !l.clear {
				t.warnAt(l.at, "label_target", "label %q names a missing record", l.text)
			}
			continue
		}
		old, had := newest[target]
		if had && !l.clear && old.text != l.text {
			t.warnAt(old.at, "label_replaced", "label %q is replaced by that of line %d", old.text, t.records[l.at].line)
		}
		if delete(newest, target); !l.clear {
			newest[target] = l
		}
	}
	all := make([]mark, 0, len(newest))
	for target, l := range newest {
		if t.near[target] == none {
			t.warnAt(l.at, "label_target", "label %q names a record that left the tree, with nothing kept above it", l.text)
			continue
		}
		all = append(all, mark{entry: t.near[target], text: l.text, at: l.at})
	}
	slices.SortFunc(all, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
	last := make(map[int32]int)
	for _, m := range all {
		if at, had := last[m.entry]; had {
			old := t.marks[at]
			t.warnAt(old.at, "label_replaced", "label %q is replaced by that of line %d on the same entry", old.text, t.records[m.at].line)
			t.marks[at].entry = none
		}
		last[m.entry] = len(t.marks)
		t.marks = append(t.marks, m)
	}
	t.marks = slices.DeleteFunc(t.marks, func(m mark) bool { return m.entry == none })
}

// checkTails refuses a compaction whose tail would be larger than a payload may
// be.
func (t *tree) checkTails() error {
	for i := range t.records {
		r := &t.records[i]
		if r.kind != kindCompaction {
			continue
		}
		if size := t.tailSize(r); size > store.MaxPayload-int64(r.size) {
			return t.fail(r.line, r.off, "the compaction's kept range of %d bytes is larger than a payload may be", size)
		}
	}
	return nil
}

// tailSize is how many bytes a compaction's kept range takes at most.
func (t *tree) tailSize(r *record) int64 {
	if r.ref == none {
		return 0
	}
	size := t.bytes[r.parent]
	if p := t.records[r.ref].parent; p != none {
		size -= t.bytes[p]
	}
	return size
}

func blank(s string) bool { return strings.TrimFunc(s, isBlank) == "" }

// isBlank is white space as the agent's language sees it.
func isBlank(r rune) bool { return unicode.IsSpace(r) || r == '\uFEFF' }
