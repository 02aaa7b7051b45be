package op_test

import (
	"fmt"
	"testing"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
)

const hour = int64(3_600_000)

func withUsage(t *testing.T, m message.Message, input, output int64) message.Message {
	t.Helper()
	raw, err := message.Usage{Input: input, Output: output, TotalTokens: input + output}.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	return set(t, m, "usage", string(raw))
}

func calling(t *testing.T, stop message.StopReason) message.Message {
	t.Helper()
	return set(t, answer(stop, "x"), "content", `[{"type":"toolCall","id":"c1","name":"read","arguments":{}}]`)
}

// One line per rule of §3.7's classification, in its order; where two rules
// match, the line says which one wins.
func TestClassify(t *testing.T) {
	overloaded := failed("overloaded", message.ErrorInfo{})
	tooLong := failed("prompt is too long: 250000 tokens", message.ErrorInfo{})
	tooLong429 := failed("429: too many tokens in the prompt", message.ErrorInfo{})
	limited := failed("slow down", message.ErrorInfo{Known: true, Status: 429, RetryAfterMs: hour})
	hopeless := failed("server error", message.ErrorInfo{Known: true, Status: 400})

	tests := []struct {
		name    string
		control op.Control
		attempt int64
		m       message.Message
		want    op.Class
	}{
		{"cancelled: a stop", cancelled, 1, answer(message.StopStop, "x"), op.ClassAborted},
		{"cancelled: an abort", cancelled, 1, answer(message.StopAborted, "x"), op.ClassAborted},
		{"cancelled wins over overflow", cancelled, 1, tooLong, op.ClassAborted},
		{"cancelled wins over a retryable error", cancelled, 1, overloaded, op.ClassAborted},
		{"cancelled wins over tool calls", cancelled, 1, calling(t, message.StopToolUse), op.ClassAborted},

		{"overflow by text", running, 1, tooLong, op.ClassOverflow},
		{"overflow by class", running, 1, failed("no", message.ErrorInfo{Known: true, Class: message.ClassOverflow}), op.ClassOverflow},
		{"overflow wins over a retryable error", running, 1, tooLong429, op.ClassOverflow},
		{"overflow is told on the last attempt too", running, 3, tooLong, op.ClassOverflow},
		{"length without output", running, 1, withUsage(t, answer(message.StopLength, ""), 10, 0), op.ClassOverflow},
		{"length below the limit in a full window", running, 1, withUsage(t, answer(message.StopLength, "x"), 98_900, 100), op.ClassOverflow},
		{"length with calls below the limit in a full window", running, 1, withUsage(t, calling(t, message.StopLength), 98_900, 100), op.ClassOverflow},
		{"a stop with more input than the window", running, 1, withUsage(t, answer(message.StopStop, "x"), 100_001, 5), op.ClassOverflow},

		{"a retryable text with attempts left", running, 1, overloaded, op.ClassRetry},
		{"the attempt before the last", running, 2, overloaded, op.ClassRetry},
		{"the last attempt", running, 3, overloaded, op.ClassFailed},
		{"a permanent text", running, 1, failed("invalid_request_error: no", message.ErrorInfo{}), op.ClassFailed},
		{"a typed status wins over the text", running, 1, hopeless, op.ClassFailed},
		{"retry-after at the longest wait", running, 1, limited, op.ClassRetry},
		{"retry-after beyond the longest wait", running, 1, failed("slow down", message.ErrorInfo{Known: true, Status: 429, RetryAfterMs: hour + 1}), op.ClassFailed},

		{"a stop", running, 1, answer(message.StopStop, "x"), op.ClassStop},
		{"length at the limit", running, 1, withUsage(t, answer(message.StopLength, "x"), 98_900, 4_000), op.ClassStop},
		{"length below the limit with room in the window", running, 1, withUsage(t, answer(message.StopLength, "x"), 50_000, 100), op.ClassStop},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := op.Classify(tt.control, pending(tt.attempt), response(tt.m)); got != tt.want {
				t.Errorf("class %d, want %d", got, tt.want)
			}
		})
	}
}

// response is an answer with what its settlement needs.
func response(m message.Message) op.Response {
	r := op.Response{Message: m, API: "echo", MaxDelayMs: hour}
	for i := range m.ToolCalls() {
		r.ResultIDs = append(r.ResultIDs, fmt.Sprintf("t%d", i+1))
	}
	return r
}

// deferring is a deferred answer whose handle names a provider and an id.
func deferring(t *testing.T, provider, id string) message.Message {
	t.Helper()
	handle := fmt.Sprintf(`{"provider":%q,"modelId":"one","api":"echo","id":%q}`, provider, id)
	return set(t, answer(message.StopDeferred, ""), "deferred", handle)
}

// Deferred answers need a handle that their model can be asked about; tool calls
// are tools whatever the answer ended with, unless it is an error.
func TestClassifyCallsAndHandles(t *testing.T) {
	for name, tt := range map[string]struct {
		m    message.Message
		want op.Class
	}{
		"a deferred answer":             {deferring(t, "acme", "job-1"), op.ClassDeferred},
		"a handle without an id":        {deferring(t, "acme", ""), op.ClassBadHandle},
		"another provider's handle":     {deferring(t, "other", "job-1"), op.ClassBadHandle},
		"no handle":                     {answer(message.StopDeferred, ""), op.ClassBadHandle},
		"tool calls":                    {calling(t, message.StopToolUse), op.ClassTools},
		"tool calls in a stop":          {calling(t, message.StopStop), op.ClassTools},
		"tool calls in a genuine limit": {withUsage(t, calling(t, message.StopLength), 50_000, 4_000), op.ClassTools},
		"toolUse without a call":        {answer(message.StopToolUse, "x"), op.ClassStop},
		"tool calls in an error":        {set(t, calling(t, message.StopError), "errorMessage", `"invalid api key"`), op.ClassFailed},
	} {
		t.Run(name, func(t *testing.T) {
			if got := op.Classify(running, pending(1), response(tt.m)); got != tt.want {
				t.Errorf("class %d, want %d", got, tt.want)
			}
		})
	}
}
