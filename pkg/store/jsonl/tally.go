package jsonl

import "github.com/drover-run/drover/pkg/store"

// extent is a number of records and how many bytes their lines have.
type extent struct{ records, bytes int64 }

func (e extent) plus(o extent) extent  { return extent{e.records + o.records, e.bytes + o.bytes} }
func (e extent) minus(o extent) extent { return extent{e.records - o.records, e.bytes - o.bytes} }

// tally keeps account, in constant time per record, of what a compaction would
// keep. Lines that another program spelled count as they are; a compaction writes
// them in its own way.
type tally struct {
	records   int64 // in the file
	live      extent
	addressed map[slot]*extent // the live ones that can die
}

// slot is an address: values and lists have addresses of their own.
type slot struct {
	kind store.WriteKind
	addr store.Address
}

func newTally() tally { return tally{addressed: make(map[slot]*extent)} }

// add counts the next record, whose line would have that many bytes.
func (t *tally) add(r *store.Record, size int64) {
	t.records++
	e := extent{1, size}
	if r.Kind == store.KindEntry || r.Kind == store.KindUsage {
		t.live = t.live.plus(e)
		return
	}
	at := slot{r.Kind, r.Address}
	held := t.addressed[at]
	switch {
	case r.Op == store.OpDelete:
		if held != nil {
			delete(t.addressed, at)
			t.live = t.live.minus(*held)
		}
		return
	case held == nil:
		held = new(extent)
		t.addressed[at] = held
	}
	before := *held
	if r.Op == store.OpAppend {
		*held = before.plus(e)
	} else {
		*held = e
	}
	t.live = t.live.minus(before).plus(*held)
}
