package enginetest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store/storetest"
)

// RandomHistories plays legal calls in any order, from several lanes, with drives
// parked anywhere, closes, and processes that die after any commit: the invariants
// of spec §9.1 hold after every commit, no call that runs at most once runs twice,
// and every operation comes to its end. It tries as many histories as checks says,
// and as many as rapid does by default with DROVER_TEST_LONG set.
func RandomHistories(t *testing.T, newDriver storetest.NewDriver, checks string) {
	Fewer(t, checks)
	rapid.Check(t, RandomHistory(t, newDriver))
}

// Fewer lets rapid try less than it does by default until the end of the test,
// but with DROVER_TEST_LONG set.
func Fewer(t *testing.T, checks string) {
	f := flag.Lookup("rapid.checks")
	if os.Getenv("DROVER_TEST_LONG") != "" || f.Value.String() != f.DefValue {
		return
	}
	_ = f.Value.Set(checks)
	t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
}

// RandomHistory is one of them, in a session of its own.
func RandomHistory(tb testing.TB, newDriver storetest.NewDriver) func(*rapid.T) {
	return func(t *rapid.T) {
		driver, dir := newDriver(tb)
		p := newPlayer(t, NewWorld(t, driver, dir))
		p.open()
		t.Repeat(map[string]func(*rapid.T){
			"accept":    p.accept,
			"accept 2":  p.accept, // what a history is made of comes more often
			"drive":     p.drive,
			"drive 2":   p.drive,
			"drive 3":   p.drive,
			"execute":   p.execute,
			"run":       p.run,
			"queue":     p.queue,
			"queue 2":   p.queue,
			"withdraw":  p.withdraw,
			"append":    p.append,
			"abort":     p.abort,
			"compact":   p.compact,
			"navigate":  p.navigate,
			"lane":      p.lane,
			"configure": p.configure,
			"settings":  p.settings,
			"name":      p.name,
			"value":     p.value,
			"reopen":    p.reopen,
			"die":       p.die,
		})
		p.finish(t)
	}
}

func newPlayer(t *rapid.T, w *World) *player {
	p := &player{w: w, calls: &callCounter{complain: w.TB.Errorf, ran: make(map[string]int)}}
	w.Quiet, w.Watch, *w.Pace = true, true, Free
	w.Options.Manual = true
	w.Options.Retry.MaxRetries = 2
	w.Options.Compaction = op.CompactionSettings{Enabled: true, ReserveTokens: 1_000, KeepRecentTokens: 5}
	w.Options.ToolExecution = rapid.SampledFrom([]op.ToolExecution{op.Sequential, op.Parallel}).Draw(t, "tool execution")
	w.Options.Hooks = randomHooks(rapid.SliceOfN(rapid.IntRange(0, 5), 1, 8).Draw(t, "hooks"))
	w.Tools("", p.calls.once("never"), &Tool{Name: "safe", Safe: true}, &Tool{Name: "last", Run: terminating})
	replies := rapid.SliceOfN(rapid.SampledFrom(randomReplies), 1, 12).Draw(t, "replies")
	w.Model.Reply = func(n int, _ effect.Request) Reply {
		w.Clock.Advance(1)
		if n > 40 { // a provider that never stops calling tools
			return atOnce("enough")
		}
		return replies[n%len(replies)].reply()
	}
	w.Models.Add(polled{w.Model})
	return p
}

// polled answers polls as it answers requests.
type polled struct{ *Model }

func (m polled) Poll(ctx context.Context, _ message.DeferredHandle, req effect.Request) effect.Events {
	return m.Stream(ctx, req)
}

func (polled) Cancel(context.Context, message.DeferredHandle) error { return nil }

// atOnce is an answer without a delta.
func atOnce(text string) Reply {
	return onlyEnd(message.StopStop, message.Usage{Input: 10, Output: 1, TotalTokens: 11}, message.TextBlock(text))
}

// onlyEnd is a stream of nothing but its end.
func onlyEnd(stop message.StopReason, usage message.Usage, content ...message.Block) Reply {
	a := message.Assistant{
		API: "echo", Provider: Ref.Provider, Model: Ref.ModelID,
		StopReason: stop, Timestamp: Start, Content: content, Usage: usage,
	}
	return Reply{Events: []message.StreamEvent{{Type: message.EventDone, Reason: stop, Message: a.Message()}}}
}

func asking(names ...string) func() Reply {
	return func() Reply {
		var calls []message.Block
		for i, name := range names {
			calls = append(calls, Call(fmt.Sprint("call-", i), name, "{}"))
		}
		return onlyEnd(message.StopToolUse, message.Usage{Input: 10, Output: 1, TotalTokens: 11}, calls...)
	}
}

func later(job string) func() Reply {
	return func() Reply {
		return Reply{Bare: true, Deferred: []byte(`{"provider":"acme","modelId":"one","api":"echo","id":"` + job + `"}`)}
	}
}

// randomReplies are what a provider may answer, to a request or a poll.
var randomReplies = []struct {
	name  string
	reply func() Reply
}{
	{"answer", func() Reply { return Say("hello ", "you") }},
	{"whole", func() Reply { return atOnce("said") }},
	{"calls", asking("never", "safe", "nope")},
	{"one call", asking("never")},
	{"two calls", asking("never", "never")},
	{"last call", asking("last")},
	{"cut off call", func() Reply {
		return onlyEnd(message.StopLength, message.Usage{Input: 10, Output: 8_000, TotalTokens: 8_010}, Call("c", "safe", "{}"))
	}},
	{"overload", func() Reply { return Fail("overloaded") }},
	{"partial overload", func() Reply { return Reply{Chunks: []string{"par"}, Error: "overloaded"} }},
	{"vanishing", func() Reply { return Reply{Chunks: []string{"par"}, Vanish: true} }},
	{"refusal", func() Reply { return Refuse("no", 400, 0) }},
	{"overflow", func() Reply { return Fail("prompt is too long") }},
	{"full", func() Reply {
		return onlyEnd(message.StopStop, message.Usage{Input: 99_500, TotalTokens: 99_500}, message.TextBlock("much"))
	}},
	{"later", later("job")},
	{"other job", later("other")},
}

func terminating(context.Context, *World, effect.Invocation) (message.ToolResult, error) {
	r := Result("final")
	r.Usage = &message.Usage{Input: 7, Output: 3, TotalTokens: 10}
	r.Terminate = true
	return r, nil
}

// callCounter counts the runs of tools that run at most once.
type callCounter struct {
	complain func(format string, args ...any)

	mu  sync.Mutex // the calls of a parallel batch count side by side
	ran map[string]int
}

// once is a tool that counts its runs, saves its progress and keeps a memo.
func (c *callCounter) once(name string) *Tool {
	return &Tool{Name: name, Run: func(ctx context.Context, _ *World, call effect.Invocation) (message.ToolResult, error) {
		if n := c.count(call.ID); n > 1 {
			c.complain("call %s ran %d times", call.ID, n)
		}
		call.Update(Result("half"), true)
		err := call.Memos.Set(ctx, "step", []byte(`1`))
		return Result(name + " is done"), err
	}}
}

// count says how often a call has run by now.
func (c *callCounter) count(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ran[id]++
	return c.ran[id]
}

// randomHooks decide by the drawn numbers, one after the other.
func randomHooks(drawn []int) engine.Hooks {
	var n, followUps atomic.Int64 // lanes may be between their breakpoints together
	next := func() int { return drawn[int(n.Add(1))%len(drawn)] }
	summary := func(context.Context, engine.BeforeSummary) (engine.SummaryDecision, error) {
		switch next() {
		case 0:
			return engine.SummaryDecision{Decline: true}, nil
		case 1:
			return engine.SummaryDecision{Summary: &engine.SuppliedSummary{Text: "by hand", Usage: &message.Usage{Input: 1, TotalTokens: 1}}}, nil
		}
		return engine.SummaryDecision{}, nil
	}
	return engine.Hooks{
		BeforeRun: []engine.Hook[engine.BeforeRun, []message.Message]{
			func(context.Context, engine.BeforeRun) ([]message.Message, error) {
				if next() != 2 {
					return nil, nil
				}
				return []message.Message{message.NewUser("injected", nil, Start)}, nil
			},
		},
		BeforeRunEnd: []engine.Hook[engine.BeforeRunEnd, string]{
			func(context.Context, engine.BeforeRunEnd) (string, error) {
				if next() != 3 || followUps.Add(1) > 3 {
					return "", nil
				}
				return "one more", nil
			},
		},
		BeforeTool: []engine.Hook[engine.BeforeTool, engine.ToolDecision]{
			func(context.Context, engine.BeforeTool) (engine.ToolDecision, error) {
				if next() != 4 {
					return engine.ToolDecision{}, nil
				}
				return engine.ToolDecision{Block: "not today"}, nil
			},
		},
		BeforeCompaction: []engine.Hook[engine.BeforeSummary, engine.SummaryDecision]{summary},
		BeforeNavigation: []engine.Hook[engine.BeforeSummary, engine.SummaryDecision]{summary},
	}
}
