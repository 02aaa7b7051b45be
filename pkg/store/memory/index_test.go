package memory

import (
	"strconv"
	"testing"
)

// Among this many ids a few share their 32 bits of hash.
func TestIndex(t *testing.T) {
	const n = 300_000
	var h history
	x := newIndex()
	for i := range n {
		id := strconv.Itoa(i)
		if i == n/10 {
			x.reserve(n / 2) // moves what is there
			x.reserve(16)    // is nothing
		}
		if i%3 == 0 {
			if !x.add(&h, id, usageName(h.usage.n)) {
				t.Fatalf("row %s is refused", id)
			}
			h.usage.add(usageRow{id: id})
			continue
		}
		if !x.add(&h, id, entryName(h.entries.n)) {
			t.Fatalf("entry %s is refused", id)
		}
		h.entries.add(entry{id: id})
	}
	for i := range n {
		id := strconv.Itoa(i)
		name, _, _ := x.find(&h, id)
		if name == 0 || h.named(name) != id || (name < 0) != (i%3 == 0) {
			t.Fatalf("%s is found as %d", id, name)
		}
		if x.add(&h, id, entryName(0)) {
			t.Fatalf("%s is taken twice", id)
		}
	}
	if name, _, _ := x.find(&h, "absent"); name != 0 {
		t.Fatalf("an absent id is found as %d", name)
	}
}
