package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// decideSummary asks the hooks of a summary and commits what they chose:
// decline, a supplied result, or generation (spec §3.9).
func (p *pass) decideSummary(ctx context.Context, t op.Turn) error {
	prep, err := p.preparation(ctx, t)
	if err != nil {
		return err
	}
	name, hooks, in := p.decisionHook(t, prep)
	decision, err := p.decide(name, hooks, in)
	if err != nil {
		return err
	}
	switch {
	case decision.Decline:
		return p.lane.proceed(ctx, p.operationID, func(ctx context.Context, q store.Queries, t op.Turn) (op.Plan, error) {
			t, err := withLeftovers(ctx, q, t)
			if err != nil {
				return op.Plan{}, err
			}
			return op.Decline(t)
		})
	case decision.Summary != nil:
		return p.publishSupplied(ctx, prep, *decision.Summary)
	}
	return p.startSummary(ctx, t, prep)
}

func (p *pass) decisionHook(t op.Turn, prep op.Preparation) (string, []Hook[BeforeSummary, SummaryDecision], BeforeSummary) {
	in := BeforeSummary{Lane: p.lane.name, RunID: p.operationID, Preparation: prep}
	switch s := t.State.(type) {
	case op.NavigationState:
		in.TargetID, in.CustomInstructions = s.TargetID, s.CustomInstructions
		return "before_navigation", p.lane.h.opts.Hooks.BeforeNavigation, in
	case op.CompactionState:
		in.Reason, in.CustomInstructions = op.ReasonManual, s.CustomInstructions
	case op.RunState:
		in.Reason = s.Phase.(op.InRunCompaction).Reason
	}
	return "before_compaction", p.lane.h.opts.Hooks.BeforeCompaction, in
}

// preparation reads what the summary is made from; its absence is a defect.
func (p *pass) preparation(ctx context.Context, t op.Turn) (op.Preparation, error) {
	task := op.StructuralOf(t.State).TaskID
	raw, err := required(ctx, p.lane.h.session, p.lane.name, op.PreparationOf(p.operationID, task))
	if err != nil {
		return op.Preparation{}, err
	}
	prep, err := op.DecodePreparation(raw)
	if err != nil {
		return prep, &Defect{Lane: p.lane.name, Err: fmt.Errorf("preparation of task %s: %w", task, err)}
	}
	return prep, nil
}

// startSummary captures what every attempt uses; the decision hook never runs
// again.
func (p *pass) startSummary(ctx context.Context, t op.Turn, prep op.Preparation) error {
	c := op.SummaryContext{
		TaskID: op.StructuralOf(t.State).TaskID, ResultEntryID: p.lane.h.session.IDs().NewID(), Kind: prep.Kind,
	}
	s := p.lane.h.Settings()
	c.StreamOptions, c.RetryPolicy = s.StreamOptions, s.Retry.normalized()
	if prep.Kind == op.SummaryCompaction {
		c.Reason = op.ReasonManual
	}
	if run, ok := t.Run(); ok {
		c.Reason, c.StreamOptions = run.Phase.(op.InRunCompaction).Reason, run.Settings.StreamOptions
	}
	c.StreamOptions.Deferred = []byte("false")
	return p.lane.proceed(ctx, p.operationID, func(ctx context.Context, q store.Queries, t op.Turn) (op.Plan, error) {
		cfg, err := required(ctx, q, p.lane.name, store.LaneConfig(p.lane.name))
		if err != nil {
			return op.Plan{}, err
		}
		c.Configuration = cfg
		return op.Generate(t, c)
	})
}

// summarize makes one attempt at a summary: one or two provider requests, each
// between its own intent and its usage row (spec §3.2, §3.9).
func (p *pass) summarize(ctx context.Context, t op.Turn) (*DriveOutcome, error) {
	ready := op.StructuralOf(t.State).Generation.(op.SummaryReady)
	model, err := p.lane.resolveModel(ready.Context.Configuration.Model)
	if err != nil {
		return p.missing(ctx, err)
	}
	prep, err := p.preparation(ctx, t)
	if err != nil {
		return nil, err
	}
	details := fmt.Sprintf(`{"attempt":%d}`, ready.NextAttempt)
	if err := p.hit("structural.intent", "Record the intent to summarize", details); err != nil {
		return nil, err
	}
	if err := p.lane.proceed(ctx, p.operationID, plain(op.Attempt)); err != nil {
		return nil, err
	}
	a := &attempt{pass: p, context: ready.Context, model: model, number: ready.NextAttempt}
	texts, failure, err := a.run(ctx, summaryPrompts(prep, instructionsOf(t.State)))
	if err != nil {
		return nil, err
	}
	if failure != nil {
		return nil, p.failSummary(ctx, failure)
	}
	return nil, p.publishGenerated(ctx, prep, ready.Context, texts, a.usage)
}

// plain adapts a transition that needs nothing but the turn.
func plain(transition func(op.Turn) (op.Plan, error)) planFunc {
	return func(_ context.Context, _ store.Queries, t op.Turn) (op.Plan, error) { return transition(t) }
}

func instructionsOf(s op.State) string {
	switch s := s.(type) {
	case op.CompactionState:
		return s.CustomInstructions
	case op.NavigationState:
		return s.CustomInstructions
	}
	return ""
}

// attempt is one attempt at a summary while it runs.
type attempt struct {
	pass    *pass
	context op.SummaryContext
	model   effect.Model
	number  int64
	usage   message.Usage
}

// run makes the requests one after the other; a failed answer ends the attempt.
func (a *attempt) run(ctx context.Context, prompts []summaryPrompt) (texts []string, failure message.Message, err error) {
	for i, prompt := range prompts {
		answer, err := a.ask(ctx, i, prompt)
		if err != nil {
			return nil, nil, err
		}
		if !summarizes(answer) {
			return nil, answer, nil
		}
		texts = append(texts, answer.Text())
	}
	return texts, nil, nil
}

// summarizes reports an answer that can stand for what it sums up. One without
// any text can not: older messages would be replaced by nothing.
func summarizes(answer message.Message) bool {
	reason := answer.StopReason()
	return (reason == message.StopStop || reason == message.StopLength) && strings.TrimSpace(answer.Text()) != ""
}

func (a *attempt) ask(ctx context.Context, index int, prompt summaryPrompt) (message.Message, error) {
	p := a.pass
	info := a.model.Info()
	options, err := p.beforeRequest(info, string(a.context.Kind), a.number, a.context.StreamOptions)
	refused, err := refusal(err)
	if err != nil {
		return nil, err
	}
	req := prompt.request(info, options, a.context.Configuration.ThinkingLevel, p.lane.h.opts.Now())
	req.ResponseEntryID = a.context.ResultEntryID
	r := op.SummaryRequest{Index: index, UsageID: p.lane.h.session.IDs().NewID()}
	err = p.lane.proceed(ctx, p.operationID, func(_ context.Context, _ store.Queries, t op.Turn) (op.Plan, error) {
		return op.Ask(t, r)
	})
	if err != nil {
		return nil, err
	}
	details := fmt.Sprintf(`{"attempt":%d,"request":%d}`, a.number, index)
	if err := p.hit("structural.request", "Request a summary", details); err != nil {
		return nil, err
	}
	answer, err := a.answer(req, refused)
	if err != nil {
		return nil, err
	}
	return answer, a.book(ctx, answer)
}

// answer sends a request that nobody watches, unless a required hook refused it.
func (a *attempt) answer(req effect.Request, refused *HookFailed) (message.Message, error) {
	p, info := a.pass, a.model.Info()
	if refused != nil {
		return p.responded(refusedAnswer(refused, req, info, nil).Message, message.ResponseMetadata{})
	}
	payload := p.hookPayload(&req, info, nil)
	meta := p.capture(&req)
	events, err := effect.Admit(p.gate, func(ctx context.Context) (effect.Events, error) {
		return a.model.Stream(ctx, req), nil
	})
	if err != nil {
		return nil, err
	}
	span := p.requestSpan(a.model)
	answer := final(payload.guard(events))
	endRequest(span, answer)
	if err := p.closed(); err != nil {
		return nil, err
	}
	return p.responded(answer, *meta)
}

// final reads a stream that nobody watches to its message.
func final(events effect.Events) message.Message {
	m := message.Assistant{StopReason: message.StopError, ErrorMessage: "the provider's stream ended early"}.Message()
	for ev := range events {
		if ev.Type == message.EventDone || ev.Type == message.EventError {
			m = ev.Final()
		}
	}
	return m
}

// book writes the usage row of a request that returned, also under cancellation
// (D29).
func (a *attempt) book(ctx context.Context, answer message.Message) error {
	p := a.pass
	if err := p.settlementPoint("structural.settlement", "Book the usage of a summary request", ""); err != nil {
		return err
	}
	raw, ok := answer.Get("usage")
	if !ok {
		raw, _ = message.Usage{}.AppendJSON(nil)
	}
	if u, err := message.ParseUsage(raw); err == nil {
		a.usage = a.usage.Add(u)
	}
	return p.lane.settle(ctx, p.operationID, func(_ context.Context, _ store.Queries, t op.Turn) (op.Plan, error) {
		return op.Answered(t, raw, answer.StopReason())
	})
}

func (p *pass) failSummary(ctx context.Context, answer message.Message) error {
	info := message.ProviderError(answer)
	e := op.Error{Code: "provider_error", Message: answer.ErrorMessage()}
	switch reason := answer.StopReason(); {
	case e.Message != "":
	case reason == message.StopStop || reason == message.StopLength:
		e.Message = "the summary is empty"
	default:
		e.Message = fmt.Sprintf("the summary ended with %s", answer.StopReason())
	}
	retryable := answer.StopReason() == message.StopError && message.IsRetryable(answer) && info.RetryAfterMs <= p.lane.h.opts.Retry.MaxDelayMs
	return p.lane.proceed(ctx, p.operationID, func(ctx context.Context, q store.Queries, t op.Turn) (op.Plan, error) {
		t, err := withLeftovers(ctx, q, t)
		if err != nil {
			return op.Plan{}, err
		}
		return op.SummaryFailed(t, e, retryable, info.RetryAfterMs)
	})
}

func (p *pass) publishGenerated(ctx context.Context, prep op.Preparation, c op.SummaryContext, texts []string, usage message.Usage) error {
	raw, err := usage.AppendJSON(nil)
	if err != nil {
		return err
	}
	sum := finished(prep, texts)
	sum.EntryID, sum.Usage = c.ResultEntryID, raw
	return p.publish(ctx, sum)
}

func (p *pass) publishSupplied(ctx context.Context, prep op.Preparation, s SuppliedSummary) error {
	sum := op.Summary{
		EntryID: p.lane.h.session.IDs().NewID(), Text: s.Text, Details: s.Details, FromHook: true,
		RetainedTail: prep.Tail(), TokensBefore: prep.TokensBefore,
	}
	if s.Usage != nil {
		raw, err := s.Usage.AppendJSON(nil)
		if err != nil {
			return err
		}
		sum.Usage, sum.HookUsageID = raw, p.lane.h.session.IDs().NewID()
	}
	return p.publish(ctx, sum)
}

// publish commits a finished summary; a cancellation that came first discards it
// (spec §4.6).
func (p *pass) publish(ctx context.Context, sum op.Summary) error {
	if err := p.hit("structural.publish", "Publish a summary", ""); err != nil {
		return err
	}
	if err := p.lane.h.session.Check(ctx); err != nil {
		return err
	}
	return p.lane.proceed(ctx, p.operationID, func(ctx context.Context, q store.Queries, t op.Turn) (op.Plan, error) {
		t, err := withLeftovers(ctx, q, t)
		if err != nil {
			return op.Plan{}, err
		}
		if op.KindOf(t.State) == op.KindNavigation {
			return op.Navigate(t, &sum)
		}
		return op.PublishCompaction(t, sum)
	})
}

// navigate commits a navigation without a summary.
func (p *pass) navigate(ctx context.Context) error {
	if err := p.hit("navigation.commit", "Move the lane", ""); err != nil {
		return err
	}
	return p.lane.proceed(ctx, p.operationID, func(ctx context.Context, q store.Queries, t op.Turn) (op.Plan, error) {
		t, err := withLeftovers(ctx, q, t)
		if err != nil {
			return op.Plan{}, err
		}
		return op.Navigate(t, nil)
	})
}

// summaryOrphan gives up an attempt whose process is gone (spec §4.5).
func (p *pass) summaryOrphan(ctx context.Context) error {
	if err := p.hit("recovery.settlement", "Give up an interrupted summary", ""); err != nil {
		return err
	}
	return p.lane.proceed(ctx, p.operationID, func(ctx context.Context, q store.Queries, t op.Turn) (op.Plan, error) {
		t, err := withLeftovers(ctx, q, t)
		if err != nil {
			return op.Plan{}, err
		}
		return op.SummaryOrphan(t)
	})
}

func (p *pass) summaryRetry(ctx context.Context, t op.Turn) (*DriveOutcome, error) {
	wait := op.StructuralOf(t.State).Generation.(op.SummaryRetryWait)
	return p.waitRetry(ctx, t, wait.NextAttempt, wait.NotBefore, op.SummaryRetryDue)
}

// resolveModel finds a model alone: a summary needs no tools.
func (l *Lane) resolveModel(ref message.ModelRef) (effect.Model, error) {
	model, err := l.h.opts.Models.Resolve(ref)
	var unknown *effect.UnknownModel
	if errors.As(err, &unknown) {
		return nil, &MissingIdentities{Lane: l.name, Missing: op.Missing{Tools: []string{}, Model: ref.String()}, Err: err}
	}
	return model, err
}

// finished joins the texts of a summary with its file lists.
func finished(prep op.Preparation, texts []string) op.Summary {
	read, modified := prep.Files.Lists()
	details := append([]byte(`{"readFiles":`), namesJSON(read)...)
	details = append(append(append(details, `,"modifiedFiles":`...), namesJSON(modified)...), '}')
	return op.Summary{
		Text: joinSummary(prep, texts, read, modified), Details: details,
		RetainedTail: prep.Tail(), TokensBefore: prep.TokensBefore,
	}
}
