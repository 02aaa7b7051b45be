package export

import "hash/maphash"

// ids are the ids of a session's entries by index, and the way back. A session
// may have millions: their text lies in one piece.
type ids struct {
	text  []byte
	ends  []int // of each id in the text
	slots []int32
	seed  maphash.Seed
}

func newIDs() ids {
	const few = 64 // a power of two
	return ids{seed: maphash.MakeSeed(), slots: make([]int32, few)}
}

func (t *ids) len() int { return len(t.ends) }

func (t *ids) bytes(i int32) []byte {
	start := 0
	if i > 0 {
		start = t.ends[i-1]
	}
	return t.text[start:t.ends[i]]
}

// id is the id of an entry.
func (t *ids) id(i int32) string { return string(t.bytes(i)) }

// slot is where an id is, or belongs. A slot holds an index and 1; 0 is free.
func (t *ids) slot(id []byte) int {
	mask := len(t.slots) - 1
	at := int(maphash.Bytes(t.seed, id)) & mask
	for t.slots[at] != 0 && string(t.bytes(t.slots[at]-1)) != string(id) {
		at = (at + 1) & mask
	}
	return at
}

// find is the entry of an id.
func (t *ids) find(id string) (int32, bool) {
	at := t.slots[t.slot([]byte(id))]
	return at - 1, at != 0
}

// add takes the next entry's id.
func (t *ids) add(id string) {
	t.text = append(t.text, id...)
	t.ends = append(t.ends, len(t.text))
	if 2*len(t.ends) > len(t.slots) {
		t.slots = make([]int32, 2*len(t.slots))
		for i := range t.ends {
			t.slots[t.slot(t.bytes(int32(i)))] = int32(i) + 1
		}
		return
	}
	last := int32(len(t.ends) - 1)
	t.slots[t.slot(t.bytes(last))] = last + 1
}
