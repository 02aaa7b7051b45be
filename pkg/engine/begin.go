package engine

import (
	"context"
	"fmt"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// begin runs the before_run hooks and commits what they inject together with the
// first checkpoint (spec §3.6).
func (p *pass) begin(ctx context.Context, t op.Turn) error {
	prompt, err := p.prompt(ctx, t)
	if err != nil {
		return err
	}
	messages, err := p.beforeRun(prompt)
	if err != nil {
		return err
	}
	injected := make([]op.Placed, len(messages))
	for i, m := range messages {
		injected[i] = op.PlaceMessage(p.lane.h.session.IDs().NewID(), m)
	}
	if err := p.hit("run.begin", "Complete the run's initial context", ""); err != nil {
		return err
	}
	return p.lane.proceed(ctx, p.operationID, func(_ context.Context, _ store.Queries, t op.Turn) (op.Plan, error) {
		return op.Begin(t, injected)
	})
}

// prompt dereferences the messages that the run was accepted with; without
// before_run hooks nobody asks.
func (p *pass) prompt(ctx context.Context, t op.Turn) ([]message.Message, error) {
	if len(p.lane.h.opts.Hooks.BeforeRun) == 0 {
		return nil, nil
	}
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
