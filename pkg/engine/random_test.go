package engine_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Legal calls in any order, from several lanes, with drives parked anywhere,
// closes, and processes that die after any commit: the invariants of §9.1 hold
// after every commit, no call that runs at most once runs twice, and every
// operation comes to its end.
func TestRandomHistories(t *testing.T) {
	fewer(t, "30")
	rapid.Check(t, randomHistory)
}

// fewer lets rapid try less than it does by default, but in a long test.
func fewer(t *testing.T, checks string) {
	f := flag.Lookup("rapid.checks")
	if long() || f.Value.String() != f.DefValue {
		return
	}
	_ = f.Value.Set(checks)
	t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
}

func FuzzRandomHistories(f *testing.F) { f.Fuzz(rapid.MakeFuzz(randomHistory)) }

func randomHistory(t *rapid.T) {
	p := newPlayer(t)
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

// player is one random history while it is played.
type player struct {
	w     *enginetest.World
	items []string // what was ever queued
	texts int

	mu  sync.Mutex     // the calls of a parallel batch count side by side
	ran map[string]int // calls of tools that run at most once, by invocation
}

func newPlayer(t *rapid.T) *player {
	p := &player{w: enginetest.InMemory(t), ran: make(map[string]int)}
	w := p.w
	w.Quiet, w.Watch, *w.Pace = true, true, enginetest.Free
	w.Options.Manual = true
	w.Options.Retry.MaxRetries = 2
	w.Options.Compaction = op.CompactionSettings{Enabled: true, ReserveTokens: 1_000, KeepRecentTokens: 5}
	w.Options.ToolExecution = rapid.SampledFrom([]op.ToolExecution{op.Sequential, op.Parallel}).Draw(t, "tool execution")
	w.Options.Hooks = p.hooks(rapid.SliceOfN(rapid.IntRange(0, 5), 1, 8).Draw(t, "hooks"))
	arm(w, p.once("never"), puppet{name: "safe", safe: true}, puppet{name: "last", run: terminating})
	replies := rapid.SliceOfN(rapid.SampledFrom(randomReplies), 1, 12).Draw(t, "replies")
	w.Model.Reply = func(n int, _ effect.Request) enginetest.Reply {
		w.Clock.Advance(1)
		if n > 40 { // a provider that never stops calling tools
			return whole("enough")
		}
		return replies[n%len(replies)].reply()
	}
	deferrable(w)
	return p
}

// randomReplies are what a provider may answer, to a request or a poll.
var randomReplies = []struct {
	name  string
	reply func() enginetest.Reply
}{
	{"answer", func() enginetest.Reply { return enginetest.Say("hello ", "you") }},
	{"whole", func() enginetest.Reply { return whole("said") }},
	{"calls", func() enginetest.Reply { return calls("never", "safe", "nope") }},
	{"one call", func() enginetest.Reply { return calls("never") }},
	{"two calls", func() enginetest.Reply { return calls("never", "never") }},
	{"last call", func() enginetest.Reply { return calls("last") }},
	{"cut off call", func() enginetest.Reply {
		return cutOff(message.Block{Type: message.BlockToolCall, ID: "c", Name: "safe", Arguments: []byte(`{}`)})
	}},
	{"overload", func() enginetest.Reply { return enginetest.Fail("overloaded") }},
	{"partial overload", func() enginetest.Reply { return enginetest.Reply{Chunks: []string{"par"}, Error: "overloaded"} }},
	{"vanishing", func() enginetest.Reply { return enginetest.Reply{Chunks: []string{"par"}, Vanish: true} }},
	{"refusal", func() enginetest.Reply { return enginetest.Refuse("no", 400, 0) }},
	{"overflow", func() enginetest.Reply { return enginetest.Fail("prompt is too long") }},
	{"full", func() enginetest.Reply { return full("much") }},
	{"later", func() enginetest.Reply { return later("job") }},
	{"other job", func() enginetest.Reply { return later("other") }},
}

func terminating(context.Context, effect.Invocation) (message.ToolResult, error) {
	r := final()
	r.Terminate = true
	return r, nil
}

// once is a tool that counts its runs, saves its progress and keeps a memo.
func (p *player) once(name string) puppet {
	return puppet{name: name, run: func(ctx context.Context, call effect.Invocation) (message.ToolResult, error) {
		if n := p.count(call.ID); n > 1 {
			p.w.TB.Errorf("call %s ran %d times", call.ID, n)
		}
		call.Update(text("half"), true)
		err := call.Memos.Set(ctx, "step", []byte(`1`))
		return text(name + " is done"), err
	}}
}

// count says how often a call has run by now.
func (p *player) count(id string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ran[id]++
	return p.ran[id]
}

// hooks decide by the drawn numbers, one after the other.
func (p *player) hooks(drawn []int) engine.Hooks {
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
				return []message.Message{message.NewUser("injected", nil, enginetest.Start)}, nil
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

func (p *player) open() {
	p.w.Open()
	p.allow(p.w.Lane.Configure(context.Background(), engine.Configure{ActiveToolNames: &[]string{"never", "safe", "last"}}))
}

// allow wants an error that a legal call may get. A process that died is followed
// by another.
func (p *player) allow(err error) {
	var fault *store.Fault
	var tagged interface{ Tag() string }
	var exists *store.LaneExists
	switch {
	case err == nil, errors.As(err, &exists):
	case errors.As(err, &fault):
		p.w.Reopen()
	case errors.As(err, &tagged):
	default:
		p.w.TB.Fatalf("a legal call: %v", err)
	}
}

// pick draws a lane.
func (p *player) pick(t *rapid.T) *engine.Lane {
	lanes := append(p.w.Harness.Lanes(), p.w.Lane, p.w.Lane)
	return rapid.SampledFrom(lanes).Draw(t, "lane")
}

// entry draws an entry, or the root.
func (p *player) entry(t *rapid.T) store.LeafID {
	entries, err := p.w.Session.ScanEntries(context.Background(), store.EntryQuery{})
	p.allow(err)
	n := rapid.IntRange(0, len(entries)).Draw(t, "entry")
	if n == len(entries) {
		return ""
	}
	return store.LeafID(entries[n].ID)
}

func (p *player) text() string {
	p.texts++
	return fmt.Sprintf("text %d", p.texts)
}

func (p *player) current(l *engine.Lane) *engine.CurrentOperation {
	info, err := l.InspectExecution(context.Background())
	p.allow(err)
	return info.Current
}

func (p *player) accept(t *rapid.T) {
	text := ""
	if rapid.IntRange(0, 4).Draw(t, "empty") > 0 {
		text = p.text()
	}
	_, err := p.pick(t).Accept(context.Background(), engine.Request{Text: text})
	p.allow(err)
}

func (p *player) compact(t *rapid.T) {
	_, err := p.pick(t).AcceptCompaction(context.Background(), engine.CompactRequest{})
	p.allow(err)
}

func (p *player) navigate(t *rapid.T) {
	r := engine.NavigateRequest{Target: p.entry(t), Summarize: rapid.Bool().Draw(t, "summarize")}
	if rapid.Bool().Draw(t, "label it") {
		r.Label = "here"
	}
	_, err := p.pick(t).AcceptNavigation(context.Background(), r)
	p.allow(err)
}

// drive starts a pass and waits until it is parked or over.
func (p *player) drive(t *rapid.T) {
	l := p.pick(t)
	c := p.current(l)
	if c == nil {
		t.Skip("idle")
	}
	o := engine.DriveOptions{OperationID: c.ID, WaitForRetry: rapid.Bool().Draw(t, "wait"), PollDeferred: rapid.Bool().Draw(t, "poll")}
	if rapid.IntRange(0, 4).Draw(t, "late") == 0 {
		o.Deadline = p.w.Clock.Now()
	}
	ended := make(chan error, 1)
	go func() {
		_, err := l.Drive(context.Background(), o)
		ended <- err
	}()
	p.standStill(l, ended)
	// On to a breakpoint, or to the end.
	to := rapid.SampledFrom(append([]string{"the end"}, everyAction...)).Draw(t, "to")
	for {
		a, ok := l.PeekAction(context.Background())
		if !ok || a.Kind == to {
			break
		}
		l.ExecuteAction(context.Background())
	}
	p.mourn()
}

// standStill waits until a lane is parked or its pass is over, and hears how a
// drive ended.
func (p *player) standStill(l *engine.Lane, ended <-chan error) {
	for {
		if _, ok := l.PeekAction(context.Background()); ok {
			return
		}
		if ended == nil {
			return
		}
		select {
		case err := <-ended:
			if !errors.Is(err, store.ErrClosed) {
				p.allow(err)
			}
			return
		default:
			runtime.Gosched() // the pass is not there yet
		}
	}
}

func (p *player) execute(t *rapid.T) {
	l := p.pick(t)
	if _, ok := l.ExecuteAction(context.Background()); !ok {
		t.Skip("nothing is parked")
	}
	p.standStill(l, nil)
	p.mourn()
}

func (p *player) run(t *rapid.T) {
	p.pick(t).RunToCompletion(context.Background())
	p.mourn()
}

// mourn opens the session again when its process has died.
func (p *player) mourn() {
	if p.w.Session.Fault() != nil {
		p.w.Reopen()
	}
}

func (p *player) queue(t *rapid.T) {
	add := rapid.SampledFrom([]func(*engine.Lane, context.Context, engine.Queued) (string, error){
		(*engine.Lane).Steer, (*engine.Lane).FollowUp, (*engine.Lane).NextRun,
	}).Draw(t, "queue")
	id, err := add(p.pick(t), context.Background(), engine.Queued{Text: p.text()})
	p.items = append(p.items, id)
	p.allow(err)
}

func (p *player) withdraw(t *rapid.T) {
	if len(p.items) == 0 {
		t.Skip("nothing was queued")
	}
	_, err := p.pick(t).CancelQueued(context.Background(), rapid.SampledFrom(p.items).Draw(t, "item"))
	p.allow(err)
}

func (p *player) append(t *rapid.T) {
	l := p.pick(t)
	if c := p.current(l); c != nil && c.Kind != op.KindRun && c.Status != engine.StatusSuspended {
		t.Skip("it would wait")
	}
	content := store.PendingEntry{Type: store.TypeCustom, CustomType: "note"}
	if rapid.Bool().Draw(t, "message") {
		content = store.PendingEntry{Type: store.TypeMessage, Payload: []byte(message.NewUser(p.text(), nil, enginetest.Start))}
	}
	id, _, err := l.Append(context.Background(), "", content)
	p.items = append(p.items, id)
	p.allow(err)
}

func (p *player) abort(t *rapid.T) {
	l := p.pick(t)
	c := p.current(l)
	if c == nil {
		t.Skip("idle")
	}
	var err error
	if rapid.Bool().Draw(t, "with a pass") {
		_, err = l.Abort(context.Background())
	} else {
		_, err = l.RequestAbort(context.Background(), c.ID)
	}
	p.allow(err)
	p.standStill(l, nil)
}

func (p *player) lane(t *rapid.T) {
	name := rapid.SampledFrom([]string{"one", "two"}).Draw(t, "name")
	_, err := p.w.Harness.CreateLane(context.Background(), name, p.entry(t), engine.Configure{Model: &enginetest.Ref, ActiveToolNames: &[]string{"never"}})
	p.allow(err)
}

func (p *player) configure(t *rapid.T) {
	level := rapid.SampledFrom([]message.ThinkingLevel{message.ThinkingOff, message.ThinkingHigh}).Draw(t, "level")
	names := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"never", "safe", "last"}), rapid.ID).Draw(t, "tools")
	p.allow(p.pick(t).Configure(context.Background(), engine.Configure{ThinkingLevel: &level, ActiveToolNames: &names}))
}

func (p *player) settings(t *rapid.T) {
	modes := rapid.SampledFrom([]op.QueueMode{op.QueueAll, op.QueueOne})
	s := p.w.Harness.Settings()
	s.SteeringMode, s.FollowUpMode = modes.Draw(t, "steering"), modes.Draw(t, "follow-up")
	s.Compaction.Enabled = rapid.Bool().Draw(t, "compaction")
	p.allow(p.w.Harness.SetSettings(s))
}

func (p *player) name(t *rapid.T) {
	id := p.entry(t)
	if id == "" {
		p.allow(p.w.Harness.SetName(context.Background(), p.text()))
		return
	}
	p.allow(p.w.Harness.SetLabel(context.Background(), string(id), rapid.SampledFrom([]string{"", "here"}).Draw(t, "label")))
}

// value sets or deletes a value of the application, from a lane's line.
func (p *player) value(t *rapid.T) {
	at := store.NewValue[string]("my-app", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"))
	w := at.Set(p.text())
	if rapid.Bool().Draw(t, "delete") {
		w = at.Delete()
	}
	p.allow(p.w.Session.Mutate(context.Background(), p.pick(t).Name(), func(m *store.Mutator) error {
		_, err := m.Commit(store.Tx{w})
		return err
	}))
}

func (p *player) reopen(*rapid.T) { p.w.Reopen() }

// die goes on in a process that dies after a few commits.
func (p *player) die(t *rapid.T) {
	_ = p.w.Harness.Close()
	p.w.OpenUntil(rapid.IntRange(1, 14).Draw(t, "commits"))
}

// finish ends every open operation in a process that lives.
func (p *player) finish(t *rapid.T) {
	ctx := context.Background()
	p.w.Options.Manual = false
	p.w.Reopen()
	for _, l := range p.w.Harness.Lanes() {
		for passes := 0; ; passes++ {
			c := p.current(l)
			if c == nil {
				break
			}
			if passes == 30 {
				if _, err := l.RequestAbort(ctx, c.ID); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := l.Drive(ctx, engine.DriveOptions{OperationID: c.ID, WaitForRetry: true, PollDeferred: true}); err != nil {
				t.Fatalf("the last drive of %s: %v", l.Name(), err)
			}
			if passes > 31 {
				t.Fatalf("operation %s of lane %s never ends: %s", c.ID, l.Name(), c.Point)
			}
		}
	}
	p.w.Verify()
	for _, r := range p.w.Records() {
		ns := r.Address.Namespace
		if r.Kind == store.KindList || slices.Contains([]string{"pi.op.meta", "pi.op.state", "pi.op.tool_args", "pi.op.tool_memo", "pi.op.preparation", "pi.pending.tool_output"}, ns) {
			t.Fatalf("%s is left", r.Address)
		}
	}
}
