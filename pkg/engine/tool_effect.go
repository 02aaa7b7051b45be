package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/telemetry"
)

// execution is one cleared call on its way to its outcome.
type execution struct {
	batch    *batch
	planned  op.ToolCall
	call     message.Block
	tool     effect.Tool
	args     json.RawMessage
	recovery bool   // an earlier process may have run it
	admitted func() // told once the effect has started; nil when nobody waits
}

// begin runs the call beside others, and returns once its effect was admitted or
// is known not to begin.
func (e *execution) begin(ctx context.Context, ends chan<- error) {
	admitted := make(chan struct{})
	e.admitted = sync.OnceFunc(func() { close(admitted) })
	go func() {
		defer e.admitted()
		ends <- e.batch.pass.lane.h.session.Guard(func() error { return e.run(ctx) })
	}()
	<-admitted
}

// run settles one cleared call: effect, after_tool, tool_end, staging (spec §3.8).
func (e *execution) run(ctx context.Context) error {
	b, p, id := e.batch, e.batch.pass, e.planned.ResultEntryID
	if err := p.hit("tool.execute", "Run a tool", b.details(e.planned, e.call)); err != nil {
		return e.abandon(ctx, err)
	}
	i := &invocation{batch: b, call: e.call, id: id, recovery: e.recovery}
	started := false
	r, err := effect.Admit(p.gate, func(ctx context.Context) (message.ToolResult, error) {
		started = true
		i.show(ctx, op.EventToolStart, op.ToolEvent{Args: e.args}, func() { p.lane.toolStarted(id, e.call, e.args) })
		if e.admitted != nil {
			e.admitted()
		}
		span := p.spans.Start(telemetry.SpanTool, telemetry.String("pi.tool", e.call.Name), telemetry.String("pi.invocation_id", id))
		defer span.End(nil)
		return runTool(ctx, e.tool, effect.Invocation{
			ID: id, SessionID: p.lane.h.session.Header().ID, Lane: p.lane.name, OperationID: p.operationID, TurnID: b.turnID,
			CallID: e.call.ID, Args: e.args, Update: i.update, Memos: i,
		})
	})
	if !started {
		return e.abandon(ctx, err)
	}
	if err := i.close(ctx); err != nil {
		return err
	}
	if err != nil {
		r = message.ToolResult{Content: []message.Block{message.TextBlock(err.Error())}, IsError: true}
	}
	if err := p.closed(); err != nil {
		return err
	}
	if r, err = b.finalize(e.call, e.args, r); err != nil {
		return err
	}
	end := op.ToolEvent{Result: resultJSON(r), IsError: r.IsError, Terminate: r.Terminate}
	i.show(ctx, op.EventToolEnd, end, func() { p.lane.toolEnded(id) })
	return b.stage(ctx, e.planned, e.call, r, live)
}

// runTool turns a panic of a tool into an error result: one call must not take
// the session down.
func runTool(ctx context.Context, tool effect.Tool, call effect.Invocation) (r message.ToolResult, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the tool failed: %v", cause)
		}
	}()
	return tool.Execute(ctx, call)
}

// finalize applies after_tool, unless an abort came first: then the raw result
// stands and never ends the run (spec §4.6), where no required handler had to see
// it.
func (b *batch) finalize(call message.Block, args json.RawMessage, r message.ToolResult) (message.ToolResult, error) {
	patched, err := b.pass.afterTool(call, args, r)
	var abort *effect.AbortRequested
	switch {
	case errors.As(err, &abort) && b.pass.guarded(call.Name):
		return withheld(r, "the run was aborted before a required after_tool hook saw it"), nil
	case errors.As(err, &abort):
		r.Terminate = false
		return r, nil
	case err != nil:
		return r, err
	}
	if b.pass.gate.Check() != nil {
		patched.Terminate = false
	}
	return patched, nil
}

// abandon settles a call whose intent is durable but whose effect an abort
// prevented. One that this process cleared is known not to have run; whether an
// earlier process ran an orphan, nobody knows.
func (e *execution) abandon(ctx context.Context, cause error) error {
	var abort *effect.AbortRequested
	if !errors.As(cause, &abort) && !errors.Is(cause, errCancelled) {
		return cause
	}
	if !e.batch.pass.interrupted(cause) {
		return cause
	}
	settle := func() error { return e.batch.stage(ctx, e.planned, e.call, *aborted(), unstarted) }
	if e.recovery {
		settle = func() error { return e.batch.interrupt(ctx, e.planned, e.call) }
	}
	if err := settle(); err != nil {
		return err
	}
	return errCancelled
}

func aborted() *message.ToolResult {
	return synthetic("aborted", "the run was aborted before this call started")
}

// synthetic is a result that no tool made; details say why (D42).
func synthetic(reason, text string) *message.ToolResult {
	return &message.ToolResult{
		Content: []message.Block{message.TextBlock(text)},
		Details: append(append([]byte(`{"synthetic":`), rawjson.Quote(reason)...), '}'),
		IsError: true,
	}
}

// withCheckpoint puts the latest saved progress before the warning of an
// interrupted call; what it says of tools and of the run's end is ignored.
func withCheckpoint(r message.ToolResult, checkpoint json.RawMessage) *message.ToolResult {
	if content, ok := rawjson.Get(checkpoint, "content"); ok {
		var blocks []message.Block
		for raw, err := range rawjson.Elements(content) {
			if err != nil {
				break
			}
			if block, err := message.ParseBlock(raw); err == nil {
				blocks = append(blocks, block)
			}
		}
		r.Content = append(blocks, r.Content...)
	}
	if details, ok := rawjson.Get(checkpoint, "details"); ok {
		if merged, err := rawjson.Set(details, "synthetic", []byte(`"interrupted"`)); err == nil {
			r.Details = merged
		}
	}
	if raw, ok := rawjson.Get(checkpoint, "usage"); ok {
		if u, err := message.ParseUsage(raw); err == nil {
			r.Usage = &u
		}
	}
	return &r
}

// resultJSON is a tool result as updates, checkpoints and events carry it.
func resultJSON(r message.ToolResult) json.RawMessage {
	dst := []byte(`{"content":[`)
	for i, block := range r.Content {
		if i > 0 {
			dst = append(dst, ',')
		}
		next, err := block.AppendJSON(dst)
		if err != nil {
			next = append(dst, "null"...)
		}
		dst = next
	}
	dst = append(dst, ']')
	if r.Details != nil {
		dst = append(append(dst, `,"details":`...), r.Details...)
	}
	if r.Usage != nil {
		if u, err := r.Usage.AppendJSON(append(dst, `,"usage":`...)); err == nil {
			dst = u
		}
	}
	return append(dst, '}')
}

// invocation is the live side of one call: its updates, checkpoints and memos.
type invocation struct {
	batch    *batch
	call     message.Block
	id       string
	recovery bool

	mu       sync.Mutex
	ended    bool
	delivery *store.Ticket // of the latest update
	write    *store.Ticket // of the latest checkpoint
}

// show tells the beginning or the end of the call, together with what a snapshot
// then says of it.
func (i *invocation) show(ctx context.Context, t op.EventType, e op.ToolEvent, change func()) {
	_ = i.batch.pass.lane.reveal(ctx, i.event(t, e), func() error {
		change()
		return nil
	})
}

func (i *invocation) event(t op.EventType, e op.ToolEvent) func() op.Event {
	return func() op.Event {
		p := i.batch.pass
		e.CallID, e.Name = i.call.ID, i.call.Name
		return op.Event{Type: t, Lane: p.lane.name, RunID: p.operationID, TurnID: i.batch.turnID, Recovery: i.recovery, Tool: &e}
	}
}

func (i *invocation) update(partial message.ToolResult, checkpoint bool) {
	p := i.batch.pass
	if p.guarded(i.call.Name) {
		return // no hook has seen it
	}
	raw := resultJSON(partial)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended {
		return
	}
	delivery, _ := p.lane.revealLater(i.event(op.EventToolUpdate, op.ToolEvent{Result: raw}), func() error {
		p.lane.toolProgress(i.id, raw)
		return nil
	})
	if delivery != nil {
		i.delivery = delivery
	}
	if checkpoint {
		i.write = i.enqueue(op.ToolOutput(p.operationID, i.id).Set(raw))
	}
}

// enqueue admits one fenced write of the invocation on the lane line.
func (i *invocation) enqueue(w store.Write) *store.Ticket {
	p := i.batch.pass
	return p.lane.h.session.Enqueue(p.lane.name, func(m *store.Mutator) error {
		if !p.lane.owns(i.id) {
			return errOperationEnded
		}
		_, err := m.Commit(store.Tx{w})
		return err
	})
}

// close ends updates and memos, then waits for the latest of each kind, which
// implies every earlier one.
func (i *invocation) close(ctx context.Context) error {
	i.mu.Lock()
	i.ended = true
	delivery, write := i.delivery, i.write
	i.mu.Unlock()
	await(ctx, delivery)
	if write == nil {
		return nil
	}
	return write.Wait(ctx)
}

var errInvocationEnded = errors.New("the tool call has ended")

// Get reads a memo of the invocation.
func (i *invocation) Get(ctx context.Context, name string) (json.RawMessage, bool, error) {
	addr, err := i.memo(name)
	if err != nil {
		return nil, false, err
	}
	got, ok, err := store.Get(ctx, i.batch.pass.lane.h.session, addr)
	return got.Value, ok, err
}

// Set writes a memo durably; nil deletes it.
func (i *invocation) Set(ctx context.Context, name string, value json.RawMessage) error {
	addr, err := i.memo(name)
	if err != nil {
		return err
	}
	w := addr.Delete()
	if value != nil {
		w = addr.Set(value)
	}
	return i.enqueue(w).Wait(ctx)
}

func (i *invocation) memo(name string) (store.Value[json.RawMessage], error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	addr := op.ToolMemo(i.batch.pass.operationID, i.id, name)
	switch {
	case i.ended:
		return addr, errInvocationEnded
	case name == "" || strings.Contains(name, ":"):
		return addr, fmt.Errorf("memo name %q is empty or has a colon", name)
	}
	return addr, nil
}
