package migrate_test

import (
	"encoding/json"
	"testing"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/migrate"
	"github.com/drover-run/drover/pkg/store"
)

// The pieces of an operation state as version 1 wrote them.
const (
	config1   = `{"model":{"provider":"acme","modelId":"one"},"thinkingLevel":"low","activeToolNames":["ls"]}`
	settings1 = `{"compaction":{"enabled":true,"reserveTokens":16384,"keepRecentTokens":20000},"steeringMode":"all","followUpMode":"one-at-a-time","toolExecution":"parallel"`
	inbox1    = `{"steer":["q1"],"followUp":[],"writes":["q2"]}`
	later1    = `{"maxTokens":512,"temperature":0.25,"deferred":{"window":"1h"}}`
	context1  = `{"stepId":"s1","triggerEntryId":"e1","configuration":` + config1 + `,"streamOptions":` + later1 + `,"retryPolicy":{"maxAttempts":3,"baseDelayMs":100},"overflowRecoveryUsed":false}`
	summary1  = `{"taskId":"t1","resultEntryId":"c1","kind":"compaction","configuration":` + config1 + `,"streamOptions":{"maxTokens":512,"deferred":false},"retryPolicy":{"maxAttempts":3,"baseDelayMs":100},"reason":"overflow"}`
	resume1   = `{"kind":"checkpoint","continuation":{"kind":"need_assistant","overflowRecoveryUsed":true},"triggerEntryId":"e1"}`
	running1  = `{"status":"running"}`
	stopped1  = `{"status":"cancel_requested","requestedAt":5,"drainedSteer":[],"drainedFollowUp":["q3"]}`
)

// run is a run of version 1, or of version 2 with the stream options that it has.
func run(control, settings, phase string) string {
	return `{"kind":"run","control":` + control + `,"settings":` + settings1 + settings + `},"phase":` + phase + `,"inbox":` + inbox1 + `,"latestAssistantEntryId":null,"novel":[1.0,"\ud800"]}`
}

func generation(rest string) string {
	return `{"kind":"assistant","generation":{` + rest + `}}`
}

func compaction(structural string) string {
	return `{"kind":"compaction","reason":"overflow","structural":` + structural + `,"resumeAfter":` + resume1 + `}`
}

func calls(c string) string {
	return `{"kind":"tools","batch":{"assistantEntryId":"r1","configuration":` + config1 + `,"turnId":"s1","calls":[` + c + `]}}`
}

// phases are those of a run, by restart point: what they were, the stream options
// that the run gets, and what they become, "" for the same.
var phases = map[string]struct{ phase, options, after string }{
	"starting":       {`{"kind":"starting"}`, `{}`, ""},
	"need_assistant": {resume1, `{}`, ""},
	"may_finish":     {`{"kind":"checkpoint","continuation":{"kind":"may_finish","includeFinalAssistant":true},"triggerEntryId":"r1","skipInboxOnce":true}`, `{}`, ""},
	"ready":          {generation(`"status":"ready","context":` + context1 + `,"nextAttempt":1`), later1, ""},
	"effect_pending": {generation(`"status":"effect_pending","context":` + context1 + `,"attempt":1,"responseEntryId":"r1","usageId":"u1","intendedOutputLimit":4000,"contextWindow":100000`), later1, ""},
	"retry_wait":     {generation(`"status":"retry_wait","context":` + context1 + `,"nextAttempt":2,"notBefore":9,"errorMessage":"<\ud83d>"`), later1, ""},
	"tools": {
		calls(`{"status":"completed","sourceIndex":0,"resultEntryId":"t0","terminate":false},` +
			`{"status":"outcome_ready","sourceIndex":1,"resultEntryId":"t1","terminate":true},` +
			`{"status":"effect_pending","sourceIndex":2,"resultEntryId":"t2","replay":"never"},` +
			`{"status":"effect_pending","sourceIndex":3,"resultEntryId":"t3","replay":"safe"},` +
			`{"status":"planned","sourceIndex":4,"resultEntryId":"t4"}`), `{}`,
		calls(`{"status":"completed","sourceIndex":0,"resultEntryId":"t0","terminate":false},` +
			`{"status":"outcome_ready","sourceIndex":1,"resultEntryId":"t1","terminate":true},` +
			`{"status":"effect_pending","sourceIndex":2,"resultEntryId":"t2","replay":"never","executions":1},` +
			`{"status":"effect_pending","sourceIndex":3,"resultEntryId":"t3","replay":"safe","executions":1},` +
			`{"status":"planned","sourceIndex":4,"resultEntryId":"t4"}`),
	},
	"tools without calls": {calls(""), `{}`, ""},
	"deferred":            {`{"kind":"deferred","deferred":{"status":"suspended","stepId":"s1","sourceEntryId":"r1","poll":0,"configuration":` + config1 + `,"streamOptions":` + later1 + `}}`, later1, ""},
	"deferred poll":       {`{"kind":"deferred","deferred":{"status":"effect_pending","stepId":"s1","sourceEntryId":"r1","poll":1,"responseEntryId":"r2","usageId":"u2","configuration":` + config1 + `,"streamOptions":{}}}`, `{}`, ""},
	"failure_drain":       {`{"kind":"failure_drain","error":{"code":"provider_error","message":"boom"},"provenance":{"kind":"response","entryId":"r1"}}`, `{}`, ""},
	"deciding":            {compaction(`{"taskId":"t1","status":"deciding"}`), `{}`, ""},
	"summary ready":       {compaction(`{"taskId":"t1","status":"generating","generation":{"status":"ready","context":` + summary1 + `,"nextAttempt":1}}`), `{"maxTokens":512}`, ""},
	"summary pending":     {compaction(`{"taskId":"t1","status":"generating","generation":{"status":"effect_pending","context":` + summary1 + `,"attempt":1,"request":{"index":0,"usageId":"u1"},"usageIds":[]}}`), `{"maxTokens":512}`, ""},
	"summary waiting":     {compaction(`{"taskId":"t1","status":"generating","generation":{"status":"retry_wait","context":` + summary1 + `,"nextAttempt":2,"notBefore":9,"errorMessage":"x"}}`), `{"maxTokens":512}`, ""},
}

func convert(t *testing.T, state string) string {
	t.Helper()
	for _, step := range migrate.Chain() {
		next, err := step.Apply(store.Address{Namespace: "pi.op.state", Key: "op1"}, json.RawMessage(state))
		if err != nil {
			t.Fatalf("%s: %v", state, err)
		}
		state = string(next)
	}
	return state
}

// Every state of version 1, running and cancelled, becomes one that today's engine
// reads, and stays that.
func TestRunsOfVersion1(t *testing.T) {
	for name, p := range phases {
		for _, control := range []string{running1, stopped1} {
			if p.after == "" {
				p.after = p.phase
			}
			got := convert(t, run(control, "", p.phase))
			if want := run(control, `,"streamOptions":`+p.options, p.after); got != want {
				t.Errorf("%s: got %s, want %s", name, got, want)
			}
			if again := convert(t, got); again != got {
				t.Errorf("%s: converted again it is %s", name, again)
			}
			if _, err := op.DecodeState(json.RawMessage(got)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestOtherOperationsOfVersion1(t *testing.T) {
	for _, state := range []string{
		`{"kind":"compaction","control":` + running1 + `,"customInstructions":"be brief","structural":{"taskId":"t1","status":"deciding"}}`,
		`{"kind":"compaction","control":` + stopped1 + `,"structural":{"taskId":"t1","status":"generating","generation":{"status":"ready","context":` + summary1 + `,"nextAttempt":1}}}`,
		`{"kind":"navigation","control":` + running1 + `,"targetId":null,"summarize":false,"phase":{"kind":"ready_to_commit"}}`,
		`{"kind":"navigation","control":` + running1 + `,"targetId":"e1","label":"x","summarize":true,"phase":{"kind":"summary","structural":{"taskId":"t1","status":"deciding"}}}`,
	} {
		if got := convert(t, state); got != state {
			t.Errorf("%s has become %s", state, got)
		}
		if _, err := op.DecodeState(json.RawMessage(state)); err != nil {
			t.Error(err)
		}
	}
}

// What no drover of version 1 wrote is refused, never guessed.
func TestStatesOfNoVersion(t *testing.T) {
	for _, state := range []string{
		`null`, `[]`, `{}`, `{"kind":"walk"}`, `{"kind":"run"}`, `{"kind":"run","phase":{"kind":"starting"}}`,
		run(running1, "", `{"kind":"sleeping"}`), run(running1, "", `{"kind":"assistant"}`), run(running1, "", `{"kind":"deferred","deferred":{}}`),
		run(running1, "", `{"kind":"tools","batch":{}}`), run(running1, "", calls(`{"status":"lost"}`)), run(running1, "", calls(`7`)),
		run(running1, "", compaction(`{"taskId":"t1"}`)), run(running1, "", compaction(`{"status":"generating"}`)),
	} {
		got, err := migrate.Chain()[0].Apply(store.Address{Namespace: "pi.op.state", Key: "op1"}, json.RawMessage(state))
		if err == nil {
			t.Errorf("%s has become %s", state, got)
		}
	}
}

// The chain has one step for every version after the first.
func TestChain(t *testing.T) {
	for version := int64(1); version <= store.StorageVersion; version++ {
		steps, err := migrate.Chain().After("s", version)
		if err != nil || int64(len(steps)) != store.StorageVersion-version {
			t.Errorf("from version %d: %d steps, %v", version, len(steps), err)
		}
		for i, step := range steps {
			if step.To != version+int64(i)+1 || step.Name == "" {
				t.Errorf("step %d is %+v", i, step)
			}
		}
	}
}
