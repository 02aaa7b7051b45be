package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// startStep opens a generation step (spec §3.7). Whether its model is there is
// asked by the request, which may wait for it (spec §4.4).
func (p *pass) startStep(ctx context.Context, _ op.Turn) (*DriveOutcome, error) {
	stepID := p.lane.h.session.IDs().NewID()
	return nil, p.lane.proceed(ctx, p.operationID, func(ctx context.Context, q store.Queries, t op.Turn) (op.Plan, error) {
		cfg, err := required(ctx, q, p.lane.name, store.LaneConfig(p.lane.name))
		if err != nil {
			return op.Plan{}, err
		}
		o := p.lane.h.opts
		return op.StartStep(t, op.StepStart{
			StepID: stepID, Configuration: cfg, StreamOptions: o.StreamOptions, RetryPolicy: o.Retry.normalized(),
		})
	})
}

// request makes one provider request from ready to its settlement: intent,
// effect, settlement, in one straight line (spec §3.7, §4.1).
func (p *pass) request(ctx context.Context, t op.Turn) (*DriveOutcome, error) {
	run, _ := t.Run()
	ready := run.Phase.(op.Assistant).Generation.(op.Ready)
	model, err := p.lane.resolve(ready.Context.Configuration)
	if err != nil {
		return p.missing(ctx, err)
	}
	req, err := p.prepare(ctx, t, ready, model)
	if err != nil {
		return nil, err
	}
	if err := p.intend(ctx, ready, req, model); err != nil {
		return nil, err
	}
	details := fmt.Sprintf(`{"attempt":%d}`, ready.NextAttempt)
	if err := p.hit("assistant.request", "Request the assistant's answer", details); err != nil {
		return nil, err
	}
	events, err := effect.Admit(p.gate, func(ctx context.Context) (iter.Seq[message.StreamEvent], error) {
		return model.Stream(ctx, req), nil
	})
	if err != nil {
		return nil, err
	}
	answer, err := p.consume(ctx, events, req, model)
	if err != nil {
		return nil, err
	}
	return nil, p.settleAnswer(ctx, req, answer)
}

// missing ends the pass in a durable wait when identities are not registered,
// with the state unchanged (spec §4.4).
func (p *pass) missing(ctx context.Context, err error) (*DriveOutcome, error) {
	var refusal *MissingIdentities
	if !errors.As(err, &refusal) {
		return nil, err
	}
	p.lane.h.events.emit(ctx, op.Event{Type: op.EventRunSuspend, Lane: p.lane.name, RunID: p.operationID, Missing: &refusal.Missing})
	return &DriveOutcome{Kind: Waiting, OperationID: p.operationID, Reason: WaitMissing, Missing: &refusal.Missing}, nil
}

// prepare builds the request; everything that can fail before the intent fails
// here.
func (p *pass) prepare(ctx context.Context, t op.Turn, ready op.Ready, model effect.Model) (effect.Request, error) {
	o := p.lane.h.opts
	messages, err := project(ctx, p.lane.h.session, t.Leaf, o.Projectors)
	if err != nil {
		return effect.Request{}, fmt.Errorf("build the context: %w", err)
	}
	messages = message.ToProvider(messages)
	info := model.Info()
	input := message.ContextTokens(messages) + message.EstimateTokens(message.NewUser(o.SystemPrompt, nil, 0))
	return effect.Request{
		ResponseEntryID: o.Session.IDs().NewID(),
		SystemPrompt:    o.SystemPrompt,
		Messages:        messages,
		Thinking:        message.ClampThinking(ready.Context.Configuration.ThinkingLevel, info.Thinking),
		Options:         ready.Context.StreamOptions,
		MaxOutput:       intendedOutput(ready.Context.StreamOptions, info, input),
		Now:             t.Now,
	}, nil
}

// intendedOutput is the output limit that a request is made with, in tokens
// (D36).
func intendedOutput(o message.StreamOptions, info effect.ModelInfo, input int64) int64 {
	limit := info.ContextWindow - input
	if info.MaxTokens > 0 {
		limit = min(limit, info.MaxTokens)
	}
	if o.MaxTokens != nil {
		limit = min(limit, *o.MaxTokens)
	}
	return max(1, limit)
}

func (p *pass) intend(ctx context.Context, ready op.Ready, req effect.Request, model effect.Model) error {
	details := fmt.Sprintf(`{"attempt":%d}`, ready.NextAttempt)
	if err := p.hit("assistant.intent", "Record the intent to request an answer", details); err != nil {
		return err
	}
	r := op.Reservation{
		ResponseEntryID: req.ResponseEntryID, UsageID: p.lane.h.session.IDs().NewID(),
		IntendedOutput: req.MaxOutput, ContextWindow: model.Info().ContextWindow,
	}
	return p.lane.proceed(ctx, p.operationID, func(_ context.Context, _ store.Queries, t op.Turn) (op.Plan, error) {
		return op.Intend(t, r)
	})
}

// settleAnswer commits the answer with its usage and the next state.
func (p *pass) settleAnswer(ctx context.Context, req effect.Request, answer message.Message) error {
	if err := p.hit("assistant.settlement", "Settle the assistant's answer", ""); err != nil {
		return err
	}
	return p.lane.settle(ctx, p.operationID, func(_ context.Context, _ store.Queries, t op.Turn) (op.Plan, error) {
		if run, _ := t.Run(); op.PendingResponse(run) != req.ResponseEntryID {
			return op.Plan{}, &Defect{Lane: p.lane.name, Err: fmt.Errorf("response %s is no longer pending", req.ResponseEntryID)}
		}
		return op.Settle(t, answer, p.lane.h.opts.Retry.MaxDelayMs)
	})
}
