package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
)

// Of calls with one id the first runs, and the model is told about the others; calls
// without an id, or of another answer, have nothing in common.
func TestRepeatedCallID(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		var ran []string
		arm(w, puppet{name: "tool", run: func(_ context.Context, call effect.Invocation) (message.ToolResult, error) {
			ran = append(ran, string(call.Args))
			return text("ran"), nil
		}})
		w.Options.ToolExecution = op.Sequential
		answer := func(ids ...string) enginetest.Reply {
			a := ending(message.StopToolUse)
			for _, id := range ids {
				a.Content = append(a.Content, message.Block{
					Type: message.BlockToolCall, ID: id, Name: "tool", Arguments: json.RawMessage(`{"n":` + string(rune('0'+len(a.Content))) + `}`),
				})
			}
			return only(a)
		}
		w.Model.Reply = enginetest.Sequence(answer("a", "b", "a", "", ""), answer("a"), whole("said"))
		activate(t, w)
		passOf(t, w, w.Accept("hi"))
		enginetest.Equal(t, "calls that ran", ran, []string{`{"n":0}`, `{"n":1}`, `{"n":3}`, `{"n":4}`, `{"n":0}`})
		wantTalk(t, w, "user: hi", "assistant toolUse", "toolResult: ran", "toolResult: ran",
			`toolResult: an earlier call of this answer has the same id, "a", so this one may be the same call once more; it was not run`,
			"toolResult: ran", "toolResult: ran", "assistant toolUse", "toolResult: ran", "assistant stop: said")
		asked := w.Model.Requests()[1].Messages
		third, _ := asked[4].Get("details")
		enginetest.Equal(t, "the repeated call", string(third), `{"synthetic":"repeated_id"}`)
		var ids []string
		for _, c := range asked[1].ToolCalls() {
			ids = append(ids, c.ID)
		}
		if slices.Sort(ids); len(slices.Compact(ids)) != 5 {
			t.Errorf("the next request has the ids %q", ids)
		}
	})
}
