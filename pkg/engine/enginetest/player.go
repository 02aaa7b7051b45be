package enginetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"pgregory.net/rapid"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// player is one random history while it is played.
type player struct {
	w     *World
	calls *callCounter
	items []string // what was ever queued
	texts int
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
	to := rapid.SampledFrom(append([]string{"the end"}, breakpoints...)).Draw(t, "to")
	for {
		a, ok := l.PeekAction(context.Background())
		if !ok || a.Kind == to {
			break
		}
		l.ExecuteAction(context.Background())
	}
	p.mourn()
}

// breakpoints are where a drive may be left parked.
var breakpoints = []string{
	"hook.before_drive", "hook.before_run", "run.begin", "checkpoint.write", "checkpoint.steer", "checkpoint.follow_up",
	"checkpoint.threshold", "checkpoint.finish", "hook.before_request", "hook.transform_context", "hook.before_payload",
	"hook.after_response", "assistant.intent", "assistant.request", "assistant.settlement", "retry.sleep", "hook.before_tool",
	"tool.intent", "tool.execute", "hook.after_tool", "tool.settlement", "tool.materialize", "deferred.intent", "deferred.fetch",
	"deferred.settlement", "hook.before_compaction", "hook.before_navigation", "structural.intent", "structural.request",
	"structural.settlement", "structural.publish", "navigation.commit", "hook.before_run_end",
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
		content = store.PendingEntry{Type: store.TypeMessage, Payload: []byte(message.NewUser(p.text(), nil, Start))}
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
	_, err := p.w.Harness.CreateLane(context.Background(), name, p.entry(t), engine.Configure{Model: &Ref, ActiveToolNames: &[]string{"never"}})
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
