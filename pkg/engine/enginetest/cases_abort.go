package enginetest

import (
	"context"
	"maps"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

func abort(v visitor) { v.abort() }

// abortAt aborts before the first breakpoint of a kind.
func abortAt(kind string) map[string]func(*World) error {
	return map[string]func(*World) error{kind: func(w *World) error {
		w.meanwhile().abort()
		return nil
	}}
}

func abortDuring(reason engine.WaitReason) map[engine.WaitReason]func(*World) error {
	return map[engine.WaitReason]func(*World) error{reason: func(w *World) error {
		w.meanwhile().abort()
		return nil
	}}
}

// aborting is a tool in whose midst the user aborts.
func aborting(t *Tool) *Tool {
	t.Run = func(_ context.Context, w *World, call effect.Invocation) (message.ToolResult, error) {
		w.meanwhile().abort()
		return Result("ran " + call.CallID), nil
	}
	return t
}

// The hooks in whose midst the user aborts.
func abortBeforeRun(w *World) {
	w.Options.Hooks.BeforeRun = append(w.Options.Hooks.BeforeRun, func(context.Context, engine.BeforeRun) (m []message.Message, err error) {
		w.Effect("before_run", func() { w.meanwhile().abort(); m = user(w, "context") })
		return m, nil
	})
}

func abortBeforeRunEnd(w *World) {
	w.Options.Hooks.BeforeRunEnd = append(w.Options.Hooks.BeforeRunEnd, func(context.Context, engine.BeforeRunEnd) (more string, err error) {
		w.Effect("before_run_end", func() { w.meanwhile().abort(); more = "and more" })
		return more, nil
	})
}

func abortBeforeRequest(w *World) {
	w.Options.Hooks.BeforeRequest = append(w.Options.Hooks.BeforeRequest, func(context.Context, engine.BeforeRequest) (o *message.StreamOptions, err error) {
		w.Effect("before_request", func() { w.meanwhile().abort() })
		return nil, nil
	})
}

func abortAfterResponse(w *World) {
	w.Options.Hooks.AfterResponse = append(w.Options.Hooks.AfterResponse, func(context.Context, engine.AfterResponse) (m message.Message, err error) {
		w.Effect("after_response", func() { w.meanwhile().abort() })
		return nil, nil
	})
}

func abortBeforeTool(w *World) {
	w.Options.Hooks.BeforeTool = append(w.Options.Hooks.BeforeTool, func(context.Context, engine.BeforeTool) (d engine.ToolDecision, err error) {
		w.Effect("before_tool", func() { w.meanwhile().abort() })
		return d, nil
	})
}

func abortAfterTool(w *World) {
	w.Options.Hooks.AfterTool = append(w.Options.Hooks.AfterTool, func(context.Context, engine.AfterTool) (p engine.ToolPatch, err error) {
		w.Effect("after_tool", func() {
			w.meanwhile().abort()
			p.Content = []message.Block{message.TextBlock("patched")}
		})
		return p, nil
	})
}

func abortBeforeSummary(w *World) {
	hook := func(context.Context, engine.BeforeSummary) (d engine.SummaryDecision, err error) {
		w.Effect("before_summary", func() { w.meanwhile().abort() })
		return d, nil
	}
	h := &w.Options.Hooks
	h.BeforeCompaction, h.BeforeNavigation = append(h.BeforeCompaction, hook), append(h.BeforeNavigation, hook)
}

// ends adds the ways in which calls may end instead.
func (d Differs) ends(id string, ways ...string) Differs {
	results := maps.Clone(d.Results)
	if results == nil {
		results = map[string][]string{}
	}
	results[id] = ways
	d.Results = results
	return d
}

func abortCases() []Case {
	cut := Differs{Cut: true}
	later := answer(Reply{Deferred: job("j1")})
	busy := func(v visitor) {
		v.steer("x").followUp("y").nextRun("z").write(note("unseen")).abort()
	}
	table := []Case{
		{Name: "aborted before its first drive", Acts: []Act{accepted(Prompt("go")), aborts()}},
		{Name: "aborted in before_run", Setup: abortBeforeRun},
		{Name: "aborted in before_request", Setup: abortBeforeRequest},
		{Name: "aborted while it answers", Script: script(during(Say("one ", "two ", "three"), abort)), Differs: cut},
		{Name: "aborted where the provider does not hear it", Tools: []*Tool{safe()}, Script: script(during(Ask(Call("a", "often", `{}`)), abort)), Differs: cut},
		{Name: "aborted in after_response", Setup: abortAfterResponse, Differs: cut},
		{Name: "aborted in a wait before a retry", Script: script(answer(Fail("overloaded"))), Setup: func(w *World) { w.Options.Retry.BaseDelayMs = 100 }, Waits: abortDuring(engine.WaitRetry)},
		{Name: "aborted in before_tool", Tools: []*Tool{safe()}, Setup: abortBeforeTool, Script: script(calls("often", "a", "b"))},
		{
			Name: "aborted while the first of two calls runs", Tools: []*Tool{aborting(safe())}, Setup: sequential,
			Script: script(calls("often", "a", "b")), Differs: unknown("a"),
		},
		{
			Name: "aborted while a call never again runs", Tools: []*Tool{aborting(never())}, Setup: sequential,
			Script: script(calls("once", "a", "b"), during(Say("done"), abort)),
			// Where the call was interrupted before the abort, the run goes on, and is
			// aborted in the next call.
			Differs: unknown("a", "b").ends("b", "interrupted", "done ran b"),
		},
		{
			Name: "aborted while calls run side by side", Tools: []*Tool{aborting(safe())}, Script: script(calls("often", "a", "b")),
			Differs: Differs{}.ends("a", "interrupted").ends("b", "interrupted", "aborted", "done ran b"),
		},
		{Name: "aborted in after_tool", Tools: []*Tool{safe()}, Setup: abortAfterTool, Script: script(calls("often", "a")), Differs: unknown("a")},
		{Name: "aborted while a job runs", Setup: polls(say("never")), Script: script(later), Waits: abortDuring(engine.WaitDeferred)},
		{Name: "aborted in a poll", Setup: polls(during(Say("one ", "two"), abort)), Script: script(later), Differs: cut},
		{Name: "aborted in before_run_end", Setup: abortBeforeRunEnd},
		{Name: "aborted with everything in its queues", Script: script(during(Say("one ", "two"), busy)), Differs: cut},
		{
			Name: "aborted with everything in its queues, then another run", Acts: []Act{Prompt("go"), Prompt("two")},
			Script: script(during(Say("one ", "two"), busy)), Differs: cut,
		},
	}
	return finishAborts(append(table, abortPoints()...), func(c *Case) { c.Acts = goes() })
}

// abortPoints abort at breakpoints, where something is about to happen.
func abortPoints() []Case {
	later := answer(Reply{Deferred: job("j1")})
	waiting := during(Say("one"), func(v visitor) { v.steer("x").followUp("y").write(note("unseen")) })
	full := []Act{Prompt("before"), Prompt("full")}
	var table []Case
	for _, kind := range []string{"run.begin", "assistant.intent", "assistant.request", "assistant.settlement", "checkpoint.finish"} {
		table = append(table, Case{Name: "aborted before " + kind, At: abortAt(kind), Differs: Differs{Cut: true}})
	}
	for _, kind := range []string{"tool.intent", "tool.execute", "tool.settlement", "tool.materialize"} {
		table = append(table, Case{
			Name: "aborted before " + kind, At: abortAt(kind), Tools: []*Tool{safe()}, Script: script(calls("often", "a", "b"), say("done")),
			Differs: Differs{}.ends("a", "interrupted", "aborted", `done often did {"of":"a"}`).ends("b", "interrupted", "aborted", `done often did {"of":"b"}`),
		})
	}
	for _, kind := range []string{"checkpoint.write", "checkpoint.steer", "checkpoint.follow_up"} {
		table = append(table, Case{Name: "aborted before " + kind, At: abortAt(kind), Script: script(waiting)})
	}
	for _, kind := range []string{"deferred.intent", "deferred.fetch", "deferred.settlement"} {
		table = append(table, Case{Name: "aborted before " + kind, At: abortAt(kind), Setup: polls(say("at last")), Script: script(later), Differs: Differs{Cut: true}})
	}
	for _, kind := range []string{"checkpoint.threshold", "structural.intent", "structural.request", "structural.settlement", "structural.publish"} {
		table = append(table, Case{Name: "aborted before " + kind, At: abortAt(kind), Past: full, Script: map[string][]Line{"full": {long("so much")}}, Differs: Differs{Cut: true}})
	}
	return append(table, Case{Name: "a failure aborted before checkpoint.finish", At: abortAt("checkpoint.finish"), Script: script(answer(Refuse("no", 400, 0)))})
}

func finishAborts(table []Case, complete func(*Case)) []Case {
	for i := range table {
		if table[i].Acts == nil {
			complete(&table[i])
		}
	}
	return table
}

func abortSummaryCases() []Case {
	cut := Differs{Cut: true}
	past := []Act{Prompt("before"), Prompt("full")}
	full := map[string][]Line{"full": {long("so much")}}
	to := []Act{Navigate("before", true, "here")}
	slow := func(w *World) { w.Options.Retry.BaseDelayMs = 100 }
	table := finishAborts([]Case{
		{Name: "a threshold aborted in its hook", Acts: goes(), Script: full, Setup: abortBeforeSummary},
		{Name: "a threshold aborted in its summary", Acts: goes(), Script: full, Summary: during(Say("one ", "two"), abort), Differs: cut},
		{Name: "a threshold aborted in a wait before a retry", Acts: goes(), Script: full, Summary: answer(Fail("500")), Setup: slow, Waits: abortDuring(engine.WaitRetry)},
		{Name: "an overflow aborted in its hook", Acts: goes(), Script: script(overflowing(say("ok"))), Setup: abortBeforeSummary},
		{Name: "an overflow aborted in its summary", Acts: goes(), Script: script(overflowing(say("ok"))), Summary: during(Say("one ", "two"), abort), Differs: cut},
		{Name: "a compaction aborted before its first drive", Acts: []Act{accepted(Compact()), aborts()}},
		{Name: "a compaction aborted in its hook", Setup: abortBeforeSummary},
		{Name: "a compaction aborted in its summary", Summary: during(Say("one ", "two"), abort), Differs: cut},
		{Name: "a compaction aborted in a wait before a retry", Summary: answer(Fail("500")), Setup: slow, Waits: abortDuring(engine.WaitRetry)},
		{Name: "a compaction aborted before its publication", At: abortAt("structural.publish"), Differs: cut},
		{Name: "a navigation aborted before its first drive", Acts: []Act{accepted(Navigate("before", false, "here")), aborts()}},
		{Name: "a navigation aborted before navigation.commit", Acts: []Act{Navigate("before", false, "here")}, At: abortAt("navigation.commit")},
		{Name: "a navigation aborted in its hook", Acts: to, Setup: abortBeforeSummary},
		{Name: "a navigation aborted in its summary", Acts: to, Summary: during(Say("one ", "two"), abort), Differs: cut},
		{Name: "a navigation aborted before its publication", Acts: to, At: abortAt("structural.publish"), Differs: cut},
	}, func(c *Case) { c.Acts = []Act{Compact()} })
	for i := range table {
		table[i].Past = past
	}
	return table
}
