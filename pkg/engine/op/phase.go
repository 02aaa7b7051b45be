package op

import (
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Phase is where a run stands (spec §3.2).
type Phase interface{ phase() }

// Starting is an accepted run whose initial context is not yet complete.
type Starting struct{}

// Checkpoint is the boundary between turns (spec §3.12).
type Checkpoint struct {
	Continuation                   Continuation `json:"continuation"`
	TriggerEntryID                 string       `json:"triggerEntryId"`
	ThresholdCheckedTriggerEntryID string       `json:"thresholdCheckedTriggerEntryId,omitempty"`
	SkipInboxOnce                  bool         `json:"skipInboxOnce,omitempty"`
}

// Assistant is a generation step.
type Assistant struct {
	Generation Generation `json:"generation"`
}

// Tools is a tool batch.
type Tools struct {
	Batch ToolBatch `json:"batch"`
}

// InRunCompaction is a threshold or overflow compaction inside a run.
type InRunCompaction struct {
	Reason      CompactionReason `json:"reason"`
	Structural  Structural       `json:"structural"`
	ResumeAfter Checkpoint       `json:"resumeAfter"`
}

// DeferredPhase waits for a deferred answer.
type DeferredPhase struct {
	Deferred Deferred `json:"deferred"`
}

// FailureDrain applies what still waits, then ends the run as failed.
type FailureDrain struct {
	Error      Error      `json:"error"`
	Provenance Provenance `json:"provenance"`
}

func (Starting) phase()        {}
func (Checkpoint) phase()      {}
func (Assistant) phase()       {}
func (Tools) phase()           {}
func (InRunCompaction) phase() {}
func (DeferredPhase) phase()   {}
func (FailureDrain) phase()    {}

// CompactionReason says who asked for a compaction (spec §3.9).
type CompactionReason string

// The reasons of a compaction.
const (
	ReasonManual    CompactionReason = "manual"
	ReasonThreshold CompactionReason = "threshold"
	ReasonOverflow  CompactionReason = "overflow"
)

// Continuation answers whether the run still owes an assistant turn: exactly one
// of NeedAssistant and MayFinish.
type Continuation struct {
	Kind                  ContinuationKind
	OverflowRecoveryUsed  bool // need_assistant
	IncludeFinalAssistant bool // may_finish
}

// ContinuationKind discriminates a continuation.
type ContinuationKind string

// The continuations.
const (
	NeedAssistantKind ContinuationKind = "need_assistant"
	MayFinishKind     ContinuationKind = "may_finish"
)

// NeedAssistant is the continuation that owes a turn.
func NeedAssistant(overflowRecoveryUsed bool) Continuation {
	return Continuation{Kind: NeedAssistantKind, OverflowRecoveryUsed: overflowRecoveryUsed}
}

// MayFinish is the continuation that owes none.
func MayFinish(includeFinalAssistant bool) Continuation {
	return Continuation{Kind: MayFinishKind, IncludeFinalAssistant: includeFinalAssistant}
}

// Provenance names what a failure came from: a response entry or a structural
// task.
type Provenance struct {
	Kind    ProvenanceKind
	EntryID string // response
	TaskID  string // structural
}

// ProvenanceKind discriminates a provenance.
type ProvenanceKind string

// The provenances of a failure.
const (
	FromResponse   ProvenanceKind = "response"
	FromStructural ProvenanceKind = "structural"
)

// Generation is the state of one generation step.
type Generation interface{ generation() }

// Ready is a generation before its next request.
type Ready struct {
	Context     GenerationContext `json:"context"`
	NextAttempt int64             `json:"nextAttempt"`
}

// EffectPending is a generation whose request may have been sent.
type EffectPending struct {
	Context             GenerationContext `json:"context"`
	Attempt             int64             `json:"attempt"`
	ResponseEntryID     string            `json:"responseEntryId"`
	UsageID             string            `json:"usageId"`
	IntendedOutputLimit int64             `json:"intendedOutputLimit"` // tokens
	ContextWindow       int64             `json:"contextWindow"`       // tokens
}

// RetryWait is a generation that waits for its next attempt.
type RetryWait struct {
	Context      GenerationContext `json:"context"`
	NextAttempt  int64             `json:"nextAttempt"`
	NotBefore    int64             `json:"notBefore"` // Unix ms
	ErrorMessage string            `json:"errorMessage"`
}

func (Ready) generation()         {}
func (EffectPending) generation() {}
func (RetryWait) generation()     {}

// ToolBatch is the plan and progress of one answer's tool calls (spec §3.2).
type ToolBatch struct {
	AssistantEntryID string                  `json:"assistantEntryId"`
	Configuration    store.LaneConfiguration `json:"configuration"`
	TurnID           string                  `json:"turnId"`
	Calls            []ToolCall              `json:"calls"`
}

// ToolCall is one call of a batch; Replay and Executions belong to
// effect_pending, Terminate to outcome_ready and completed.
type ToolCall struct {
	Status        CallStatus
	SourceIndex   int
	ResultEntryID string
	Replay        Replay
	Executions    int // how often it was started
	Terminate     bool
}

// MaxExecutions is how often one call is started: after that, what interrupts it
// may be the call itself (D31).
const MaxExecutions = 3

// Repeatable reports whether an interrupted call may be started again.
func (c ToolCall) Repeatable() bool { return c.Replay == ReplaySafe && c.Executions < MaxExecutions }

// CallStatus is the progress of one call.
type CallStatus string

// The call states.
const (
	CallPlanned       CallStatus = "planned"
	CallEffectPending CallStatus = "effect_pending"
	CallOutcomeReady  CallStatus = "outcome_ready"
	CallCompleted     CallStatus = "completed"
)

// Replay says whether an interrupted call may run again.
type Replay string

// The replay declarations.
const (
	ReplayNever Replay = "never"
	ReplaySafe  Replay = "safe"
)

// Deferred is a run that waits for, or polls, a deferred answer; ResponseEntryID
// and UsageID belong to effect_pending.
type Deferred struct {
	Status          DeferredStatus
	StepID          string
	SourceEntryID   string
	Poll            int64
	ResponseEntryID string
	UsageID         string
	Configuration   store.LaneConfiguration
	StreamOptions   message.StreamOptions
}

// DeferredStatus is the progress of a deferred answer.
type DeferredStatus string

// The deferred states.
const (
	DeferredSuspended     DeferredStatus = "suspended"
	DeferredEffectPending DeferredStatus = "effect_pending"
)

// Structural is the decision and generation of one summary (spec §3.2).
// Generation is nil while deciding.
type Structural struct {
	TaskID     string
	Generation SummaryGeneration
}

// SummaryContext is the inline snapshot of one summary generation.
type SummaryContext struct {
	TaskID        string                  `json:"taskId"`
	ResultEntryID string                  `json:"resultEntryId"`
	Kind          SummaryKind             `json:"kind"`
	Configuration store.LaneConfiguration `json:"configuration"`
	StreamOptions message.StreamOptions   `json:"streamOptions"`
	RetryPolicy   RetryPolicy             `json:"retryPolicy"`
	Reason        CompactionReason        `json:"reason,omitempty"`
}

// SummaryKind says what a summary becomes.
type SummaryKind string

// The summary kinds.
const (
	SummaryCompaction SummaryKind = "compaction"
	SummaryBranch     SummaryKind = "branch_summary"
)

// SummaryGeneration is the state of one summary generation.
type SummaryGeneration interface{ summaryGeneration() }

// SummaryReady is a summary before its next attempt.
type SummaryReady struct {
	Context     SummaryContext `json:"context"`
	NextAttempt int64          `json:"nextAttempt"`
}

// SummaryEffectPending is an attempt that may have sent requests.
type SummaryEffectPending struct {
	Context  SummaryContext  `json:"context"`
	Attempt  int64           `json:"attempt"`
	Request  *SummaryRequest `json:"request,omitempty"`
	UsageIDs []string        `json:"usageIds"`
}

// SummaryRequest is the intent of the nested request that is open.
type SummaryRequest struct {
	Index   int    `json:"index"`
	UsageID string `json:"usageId"`
}

// SummaryRetryWait is a summary that waits for its next attempt.
type SummaryRetryWait struct {
	Context      SummaryContext `json:"context"`
	NextAttempt  int64          `json:"nextAttempt"`
	NotBefore    int64          `json:"notBefore"` // Unix ms
	ErrorMessage string         `json:"errorMessage"`
}

func (SummaryReady) summaryGeneration()         {}
func (SummaryEffectPending) summaryGeneration() {}
func (SummaryRetryWait) summaryGeneration()     {}
