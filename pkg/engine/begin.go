package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// beforeDrive runs the before_drive hooks, once per installed pass; a failure
// rejects the pass and leaves no trace (spec §5.6).
func (p *pass) beforeDrive(t op.Turn) error {
	hooks := p.lane.h.opts.Hooks.BeforeDrive
	if len(hooks) == 0 {
		return nil
	}
	if err := p.hit("hook.before_drive", "Run the before_drive hooks", ""); err != nil {
		return err
	}
	_, err := effect.Admit(p.gate, func(ctx context.Context) (struct{}, error) {
		for _, hook := range hooks {
			in := BeforeDrive{Lane: p.lane.name, RunID: p.operationID, Operation: t.Operation.Intent.Kind}
			if err := hook(ctx, in); err != nil {
				return struct{}{}, fmt.Errorf("before_drive hook: %w", err)
			}
		}
		return struct{}{}, nil
	})
	return err
}

// begin runs the before_run hooks and commits what they inject together with the
// first checkpoint (spec §3.6).
func (p *pass) begin(ctx context.Context, t op.Turn) error {
	injected, err := p.beforeRun(ctx, t)
	if err != nil {
		return err
	}
	if err := p.hit("run.begin", "Complete the run's initial context", ""); err != nil {
		return err
	}
	return p.lane.proceed(ctx, p.operationID, func(_ context.Context, _ store.Queries, t op.Turn) (op.Plan, error) {
		return op.Begin(t, injected)
	})
}

func (p *pass) beforeRun(ctx context.Context, t op.Turn) ([]op.Placed, error) {
	hooks := p.lane.h.opts.Hooks.BeforeRun
	if len(hooks) == 0 {
		return nil, nil
	}
	prompt, err := p.prompt(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := p.hit("hook.before_run", "Run the before_run hooks", ""); err != nil {
		return nil, err
	}
	messages, err := effect.Admit(p.gate, func(ctx context.Context) ([]message.Message, error) {
		return p.runHooks(ctx, prompt), nil
	})
	if err != nil {
		return nil, err
	}
	placed := make([]op.Placed, len(messages))
	for i, m := range messages {
		placed[i] = op.PlaceMessage(p.lane.h.session.IDs().NewID(), m)
	}
	return placed, nil
}

// runHooks collects what the handlers inject; one that fails, or injects what is
// no message, is reported and skipped (spec §5.6).
func (p *pass) runHooks(ctx context.Context, prompt []message.Message) []message.Message {
	var injected []message.Message
	for _, hook := range p.lane.h.opts.Hooks.BeforeRun {
		seen := append(append([]message.Message(nil), prompt...), injected...)
		messages, err := hook(ctx, BeforeRun{Lane: p.lane.name, RunID: p.operationID, Prompt: seen})
		for i := range messages {
			if err == nil {
				messages[i], err = message.Normalize(messages[i], p.lane.h.opts.Now())
			}
		}
		if err != nil {
			p.lane.h.events.emit(ctx, op.Event{Type: op.EventHandlerError, Lane: p.lane.name, RunID: p.operationID, Hook: "before_run", ErrorText: err.Error()})
			continue
		}
		injected = append(injected, messages...)
	}
	return injected
}

// prompt dereferences the messages that the run was accepted with.
func (p *pass) prompt(ctx context.Context, t op.Turn) ([]message.Message, error) {
	ids := t.Operation.Intent.PromptEntryIDs
	entries, err := p.lane.h.session.Entries(ctx, ids)
	if err != nil {
		return nil, err
	}
	messages := make([]message.Message, 0, len(ids))
	for _, id := range ids {
		e, ok := entries[id]
		if !ok {
			return nil, &Defect{Lane: p.lane.name, Err: fmt.Errorf("prompt entry %s is missing", id)}
		}
		messages = append(messages, e.Message())
	}
	return messages, nil
}

// sameState compares two states by their wire form.
func sameState(a, b op.State) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
