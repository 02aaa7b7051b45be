package op

import (
	"encoding/json"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// publishResponse is the part that every settlement of a response shares.
func publishResponse(t Turn, responseID, usageID string, m message.Message, a Attribution, recovery bool) Plan {
	id := t.Operation.OperationID
	a.Outcome = string(m.StopReason())
	row := store.NewUsage{ID: usageID, EntryID: responseID, Details: a.details(t)}
	if raw, ok := m.Get("usage"); ok {
		row.RawUsage = raw
	}
	return Plan{
		Writes: []store.Write{
			store.InsertEntry(store.MessageEntry(responseID, string(t.Leaf), m)),
			store.LaneLeaf(t.Lane).Set(store.LeafID(responseID)),
			store.InsertUsage(row),
			Frames(id, responseID).Delete(),
		},
		Events: []Event{
			{Type: EventEntryAdded, Lane: t.Lane, RunID: id, EntryID: responseID, Recovery: recovery},
			{Type: EventUsage, Lane: t.Lane, EntryID: usageID},
		},
	}
}

// Attribution says what a provider's ledger row was spent on (D55).
type Attribution struct {
	Kind    string // assistant, deferred, compaction, branch_summary
	Model   message.ModelRef
	Attempt int64
	Outcome string // how the response ended
}

func (a Attribution) details(t Turn) json.RawMessage {
	dst := append([]byte(nil), `{"attribution":{"operationId":`...)
	dst = rawjson.AppendQuote(dst, t.Operation.OperationID)
	for _, field := range []struct{ key, text string }{
		{"lane", t.Lane}, {"kind", a.Kind}, {"provider", a.Model.Provider}, {"modelId", a.Model.ModelID},
	} {
		dst = append(rawjson.AppendQuote(append(dst, ','), field.key), ':')
		dst = rawjson.AppendQuote(dst, field.text)
	}
	dst = rawjson.AppendInt(append(dst, `,"attempt":`...), a.Attempt)
	dst = rawjson.AppendQuote(append(dst, `,"outcome":`...), a.Outcome)
	return append(dst, "}}"...)
}

// Summary is a finished summary on its way into the tree.
type Summary struct {
	EntryID  string
	Text     string
	Details  json.RawMessage // nil when there are none
	Usage    json.RawMessage // display snapshot of the producing attempt, nil without
	FromHook bool
	// HookUsageID is the fresh id of the ledger row of a hook that reported usage.
	HookUsageID string
	// RetainedTail and TokensBefore come from the preparation of a compaction.
	RetainedTail json.RawMessage
	TokensBefore int64
}

func (s Summary) payload(middle func(dst []byte) []byte) json.RawMessage {
	dst := append([]byte(nil), `{"summary":`...)
	dst = middle(rawjson.AppendQuote(dst, s.Text))
	if s.Details != nil {
		dst = append(append(dst, `,"details":`...), s.Details...)
	}
	if s.Usage != nil {
		dst = append(append(dst, `,"usage":`...), s.Usage...)
	}
	if s.FromHook {
		return append(dst, `,"fromHook":true}`...)
	}
	return append(dst, `,"fromHook":false}`...)
}

func (s Summary) hookUsage(entryID string) []store.Write {
	if s.HookUsageID == "" {
		return nil
	}
	return []store.Write{store.InsertUsage(store.NewUsage{ID: s.HookUsageID, EntryID: entryID, RawUsage: s.Usage})}
}

// PublishCompaction places a finished compaction on the lane (spec §3.9).
func PublishCompaction(t Turn, sum Summary) (Plan, error) {
	s, err := generating(t, "publish")
	if err != nil {
		return Plan{}, err
	}
	entry := store.NewEntry{
		ID: sum.EntryID, ParentID: string(t.Leaf), Type: store.TypeCompaction,
		Payload: sum.payload(func(dst []byte) []byte {
			dst = append(append(dst, `,"retainedTail":`...), sum.RetainedTail...)
			dst = append(dst, `,"tokensBefore":`...)
			return rawjson.AppendInt(dst, sum.TokensBefore)
		}),
	}
	writes := append(sum.hookUsage(sum.EntryID), store.InsertEntry(entry), store.LaneLeaf(t.Lane).Set(store.LeafID(sum.EntryID)))
	added := publicationEvents(t, sum, s)
	t.Leaf = store.LeafID(sum.EntryID)
	run, ok := t.Run()
	if !ok {
		plan := endStructural(t, Completed, nil, writes)
		last := &plan.Events[len(plan.Events)-1]
		last.EntryID, last.FromHook = sum.EntryID, sum.FromHook
		plan.Events = append(added, plan.Events...)
		return plan, nil
	}
	c := run.Phase.(InRunCompaction)
	run.Phase = c.ResumeAfter
	return Plan{Writes: writes, Next: run, Events: append(added, Event{
		Type: EventCompactionEnd, Lane: t.Lane, RunID: t.Operation.OperationID, Reason: c.Reason,
		Outcome: Completed, EntryID: sum.EntryID, FromHook: sum.FromHook,
	})}, nil
}

func publicationEvents(t Turn, sum Summary, s Structural) []Event {
	id := t.Operation.OperationID
	var events []Event
	if p, ok := s.Generation.(SummaryEffectPending); ok && p.Attempt > 1 {
		events = append(events, Event{Type: EventRetryEnd, Lane: t.Lane, RunID: id, Step: s.TaskID, Attempt: p.Attempt, Success: true})
	}
	events = append(events, Event{Type: EventEntryAdded, Lane: t.Lane, RunID: id, EntryID: sum.EntryID})
	if sum.HookUsageID != "" {
		events = append(events, Event{Type: EventUsage, Lane: t.Lane, EntryID: sum.HookUsageID})
	}
	return events
}

// Navigate moves the lane, with its summary when it has one, in navigation's
// terminal transaction (spec §3.10). sum is nil without a summary.
func Navigate(t Turn, sum *Summary) (Plan, error) {
	s, ok := t.State.(NavigationState)
	if !ok {
		return Plan{}, invalid("navigate: the operation is no navigation")
	}
	if (s.Structural != nil) != (sum != nil) {
		return Plan{}, invalid("navigate: summary and state do not fit at %s", PointOf(t.State))
	}
	var writes []store.Write
	var events []Event
	if sum != nil {
		writes = sum.hookUsage(sum.EntryID)
		events = publicationEvents(t, *sum, *s.Structural)
	}
	source := t.Operation.SourceLeafID
	writes = append(writes, store.LaneLeaf(t.Lane).Set(s.TargetID))
	t.Leaf = s.TargetID
	if sum != nil {
		entry := store.NewEntry{
			ID: sum.EntryID, ParentID: string(s.TargetID), Type: store.TypeBranchSummary,
			Payload: sum.payload(func(dst []byte) []byte {
				from, _ := source.AppendJSON(nil)
				return append(append(dst, `,"fromId":`...), from...)
			}),
		}
		t.Leaf = store.LeafID(sum.EntryID)
		writes = append(writes, store.InsertEntry(entry), store.LaneLeaf(t.Lane).Set(t.Leaf))
	}
	if s.Label != "" {
		writes = append(writes, store.EntryLabel(string(s.TargetID)).Set(s.Label))
		events = append(events, Event{Type: EventValueUpdate, EntryID: string(s.TargetID), Property: "entry_label", Text: s.Label})
	}
	plan := endStructural(t, Completed, nil, writes)
	if sum != nil {
		plan.Result.SummaryEntryID = sum.EntryID
		plan.Events[len(plan.Events)-1].EntryID = sum.EntryID
	}
	plan.Events = append(events, plan.Events...)
	return plan, nil
}

// EndStructural ends a standalone compaction or navigation without publishing
// anything: aborted, when cancellation was requested (spec §4.6).
func EndStructural(t Turn) (Plan, error) {
	if _, ok := t.Run(); ok || !t.State.Cancel().Cancelled() {
		return Plan{}, invalid("end structural: nothing was cancelled at %s", PointOf(t.State))
	}
	return endStructural(t, Aborted, nil, nil), nil
}

func endStructural(t Turn, outcome Outcome, e *Error, publication []store.Write) Plan {
	result := LaneLastResult{
		OperationID: t.Operation.OperationID, Kind: KindOf(t.State), Outcome: outcome, LeafID: t.Leaf, Error: e,
	}
	event := Event{Type: EventCompactionEnd, Lane: t.Lane, RunID: t.Operation.OperationID, Outcome: outcome, Error: e, Reason: ReasonManual}
	if result.Kind == KindNavigation {
		result.OldLeafID = t.Operation.SourceLeafID
		event.Type, event.Reason, event.OldLeafID, event.LeafID = EventNavigationEnd, "", result.OldLeafID, t.Leaf
	}
	return terminal(t, result, publication, nil, event)
}
