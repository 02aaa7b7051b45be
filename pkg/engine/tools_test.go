package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
)

// A call that is sent twice runs once, and the model is told; calls that share only
// their id, or have none, or are of another answer, are several.
func TestRepeatedCall(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		var ran []string
		arm(w, puppet{name: "tool", run: func(_ context.Context, call effect.Invocation) (message.ToolResult, error) {
			ran = append(ran, string(call.Args))
			return text("ran"), nil
		}})
		w.Options.ToolExecution = op.Sequential
		answer := func(calls ...string) enginetest.Reply {
			a := ending(message.StopToolUse)
			for _, c := range calls {
				id, n, _ := strings.Cut(c, " ")
				a.Content = append(a.Content, message.Block{Type: message.BlockToolCall, ID: id, Name: "tool", Arguments: json.RawMessage(`{"n":` + n + `}`)})
			}
			return only(a)
		}
		w.Model.Reply = enginetest.Sequence(answer("a 1", "b 1", "a 1", "a 2", " 1", " 1"), answer("a 1"), whole("said"))
		activate(t, w)
		passOf(t, w, w.Accept("hi"))
		enginetest.Equal(t, "calls that ran", ran, []string{`{"n":1}`, `{"n":1}`, `{"n":2}`, `{"n":1}`, `{"n":1}`, `{"n":1}`})
		wantTalk(t, w, "user: hi", "assistant toolUse", "toolResult: ran", "toolResult: ran",
			`toolResult: an earlier call of this answer is the same, id "a" included: this one was not run once more`,
			"toolResult: ran", "toolResult: ran", "toolResult: ran", "assistant toolUse", "toolResult: ran", "assistant stop: said")
		asked := w.Model.Requests()[1].Messages
		third, _ := asked[4].Get("details")
		enginetest.Equal(t, "the repeated call", string(third), `{"synthetic":"repeated_call"}`)
		var ids []string
		for _, c := range asked[1].ToolCalls() {
			ids = append(ids, c.ID)
		}
		if slices.Sort(ids); len(slices.Compact(ids)) != 6 {
			t.Errorf("the next request has the ids %q", ids)
		}
	})
}
