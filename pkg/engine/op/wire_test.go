package op_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// The pieces of the wire shape of §3.2, written by hand.
const (
	wireConfig   = `{"model":{"provider":"acme","modelId":"one"},"thinkingLevel":"low","activeToolNames":[]}`
	wireSettings = `{"compaction":{"enabled":true,"reserveTokens":16384,"keepRecentTokens":20000},"steeringMode":"all","followUpMode":"one-at-a-time","toolExecution":"parallel","streamOptions":{}}`
	wireContext  = `{"stepId":"s1","triggerEntryId":"e1","configuration":` + wireConfig + `,"streamOptions":{},"retryPolicy":{"maxAttempts":3,"baseDelayMs":100},"overflowRecoveryUsed":false}`
	wireInbox    = `{"steer":[],"followUp":[],"writes":[]}`
	wireResume   = `{"kind":"checkpoint","continuation":{"kind":"need_assistant","overflowRecoveryUsed":true},"triggerEntryId":"e1","thresholdCheckedTriggerEntryId":"e1"}`
	wireSummary  = `{"taskId":"t1","resultEntryId":"c1","kind":"compaction","configuration":` + wireConfig + `,"streamOptions":{"maxTokens":512,"temperature":0.25,"deferred":{"window":"1h"}},"retryPolicy":{"maxAttempts":3,"baseDelayMs":100},"reason":"overflow"}`
)

// phaseWire is one run phase in both forms. The three checkpoints and the two
// provenances are variants too.
type phaseWire struct {
	name  string
	phase op.Phase
	json  string
}

func phaseWires() []phaseWire {
	limit, temperature := int64(512), 0.25
	summary := op.SummaryContext{
		TaskID: "t1", ResultEntryID: "c1", Kind: op.SummaryCompaction, Configuration: config, Reason: op.ReasonOverflow,
		StreamOptions: message.StreamOptions{MaxTokens: &limit, Temperature: &temperature, Deferred: json.RawMessage(`{"window":"1h"}`)},
		RetryPolicy:   op.RetryPolicy{MaxAttempts: 3, BaseDelayMs: 100},
	}
	resume := op.Checkpoint{Continuation: op.NeedAssistant(true), TriggerEntryID: "e1", ThresholdCheckedTriggerEntryID: "e1"}
	compaction := func(g op.SummaryGeneration) op.Phase {
		return op.InRunCompaction{Reason: op.ReasonOverflow, Structural: op.Structural{TaskID: "t1", Generation: g}, ResumeAfter: resume}
	}
	compactionWire := func(structural string) string {
		return `{"kind":"compaction","reason":"overflow","structural":` + structural + `,"resumeAfter":` + wireResume + `}`
	}
	generating := func(g string) string {
		return compactionWire(`{"taskId":"t1","status":"generating","generation":` + g + `}`)
	}
	phases := everyPhase()
	return []phaseWire{
		{"starting", op.Starting{}, `{"kind":"starting"}`},
		{"need_assistant", phases[op.PointNeedAssistant], `{"kind":"checkpoint","continuation":{"kind":"need_assistant","overflowRecoveryUsed":false},"triggerEntryId":"e1"}`},
		{
			"every checkpoint field",
			op.Checkpoint{Continuation: op.MayFinish(false), TriggerEntryID: "e2", ThresholdCheckedTriggerEntryID: "e2", SkipInboxOnce: true},
			`{"kind":"checkpoint","continuation":{"kind":"may_finish","includeFinalAssistant":false},"triggerEntryId":"e2","thresholdCheckedTriggerEntryId":"e2","skipInboxOnce":true}`,
		},
		{"ready", phases[op.PointReady], `{"kind":"assistant","generation":{"status":"ready","context":` + wireContext + `,"nextAttempt":1}}`},
		{
			"effect_pending", phases[op.PointEffectPending],
			`{"kind":"assistant","generation":{"status":"effect_pending","context":` + wireContext + `,"attempt":1,"responseEntryId":"r1","usageId":"u1","intendedOutputLimit":4000,"contextWindow":100000}}`,
		},
		{
			"retry_wait", phases[op.PointRetryWait],
			`{"kind":"assistant","generation":{"status":"retry_wait","context":` + wireContext + `,"nextAttempt":2,"notBefore":1700000000100,"errorMessage":"overloaded"}}`,
		},
		{
			"retry_wait after an error with half a surrogate pair",
			op.Assistant{Generation: op.RetryWait{Context: step, NextAttempt: 2, NotBefore: now, ErrorMessage: "<\xed\xa0\xbd>"}},
			`{"kind":"assistant","generation":{"status":"retry_wait","context":` + wireContext + `,"nextAttempt":2,"notBefore":1700000000000,"errorMessage":"<\ud83d>"}}`,
		},
		{
			"tools",
			op.Tools{Batch: op.ToolBatch{AssistantEntryID: "r1", Configuration: config, TurnID: "s1", Calls: []op.ToolCall{
				{Status: op.CallCompleted, SourceIndex: 0, ResultEntryID: "t0"},
				{Status: op.CallOutcomeReady, SourceIndex: 1, ResultEntryID: "t1", Terminate: true},
				{Status: op.CallEffectPending, SourceIndex: 2, ResultEntryID: "t2", Replay: op.ReplayNever, Executions: 1},
				{Status: op.CallEffectPending, SourceIndex: 3, ResultEntryID: "t3", Replay: op.ReplaySafe, Executions: 3},
				{Status: op.CallPlanned, SourceIndex: 4, ResultEntryID: "t4"},
			}}},
			`{"kind":"tools","batch":{"assistantEntryId":"r1","configuration":` + wireConfig + `,"turnId":"s1","calls":[` +
				`{"status":"completed","sourceIndex":0,"resultEntryId":"t0","terminate":false},` +
				`{"status":"outcome_ready","sourceIndex":1,"resultEntryId":"t1","terminate":true},` +
				`{"status":"effect_pending","sourceIndex":2,"resultEntryId":"t2","replay":"never","executions":1},` +
				`{"status":"effect_pending","sourceIndex":3,"resultEntryId":"t3","replay":"safe","executions":3},` +
				`{"status":"planned","sourceIndex":4,"resultEntryId":"t4"}]}}`,
		},
		{
			"tools without an effect",
			op.Tools{Batch: op.ToolBatch{AssistantEntryID: "r1", Configuration: config, TurnID: "s1", Calls: []op.ToolCall{
				{Status: op.CallPlanned, SourceIndex: 0, ResultEntryID: "t0"},
			}}},
			`{"kind":"tools","batch":{"assistantEntryId":"r1","configuration":` + wireConfig + `,"turnId":"s1","calls":[` +
				`{"status":"planned","sourceIndex":0,"resultEntryId":"t0"}]}}`,
		},
		{"deciding", compaction(nil), compactionWire(`{"taskId":"t1","status":"deciding"}`)},
		{"summary ready", compaction(op.SummaryReady{Context: summary, NextAttempt: 1}), generating(`{"status":"ready","context":` + wireSummary + `,"nextAttempt":1}`)},
		{
			"summary between requests",
			compaction(op.SummaryEffectPending{Context: summary, Attempt: 1, UsageIDs: []string{"u1"}}),
			generating(`{"status":"effect_pending","context":` + wireSummary + `,"attempt":1,"usageIds":["u1"]}`),
		},
		{
			"summary in a request",
			compaction(op.SummaryEffectPending{Context: summary, Attempt: 1, Request: &op.SummaryRequest{Index: 1, UsageID: "u2"}, UsageIDs: []string{"u1"}}),
			generating(`{"status":"effect_pending","context":` + wireSummary + `,"attempt":1,"request":{"index":1,"usageId":"u2"},"usageIds":["u1"]}`),
		},
		{
			"summary waiting for a retry",
			compaction(op.SummaryRetryWait{Context: summary, NextAttempt: 2, NotBefore: now, ErrorMessage: "500 \xed\xa0\xbd"}),
			generating(`{"status":"retry_wait","context":` + wireSummary + `,"nextAttempt":2,"notBefore":1700000000000,"errorMessage":"500 \ud83d"}`),
		},
		{
			"deferred", phases[op.PointDeferredWaiting],
			`{"kind":"deferred","deferred":{"status":"suspended","stepId":"s1","sourceEntryId":"r1","poll":0,"configuration":` + wireConfig + `,"streamOptions":{}}}`,
		},
		{
			"polling", phases[op.PointDeferredPending],
			`{"kind":"deferred","deferred":{"status":"effect_pending","stepId":"s1","sourceEntryId":"r1","poll":1,"responseEntryId":"r2","usageId":"u2","configuration":` + wireConfig + `,"streamOptions":{}}}`,
		},
		{
			"failed by a response",
			op.FailureDrain{Error: op.Error{Code: "c", Message: "<&>", Details: json.RawMessage(`{"n":1.0}`)}, Provenance: op.Provenance{Kind: op.FromResponse, EntryID: "r1"}},
			`{"kind":"failure_drain","error":{"code":"c","message":"<&>","details":{"n":1.0}},"provenance":{"kind":"response","entryId":"r1"}}`,
		},
		{
			"failed by a structural task",
			op.FailureDrain{Error: op.Error{Code: "c", Message: "half \xed\xa0\xbd a pair"}, Provenance: op.Provenance{Kind: op.FromStructural, TaskID: "t1"}},
			`{"kind":"failure_drain","error":{"code":"c","message":"half \ud83d a pair"},"provenance":{"kind":"structural","taskId":"t1"}}`,
		},
	}
}

// stateWire is one operation state in both forms.
type stateWire struct {
	name  string
	state op.State
	json  string
}

func stateWires() []stateWire {
	wires := []stateWire{
		{
			"a cancelled run with a full inbox",
			op.RunState{
				Control:  op.Control{Status: op.CancelRequested, RequestedAt: now, DrainedSteer: []string{"q1"}, DrainedFollowUp: []string{}},
				Settings: settings, Phase: op.Starting{}, LatestAssistantEntryID: "r0",
				Inbox: op.Inbox{Steer: []string{"a"}, FollowUp: []string{"b"}, Writes: []string{"c", "d"}},
			},
			`{"kind":"run","control":{"status":"cancel_requested","requestedAt":1700000000000,"drainedSteer":["q1"],"drainedFollowUp":[]},"settings":` + wireSettings +
				`,"phase":{"kind":"starting"},"inbox":{"steer":["a"],"followUp":["b"],"writes":["c","d"]},"latestAssistantEntryId":"r0"}`,
		},
		{
			"a compaction",
			op.CompactionState{Control: running, Structural: op.Structural{TaskID: "t1"}},
			`{"kind":"compaction","control":{"status":"running"},"structural":{"taskId":"t1","status":"deciding"}}`,
		},
		{
			"a compaction with instructions",
			op.CompactionState{Control: running, CustomInstructions: "be brief", Structural: op.Structural{TaskID: "t1"}},
			`{"kind":"compaction","control":{"status":"running"},"customInstructions":"be brief","structural":{"taskId":"t1","status":"deciding"}}`,
		},
		{
			"a navigation to the root",
			op.NavigationState{Control: running},
			`{"kind":"navigation","control":{"status":"running"},"targetId":null,"summarize":false,"phase":{"kind":"ready_to_commit"}}`,
		},
		{
			"a navigation with a label",
			op.NavigationState{Control: running, TargetID: "e1", Label: "here"},
			`{"kind":"navigation","control":{"status":"running"},"targetId":"e1","label":"here","summarize":false,"phase":{"kind":"ready_to_commit"}}`,
		},
		{
			"a summarized navigation",
			op.NavigationState{Control: running, TargetID: "e1", CustomInstructions: "be brief", Structural: &op.Structural{TaskID: "t1"}},
			`{"kind":"navigation","control":{"status":"running"},"targetId":"e1","customInstructions":"be brief","summarize":true,"phase":{"kind":"summary","structural":{"taskId":"t1","status":"deciding"}}}`,
		},
	}
	standalone := `{"taskId":"t1","resultEntryId":"r1","kind":"compaction","configuration":` + wireConfig + `,"streamOptions":{},"retryPolicy":{"maxAttempts":3,"baseDelayMs":100},"reason":"manual"}`
	for status, g := range map[string]string{
		"ready":          `{"status":"ready","context":` + standalone + `,"nextAttempt":1}`,
		"effect_pending": `{"status":"effect_pending","context":` + standalone + `,"attempt":1,"usageIds":[]}`,
		"retry_wait":     `{"status":"retry_wait","context":` + standalone + `,"nextAttempt":2,"notBefore":1700000000100,"errorMessage":"overloaded"}`,
	} {
		s := op.Structural{TaskID: "t1", Generation: everySummary()[status]}
		structural := `{"taskId":"t1","status":"generating","generation":` + g + `}`
		wires = append(wires,
			stateWire{
				"a compaction " + status, op.CompactionState{Control: running, Structural: s},
				`{"kind":"compaction","control":{"status":"running"},"structural":` + structural + `}`,
			},
			stateWire{
				"a summarized navigation " + status, op.NavigationState{Control: running, TargetID: "e1", Structural: &s},
				`{"kind":"navigation","control":{"status":"running"},"targetId":"e1","summarize":true,"phase":{"kind":"summary","structural":` + structural + `}}`,
			})
	}
	for _, p := range phaseWires() {
		wires = append(wires, stateWire{
			"run: " + p.name,
			op.RunState{Control: running, Settings: settings, Phase: p.phase, Inbox: op.Inbox{Steer: []string{}, FollowUp: []string{}, Writes: []string{}}},
			`{"kind":"run","control":{"status":"running"},"settings":` + wireSettings + `,"phase":` + p.json + `,"inbox":` + wireInbox + `,"latestAssistantEntryId":null}`,
		})
	}
	return wires
}

func TestStateWire(t *testing.T) {
	seen := map[op.Point]bool{}
	for _, tt := range stateWires() {
		t.Run(tt.name, func(t *testing.T) {
			seen[op.PointOf(tt.state)] = true
			w := op.StateOf("op1").Set(tt.state)
			wantEqual(t, string(w.Value), tt.json)
			back, err := op.DecodeState([]byte(tt.json))
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, back, tt.state)
		})
	}
	for _, p := range points {
		if !seen[p.point] {
			t.Errorf("no wire golden stands at %s", p.point)
		}
	}
}

// Nothing durable may be read as a state that it is not: an unknown variant and
// a missing part are refused wherever they stand (§3.2).
func TestDecodeStateRefuses(t *testing.T) {
	for _, tt := range stateWires() {
		for change, raw := range spoiled(t, tt.json) {
			refuse(t, tt.name+" "+change, raw)
		}
	}
	for name, raw := range map[string]string{
		"null": `null`, "a string": `"run"`, "nothing": ``, "an array": `[]`, "no kind": `{}`,
		"a summary without its structural part": `{"kind":"navigation","control":{"status":"running"},"targetId":"e1","summarize":true,"phase":{"kind":"ready_to_commit"}}`,
		"a navigation of two minds":             `{"kind":"navigation","control":{"status":"running"},"targetId":"e1","summarize":false,"phase":{"kind":"summary","structural":{"taskId":"t1","status":"deciding"}}}`,
	} {
		refuse(t, name, []byte(raw))
	}
}

// spoiled gives every copy of a state in which one discriminator is unknown, or
// one part is missing or null whose absence would read as something else.
func spoiled(t *testing.T, wire string) map[string][]byte {
	t.Helper()
	var root any
	if err := json.Unmarshal([]byte(wire), &root); err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	record := func(change string) {
		raw, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		out[change] = raw
	}
	var walk func(node any, path string)
	walk = func(node any, path string) {
		if list, ok := node.([]any); ok {
			for i, item := range list {
				walk(item, fmt.Sprintf("%s[%d]", path, i))
			}
		}
		object, _ := node.(map[string]any)
		for key, value := range object {
			at := path + "." + key
			walk(value, at)
			tag := key == "kind" && !strings.HasSuffix(path, ".context") || key == "status"
			if tag {
				object[key] = "later"
				record("with an unknown " + at)
			}
			if tag || slices.Contains(parts, key) && !strings.HasSuffix(path, ".streamOptions") {
				object[key] = nil
				record("with null for " + at)
				delete(object, key)
				record("without " + at)
			}
			object[key] = value
		}
	}
	walk(root, "")
	return out
}

// parts hold what tells a state from another, one level down.
var parts = []string{"control", "phase", "inbox", "continuation", "generation", "batch", "structural", "resumeAfter", "deferred", "provenance"}

func refuse(t *testing.T, name string, raw []byte) {
	t.Helper()
	if s, err := op.DecodeState(raw); err == nil {
		t.Errorf("%s: decoded, at %s", name, op.PointOf(s))
	}
}

// Whatever decodes can be written again, and then reads as the same.
func FuzzDecodeState(f *testing.F) {
	for _, tt := range stateWires() {
		f.Add([]byte(tt.json))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := op.DecodeState(raw)
		if err != nil || rawjson.Valid(raw) != nil {
			return
		}
		w, err := json.Marshal(s)
		if err != nil {
			t.Fatalf("encode %#v: %v", s, err)
		}
		back, err := op.DecodeState(w)
		if err != nil {
			t.Fatalf("decode %s: %v", w, err)
		}
		again, err := json.Marshal(back)
		if err != nil || !bytes.Equal(w, again) {
			t.Fatalf("%v\n%s\n%s", err, w, again)
		}
		if op.PointOf(s) != op.PointOf(back) {
			t.Fatalf("at %s, then at %s", op.PointOf(s), op.PointOf(back))
		}
	})
}

// The acceptance data of every intent (§3.1).
func TestOperationWire(t *testing.T) {
	head := `{"operationId":"op1","lane":"main","sourceLeafId":"e0","startedAt":1699999999995,"intent":`
	tests := []struct {
		name   string
		intent op.Intent
		json   string
	}{
		{"run", op.Intent{Kind: op.KindRun, PromptEntryIDs: []string{"e1", "e2"}}, `{"kind":"run","promptEntryIds":["e1","e2"]}`},
		{"run without a prompt of its own", op.Intent{Kind: op.KindRun, PromptEntryIDs: []string{}}, `{"kind":"run","promptEntryIds":[]}`},
		{"compaction", op.Intent{Kind: op.KindCompaction}, `{"kind":"compaction"}`},
		{"compaction with instructions", op.Intent{Kind: op.KindCompaction, CustomInstructions: "x"}, `{"kind":"compaction","customInstructions":"x"}`},
		{"navigation to the root", op.Intent{Kind: op.KindNavigation}, `{"kind":"navigation","targetId":null,"summarize":false}`},
		{
			"navigation with everything",
			op.Intent{Kind: op.KindNavigation, TargetID: "e1", Summarize: true, Label: "here", CustomInstructions: "x"},
			`{"kind":"navigation","targetId":"e1","summarize":true,"label":"here","customInstructions":"x"}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := operation
			want.Intent = tt.intent
			wantEqual(t, string(op.Meta("op1").Set(want).Value), head+tt.json+`}`)
			var got op.Operation
			if err := json.Unmarshal([]byte(head+tt.json+`}`), &got); err != nil {
				t.Fatal(err)
			}
			wantEqual(t, got, want)
		})
	}
	for _, bad := range []string{head + `{"kind":"later"}}`, head + `{}}`, strings.TrimSuffix(head, `,"intent":`) + `}`} {
		var got op.Operation
		if err := json.Unmarshal([]byte(bad), &got); err == nil {
			t.Errorf("decoded as %#v from %s", got, bad)
		}
	}
}

// The last results of §3.13 and their legal combinations of fields.
func TestLastResultWire(t *testing.T) {
	tests := []struct {
		name   string
		result op.LaneLastResult
		json   string
	}{
		{
			"completed run",
			op.LaneLastResult{OperationID: "op1", Kind: op.KindRun, Outcome: op.Completed, LeafID: "r1", FinalAssistantEntryID: "r1", RunCompletion: op.CompletedByAssistant},
			`{"operationId":"op1","kind":"run","outcome":"completed","leafId":"r1","finalAssistantEntryId":"r1","runCompletion":"assistant"}`,
		},
		{
			"run ended by its tools",
			op.LaneLastResult{OperationID: "op1", Kind: op.KindRun, Outcome: op.Completed, LeafID: "t1", RunCompletion: op.CompletedByTools},
			`{"operationId":"op1","kind":"run","outcome":"completed","leafId":"t1","runCompletion":"terminated_tools"}`,
		},
		{
			"failed run",
			op.LaneLastResult{OperationID: "op1", Kind: op.KindRun, Outcome: op.Failed, LeafID: "r1", FinalAssistantEntryID: "r1", Error: &op.Error{Code: "c", Message: "m"}},
			`{"operationId":"op1","kind":"run","outcome":"failed","leafId":"r1","finalAssistantEntryId":"r1","error":{"code":"c","message":"m"}}`,
		},
		{"aborted run", op.LaneLastResult{OperationID: "op1", Kind: op.KindRun, Outcome: op.Aborted, LeafID: "e1"}, `{"operationId":"op1","kind":"run","outcome":"aborted","leafId":"e1"}`},
		{"declined compaction", op.LaneLastResult{OperationID: "op1", Kind: op.KindCompaction, Outcome: op.Declined, LeafID: "e1"}, `{"operationId":"op1","kind":"compaction","outcome":"declined","leafId":"e1"}`},
		{
			"navigation from the root to the root",
			op.LaneLastResult{OperationID: "op1", Kind: op.KindNavigation, Outcome: op.Completed},
			`{"operationId":"op1","kind":"navigation","outcome":"completed","leafId":null,"oldLeafId":null}`,
		},
		{
			"summarized navigation",
			op.LaneLastResult{OperationID: "op1", Kind: op.KindNavigation, Outcome: op.Completed, LeafID: "b1", OldLeafID: "e1", SummaryEntryID: "b1"},
			`{"operationId":"op1","kind":"navigation","outcome":"completed","leafId":"b1","oldLeafId":"e1","summaryEntryId":"b1"}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wantEqual(t, string(op.LastResult(store.MainLane).Set(tt.result).Value), tt.json)
			var got op.LaneLastResult
			if err := json.Unmarshal([]byte(tt.json), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.result, got, compare...); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
