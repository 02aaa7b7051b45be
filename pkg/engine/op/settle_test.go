package op_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// published are the writes that every settlement shares: the answer, the leaf,
// its usage as reported and what it was spent on, the end of its frames (§3.7,
// D55).
func published(attempt int64, m message.Message) []store.Write {
	row := store.NewUsage{ID: "u1", EntryID: "r1", Details: json.RawMessage(fmt.Sprintf(
		`{"attribution":{"operationId":"op1","lane":"main","kind":"assistant","provider":"acme","modelId":"one","attempt":%d,"outcome":%q}}`,
		attempt, m.StopReason()))}
	row.RawUsage, _ = m.Get("usage")
	return []store.Write{
		store.InsertEntry(store.MessageEntry("r1", "e1", m)),
		store.LaneLeaf(lane).Set("r1"),
		store.InsertUsage(row),
		op.Frames("op1", "r1").Delete(),
	}
}

// told are the events that every settlement shares, then further ones.
func told(recovery bool, more ...op.Event) []op.Event {
	for i := range more {
		more[i].Lane, more[i].RunID, more[i].Recovery = lane, "op1", recovery
	}
	return append([]op.Event{
		{Type: op.EventEntryAdded, Lane: lane, RunID: "op1", EntryID: "r1", Recovery: recovery},
		{Type: op.EventUsage, Lane: lane, EntryID: "u1"},
	}, more...)
}

func turnEnd(m message.Message) op.Event {
	return op.Event{Type: op.EventTurnEnd, TurnID: "s1", Message: m}
}

func failedPhase(code, text string) op.FailureDrain {
	return op.FailureDrain{Error: op.Error{Code: code, Message: text}, Provenance: op.Provenance{Kind: op.FromResponse, EntryID: "r1"}}
}

// The settlement rows of §3.7.
func TestSettle(t *testing.T) {
	final := mayFinish(true)
	inbox := op.Inbox{Steer: []string{"q1"}, FollowUp: []string{}, Writes: []string{"q3"}}
	stop := answer(message.StopStop, "done")
	length := withUsage(t, answer(message.StopLength, "cut"), 500, 4_000)
	overloaded := failed("overloaded", message.ErrorInfo{})
	denied := failed("invalid api key", message.ErrorInfo{Known: true, Status: 401})
	tooLong := failed("prompt is too long", message.ErrorInfo{})
	limited := failed("slow down", message.ErrorInfo{Known: true, Status: 429, RetryAfterMs: 5_000})
	never := failed("slow down", message.ErrorInfo{Known: true, Status: 429, RetryAfterMs: 16 * 24 * hour})
	short := withUsage(t, answer(message.StopLength, ""), 10, 0)
	silent := withUsage(t, answer(message.StopStop, "x"), 100_001, 5)
	odd := set(t, answer(message.StopStop, "x"), "usage", `{"input":1,"output":2.0,"totalTokens":3,"x-new":[1,2]}`)
	noUsage := message.Message(`{"role":"assistant","content":[],"stopReason":"stop"}`)

	wait := func(attempt, delay int64, text string) op.Phase {
		return generating(op.RetryWait{Context: step, NextAttempt: attempt, NotBefore: now + delay, ErrorMessage: text})
	}
	scheduled := func(attempt, delay int64, text string) op.Event {
		return op.Event{Type: op.EventRetryScheduled, Step: "s1", Attempt: attempt, MaxAttempts: 3, DelayMs: delay, ErrorText: text}
	}
	retryEnd := func(attempt int64, text string) op.Event {
		return op.Event{Type: op.EventRetryEnd, Step: "s1", Attempt: attempt, Success: text == "", ErrorText: text}
	}

	tests := []struct {
		name   string
		turn   op.Turn
		answer message.Message
		stored message.Message // what is committed, nil: the answer as it is
		phase  op.Phase
		events []op.Event
	}{
		{"a stop may finish", run(generating(pending(1))), stop, nil, final, told(false, turnEnd(stop))},
		{"a genuine length may finish", run(generating(pending(1))), length, nil, final, told(false, turnEnd(length))},
		{"usage is committed as the provider spelled it", run(generating(pending(1))), odd, nil, final, told(false, turnEnd(odd))},
		{"an answer without usage has a zero row", run(generating(pending(1))), noUsage, nil, final, told(false, turnEnd(noUsage))},
		{
			"a retryable error with attempts left waits; the turn stays open",
			run(generating(pending(1))), overloaded, nil, wait(2, 100, "overloaded"), told(false, scheduled(2, 100, "overloaded")),
		},
		{"the second delay is twice the first", run(generating(pending(2))), overloaded, nil, wait(3, 200, "overloaded"), told(false, scheduled(3, 200, "overloaded"))},
		{"retry-after raises the delay", run(generating(pending(1))), limited, nil, wait(2, 5_000, "slow down"), told(false, scheduled(2, 5_000, "slow down"))},
		{"a success after a retry ends the retry", run(generating(pending(2))), stop, nil, final, told(false, retryEnd(2, ""), turnEnd(stop))},
		{
			"the last attempt fails the run",
			run(generating(pending(3))), overloaded, nil, failedPhase("provider_error", "overloaded"), told(false, retryEnd(3, "overloaded"), turnEnd(overloaded)),
		},
		{"a permanent error fails at once", run(generating(pending(1))), denied, nil, failedPhase("provider_error", "invalid api key"), told(false, turnEnd(denied))},
		{
			"retry-after beyond the longest wait fails and names the delay (D35)",
			run(generating(pending(1))), never, nil,
			failedPhase("provider_error", "slow down (retry after 1382400 s is longer than the longest wait of 3600 s)"), told(false, turnEnd(never)),
		},
		{"an overflow error is committed as it is", run(generating(pending(1))), tooLong, nil, failedPhase("context_overflow", "prompt is too long"), told(false, turnEnd(tooLong))},
		{
			"an overflowing length is committed as an error",
			run(generating(pending(1))), short, stopped(t, short, "error", "context window exceeded: the response ended with length"),
			failedPhase("context_overflow", "context window exceeded: the response ended with length"), nil,
		},
		{
			"a silent overflow is committed as an error",
			run(generating(pending(1))), silent, stopped(t, silent, "error", "context window exceeded: the response ended with stop"),
			failedPhase("context_overflow", "context window exceeded: the response ended with stop"), nil,
		},
		{
			"under cancellation a stop is committed as aborted",
			cancel(run(generating(pending(1)))), stop, stopped(t, stop, "aborted", "aborted on request; the response had ended with stop"), final, nil,
		},
		{
			"under cancellation an error keeps its text",
			cancel(run(generating(pending(1)))), overloaded, stopped(t, overloaded, "aborted", "overloaded (aborted on request; the response had ended with error)"), final, nil,
		},
		{
			"under cancellation an abort is committed as it is",
			cancel(run(generating(pending(1)))), answer(message.StopAborted, "par"), nil, final, told(false, turnEnd(answer(message.StopAborted, "par"))),
		},
		{
			"a newer inbox survives",
			with(run(generating(pending(1))), func(s *op.RunState) { s.Inbox = inbox }), stop, nil, final, told(false, turnEnd(stop)),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stored := tt.stored
			if stored == nil {
				stored = tt.answer
			}
			events := tt.events
			if events == nil {
				events = told(false, turnEnd(stored))
			}
			got, err := op.Settle(tt.turn, response(tt.answer))
			wantPlan(t, got, err, op.Plan{Writes: published(attemptOf(tt.turn), stored), Next: at(tt.turn, tt.phase, "r1"), Events: events})
		})
	}
}

// stopped is m with another stop reason and the words that say why.
func stopped(t *testing.T, m message.Message, reason, why string) message.Message {
	t.Helper()
	text, err := json.Marshal(why)
	if err != nil {
		t.Fatal(err)
	}
	return set(t, set(t, m, "stopReason", `"`+reason+`"`), "errorMessage", string(text))
}

func attemptOf(t op.Turn) int64 {
	return t.State.(op.RunState).Phase.(op.Assistant).Generation.(op.EffectPending).Attempt
}

// The rows of §3.7 that lead out of the assistant phase into another one.
func TestSettleElsewhere(t *testing.T) {
	turn := run(generating(pending(1)))
	calls, deferred := calling(t, message.StopToolUse), deferring(t, "acme", "job-1")
	broken := stopped(t, answer(message.StopDeferred, ""), "error", "the deferred answer has no handle that this model can be asked about")
	tooLong := failed("prompt is too long", message.ErrorInfo{})
	preparation := &op.Prepared{TaskID: "t9", Value: json.RawMessage(`{"kind":"compaction"}`)}
	handle, _ := deferred.Get("deferred")
	used := run(generating(func() op.EffectPending {
		p := pending(1)
		p.Context.OverflowRecoveryUsed = true
		return p
	}()))

	tests := []struct {
		name   string
		turn   op.Turn
		answer op.Response
		stored message.Message
		phase  op.Phase
		writes []store.Write
		events []op.Event
	}{
		{
			"tool calls are planned under their reserved ids; the turn stays open", turn, response(calls), calls,
			op.Tools{Batch: op.ToolBatch{
				AssistantEntryID: "r1", Configuration: config, TurnID: "s1",
				Calls: []op.ToolCall{{Status: op.CallPlanned, ResultEntryID: "t1"}},
			}}, nil, told(false),
		},
		{
			"a deferred answer suspends", turn, response(deferred), deferred,
			op.DeferredPhase{Deferred: op.Deferred{Status: op.DeferredSuspended, StepID: "s1", SourceEntryID: "r1", Configuration: config}}, nil,
			append(told(false, turnEnd(deferred)), op.Event{Type: op.EventRunSuspend, Lane: lane, RunID: "op1", Deferred: handle}),
		},
		{
			"a deferred answer without a handle fails", turn, response(answer(message.StopDeferred, "")), broken,
			failedPhase("invalid_deferred_handle", broken.ErrorMessage()), nil, told(false, turnEnd(broken)),
		},
		{
			"the first overflow compacts, with its preparation in the same commit", turn,
			op.Response{Message: tooLong, API: "echo", MaxDelayMs: hour, Preparation: preparation}, tooLong,
			op.InRunCompaction{
				Reason: op.ReasonOverflow, Structural: op.Structural{TaskID: "t9"},
				ResumeAfter: op.Checkpoint{Continuation: op.NeedAssistant(true), TriggerEntryID: "e1"},
			},
			[]store.Write{op.PreparationOf("op1", "t9").Set(preparation.Value)},
			append(told(false, turnEnd(tooLong)), op.Event{Type: op.EventCompactionStart, Lane: lane, RunID: "op1", Reason: op.ReasonOverflow}),
		},
		{
			"the second overflow fails", used, op.Response{Message: tooLong, API: "echo", MaxDelayMs: hour, Preparation: preparation}, tooLong,
			failedPhase("context_overflow", "prompt is too long"), nil, told(false, turnEnd(tooLong)),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := op.Settle(tt.turn, tt.answer)
			wantPlan(t, got, err, op.Plan{
				Writes: append(published(1, tt.stored), tt.writes...), Next: at(tt.turn, tt.phase, "r1"), Events: tt.events,
			})
		})
	}
}

func TestSettleRefusals(t *testing.T) {
	t.Run("an abort that nobody asked for", func(t *testing.T) {
		got, err := op.Settle(run(generating(pending(1))), response(answer(message.StopAborted, "")))
		wantInvalid(t, got, err)
	})
	refuseElsewhere(t, op.PointEffectPending, func(turn op.Turn) (op.Plan, error) {
		return op.Settle(turn, response(answer(message.StopStop, "x")))
	})
}

// delay(k) = base·2^(k−1), at least retry-after, saturating (§0.7, D35).
func TestRetryDelay(t *testing.T) {
	const most = op.MaxSafeInteger
	tests := []struct {
		name          string
		base, attempt int64
		retryAfter    int64
		now           int64
		notBefore     int64
	}{
		{"first", 100, 1, 0, now, now + 100},
		{"second", 100, 2, 0, now, now + 200},
		{"seventh", 100, 7, 0, now, now + 6_400},
		{"no base never grows", 0, 50, 0, now, now},
		{"retry-after below the delay", 100, 4, 300, now, now + 800},
		{"retry-after above the delay", 100, 1, 300, now, now + 300},
		{"a negative retry-after asks for nothing", 100, 1, -5, now, now + 100},
		{"the largest base saturates the sum", most - 1, 1, 0, now, most},
		{"doubling saturates", most/2 + 1, 2, 0, 0, most},
		{"a huge attempt saturates", 1, 1 << 52, 0, 0, most},
		{"a huge retry-after saturates", 1, 1, most, now, most},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := pending(tt.attempt)
			g.Context.RetryPolicy = op.RetryPolicy{MaxAttempts: most, BaseDelayMs: tt.base}
			turn := run(generating(g))
			turn.Now = tt.now
			m := failed("overloaded", message.ErrorInfo{Known: true, Status: 529, RetryAfterMs: tt.retryAfter})
			got, err := op.Settle(turn, op.Response{Message: m, MaxDelayMs: most})
			if err != nil {
				t.Fatal(err)
			}
			want := generating(op.RetryWait{Context: g.Context, NextAttempt: tt.attempt + 1, NotBefore: tt.notBefore, ErrorMessage: "overloaded"})
			wantEqual(t, got.Next, op.State(at(turn, want, "r1")))
		})
	}
}
