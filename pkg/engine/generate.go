package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// startStep opens a generation step with what it captures (spec §3.7).
func (p *pass) startStep(ctx context.Context) error {
	start := op.StepStart{StepID: p.lane.h.session.IDs().NewID(), RetryPolicy: p.lane.h.Settings().Retry.normalized()}
	return p.lane.proceed(ctx, p.operationID, func(ctx context.Context, q store.Queries, t op.Turn) (op.Plan, error) {
		cfg, err := p.lane.recall.configured(ctx, q, p.lane.name)
		if err != nil {
			return op.Plan{}, err
		}
		start.Configuration = cfg
		return op.StartStep(t, start)
	})
}

// request makes one provider request from ready to its settlement: intent,
// effect, settlement, in one straight line (spec §3.7, §4.1).
func (p *pass) request(ctx context.Context, t op.Turn) (*DriveOutcome, error) {
	run, _ := t.Run()
	ready := run.Phase.(op.Assistant).Generation.(op.Ready)
	model, err := p.lane.ready(p.gate.Context(), ready.Context.Configuration)
	if err != nil {
		return p.missing(ctx, err)
	}
	found, wait, err := p.adopt(ctx, t, ready.Context, ready.NextAttempt, "")
	switch {
	case err != nil || wait != nil:
		return wait, err
	case found != nil:
		return nil, p.takeOver(ctx, ready, model, *found)
	}
	req, err := p.prepare(ctx, t, wanted{"assistant", ready.NextAttempt, ready.Context.Configuration, ready.Context.StreamOptions}, model)
	refused, err := refusal(err)
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
	answer, err := p.exchange(ctx, req, model, refused, nil, model.Stream)
	if err != nil {
		return nil, err
	}
	if ready.NextAttempt >= ready.Context.RetryPolicy.MaxAttempts && message.IsRetryable(answer) && mayHaveArrived(answer) {
		return p.lastAttempt(ctx, t, ready, req, model, answer)
	}
	return nil, p.settleAnswer(ctx, req, model.Info(), answer)
}

// exchange sends a request and reads the answer to its end, unless a required hook
// refused it before. polled is the handle of the job that is asked about.
func (p *pass) exchange(ctx context.Context, req effect.Request, model effect.Model, refused *HookFailed, polled json.RawMessage,
	send func(context.Context, effect.Request) effect.Events) (message.Message, error) {
	if refused != nil {
		events := refusedEvents(refusedAnswer(refused, req, model.Info(), polled))
		return p.consume(ctx, events, req, model, &message.ResponseMetadata{})
	}
	payload := p.hookPayload(&req, model.Info(), polled)
	meta := p.capture(&req)
	events, err := effect.Admit(p.gate, func(ctx context.Context) (effect.Events, error) {
		return send(ctx, req), nil
	})
	if err != nil {
		return nil, err
	}
	return p.consume(ctx, payload.guard(events), req, model, meta)
}

// capture makes the request hand its response metadata to the after_response
// hooks.
func (p *pass) capture(req *effect.Request) *message.ResponseMetadata {
	meta := &message.ResponseMetadata{}
	req.OnResponse = func(m message.ResponseMetadata) { *meta = m }
	return meta
}

// missing ends the pass in a durable wait when identities are not registered,
// with the state unchanged (spec §4.4).
func (p *pass) missing(ctx context.Context, err error) (*DriveOutcome, error) {
	var refusal *MissingIdentities
	if !errors.As(err, &refusal) {
		return nil, err
	}
	t, err := p.current(ctx)
	if err != nil {
		return nil, err
	}
	kinds := map[op.Kind]op.EventType{
		op.KindRun: op.EventRunSuspend, op.KindCompaction: op.EventCompactionSuspend, op.KindNavigation: op.EventNavigationSuspend,
	}
	p.lane.h.events.emit(ctx, op.Event{Type: kinds[op.KindOf(t.State)], Lane: p.lane.name, RunID: p.operationID, Missing: &refusal.Missing})
	return &DriveOutcome{Kind: Waiting, OperationID: p.operationID, Reason: WaitMissing, Missing: &refusal.Missing, Why: refusal}, nil
}

// wanted is a request that is to be prepared.
type wanted struct {
	step          string // assistant or deferred
	number        int64  // of the attempt, or of the poll
	configuration store.LaneConfiguration
	options       message.StreamOptions
}

// prepare builds the request; everything that can fail before the intent fails
// here. With a *HookFailed comes a request that may be settled and never sent.
func (p *pass) prepare(ctx context.Context, t op.Turn, w wanted, model effect.Model) (effect.Request, error) {
	o, info := p.lane.h.opts, model.Info()
	options, refused := p.beforeRequest(info, w.step, w.number, w.options)
	if _, err := refusal(refused); err != nil {
		return effect.Request{}, err
	}
	messages, err := p.lane.context(ctx, t.Leaf)
	if err != nil {
		return effect.Request{}, fmt.Errorf("build the context: %w", err)
	}
	system := p.lane.systemPrompt(t, w.configuration)
	if refused == nil {
		messages, system, refused = p.transformContext(messages, system)
	}
	if _, err := refusal(refused); err != nil {
		return effect.Request{}, err
	}
	messages = message.ToProvider(messages)
	input := message.ContextTokens(messages) + message.EstimateTokens(message.NewUser(system, nil, 0))
	req := effect.Request{
		ResponseEntryID: o.Session.IDs().NewID(),
		SystemPrompt:    system,
		Messages:        messages,
		Thinking:        message.ClampThinking(w.configuration.ThinkingLevel, info.Thinking),
		Wanted:          w.configuration.ThinkingLevel,
		Options:         options,
		MaxOutput:       intendedOutput(options, info, input),
		Now:             t.Now,
	}
	if !info.Images {
		req.OmittedImages = message.CountImages(messages)
	}
	for _, name := range w.configuration.ActiveToolNames {
		if tool, ok := o.Tools.Lookup(name); ok {
			req.Tools = append(req.Tools, tool.Spec())
		}
	}
	return req, refused
}

// systemPrompt is what the application tells the model in every request.
func (l *Lane) systemPrompt(t op.Turn, cfg store.LaneConfiguration) string {
	if l.h.opts.SystemPrompt == nil {
		return ""
	}
	return l.h.opts.SystemPrompt(Prompting{Lane: l.name, StartedAt: t.Operation.StartedAt, Tools: cfg.ActiveToolNames})
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
func (p *pass) settleAnswer(ctx context.Context, req effect.Request, info effect.ModelInfo, answer message.Message) error {
	if err := p.settlementPoint("assistant.settlement", "Settle the assistant's answer", ""); err != nil {
		return err
	}
	return p.lane.settle(ctx, p.operationID, func(ctx context.Context, q store.Queries, t op.Turn) (op.Plan, error) {
		run, _ := t.Run()
		if op.PendingResponse(run) != req.ResponseEntryID {
			return op.Plan{}, &Defect{Lane: p.lane.name, Err: fmt.Errorf("response %s is no longer pending", req.ResponseEntryID)}
		}
		r := p.response(req.ResponseEntryID, info, answer)
		g := run.Phase.(op.Assistant).Generation.(op.EffectPending)
		if op.Classify(run.Control, g, r) == op.ClassOverflow && run.Settings.Compaction.Enabled {
			// The answer itself never enters the context, so the branch as it is
			// prepares what would follow.
			prepared, err := p.lane.prepareCompaction(ctx, q, t.Leaf, run.Settings.Compaction.Capped(info.ContextWindow))
			if err != nil {
				return op.Plan{}, err
			}
			r.Preparation = prepared
		}
		return op.Settle(t, r)
	})
}

// settlementPoint is the breakpoint before a settlement: an abort sends the answer
// on to be settled under cancellation instead of losing it (spec §4.6).
func (p *pass) settlementPoint(kind, description, details string) error {
	err := p.hit(kind, description, details)
	var abort *effect.AbortRequested
	if errors.As(err, &abort) {
		p.interrupted(err)
		return nil
	}
	return err
}

// response completes an answer with what its settlement may need: result ids are
// followers of the response's (spec §1.2).
func (p *pass) response(responseID string, info effect.ModelInfo, m message.Message) op.Response {
	r := op.Response{Message: m, API: info.API, MaxDelayMs: p.lane.h.opts.Retry.MaxDelayMs}
	at, err := store.IDTime(responseID)
	if err != nil {
		at = p.lane.h.opts.Now()
	}
	for range m.ToolCalls() {
		r.ResultIDs = append(r.ResultIDs, p.lane.h.session.IDs().At(at))
	}
	return r
}

// prepareCompaction computes what a compaction of a leaf would summarize; nil when
// there is nothing to compact.
func (l *Lane) prepareCompaction(ctx context.Context, q store.Queries, leaf store.LeafID, settings op.CompactionSettings) (*op.Prepared, error) {
	branch, o, err := contextOf(ctx, q, leaf, l.h.opts.Projectors)
	if err != nil {
		return nil, err
	}
	p, ok, err := op.PrepareCompaction(branch, settings, o)
	if err != nil || !ok {
		return nil, l.trusted(err)
	}
	return l.prepared(p)
}

func (l *Lane) prepared(p op.Preparation) (*op.Prepared, error) {
	raw, err := p.AppendJSON(nil)
	if err != nil {
		return nil, err
	}
	return &op.Prepared{TaskID: l.h.session.IDs().NewID(), Value: json.RawMessage(raw)}, nil
}
