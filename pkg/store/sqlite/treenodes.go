package sqlite

import (
	"cmp"
	"slices"
	"strings"

	"github.com/drover-run/drover/pkg/store"
)

// treeNode is what the branch index needs to know of an entry.
type treeNode struct {
	id, parent string
	seq        int64
}

// keptNodes is how many entries a build keeps in memory: some 12 MB.
const keptNodes = 1 << 17

// treeNodes keeps the entries of a session that is not too long, so that they need
// not be read again.
type treeNodes struct {
	kept []treeNode
	many bool
}

func (t *treeNodes) add(e *store.Structure) {
	if t.many = t.many || len(t.kept) == keptNodes; t.many {
		t.kept = nil
		return
	}
	next := treeNode{id: strings.Clone(e.ID), seq: e.Seq} // the record may lie in more memory
	if n := len(t.kept); n > 0 && t.kept[n-1].id == e.ParentID {
		next.parent = t.kept[n-1].id
	} else {
		next.parent = strings.Clone(e.ParentID)
	}
	t.kept = append(t.kept, next)
}

// newestFirst is nil when there are too many.
func (t *treeNodes) newestFirst() []treeNode {
	slices.SortFunc(t.kept, func(a, b treeNode) int { return cmp.Compare(b.seq, a.seq) })
	return t.kept
}
