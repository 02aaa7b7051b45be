package op

import (
	"encoding/json"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Kind is the kind of an operation (spec §3.1).
type Kind string

// The operation kinds.
const (
	KindRun        Kind = "run"
	KindCompaction Kind = "compaction"
	KindNavigation Kind = "navigation"
)

// Operation is an operation's acceptance data: written once, deleted by its
// terminal transaction (spec §3.1).
type Operation struct {
	OperationID  string       `json:"operationId"`
	Lane         string       `json:"lane"`
	SourceLeafID store.LeafID `json:"sourceLeafId"`
	StartedAt    int64        `json:"startedAt"` // Unix ms
	Intent       Intent       `json:"intent"`
}

// Intent is what an operation was accepted for. The fields beyond Kind belong
// to that kind alone.
type Intent struct {
	Kind               Kind
	PromptEntryIDs     []string     // run
	CustomInstructions string       // compaction, navigation
	TargetID           store.LeafID // navigation; "" is the root
	Summarize          bool         // navigation
	Label              string       // navigation
}

// ControlStatus is the orthogonal cancellation flag.
type ControlStatus string

// The control states.
const (
	Running         ControlStatus = "running"
	CancelRequested ControlStatus = "cancel_requested"
)

// Control is the cancellation state of an operation; the other fields belong to
// CancelRequested (spec §3.2).
type Control struct {
	Status          ControlStatus
	RequestedAt     int64 // Unix ms
	DrainedSteer    []string
	DrainedFollowUp []string
}

// Cancelled reports whether cancellation was requested.
func (c Control) Cancelled() bool { return c.Status == CancelRequested }

// State is the total durable state of an open operation (spec §3.2).
type State interface {
	// Control returns the cancellation flag.
	Cancel() Control
	state()
}

// QueueMode says how much a drain point takes from a queue.
type QueueMode string

// The queue modes.
const (
	QueueAll QueueMode = "all"
	QueueOne QueueMode = "one-at-a-time"
)

// ToolExecution says how the calls of one batch run.
type ToolExecution string

// The tool execution modes.
const (
	Sequential ToolExecution = "sequential"
	Parallel   ToolExecution = "parallel"
)

// CompactionSettings are token counts and a switch (spec §0.7).
type CompactionSettings struct {
	Enabled          bool  `json:"enabled"`
	ReserveTokens    int64 `json:"reserveTokens"`
	KeepRecentTokens int64 `json:"keepRecentTokens"`
}

// Settings are captured at acceptance; setters affect later operations. Every
// generation of the run uses StreamOptions, whichever process drives it (D34).
type Settings struct {
	Compaction    CompactionSettings    `json:"compaction"`
	SteeringMode  QueueMode             `json:"steeringMode"`
	FollowUpMode  QueueMode             `json:"followUpMode"`
	ToolExecution ToolExecution         `json:"toolExecution"`
	StreamOptions message.StreamOptions `json:"streamOptions"`
}

// Inbox holds reserved entry ids; their content waits in pi.pending.entry.
type Inbox struct {
	Steer    []string `json:"steer"`
	FollowUp []string `json:"followUp"`
	Writes   []string `json:"writes"`
}

// Empty reports whether nothing waits.
func (i Inbox) Empty() bool { return len(i.Steer)+len(i.FollowUp)+len(i.Writes) == 0 }

// RunState is the state of a run.
type RunState struct {
	Control                Control
	Settings               Settings
	Phase                  Phase
	Inbox                  Inbox
	LatestAssistantEntryID store.LeafID // "" is null: no answer yet
}

// CompactionState is the state of a standalone compaction.
type CompactionState struct {
	Control            Control
	CustomInstructions string
	Structural         Structural
}

// NavigationState is the state of a navigation. Structural is nil for one
// without a summary, which is ready to commit.
type NavigationState struct {
	Control            Control
	TargetID           store.LeafID
	Label              string
	CustomInstructions string
	Structural         *Structural
}

func (RunState) state()        {}
func (CompactionState) state() {}
func (NavigationState) state() {}

// Cancel returns the cancellation flag.
func (s RunState) Cancel() Control { return s.Control }

// Cancel returns the cancellation flag.
func (s CompactionState) Cancel() Control { return s.Control }

// Cancel returns the cancellation flag.
func (s NavigationState) Cancel() Control { return s.Control }

// Error is why an operation failed (spec §3.2).
type Error struct {
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Details json.RawMessage `json:"details,omitempty"`
}

// RetryPolicy is the normalized policy captured by a generation (spec §0.7).
type RetryPolicy struct {
	MaxAttempts int64 `json:"maxAttempts"`
	BaseDelayMs int64 `json:"baseDelayMs"`
}

// GenerationContext is the inline snapshot that every attempt of one step uses
// (spec §3.2).
type GenerationContext struct {
	StepID               string                  `json:"stepId"`
	TriggerEntryID       string                  `json:"triggerEntryId"`
	Configuration        store.LaneConfiguration `json:"configuration"`
	StreamOptions        message.StreamOptions   `json:"streamOptions"`
	RetryPolicy          RetryPolicy             `json:"retryPolicy"`
	OverflowRecoveryUsed bool                    `json:"overflowRecoveryUsed"`
}
