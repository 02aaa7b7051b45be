package op

import (
	"github.com/drover-run/drover/pkg/store"
)

// Turn is all that a transition may look at, read together on the lane line.
type Turn struct {
	Lane      string
	LaneState store.LaneState
	Leaf      store.LeafID
	Operation Operation // of the current operation
	State     State     // nil: the lane is idle
	Stored    []byte    // State as it is stored
	Now       int64     // Unix ms
	// Leftovers are the values the operation still owns beyond its meta, state
	// and what State names; only a terminal transition needs them (spec §3.13).
	Leftovers []store.Address
}

// Run returns the state of a run, false when the operation is another kind.
func (t Turn) Run() (RunState, bool) {
	s, ok := t.State.(RunState)
	return s, ok
}

// Plan is all that a transition answers. Next nil with Result nil leaves the
// state as it is.
type Plan struct {
	Writes []store.Write // in normative order, without the state and lane writes
	Next   State
	Result *LaneLastResult // set by terminal transitions only
	Lane   *store.LaneState
	// Accepted is the operation that Writes store, when the plan accepts one.
	Accepted *Operation
	// After are the few writes whose row puts them behind the state.
	After  []store.Write
	Events []Event // published after the commit, in order (spec §5.5, D28)
}

// Tx completes the writes with S(next) and L(next), in the order of §3.4.
func (p Plan) Tx(operationID, lane string) store.Tx {
	tx := store.Tx(p.Writes)
	if p.Next != nil {
		tx = append(tx, StateOf(operationID).Set(p.Next))
	}
	if p.Result != nil {
		tx = append(tx, LastResult(lane).Set(*p.Result))
	}
	if p.Lane != nil {
		tx = append(tx, store.LaneStateOf(lane).Set(*p.Lane))
	}
	return append(tx, p.After...)
}
