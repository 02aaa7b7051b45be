package memory

import (
	"hash/maphash"
	"slices"
)

// index finds what an id names without holding the id again: that stays in the
// table of entries or of usage rows. A map of strings takes three times the
// memory, and opening a session is bound by memory.
type index struct {
	seed  maphash.Seed
	slots []slot // a power of two, a quarter of them free at least
	n     int
}

// slot is one place of the hash table. The name is an entry's index plus one, a
// usage row's index plus one, negated, or 0 in a free slot.
type slot struct {
	hash uint32
	name int32
}

func newIndex() index {
	return index{seed: maphash.MakeSeed(), slots: make([]slot, 16)}
}

func entryName(i int) int32 { return int32(i) + 1 }
func usageName(i int) int32 { return -int32(i) - 1 }

// named returns the id that a name stands for.
func (h *history) named(name int32) string {
	if name > 0 {
		return h.entries.at(int(name - 1)).id
	}
	return h.usage.at(int(-name - 1)).id
}

// find returns the name of an id, 0 when it names nothing, and the slot where
// it is or belongs.
func (x *index) find(h *history, id string) (name int32, at int, hash uint32) {
	hash = uint32(maphash.String(x.seed, id))
	mask := len(x.slots) - 1
	for at = int(hash) & mask; ; at = (at + 1) & mask {
		s := x.slots[at]
		if s.name == 0 || (s.hash == hash && h.named(s.name) == id) {
			return s.name, at, hash
		}
	}
}

// add gives an id a name, unless it has one already. The named item may be
// added to its table afterwards.
func (x *index) add(h *history, id string, name int32) bool {
	old, at, hash := x.find(h, id)
	if old != 0 {
		return false
	}
	x.slots[at] = slot{hash, name}
	if x.n++; x.n > len(x.slots)/4*3 {
		x.resize(2 * len(x.slots))
	}
	return true
}

// reserve makes room for n ids.
func (x *index) reserve(n int) {
	size := len(x.slots)
	for size/4*3 < n {
		size *= 2
	}
	if size > len(x.slots) {
		x.resize(size)
	}
}

func (x *index) resize(size int) {
	old := x.slots
	x.slots = make([]slot, size)
	mask := len(x.slots) - 1
	for _, s := range old {
		if s.name == 0 {
			continue
		}
		at := int(s.hash) & mask
		for x.slots[at].name != 0 {
			at = (at + 1) & mask
		}
		x.slots[at] = s
	}
}

func (x index) clone() index {
	x.slots = slices.Clone(x.slots)
	return x
}
