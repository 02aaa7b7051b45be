package op

import (
	"encoding/json"

	"github.com/drover-run/drover/pkg/store"
)

// Outcome is how an operation ended (spec §3.13).
type Outcome string

// The terminal outcomes; Declined belongs to structural operations.
const (
	Completed Outcome = "completed"
	Failed    Outcome = "failed"
	Aborted   Outcome = "aborted"
	Declined  Outcome = "declined"
)

// RunCompletion says what a completed run ended with.
type RunCompletion string

// The completions of a run.
const (
	CompletedByAssistant RunCompletion = "assistant"
	CompletedByTools     RunCompletion = "terminated_tools"
)

// LaneLastResult is a lane's latest terminal outcome, written only by terminal
// transactions (spec §3.13).
type LaneLastResult struct {
	OperationID           string
	Kind                  Kind
	Outcome               Outcome
	LeafID                store.LeafID
	FinalAssistantEntryID string        // runs
	RunCompletion         RunCompletion // completed runs
	Error                 *Error        // failed
	OldLeafID             store.LeafID  // navigations
	SummaryEntryID        string        // completed navigations with a summary
}

type lastResultWire struct {
	OperationID           string        `json:"operationId"`
	Kind                  Kind          `json:"kind"`
	Outcome               Outcome       `json:"outcome"`
	LeafID                store.LeafID  `json:"leafId"`
	FinalAssistantEntryID string        `json:"finalAssistantEntryId,omitempty"`
	RunCompletion         RunCompletion `json:"runCompletion,omitempty"`
	Error                 *Error        `json:"error,omitempty"`
	OldLeafID             *store.LeafID `json:"oldLeafId,omitempty"`
	SummaryEntryID        string        `json:"summaryEntryId,omitempty"`
}

// MarshalJSON writes the fields that belong to the kind and outcome.
func (r LaneLastResult) MarshalJSON() ([]byte, error) {
	w := lastResultWire{r.OperationID, r.Kind, r.Outcome, r.LeafID, r.FinalAssistantEntryID, r.RunCompletion, r.Error, nil, r.SummaryEntryID}
	if r.Kind == KindNavigation {
		w.OldLeafID = &r.OldLeafID
	}
	return marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *LaneLastResult) UnmarshalJSON(raw []byte) error {
	var w lastResultWire
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	*r = LaneLastResult{
		OperationID: w.OperationID, Kind: w.Kind, Outcome: w.Outcome, LeafID: w.LeafID,
		FinalAssistantEntryID: w.FinalAssistantEntryID, RunCompletion: w.RunCompletion,
		Error: w.Error, SummaryEntryID: w.SummaryEntryID,
	}
	if w.OldLeafID != nil {
		r.OldLeafID = *w.OldLeafID
	}
	return nil
}

// Finish is the terminal transition of a run: everything the operation owns goes,
// the outcome stays as the lane's last result (spec §3.13).
func Finish(t Turn) (Plan, error) {
	s, ok := t.Run()
	if !ok {
		return Plan{}, invalid("finish: the operation is no run")
	}
	result := LaneLastResult{OperationID: t.Operation.OperationID, Kind: KindRun, LeafID: t.Leaf, FinalAssistantEntryID: string(s.LatestAssistantEntryID)}
	switch phase := s.Phase.(type) {
	case Checkpoint:
		if err := finishCheckpoint(s, phase, &result); err != nil {
			return Plan{}, err
		}
	case FailureDrain:
		result.Outcome, result.Error = Failed, &phase.Error
		if s.Control.Cancelled() {
			result.Outcome, result.Error = Aborted, nil
		}
	default:
		if !s.Control.Cancelled() {
			return Plan{}, invalid("finish: a run cannot end at %s", PointOf(t.State))
		}
		result.Outcome = Aborted
	}
	return terminal(t, result, nil, runCleanup(t, s), Event{
		Type: EventRunEnd, Lane: t.Lane, RunID: t.Operation.OperationID, Outcome: result.Outcome, LeafID: result.LeafID,
		EntryID: result.FinalAssistantEntryID, Error: result.Error,
	}), nil
}

func finishCheckpoint(s RunState, c Checkpoint, result *LaneLastResult) error {
	switch {
	case s.Control.Cancelled():
		result.Outcome = Aborted
	case c.Continuation.Kind != MayFinishKind:
		return invalid("finish: the run still owes an assistant turn")
	case !s.Inbox.Empty():
		return invalid("finish: the inbox is not empty")
	case c.Continuation.IncludeFinalAssistant:
		result.Outcome, result.RunCompletion = Completed, CompletedByAssistant
	default:
		result.Outcome, result.RunCompletion, result.FinalAssistantEntryID = Completed, CompletedByTools, ""
	}
	return nil
}

// terminal builds the one shape that every ending has: publication, deletion of
// all that the operation owns, the result, an idle lane.
func terminal(t Turn, result LaneLastResult, publication, cleanup []store.Write, event Event) Plan {
	id := t.Operation.OperationID
	writes := append(publication, Meta(id).Delete(), StateOf(id).Delete())
	for _, a := range t.Leftovers {
		writes = append(writes, store.NewValue[[]byte](a.Namespace, a.Key).Delete())
	}
	lane := t.LaneState
	lane.CurrentOperationID = ""
	return Plan{Writes: append(writes, cleanup...), Result: &result, Lane: &lane, Events: []Event{event}}
}

// runCleanup deletes the frames and pending entries that a run still owns.
func runCleanup(t Turn, s RunState) []store.Write {
	var writes []store.Write
	if response := PendingResponse(s); response != "" {
		writes = append(writes, Frames(t.Operation.OperationID, response).Delete())
	}
	for _, pending := range OwnedPending(s) {
		writes = append(writes, store.Pending(pending).Delete())
	}
	return writes
}

// OwnedPending are the pending entries that die with the run; the lane's own
// next-run entries are never among them (spec §3.13).
func OwnedPending(s RunState) []string {
	ids := append([]string(nil), s.Inbox.Steer...)
	ids = append(ids, s.Inbox.FollowUp...)
	ids = append(ids, s.Inbox.Writes...)
	ids = append(ids, s.Control.DrainedSteer...)
	ids = append(ids, s.Control.DrainedFollowUp...)
	if tools, ok := s.Phase.(Tools); ok {
		for _, c := range tools.Batch.Calls {
			if c.Status == CallOutcomeReady {
				ids = append(ids, c.ResultEntryID)
			}
		}
	}
	return ids
}

// PendingResponse is the reserved id of the response whose request may be under
// way, "" when none is.
func PendingResponse(s RunState) string {
	switch p := s.Phase.(type) {
	case Assistant:
		if g, ok := p.Generation.(EffectPending); ok {
			return g.ResponseEntryID
		}
	case DeferredPhase:
		if p.Deferred.Status == DeferredEffectPending {
			return p.Deferred.ResponseEntryID
		}
	}
	return ""
}

// PendingEffects are the reserved ids whose effect may be under way: a response,
// or tool results. Frame, checkpoint and memo writes are fenced by them.
func PendingEffects(s State) map[string]bool {
	run, ok := s.(RunState)
	if !ok {
		return nil
	}
	pending := make(map[string]bool)
	if response := PendingResponse(run); response != "" {
		pending[response] = true
	}
	if tools, ok := run.Phase.(Tools); ok {
		for _, c := range tools.Batch.Calls {
			if c.Status == CallEffectPending {
				pending[c.ResultEntryID] = true
			}
		}
	}
	return pending
}
