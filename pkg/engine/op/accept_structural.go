package op

import (
	"github.com/drover-run/drover/pkg/store"
)

// CompactionRequest is a request to compact with its non-empty preparation.
type CompactionRequest struct {
	OperationID        string
	CustomInstructions string
	Preparation        Prepared
}

// AcceptCompaction creates a standalone compaction on an idle lane (spec §3.6).
func AcceptCompaction(t Turn, r CompactionRequest) (Plan, error) {
	intent := Intent{Kind: KindCompaction, CustomInstructions: r.CustomInstructions}
	state := CompactionState{
		Control: Control{Status: Running}, CustomInstructions: r.CustomInstructions,
		Structural: Structural{TaskID: r.Preparation.TaskID},
	}
	return acceptStructural(t, r.OperationID, intent, state, &r.Preparation, Event{Type: EventCompactionStart, Reason: ReasonManual})
}

// NavigationRequest is a validated request to navigate; Preparation is nil
// without a summary.
type NavigationRequest struct {
	OperationID        string
	TargetID           store.LeafID
	Label              string
	CustomInstructions string
	Preparation        *Prepared
}

// AcceptNavigation creates a navigation on an idle lane (spec §3.6).
func AcceptNavigation(t Turn, r NavigationRequest) (Plan, error) {
	intent := Intent{
		Kind: KindNavigation, TargetID: r.TargetID, Summarize: r.Preparation != nil,
		Label: r.Label, CustomInstructions: r.CustomInstructions,
	}
	state := NavigationState{Control: Control{Status: Running}, TargetID: r.TargetID, Label: r.Label}
	if r.Preparation != nil {
		state.CustomInstructions = r.CustomInstructions
		state.Structural = &Structural{TaskID: r.Preparation.TaskID}
	}
	return acceptStructural(t, r.OperationID, intent, state, r.Preparation, Event{Type: EventNavigationStart, TargetID: r.TargetID})
}

func acceptStructural(t Turn, id string, intent Intent, next State, p *Prepared, started Event) (Plan, error) {
	if t.State != nil {
		return Plan{}, invalid("accept: lane %s already runs operation %s", t.Lane, t.Operation.OperationID)
	}
	var writes []store.Write
	if p != nil {
		writes = append(writes, PreparationOf(id, p.TaskID).Set(p.Value))
	}
	operation := Operation{OperationID: id, Lane: t.Lane, SourceLeafID: t.Leaf, StartedAt: t.Now, Intent: intent}
	lane := t.LaneState
	lane.CurrentOperationID = store.LeafID(id)
	started.Lane, started.RunID = t.Lane, id
	return Plan{Writes: append(writes, Meta(id).Set(operation)), Next: next, Lane: &lane, Accepted: &operation, Events: []Event{started}}, nil
}
