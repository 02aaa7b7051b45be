package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
)

func sequential(w *World) { w.Options.ToolExecution = op.Sequential }

// calls are calls of one tool, with the ids as their arguments.
func calls(tool string, ids ...string) Line {
	var made []message.Block
	for _, id := range ids {
		made = append(made, Call(id, tool, fmt.Sprintf(`{"of":%q}`, id)))
	}
	return ask(made...)
}

// unknown says that each of the calls may end as interrupted.
func unknown(ids ...string) Differs {
	d := Differs{Results: map[string][]string{}}
	for _, id := range ids {
		d.Results[id] = []string{"interrupted"}
	}
	return d
}

func never() *Tool { return &Tool{Name: "once"} }
func safe() *Tool  { return &Tool{Name: "often", Safe: true} }

// saving saves progress, then remembers that it did.
func saving(t *Tool) *Tool {
	t.Run = func(ctx context.Context, w *World, call effect.Invocation) (message.ToolResult, error) {
		call.Update(Result("half"), true)
		_, again, err := call.Memos.Get(ctx, "step")
		if err == nil && !again {
			err = call.Memos.Set(ctx, "step", json.RawMessage(`1`))
		}
		return Result("whole"), err
	}
	return t
}

func toolCases() []Case {
	table := []Case{
		{Name: "safe calls one by one", Tools: []*Tool{safe()}, Setup: sequential, Script: script(calls("often", "a", "b"), say("done"))},
		{Name: "calls never again, one by one", Tools: []*Tool{never()}, Setup: sequential, Script: script(calls("once", "a", "b"), say("done")), Differs: unknown("a", "b")},
		{Name: "safe calls side by side", Tools: []*Tool{safe()}, Script: script(calls("often", "a", "b", "c"), say("done"))},
		{Name: "calls never again, side by side", Tools: []*Tool{never()}, Script: script(calls("once", "a", "b", "c"), say("done")), Differs: unknown("a", "b", "c")},
		{
			Name: "both kinds side by side", Tools: []*Tool{never(), safe()}, Differs: unknown("b"),
			Script: script(ask(Call("a", "often", `{}`), Call("b", "once", `{}`), Call("c", "often", `{}`)), say("done")),
		},
		{Name: "two batches", Tools: []*Tool{never()}, Script: script(calls("once", "a"), calls("once", "b"), say("done")), Differs: unknown("a", "b")},
		{
			Name: "saved progress of a call never again", Tools: []*Tool{saving(never())}, Script: script(calls("once", "a"), say("done")),
			Differs: Differs{Results: map[string][]string{"a": {"interrupted", "interrupted half"}}},
		},
		{Name: "saved progress of a safe call", Tools: []*Tool{saving(safe())}, Script: script(calls("often", "a"), say("done"))},
		{
			Name: "calls that cannot run", Tools: []*Tool{safe()},
			Script: script(ask(Call("a", "nothing", `{}`), Call("b", "often", `{"bad":1}`), Call("c", "often", `{}`)), say("done")),
		},
		{Name: "calls that cannot run, one by one", Tools: []*Tool{safe()}, Setup: sequential, Script: script(ask(Call("a", "nothing", `{}`), Call("c", "often", `{}`)), say("done"))},
		{
			Name: "a batch cut off by its length", Tools: []*Tool{never()},
			Script: script(answer(Reply{
				Calls: []message.Block{Call("a", "once", `{}`), Call("b", "once", `{}`)}, Stop: message.StopLength,
				Usage: &message.Usage{Input: 100, Output: 8_000, TotalTokens: 8_100},
			}), say("done")),
		},
		{Name: "a tool that fails and one that breaks", Tools: []*Tool{failing("fails"), breaking("breaks")}, Script: script(ask(Call("a", "fails", `{}`), Call("b", "breaks", `{}`)), say("done"))},
		{Name: "calls that end the run", Tools: []*Tool{ending()}, Script: script(calls("submit", "a", "b"))},
		{Name: "a call that does not end the run alone", Tools: []*Tool{ending(), safe()}, Script: script(ask(Call("a", "submit", `{}`), Call("b", "often", `{}`)), say("done"))},
		{Name: "results that cost and bring tools", Tools: []*Tool{bringing()}, Script: script(calls("fetch", "a", "b"), say("done"))},
		{Name: "hooks around calls", Tools: []*Tool{safe()}, Setup: toolHooks, Script: script(ask(Call("a", "often", `{"n":1}`), Call("b", "often", `{"block":1}`)), say("done"))},
		{
			Name: "a safe tool that is gone for a while", Tools: []*Tool{safe()}, Script: script(calls("often", "a"), say("done")),
			At: map[string]func(*World) error{"tool.execute": func(w *World) error {
				w.Toolbox.Remove("often")
				return nil
			}},
			Waits: map[engine.WaitReason]func(*World) error{engine.WaitMissing: func(w *World) error {
				w.Toolbox.Put(safe())
				return nil
			}},
		},
	}
	for i := range table {
		table[i].Acts = goes()
	}
	return table
}

func failing(name string) *Tool {
	return &Tool{Name: name, Safe: true, Run: func(context.Context, *World, effect.Invocation) (message.ToolResult, error) {
		return message.ToolResult{}, errors.New("no such file")
	}}
}

func breaking(name string) *Tool {
	return &Tool{Name: name, Safe: true, Run: func(context.Context, *World, effect.Invocation) (message.ToolResult, error) {
		panic("out of range")
	}}
}

func ending() *Tool {
	return &Tool{Name: "submit", Safe: true, Run: func(context.Context, *World, effect.Invocation) (message.ToolResult, error) {
		r := Result("submitted")
		r.Terminate = true
		return r, nil
	}}
}

func bringing() *Tool {
	return &Tool{Name: "fetch", Safe: true, Run: func(_ context.Context, _ *World, call effect.Invocation) (message.ToolResult, error) {
		r := Result("fetched")
		r.Usage = &message.Usage{Input: 3, Output: 4, TotalTokens: 7}
		r.AddedToolNames = []string{"fetch", "fetch"}
		return r, nil
	}}
}

func toolHooks(w *World) {
	h := &w.Options.Hooks
	h.BeforeTool = append(h.BeforeTool, func(_ context.Context, c engine.BeforeTool) (d engine.ToolDecision, err error) {
		w.Effect("before_tool", func() {
			if string(c.Args) == `{"block":1}` {
				d.Block = "not that"
			} else {
				d.Args = json.RawMessage(`{"n":2}`)
			}
		})
		return d, nil
	})
	h.AfterTool = append(h.AfterTool, func(_ context.Context, r engine.AfterTool) (p engine.ToolPatch, err error) {
		w.Effect("after_tool", func() { p.Content = append(r.Result.Content, message.TextBlock(", they say")) })
		return p, nil
	})
}
