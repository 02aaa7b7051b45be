package op_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

const now = int64(1_700_000_000_000)

var (
	lane   = store.MainLane
	config = store.LaneConfiguration{
		Model: message.ModelRef{Provider: "acme", ModelID: "one"}, ThinkingLevel: message.ThinkingLow, ActiveToolNames: []string{},
	}
	settings = op.Settings{
		Compaction:   op.CompactionSettings{Enabled: true, ReserveTokens: 16_384, KeepRecentTokens: 20_000},
		SteeringMode: op.QueueAll, FollowUpMode: op.QueueOne, ToolExecution: op.Parallel,
	}
	operation = op.Operation{
		OperationID: "op1", Lane: lane, SourceLeafID: "e0", StartedAt: now - 5,
		Intent: op.Intent{Kind: op.KindRun, PromptEntryIDs: []string{"e1"}},
	}
	// step is the context of the generation step s1, at most three attempts.
	step = op.GenerationContext{
		StepID: "s1", TriggerEntryID: "e1", Configuration: config,
		RetryPolicy: op.RetryPolicy{MaxAttempts: 3, BaseDelayMs: 100},
	}
	running   = op.Control{Status: op.Running}
	cancelled = op.Control{Status: op.CancelRequested, RequestedAt: now - 1, DrainedSteer: []string{"q1"}, DrainedFollowUp: []string{}}
)

// idle is the turn of a lane whose newest entry is e0.
func idle() op.Turn { return op.Turn{Lane: lane, Leaf: "e0", Now: now} }

// run is the turn of the run op1 at a phase; its prompt e1 is the leaf.
func run(phase op.Phase) op.Turn {
	return op.Turn{
		Lane: lane, LaneState: store.LaneState{CurrentOperationID: "op1", PendingNextRun: []string{"n9"}},
		Leaf: "e1", Operation: operation, Now: now,
		State: op.RunState{Control: running, Settings: settings, Phase: phase},
	}
}

// with changes the run state of a turn.
func with(t op.Turn, change func(*op.RunState)) op.Turn {
	s := t.State.(op.RunState)
	change(&s)
	t.State = s
	return t
}

func cancel(t op.Turn) op.Turn {
	return with(t, func(s *op.RunState) { s.Control = cancelled })
}

// at is the run state of a turn with another phase and newest answer.
func at(t op.Turn, phase op.Phase, latest store.LeafID) op.RunState {
	s := t.State.(op.RunState)
	s.Phase, s.LatestAssistantEntryID = phase, latest
	return s
}

// pending is a request of step s1 that may be under way.
func pending(attempt int64) op.EffectPending {
	return op.EffectPending{
		Context: step, Attempt: attempt, ResponseEntryID: "r1", UsageID: "u1", IntendedOutputLimit: 4_000, ContextWindow: 100_000,
	}
}

func generating(g op.Generation) op.Assistant { return op.Assistant{Generation: g} }

func needAssistant() op.Checkpoint {
	return op.Checkpoint{Continuation: op.NeedAssistant(false), TriggerEntryID: "e1"}
}

func mayFinish(includeFinal bool) op.Checkpoint {
	return op.Checkpoint{Continuation: op.MayFinish(includeFinal), TriggerEntryID: "r1"}
}

func drain() op.FailureDrain {
	return op.FailureDrain{Error: op.Error{Code: "provider_error", Message: "boom"}, Provenance: op.Provenance{Kind: op.FromResponse, EntryID: "r1"}}
}

// everyPhase holds one run phase per restart point of a run.
func everyPhase() map[op.Point]op.Phase {
	deferred := op.Deferred{Status: op.DeferredSuspended, StepID: "s1", SourceEntryID: "r1", Configuration: config}
	polling := deferred
	polling.Status, polling.ResponseEntryID, polling.UsageID, polling.Poll = op.DeferredEffectPending, "r2", "u2", 1
	return map[op.Point]op.Phase{
		op.PointStarting:      op.Starting{},
		op.PointNeedAssistant: needAssistant(),
		op.PointMayFinish:     mayFinish(true),
		op.PointReady:         generating(op.Ready{Context: step, NextAttempt: 1}),
		op.PointEffectPending: generating(pending(1)),
		op.PointRetryWait:     generating(op.RetryWait{Context: step, NextAttempt: 2, NotBefore: now + 100, ErrorMessage: "overloaded"}),
		op.PointTools:         op.Tools{Batch: op.ToolBatch{AssistantEntryID: "r1", Configuration: config, TurnID: "s1", Calls: []op.ToolCall{}}},
		op.PointToolsPending: op.Tools{Batch: op.ToolBatch{
			AssistantEntryID: "r1", Configuration: config, TurnID: "s1",
			Calls: []op.ToolCall{{Status: op.CallEffectPending, ResultEntryID: "t1", Replay: op.ReplayNever, Executions: 1}},
		}},
		op.PointDeferredWaiting: op.DeferredPhase{Deferred: deferred},
		op.PointDeferredPending: op.DeferredPhase{Deferred: polling},
		op.PointFailureDrain:    drain(),
	}
}

// summary is the context of the summary generation t1, at most three attempts.
var summary = op.SummaryContext{
	TaskID: "t1", ResultEntryID: "r1", Kind: op.SummaryCompaction, Configuration: config,
	RetryPolicy: op.RetryPolicy{MaxAttempts: 3, BaseDelayMs: 100}, Reason: op.ReasonManual,
}

// everySummary holds one summary generation per restart point of a summary.
func everySummary() map[string]op.SummaryGeneration {
	return map[string]op.SummaryGeneration{
		"deciding":       nil,
		"ready":          op.SummaryReady{Context: summary, NextAttempt: 1},
		"effect_pending": op.SummaryEffectPending{Context: summary, Attempt: 1, UsageIDs: []string{}},
		"retry_wait":     op.SummaryRetryWait{Context: summary, NextAttempt: 2, NotBefore: now + 100, ErrorMessage: "overloaded"},
	}
}

// everyState adds the states of the other operation kinds, and every summary
// wherever it may stand.
func everyState() map[op.Point]op.State {
	states := map[op.Point]op.State{
		op.PointNavigation: op.NavigationState{Control: running, TargetID: "e1"},
	}
	for p, phase := range everyPhase() {
		states[p] = run(phase).State
	}
	for name, g := range everySummary() {
		s := op.Structural{TaskID: "t1", Generation: g}
		states[op.Point("compaction."+name)] = op.CompactionState{Control: running, Structural: s}
		states[op.Point("navigation.summary."+name)] = op.NavigationState{Control: running, TargetID: "e1", Structural: &s}
		states[op.Point("run.compaction."+name)] = run(op.InRunCompaction{Reason: op.ReasonThreshold, Structural: s, ResumeAfter: needAssistant()}).State
	}
	return states
}

// compare shows raw JSON as text and looks into writes.
var compare = cmp.Options{
	cmp.AllowUnexported(store.Write{}),
	cmp.Transformer("text", func(b []byte) string { return string(b) }),
}

func wantPlan(t *testing.T, got op.Plan, err error, want op.Plan) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	want.Accepted = written(t, want)
	if diff := cmp.Diff(want, got, compare...); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

// written is the operation that a plan stores, as it will be read.
func written(t *testing.T, p op.Plan) *op.Operation {
	t.Helper()
	for _, w := range p.Writes {
		if w.Address.Namespace != op.Meta("").Address().Namespace || w.Op != store.OpSet {
			continue
		}
		operation, err := op.Meta(w.Address.Key).Decode(store.StoredValue{Address: w.Address, Value: w.Value})
		if err != nil {
			t.Fatal(err)
		}
		return &operation
	}
	return nil
}

func wantInvalid(t *testing.T, got op.Plan, err error) {
	t.Helper()
	var invalid *op.Invalid
	if !errors.As(err, &invalid) {
		t.Errorf("got %v, want an *op.Invalid", err)
	}
	if diff := cmp.Diff(op.Plan{}, got, compare...); diff != "" {
		t.Errorf("plan beside a refusal (-want +got):\n%s", diff)
	}
}

// answer is an assistant message with a stop reason and further fields.
func answer(stop message.StopReason, text string) message.Message {
	return message.Assistant{
		Content: []message.Block{message.TextBlock(text)}, API: "echo", Provider: "acme", Model: "one",
		Usage: message.Usage{Input: 10, Output: 20, TotalTokens: 30}, StopReason: stop, Timestamp: now,
	}.Message()
}

// failed is an error answer; status and retryAfter, in ms, are typed notes (D35).
func failed(text string, note message.ErrorInfo) message.Message {
	a := message.Assistant{API: "echo", Provider: "acme", Model: "one", StopReason: message.StopError, ErrorMessage: text, Timestamp: now}
	if note.Known {
		a.Diagnostics = message.AppendProviderError(nil, note)
	}
	return a.Message()
}

func set(t *testing.T, m message.Message, field, value string) message.Message {
	t.Helper()
	m, err := m.With(field, json.RawMessage(value))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func wantEqual(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, compare...); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// writeName names what a write concerns; deletions have a minus.
func writeName(w store.Write) string {
	switch {
	case w.Kind == store.KindEntry:
		return "entry " + w.Entry.ID
	case w.Kind == store.KindUsage:
		return "usage " + w.Usage.ID
	case w.Op == store.OpDelete:
		return "-" + w.Address.String()
	}
	return w.Address.String()
}
