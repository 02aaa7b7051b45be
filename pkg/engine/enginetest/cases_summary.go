package enginetest

import (
	"context"
	"strings"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/message"
)

// long is an answer that fills the context beyond its threshold.
func long(text string) Line {
	return answer(Reply{Chunks: []string{text}, Usage: &message.Usage{Input: 99_000, Output: 500, TotalTokens: 99_500}})
}

// decides makes a hook of summaries say what it decides.
func decides(d engine.SummaryDecision) func(*World) {
	return func(w *World) {
		hook := func(context.Context, engine.BeforeSummary) (out engine.SummaryDecision, err error) {
			w.Effect("before_summary", func() { out = d })
			return out, nil
		}
		h := &w.Options.Hooks
		h.BeforeCompaction, h.BeforeNavigation = append(h.BeforeCompaction, hook), append(h.BeforeNavigation, hook)
	}
}

var (
	declines = decides(engine.SummaryDecision{Decline: true})
	supplies = decides(engine.SummaryDecision{Summary: &engine.SuppliedSummary{
		Text: "the hook's own", Details: []byte(`{"n":1}`), Usage: &message.Usage{Input: 1, Output: 2, TotalTokens: 3},
	}})
)

// neverMind leaves so few attempts that they run out.
func neverMind(w *World) { w.Options.Retry.MaxRetries = 1 }

// asked is what the latest request says.
func asked(w *World) string {
	requests, text := w.Model.Requests(), ""
	for _, m := range requests[len(requests)-1].Messages {
		text += m.Text()
	}
	return text
}

// overflowing is a line that does not fit until the context was compacted.
func overflowing(then Line) Line { return tooLong(Fail("prompt is too long"), then) }

func tooLong(r Reply, then Line) Line {
	return func(w *World) Reply {
		if strings.Contains(asked(w), "<summary>") {
			return then(w)
		}
		return r
	}
}

func autoCompactionCases() []Case {
	past := []Act{Prompt("before"), Prompt("full")}
	full := map[string][]Line{"full": {long("so much")}, "go": {say("ok")}}
	table := []Case{
		{Name: "a threshold"},
		{Name: "a threshold that a hook declines", Setup: declines},
		{Name: "a threshold with a supplied summary", Setup: supplies},
		{Name: "a threshold whose first summary fails", Summary: first(Fail("overloaded"), say("what was said"))},
		{Name: "a threshold whose summary cannot be made", Summary: answer(Refuse("no", 400, 0))},
		{Name: "a threshold whose summary is empty", Summary: answer(Reply{Chunks: []string{" "}})},
		{Name: "a threshold whose summaries run out", Summary: answer(Fail("500")), Setup: neverMind, Differs: Differs{Codes: []string{"interrupted"}}},
		{
			Name: "a threshold in the midst of tools", Tools: []*Tool{safe()},
			Script: map[string][]Line{"full": {say("little")}, "go": {answer(Reply{
				Calls: []message.Block{Call("a", "often", `{}`)}, Usage: &message.Usage{Input: 99_000, Output: 500, TotalTokens: 99_500},
			}), say("ok")}},
		},
		{
			Name: "a threshold with nothing to compact", Past: []Act{}, Script: script(long("so much")),
			Setup: func(w *World) { w.Options.Compaction.KeepRecentTokens = 20_000 },
		},
		{Name: "an overflow", Script: map[string][]Line{"go": {overflowing(say("ok"))}}},
		{Name: "an overflow by length", Script: map[string][]Line{"go": {tooLong(
			Reply{Stop: message.StopLength, Usage: &message.Usage{Input: 99_900, TotalTokens: 99_900}}, say("ok"),
		)}}},
		{Name: "an overflow again", Script: map[string][]Line{"go": {answer(Fail("prompt is too long"))}}},
		{Name: "an overflow that a hook declines", Setup: declines, Script: map[string][]Line{"go": {overflowing(say("ok"))}}},
		{Name: "an overflow with a supplied summary", Setup: supplies, Script: map[string][]Line{"go": {overflowing(say("ok"))}}},
		{Name: "an overflow with nothing to compact", Past: []Act{}, Script: map[string][]Line{"go": {answer(Fail("prompt is too long"))}}},
		{
			Name: "an overflow whose summary cannot be made", Script: map[string][]Line{"go": {overflowing(say("ok"))}},
			Summary: answer(Refuse("no", 400, 0)),
		},
	}
	for i := range table {
		c := &table[i]
		c.Acts = goes()
		if c.Past == nil {
			c.Past = past
		}
		if c.Script == nil {
			c.Script = full
		}
	}
	return table
}

// split is a past whose last turn is so long that a compaction cuts through it.
func split() ([]*Tool, map[string][]Line) {
	return []*Tool{safe()}, map[string][]Line{"work": {calls("often", "a"), calls("often", "b"), say("worked")}}
}

func compactionCases() []Case {
	tools, lines := split()
	table := []Case{
		{Name: "a compaction"},
		{Name: "a compaction, then a run", Acts: []Act{Compact(), Prompt("go")}},
		{Name: "a compaction of a compaction", Acts: []Act{Compact(), Prompt("go"), Prompt("two"), Compact()}},
		{Name: "a compaction of a split turn", Tools: tools, Script: lines, Past: []Act{Prompt("before"), Prompt("work")}},
		{Name: "a compaction that a hook declines", Setup: declines},
		{Name: "a compaction with a supplied summary", Setup: supplies},
		{Name: "a compaction whose first summary fails", Summary: first(Fail("overloaded"), say("what was said"))},
		{
			Name: "a compaction of a split turn whose second part fails once", Tools: tools, Script: lines, Past: []Act{Prompt("before"), Prompt("work")},
			Summary: func(w *World) Reply {
				if strings.Contains(asked(w), "one long turn") && w.Once("prefix") {
					return Fail("overloaded")
				}
				return Say("what was said")
			},
		},
		{Name: "a compaction that cannot be made", Summary: answer(Refuse("no", 400, 0))},
		{Name: "a compaction whose attempts run out", Summary: answer(Fail("500")), Setup: neverMind, Differs: Differs{Codes: []string{"interrupted"}}},
		{Name: "a compaction while a message waits", Acts: []Act{waits("before"), Compact(), Prompt("go")}},
	}
	for i := range table {
		c := &table[i]
		if c.Past == nil {
			c.Past = []Act{Prompt("one"), Prompt("two")}
		}
		if c.Acts == nil {
			c.Acts = []Act{Compact()}
		}
	}
	return table
}

func navigationCases() []Case {
	to := Navigate("one", true, "")
	table := []Case{
		{Name: "a navigation", Acts: []Act{Navigate("re: one", false, "here")}},
		{Name: "a navigation to the root", Acts: []Act{Navigate("", false, "")}},
		{Name: "a navigation, then a run", Acts: []Act{Navigate("re: one", false, ""), Prompt("go")}},
		{Name: "a navigation with a summary", Acts: []Act{Navigate("one", true, "here")}},
		{Name: "a navigation with a summary, then a run", Acts: []Act{to, Prompt("go")}},
		{Name: "a navigation that a hook declines", Acts: []Act{to}, Setup: declines},
		{Name: "a navigation with a supplied summary", Acts: []Act{to}, Setup: supplies},
		{Name: "a navigation whose first summary fails", Acts: []Act{to}, Summary: first(Fail("overloaded"), say("what was said"))},
		{Name: "a navigation whose summary cannot be made", Acts: []Act{to}, Summary: answer(Refuse("no", 400, 0))},
		{Name: "a navigation whose summaries run out", Acts: []Act{to}, Summary: answer(Fail("500")), Setup: neverMind, Differs: Differs{Codes: []string{"interrupted"}}},
	}
	for i := range table {
		table[i].Past = []Act{Prompt("one"), Prompt("two")}
	}
	return table
}
