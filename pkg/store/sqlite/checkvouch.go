package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"os"
	"slices"
	"sync"

	"github.com/drover-run/drover/pkg/store"
)

// The checks of the branch index look up every row's entry. A vouching reads each
// table once instead and compares them in memory. It only ever says that those
// checks would find nothing: what is wrong, they have to tell.

// besideBytes is the size of a file from which a second connection is worth its
// opening.
const besideBytes = 4 << 20

// vouching begins to look at the branch index, beside whatever else is done with
// h where the file is large. The function that it returns waits for the answer.
func vouching(ctx context.Context, h *handle, open opening) (sound func() bool) {
	info, err := os.Stat(h.path)
	if err != nil || info.Size() < besideBytes {
		return sync.OnceValue(func() bool { return h.vouch(ctx) })
	}
	answer := make(chan bool, 1)
	go func() {
		own, _, err := open()
		if err != nil {
			answer <- false
			return
		}
		sound := own.vouch(ctx)
		answer <- own.close() == nil && sound
	}()
	return sync.OnceValue(func() bool { return <-answer })
}

// vouch reports that the branch index is sound. What keeps it from reading will
// keep the other checks, too.
func (h *handle) vouch(ctx context.Context) bool {
	var v voucher
	return v.entries(ctx, h) == nil && v.rows(ctx, h) == nil && v.segments(ctx, h) == nil && v.covered()
}

var errNotVouched = errors.New("the branch index has to be checked in full")

// voucher is what there is to compare.
type voucher struct {
	nodes  []node  // the entries in sequence order
	order  []int32 // the rows of the index, segment by segment: places in nodes
	ranges map[string]segmentRange
	kinds  map[string]int32
	root   store.IDKey // the parent of a root
}

type node struct {
	id, parent store.IDKey
	seq        int64
	kind       int32
	covered    bool // by some segment
}

// segmentRange is where a segment's rows lie in the order.
type segmentRange struct{ from, to int }

const (
	sqlVouchEntries  = `SELECT id, ifnull(parent_id, ''), seq, type FROM entries`
	sqlVouchRows     = `SELECT branch_id, entry_id, entry_seq, entry_type FROM branch_entries ORDER BY branch_id, entry_seq`
	sqlVouchSegments = `SELECT branch_id, tip_entry_id, tip_seq, base_branch_id, base_seq FROM branch_meta`
)

// each reads rows until one does not agree.
func (v *voucher) each(ctx context.Context, h *handle, text string, agrees func(plainRow) bool) error {
	all := true
	err := h.plainly(ctx, text, nil, func(row plainRow) bool {
		all = agrees(row)
		return all
	})
	if err == nil && !all {
		err = errNotVouched
	}
	return err
}

func (v *voucher) entries(ctx context.Context, h *handle) error {
	v.kinds, v.root = make(map[string]int32), store.KeyOf("")
	var id, parent, kind string
	var seq int64
	err := v.each(ctx, h, sqlVouchEntries, func(row plainRow) bool {
		if !row.columns(&id, &parent, &seq, &kind) || id == "" || kind == "" {
			return false
		}
		n := node{id: store.KeyOf(id), parent: v.root, seq: seq, kind: v.kind(kind)}
		if parent != "" {
			n.parent = store.KeyOf(parent)
		}
		v.nodes = append(v.nodes, n)
		return true
	})
	if err != nil {
		return err
	}
	slices.SortFunc(v.nodes, func(a, b node) int { return cmp.Compare(a.seq, b.seq) })
	for i := 1; i < len(v.nodes); i++ {
		if v.nodes[i].seq == v.nodes[i-1].seq {
			return errNotVouched
		}
	}
	return nil
}

func (v *voucher) kind(name string) int32 {
	k, ok := v.kinds[name]
	if !ok {
		k = int32(len(v.kinds))
		v.kinds[name] = k
	}
	return k
}

// at finds the entry with a sequence number; most follow the one before.
func (v *voucher) at(seq int64, before int) (int, bool) {
	if i := before + 1; i < len(v.nodes) && v.nodes[i].seq == seq {
		return i, true
	}
	return slices.BinarySearchFunc(v.nodes, seq, func(n node, seq int64) int { return cmp.Compare(n.seq, seq) })
}

// rows compares every row with its entry and with the row before it.
func (v *voucher) rows(ctx context.Context, h *handle) error {
	v.ranges = make(map[string]segmentRange)
	var name, id, kind, segment string
	var seq int64
	from, before := 0, -1
	err := v.each(ctx, h, sqlVouchRows, func(row plainRow) bool {
		if !row.columns(&name, &id, &seq, &kind) || name == "" {
			return false
		}
		if name != segment {
			v.ranges[segment] = segmentRange{from, len(v.order)}
			segment, from = name, len(v.order)
		}
		i, found := v.at(seq, before)
		if !found {
			return false
		}
		n := &v.nodes[i]
		if n.id != store.KeyOf(id) || n.kind != v.kind(kind) {
			return false
		}
		if len(v.order) > from && (n.parent != v.nodes[before].id || n.seq <= v.nodes[before].seq) {
			return false
		}
		n.covered = true
		v.order = append(v.order, int32(i))
		before = i
		return true
	})
	v.ranges[segment] = segmentRange{from, len(v.order)}
	delete(v.ranges, "") // what was before the first segment
	return err
}

// segments compares both ends of every segment with what is said of it.
func (v *voucher) segments(ctx context.Context, h *handle) error {
	described := 0
	var name, tip string
	var seq int64
	err := v.each(ctx, h, sqlVouchSegments, func(row plainRow) bool {
		if !row.columns(&name, &tip, &seq) {
			return false
		}
		rows, ok := v.ranges[name]
		if !ok {
			return false
		}
		described++
		oldest, newest := v.nodes[v.order[rows.from]], v.nodes[v.order[rows.to-1]]
		foot, ok := v.foot(row[3], row[4])
		return ok && newest.id == store.KeyOf(tip) && newest.seq == seq && oldest.parent == foot
	})
	if err == nil && described != len(v.ranges) {
		err = errNotVouched
	}
	return err
}

// foot is the entry that a segment stands on.
func (v *voucher) foot(on, number driver.Value) (store.IDKey, bool) {
	if on == nil {
		return v.root, number == nil
	}
	name, ok := on.(string)
	seq, numbered := number.(int64)
	rows, there := v.ranges[name]
	if !ok || !numbered || !there {
		return v.root, false
	}
	all := v.order[rows.from:rows.to]
	i, ok := slices.BinarySearchFunc(all, seq, func(at int32, seq int64) int { return cmp.Compare(v.nodes[at].seq, seq) })
	if !ok {
		return v.root, false
	}
	return v.nodes[all[i]].id, true
}

// covered reports that every entry is in some segment.
func (v *voucher) covered() bool {
	return !slices.ContainsFunc(v.nodes, func(n node) bool { return !n.covered })
}
