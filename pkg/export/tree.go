package export

import "github.com/drover-run/drover/pkg/store"

// none stands for no entry.
const none = int32(-1)

// Marks of an entry.
const (
	onPath uint8 = 1 << iota // on the lane's path
	forks                    // something beside the path hangs on it
)

// kind is the type of an entry.
type kind uint8

const (
	kindOther kind = iota
	kindMessage
	kindCompaction
	kindSummary
	kindCustom
)

func kindOf(typ store.EntryType) kind {
	switch typ {
	case store.TypeMessage:
		return kindMessage
	case store.TypeCompaction:
		return kindCompaction
	case store.TypeBranchSummary:
		return kindSummary
	case store.TypeCustom:
		return kindCustom
	}
	return kindOther
}

// tree is the structure of a session by index, in sequence order: parents come
// before their children.
type tree struct {
	ids     ids
	parents []int32
	kinds   []kind
	marks   []uint8
	below   []int32 // entries of the subtree, only when all branches go out
	err     error   // what ended the last walk over the payloads
}

func (t *tree) add(e store.Structure) error {
	parent := none
	if e.ParentID != "" {
		at, ok := t.ids.find(e.ParentID)
		if !ok {
			return store.MissingEntry(e.ParentID, "entry "+e.ID)
		}
		parent = at
	}
	t.ids.add(e.ID)
	t.parents = append(t.parents, parent)
	t.kinds = append(t.kinds, kindOf(e.Type))
	t.marks = append(t.marks, 0)
	return nil
}

// markPath marks the way from a leaf to its root.
func (t *tree) markPath(leaf int32) {
	for at := leaf; at != none; at = t.parents[at] {
		t.marks[at] |= onPath
	}
}

// countBranches finds where something leaves the path, and how large subtrees
// are.
func (t *tree) countBranches() {
	t.below = make([]int32, t.ids.len())
	for i := t.ids.len() - 1; i >= 0; i-- {
		t.below[i]++
		p := t.parents[i]
		if p == none {
			continue
		}
		t.below[p] += t.below[i]
		if t.marks[i]&onPath == 0 {
			t.marks[p] |= forks
		}
	}
}
