package export

import (
	"strings"

	"github.com/drover-run/drover/pkg/store"
)

// none stands for no entry.
const none = int32(-1)

// Marks of an entry.
const (
	onPath uint8 = 1 << iota // on the lane's path
	forks                    // something beside the path hangs on it
)

// tree is the structure of a session by index, in sequence order: parents come
// before their children.
type tree struct {
	ids     []string
	parents []int32
	types   []store.EntryType
	marks   []uint8
	at      map[string]int32
	below   []int32 // entries of the subtree, only when all branches go out
	err     error   // what ended the last walk over the payloads
}

func (t *tree) add(e store.Structure) error {
	parent := none
	if e.ParentID != "" {
		at, ok := t.at[e.ParentID]
		if !ok {
			return store.MissingEntry(e.ParentID, "entry "+e.ID)
		}
		parent = at
	}
	id := e.ID
	t.at[id] = int32(len(t.ids))
	t.ids = append(t.ids, id)
	t.parents = append(t.parents, parent)
	t.types = append(t.types, typeOf(e.Type))
	t.marks = append(t.marks, 0)
	return nil
}

// typeOf shares the text of the known types.
func typeOf(typ store.EntryType) store.EntryType {
	switch typ {
	case store.TypeMessage:
		return store.TypeMessage
	case store.TypeCompaction:
		return store.TypeCompaction
	case store.TypeBranchSummary:
		return store.TypeBranchSummary
	case store.TypeCustom:
		return store.TypeCustom
	}
	return store.EntryType(strings.Clone(string(typ)))
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
	t.below = make([]int32, len(t.ids))
	for i := len(t.ids) - 1; i >= 0; i-- {
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
