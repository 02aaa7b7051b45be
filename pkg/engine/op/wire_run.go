package op

import (
	"encoding/json"
	"fmt"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

type runWire struct {
	Control                Control         `json:"control"`
	Settings               Settings        `json:"settings"`
	Phase                  json.RawMessage `json:"phase"`
	Inbox                  Inbox           `json:"inbox"`
	LatestAssistantEntryID store.LeafID    `json:"latestAssistantEntryId"`
}

// UnmarshalJSON reads the state of §3.2.
func (s *RunState) UnmarshalJSON(raw []byte) error {
	var w runWire
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	phase, err := decodePhase(w.Phase)
	*s = RunState{w.Control, w.Settings, phase, w.Inbox, w.LatestAssistantEntryID}
	return err
}

type compactionWire struct {
	Control            Control    `json:"control"`
	CustomInstructions string     `json:"customInstructions,omitempty"`
	Structural         Structural `json:"structural"`
}

// MarshalJSON writes the state of §3.2.
func (s CompactionState) MarshalJSON() ([]byte, error) {
	return tagged("kind", KindCompaction, compactionWire(s))
}

// UnmarshalJSON reads the state of §3.2.
func (s *CompactionState) UnmarshalJSON(raw []byte) error {
	return json.Unmarshal(raw, (*compactionWire)(s))
}

type navigationWire struct {
	Control            Control         `json:"control"`
	TargetID           store.LeafID    `json:"targetId"`
	Label              string          `json:"label,omitempty"`
	CustomInstructions string          `json:"customInstructions,omitempty"`
	Summarize          bool            `json:"summarize"`
	Phase              navigationPhase `json:"phase"`
}

type navigationPhase struct {
	Kind       string      `json:"kind"`
	Structural *Structural `json:"structural,omitempty"`
}

// MarshalJSON writes the state of §3.2.
func (s NavigationState) MarshalJSON() ([]byte, error) {
	phase := navigationPhase{Kind: "ready_to_commit"}
	if s.Structural != nil {
		phase = navigationPhase{Kind: "summary", Structural: s.Structural}
	}
	return tagged("kind", KindNavigation, navigationWire{
		s.Control, s.TargetID, s.Label, s.CustomInstructions, s.Structural != nil, phase,
	})
}

// UnmarshalJSON reads the state of §3.2.
func (s *NavigationState) UnmarshalJSON(raw []byte) error {
	var w navigationWire
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	want := "ready_to_commit"
	if w.Summarize {
		want = "summary"
	}
	if w.Phase.Kind != want || w.Summarize != (w.Phase.Structural != nil) {
		return fmt.Errorf("navigation phase %q does not fit summarize %t", w.Phase.Kind, w.Summarize)
	}
	*s = NavigationState{w.Control, w.TargetID, w.Label, w.CustomInstructions, w.Phase.Structural}
	return nil
}

type controlWire struct {
	Status          ControlStatus `json:"status"`
	RequestedAt     *int64        `json:"requestedAt,omitempty"`
	DrainedSteer    []string      `json:"drainedSteer,omitempty"`
	DrainedFollowUp []string      `json:"drainedFollowUp,omitempty"`
}

// MarshalJSON writes the fields that belong to the status.
func (c Control) MarshalJSON() ([]byte, error) {
	switch c.Status {
	case Running:
		return []byte(`{"status":"running"}`), nil
	case CancelRequested:
		return marshal(struct {
			Status          ControlStatus `json:"status"`
			RequestedAt     int64         `json:"requestedAt"`
			DrainedSteer    []string      `json:"drainedSteer"`
			DrainedFollowUp []string      `json:"drainedFollowUp"`
		}{c.Status, c.RequestedAt, nonNil(c.DrainedSteer), nonNil(c.DrainedFollowUp)})
	}
	return nil, fmt.Errorf("unknown control status %q", c.Status)
}

// UnmarshalJSON refuses an unknown status.
func (c *Control) UnmarshalJSON(raw []byte) error {
	var w controlWire
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	if w.Status != Running && w.Status != CancelRequested {
		return fmt.Errorf("unknown control status %q", w.Status)
	}
	*c = Control{Status: w.Status, DrainedSteer: w.DrainedSteer, DrainedFollowUp: w.DrainedFollowUp}
	if w.RequestedAt != nil {
		c.RequestedAt = *w.RequestedAt
	}
	return nil
}

func nonNil(ids []string) []string {
	if ids == nil {
		return []string{}
	}
	return ids
}

type continuationWire struct {
	Kind                  ContinuationKind `json:"kind"`
	OverflowRecoveryUsed  *bool            `json:"overflowRecoveryUsed,omitempty"`
	IncludeFinalAssistant *bool            `json:"includeFinalAssistant,omitempty"`
}

// UnmarshalJSON refuses an unknown kind.
func (c *Continuation) UnmarshalJSON(raw []byte) error {
	var w continuationWire
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	switch {
	case w.Kind == NeedAssistantKind && w.OverflowRecoveryUsed != nil:
		*c = NeedAssistant(*w.OverflowRecoveryUsed)
	case w.Kind == MayFinishKind && w.IncludeFinalAssistant != nil:
		*c = MayFinish(*w.IncludeFinalAssistant)
	default:
		return fmt.Errorf("unknown or incomplete continuation %q", w.Kind)
	}
	return nil
}

type provenanceWire struct {
	Kind    ProvenanceKind `json:"kind"`
	EntryID string         `json:"entryId,omitempty"`
	TaskID  string         `json:"taskId,omitempty"`
}

// MarshalJSON writes the id that belongs to the kind.
func (p Provenance) MarshalJSON() ([]byte, error) { return marshal(provenanceWire(p)) }

// UnmarshalJSON refuses an unknown kind.
func (p *Provenance) UnmarshalJSON(raw []byte) error {
	if err := json.Unmarshal(raw, (*provenanceWire)(p)); err != nil {
		return err
	}
	if p.Kind != FromResponse && p.Kind != FromStructural {
		return fmt.Errorf("unknown provenance %q", p.Kind)
	}
	return nil
}

// UnmarshalJSON refuses acceptance data without its intent.
func (o *Operation) UnmarshalJSON(raw []byte) error {
	if err := needs(raw, "intent"); err != nil {
		return err
	}
	type body Operation
	return json.Unmarshal(raw, (*body)(o))
}

type intentWire struct {
	Kind               Kind          `json:"kind"`
	PromptEntryIDs     *[]string     `json:"promptEntryIds,omitempty"`
	TargetID           *store.LeafID `json:"targetId,omitempty"`
	Summarize          *bool         `json:"summarize,omitempty"`
	Label              string        `json:"label,omitempty"`
	CustomInstructions string        `json:"customInstructions,omitempty"`
}

// MarshalJSON writes the fields that belong to the kind.
func (i Intent) MarshalJSON() ([]byte, error) {
	w := intentWire{Kind: i.Kind, CustomInstructions: i.CustomInstructions}
	switch i.Kind {
	case KindRun:
		ids := nonNil(i.PromptEntryIDs)
		w.PromptEntryIDs = &ids
	case KindNavigation:
		w.TargetID, w.Summarize, w.Label = &i.TargetID, &i.Summarize, i.Label
	case KindCompaction:
	default:
		return nil, fmt.Errorf("unknown operation kind %q", i.Kind)
	}
	return marshal(w)
}

// UnmarshalJSON refuses an unknown kind.
func (i *Intent) UnmarshalJSON(raw []byte) error {
	var w struct {
		Kind               Kind         `json:"kind"`
		PromptEntryIDs     []string     `json:"promptEntryIds"`
		TargetID           store.LeafID `json:"targetId"`
		Summarize          bool         `json:"summarize"`
		Label              string       `json:"label"`
		CustomInstructions string       `json:"customInstructions"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	switch w.Kind {
	case KindRun, KindCompaction, KindNavigation:
	default:
		return fmt.Errorf("unknown operation kind %q", w.Kind)
	}
	*i = Intent{w.Kind, w.PromptEntryIDs, w.CustomInstructions, w.TargetID, w.Summarize, w.Label}
	return nil
}

type callWire struct {
	Status        CallStatus `json:"status"`
	SourceIndex   int        `json:"sourceIndex"`
	ResultEntryID string     `json:"resultEntryId"`
	Replay        Replay     `json:"replay,omitempty"`
	Executions    int        `json:"executions,omitempty"`
	Terminate     *bool      `json:"terminate,omitempty"`
}

// MarshalJSON writes the fields that belong to the status.
func (c ToolCall) MarshalJSON() ([]byte, error) {
	w := callWire{Status: c.Status, SourceIndex: c.SourceIndex, ResultEntryID: c.ResultEntryID}
	switch c.Status {
	case CallPlanned:
	case CallEffectPending:
		w.Replay, w.Executions = c.Replay, c.Executions
	case CallOutcomeReady, CallCompleted:
		w.Terminate = &c.Terminate
	default:
		return nil, fmt.Errorf("unknown call status %q", c.Status)
	}
	return marshal(w)
}

// UnmarshalJSON refuses an unknown status.
func (c *ToolCall) UnmarshalJSON(raw []byte) error {
	var w callWire
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	switch w.Status {
	case CallPlanned, CallEffectPending, CallOutcomeReady, CallCompleted:
	default:
		return fmt.Errorf("unknown call status %q", w.Status)
	}
	if w.Status == CallEffectPending && w.Executions < 1 {
		return fmt.Errorf("call %d is pending and was started %d times", w.SourceIndex, w.Executions)
	}
	*c = ToolCall{
		Status: w.Status, SourceIndex: w.SourceIndex, ResultEntryID: w.ResultEntryID, Replay: w.Replay, Executions: w.Executions,
	}
	if w.Terminate != nil {
		c.Terminate = *w.Terminate
	}
	return nil
}

type deferredWire struct {
	Status          DeferredStatus          `json:"status"`
	StepID          string                  `json:"stepId"`
	SourceEntryID   string                  `json:"sourceEntryId"`
	Poll            int64                   `json:"poll"`
	ResponseEntryID string                  `json:"responseEntryId,omitempty"`
	UsageID         string                  `json:"usageId,omitempty"`
	Configuration   store.LaneConfiguration `json:"configuration"`
	StreamOptions   message.StreamOptions   `json:"streamOptions"`
}

// MarshalJSON writes the fields that belong to the status.
func (d Deferred) MarshalJSON() ([]byte, error) { return marshal(deferredWire(d)) }

// UnmarshalJSON refuses an unknown status.
func (d *Deferred) UnmarshalJSON(raw []byte) error {
	if err := json.Unmarshal(raw, (*deferredWire)(d)); err != nil {
		return err
	}
	if d.Status != DeferredSuspended && d.Status != DeferredEffectPending {
		return fmt.Errorf("unknown deferred status %q", d.Status)
	}
	return nil
}

type structuralWire struct {
	TaskID     string          `json:"taskId"`
	Status     string          `json:"status"`
	Generation json.RawMessage `json:"generation,omitempty"`
}

// MarshalJSON writes deciding, or generating with its state.
func (s Structural) MarshalJSON() ([]byte, error) {
	w := structuralWire{TaskID: s.TaskID, Status: "deciding"}
	if s.Generation != nil {
		g, err := marshal(s.Generation)
		if err != nil {
			return nil, err
		}
		w.Status, w.Generation = "generating", g
	}
	return marshal(w)
}

// UnmarshalJSON refuses an unknown status.
func (s *Structural) UnmarshalJSON(raw []byte) (err error) {
	var w structuralWire
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	s.TaskID = w.TaskID
	switch w.Status {
	case "deciding":
		s.Generation = nil
	case "generating":
		s.Generation, err = decodeSummary(w.Generation)
	default:
		err = fmt.Errorf("unknown structural status %q", w.Status)
	}
	return err
}
