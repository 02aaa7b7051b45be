package repair

import (
	"encoding/json"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
)

// lane is what is left of a lane's values.
type lane struct{ leaf, config, state *placed }

// standing is a kept entry and the kept one that it hangs on, "" for a root.
type standing struct{ id, parent string }

// settleLeaves makes every lane stand where its entries allow it to. Those of which
// nothing tells where they stood come last: what the others stand on is not theirs.
func (v *surveyor) settleLeaves(names []string) {
	var lost []string
	p := &places{entries: v.stand}
	for _, name := range names {
		if leaf, known := v.leafOf(name, v.lanes[name].leaf); known {
			p.take(leaf)
		} else if name == store.MainLane {
			lost = append([]string{name}, lost...)
		} else {
			lost = append(lost, name)
		}
	}
	for _, name := range lost {
		v.placeLane(name, v.lanes[name].leaf, p.newest())
	}
}

// leafOf is the entry that a lane stands on, "" before the first; a lost one is its
// nearest kept ancestor. It is not known when none of these is left.
func (v *surveyor) leafOf(name string, leaf *placed) (id string, known bool) {
	if leaf == nil {
		return "", false
	}
	if string(leaf.value) == "null" {
		return "", true
	}
	id, err := rawjson.Unquote(leaf.value)
	kept := v.kept(id)
	switch {
	case err != nil || kept == "":
		return "", false
	case kept != id:
		v.value[leaf.n] = leafValue(kept)
		v.change("lane_leaf", "lane "+name, "its leaf is lost: the lane stands on %s, the nearest kept ancestor", kept)
	}
	return kept, true
}

func leafValue(id string) json.RawMessage {
	raw, _ := store.LeafID(id).AppendJSON(nil) // of an id, which cannot fail
	return raw
}

// placeLane puts a lane whose place is lost on an entry, so that what was kept does not
// look like nothing.
func (v *surveyor) placeLane(name string, leaf *placed, id string) {
	if leaf != nil {
		v.value[leaf.n] = leafValue(id)
	} else {
		v.add(store.LaneLeaf(name).Address(), leafValue(id))
	}
	if id == "" {
		v.change("lane_leaf", "lane "+name, "its leaf is lost, and so is every entry: the lane stands before the first entry")
	} else {
		v.change("lane_leaf", "lane "+name, "its leaf is lost, and no ancestor of it is known: the lane is set to %s, the newest saved entry that it can stand on", id)
	}
}

// settleState gives a lane a state, and an idle one where operations are left out.
func (v *surveyor) settleState(name string, l *lane) {
	idle := json.RawMessage(`{"currentOperationId":null,"pendingNextRun":[]}`)
	switch {
	case l.state == nil:
		v.add(store.LaneStateOf(name).Address(), idle)
		v.change("lane_incomplete", "lane "+name, "its state is lost: the lane is idle")
	case v.refused.operations:
		v.value[l.state.n] = idle
		v.change("lane_idle", "lane "+name, "its operation and what was queued is left out: the lane is idle")
	}
}

// add completes a lane with a value that a session must have.
func (v *surveyor) add(addr store.Address, value json.RawMessage) {
	v.extra = append(v.extra, store.Record{Kind: store.KindValue, Op: store.OpSet, Seq: v.next, Address: addr, Value: value})
	v.next++
	v.done.Values++
}

// places are the entries that a lane can be put on.
type places struct {
	entries []standing
	parents map[string]string
	taken   map[string]bool // a lane stands on the entry, or below it
}

// take marks what a lane stands on.
func (p *places) take(leaf string) {
	if p.parents == nil {
		p.taken, p.parents = make(map[string]bool), make(map[string]string, len(p.entries))
		for _, e := range p.entries {
			p.parents[e.id] = e.parent
		}
	}
	for ; leaf != "" && !p.taken[leaf]; leaf = p.parents[leaf] {
		p.taken[leaf] = true
	}
}

// newest takes the newest entry that no lane stands on; where every entry is taken it
// is the newest of all, and "" where there is none.
func (p *places) newest() string {
	for i := len(p.entries) - 1; i >= 0; i-- {
		if id := p.entries[i].id; !p.taken[id] {
			p.take(id)
			return id
		}
	}
	if len(p.entries) == 0 {
		return ""
	}
	return p.entries[len(p.entries)-1].id
}
