package engine

import (
	"context"
	"fmt"
	"net/http"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// A deferred request whose outcome got lost may have started a job that costs what it
// costs. Nobody submits it again before its provider was asked for that job (D34).

// adopt looks for a job that lost submissions of a step have started: pending, "" for
// none, and those of the attempts before attempt. It returns the deferred answer that
// they had got, nil when there is none to be found, or else the end of the pass, when
// it takes time to find out. Recovery and retries ask alike.
func (p *pass) adopt(ctx context.Context, t op.Turn, g op.GenerationContext, attempt int64, pending string) (*op.Response, *DriveOutcome, error) {
	ref := g.Configuration.Model
	model, err := p.lane.h.opts.Models.Resolve(ref)
	adopter, ok := model.(effect.Adopter)
	if err != nil || !ok || !asksToDefer(g.StreamOptions) {
		return nil, nil, nil
	}
	lost, err := lostSubmissions(ctx, p.lane.h.session, t, attempt, pending)
	if err != nil || len(lost) == 0 {
		return nil, nil, err
	}
	details := fmt.Sprintf(`{"attempt":%d}`, attempt)
	if err := p.hit("deferred.fetch", "Look for the job of an interrupted submission", details); err != nil {
		return nil, nil, err
	}
	adoption, err := effect.Admit(p.gate, func(ctx context.Context) (effect.Adoption, error) {
		return adopter.Adopt(ctx, t.Now, lost), nil
	})
	info := model.Info()
	switch {
	case err != nil:
		return nil, nil, err
	case adoption.Handle.Valid(ref, info.API):
		m := message.Assistant{
			API: info.API, Provider: ref.Provider, Model: ref.ModelID,
			StopReason: message.StopDeferred, Deferred: adoption.Handle.Raw, Timestamp: t.Now,
		}.Message()
		return &op.Response{Message: m, API: info.API}, nil, nil
	case adoption.Unsure:
		return nil, p.waitUnsure(ref, info.API, lost[0].ResponseEntryID, t.Now), nil
	}
	return nil, nil, nil
}

// looksFirst tells whether a drive would look for a lost job before it does anything
// else about a request.
func looksFirst(ctx context.Context, q store.Queries, t op.Turn, models effect.Models) (bool, error) {
	run, _ := t.Run()
	answering, _ := run.Phase.(op.Assistant)
	var g op.GenerationContext
	var attempt int64
	pending := ""
	switch at := answering.Generation.(type) {
	case op.EffectPending:
		g, attempt, pending = at.Context, at.Attempt, at.ResponseEntryID
	case op.Ready:
		g, attempt = at.Context, at.NextAttempt
	case op.RetryWait:
		g, attempt = at.Context, at.NextAttempt
	}
	if t.State.Cancel().Cancelled() || !asksToDefer(g.StreamOptions) {
		return false, nil
	}
	lost, err := lostSubmissions(ctx, q, t, attempt, pending)
	if err != nil || len(lost) == 0 {
		return false, err
	}
	model, err := models.Resolve(g.Configuration.Model)
	_, looks := model.(effect.Adopter)
	return looks && err == nil, nil // a model that does not resolve is waited for
}

func asksToDefer(o message.StreamOptions) bool {
	return rawjson.KindOf(o.Deferred) == rawjson.Object || string(o.Deferred) == "true"
}

// lostSubmissions lists those of a step that may have arrived though nobody knows, the
// newest first: pending, and those of earlier attempts. An attempt is the parent of
// the next one, and its entry has the id that it was submitted under.
func lostSubmissions(ctx context.Context, q store.Queries, t op.Turn, attempt int64, pending string) ([]effect.Submission, error) {
	var all []effect.Submission
	add := func(id string) {
		if at, err := store.IDTime(id); err == nil {
			all = append(all, effect.Submission{ResponseEntryID: id, ReservedAt: at})
		}
	}
	add(pending)
	run, _ := t.Run()
	for id := string(run.LatestAssistantEntryID); attempt > 1; attempt-- {
		entries, err := q.Entries(ctx, []string{id})
		if err != nil {
			return nil, err
		}
		e, ok := entries[id]
		if !ok {
			break
		}
		if mayHaveArrived(e.Message()) {
			add(id)
		}
		id = e.ParentID
	}
	return all, nil
}

// mayHaveArrived tells of the answer to a submission whether its provider may have
// got it all the same: it was sent, and who refused it was nobody, or stood between.
func mayHaveArrived(m message.Message) bool {
	e := message.ProviderError(m)
	unanswered := e.Status == 0 || e.Status == http.StatusBadGateway || e.Class == message.ClassTimeout
	return m.StopReason() == message.StopError && unanswered && !e.Unsent
}

// waitUnsure ends the pass in a wait for jobs that may be the one of a lost submission
// and do not tell yet; the state stays as it is. Nothing is known of that job but the
// key, which stands for its id.
func (p *pass) waitUnsure(ref message.ModelRef, api, key string, now int64) *DriveOutcome {
	notBefore := now + pollAfterDefault
	handle := rawjson.AppendQuote([]byte(`{"provider":`), ref.Provider)
	handle = rawjson.AppendQuote(append(handle, `,"modelId":`...), ref.ModelID)
	handle = rawjson.AppendQuote(append(handle, `,"api":`...), api)
	handle = append(rawjson.AppendQuote(append(handle, `,"id":`...), key), '}')
	return &DriveOutcome{
		Kind: Waiting, OperationID: p.operationID, Reason: WaitDeferred, Deferred: handle, NotBefore: &notBefore, Unsure: true,
	}
}

// takeOver makes an attempt whose request was made before: with the answer that was
// found of it.
func (p *pass) takeOver(ctx context.Context, ready op.Ready, model effect.Model, found op.Response) error {
	req := effect.Request{
		ResponseEntryID: p.lane.h.session.IDs().NewID(),
		MaxOutput:       intendedOutput(ready.Context.StreamOptions, model.Info(), 0),
	}
	if err := p.intend(ctx, ready, req, model); err != nil {
		return err
	}
	return p.settleAdopted(ctx, ready.NextAttempt, req.ResponseEntryID, found)
}

// lastAttempt settles a request that would be made again, were it not the last one.
// No retry will look for a job of it, so that is done before the run fails.
func (p *pass) lastAttempt(ctx context.Context, t op.Turn, ready op.Ready, req effect.Request, model effect.Model, answer message.Message) (*DriveOutcome, error) {
	found, wait, err := p.adopt(ctx, t, ready.Context, ready.NextAttempt, req.ResponseEntryID)
	switch {
	case err != nil || wait != nil:
		return wait, err
	case found != nil:
		return nil, p.settleAdopted(ctx, ready.NextAttempt, req.ResponseEntryID, *found)
	}
	return nil, p.settleAnswer(ctx, req, model.Info(), answer)
}

// settleAdopted settles an attempt with the job that its request, or the one of an
// attempt before, had started.
func (p *pass) settleAdopted(ctx context.Context, attempt int64, responseID string, found op.Response) error {
	if err := p.hit("recovery.settlement", "Settle an interrupted submission", fmt.Sprintf(`{"attempt":%d}`, attempt)); err != nil {
		return err
	}
	p.announceRecovered(ctx, found.Message, responseID)
	return p.lane.settle(ctx, p.operationID, func(_ context.Context, _ store.Queries, t op.Turn) (op.Plan, error) {
		return op.SettleAdopted(t, found)
	})
}
