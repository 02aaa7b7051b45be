package op

import (
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Placed is content with the entry id under which it enters the tree.
type Placed struct {
	EntryID string
	Content store.PendingEntry
}

// PlaceMessage pairs a message with its entry id.
func PlaceMessage(entryID string, m message.Message) Placed {
	return Placed{entryID, store.PendingEntry{Type: store.TypeMessage, Payload: []byte(m)}}
}

// RunRequest is a normalized request to accept a run.
type RunRequest struct {
	OperationID string
	Prompt      []Placed
	// NextRun is the captured content of the lane's pending next-run entries.
	NextRun  []Placed
	Settings Settings
}

// Accept creates a run on an idle lane (spec §3.6): what waited for the next run
// is placed first, then the caller's messages; no work starts.
func Accept(t Turn, r RunRequest) (Plan, error) {
	if t.State != nil {
		return Plan{}, invalid("accept: lane %s already runs operation %s", t.Lane, t.Operation.OperationID)
	}
	if len(r.Prompt)+len(r.NextRun) == 0 {
		return Plan{}, invalid("accept: nothing to place")
	}
	p := placement{lane: t.Lane, runID: r.OperationID, leaf: t.Leaf}
	p.place(r.NextRun...)
	p.place(r.Prompt...)
	for _, q := range r.NextRun {
		p.writes = append(p.writes, store.Pending(q.EntryID).Delete())
	}
	operation := Operation{
		OperationID: r.OperationID, Lane: t.Lane, SourceLeafID: t.Leaf, StartedAt: t.Now,
		Intent: Intent{Kind: KindRun, PromptEntryIDs: entryIDs(r.Prompt)},
	}
	writes := append(p.writes, store.LaneLeaf(t.Lane).Set(p.leaf), Meta(r.OperationID).Set(operation))
	lane := store.LaneState{
		CurrentOperationID: store.LeafID(r.OperationID),
		PendingNextRun:     without(t.LaneState.PendingNextRun, entryIDs(r.NextRun)),
	}
	return Plan{
		Writes:   writes,
		Next:     RunState{Control: Control{Status: Running}, Settings: r.Settings, Phase: Starting{}},
		Lane:     &lane,
		Accepted: &operation,
		Events:   append([]Event{{Type: EventRunStart, Lane: t.Lane, RunID: r.OperationID}}, p.events...),
	}, nil
}

// Begin consumes the before_run hooks: their messages are placed and the run
// owes its first assistant turn (spec §3.6).
func Begin(t Turn, injected []Placed) (Plan, error) {
	s, ok := t.Run()
	if !ok {
		return Plan{}, invalid("begin: the operation is no run")
	}
	if _, ok := s.Phase.(Starting); !ok {
		return Plan{}, invalid("begin: the run is already at %s", PointOf(t.State))
	}
	p := placement{lane: t.Lane, runID: t.Operation.OperationID, leaf: t.Leaf}
	p.place(injected...)
	if len(injected) > 0 {
		p.writes = append(p.writes, store.LaneLeaf(t.Lane).Set(p.leaf))
	}
	s.Phase = Checkpoint{Continuation: NeedAssistant(false), TriggerEntryID: string(p.leaf)}
	return Plan{Writes: p.writes, Next: s, Events: p.events}, nil
}

// placement inserts content one entry after the other.
type placement struct {
	lane, runID string
	leaf        store.LeafID
	writes      []store.Write
	events      []Event
}

func (p *placement) place(items ...Placed) {
	for _, item := range items {
		p.writes = append(p.writes, store.InsertEntry(item.Content.Entry(item.EntryID, string(p.leaf))))
		p.leaf = store.LeafID(item.EntryID)
		if item.Content.Type == store.TypeMessage {
			m := message.Message(item.Content.Payload)
			p.events = append(p.events,
				Event{Type: EventMessageStart, Lane: p.lane, RunID: p.runID, Message: m},
				Event{Type: EventMessageEnd, Lane: p.lane, RunID: p.runID, Message: m, EntryID: item.EntryID})
		}
		p.events = append(p.events, Event{Type: EventEntryAdded, Lane: p.lane, RunID: p.runID, EntryID: item.EntryID})
	}
}

func entryIDs(items []Placed) []string {
	ids := make([]string, len(items))
	for i, item := range items {
		ids[i] = item.EntryID
	}
	return ids
}

func without(ids, drop []string) []string {
	kept := make([]string, 0, len(ids))
	gone := make(map[string]bool, len(drop))
	for _, id := range drop {
		gone[id] = true
	}
	for _, id := range ids {
		if !gone[id] {
			kept = append(kept, id)
		}
	}
	return kept
}
