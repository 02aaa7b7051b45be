package engine

import (
	"context"
	"fmt"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// recover settles a request that no process owns any more: a deferred one with the
// job it had started, when that can be found (D34), any other with what its frames
// hold, which needs no model and starts nothing (spec §4.5).
func (p *pass) recover(ctx context.Context, t op.Turn) error {
	run, _ := t.Run()
	pending := run.Phase.(op.Assistant).Generation.(op.EffectPending)
	adopted, err := p.adopt(pending, t.Now)
	if err != nil {
		return err
	}
	if adopted != nil {
		return p.settleAdopted(ctx, pending, *adopted)
	}
	m, err := p.interruptedAnswer(ctx, pending.ResponseEntryID, pending.Context.Configuration.Model, t.Now)
	if err != nil {
		return err
	}
	if err := p.hit("recovery.settlement", "Settle an interrupted request", fmt.Sprintf(`{"attempt":%d}`, pending.Attempt)); err != nil {
		return err
	}
	p.announceRecovered(ctx, m, pending.ResponseEntryID)
	return p.lane.settle(ctx, p.operationID, func(_ context.Context, _ store.Queries, t op.Turn) (op.Plan, error) {
		return op.SettleOrphan(t, m)
	})
}

// adopt looks for the job of a deferred request; nil when there is none to be
// found.
func (p *pass) adopt(pending op.EffectPending, now int64) (*op.Response, error) {
	ref := pending.Context.Configuration.Model
	model, err := p.lane.h.opts.Models.Resolve(ref)
	adopter, ok := model.(effect.Adopter)
	if err != nil || !ok || !asksToDefer(pending.Context.StreamOptions) {
		return nil, nil
	}
	since, err := store.IDTime(pending.ResponseEntryID)
	if err != nil {
		return nil, nil
	}
	details := fmt.Sprintf(`{"attempt":%d}`, pending.Attempt)
	if err := p.hit("deferred.fetch", "Look for the job of an interrupted submission", details); err != nil {
		return nil, err
	}
	handle, err := effect.Admit(p.gate, func(ctx context.Context) (message.DeferredHandle, error) {
		handle, _ := adopter.Adopt(ctx, pending.ResponseEntryID, since)
		return handle, nil
	})
	if err != nil || !handle.Valid(ref, model.Info().API) {
		return nil, err
	}
	m := message.Assistant{
		API: model.Info().API, Provider: ref.Provider, Model: ref.ModelID,
		StopReason: message.StopDeferred, Deferred: handle.Raw, Timestamp: now,
	}.Message()
	return &op.Response{Message: m, API: model.Info().API}, nil
}

func asksToDefer(o message.StreamOptions) bool {
	return rawjson.KindOf(o.Deferred) == rawjson.Object || string(o.Deferred) == "true"
}

func (p *pass) settleAdopted(ctx context.Context, pending op.EffectPending, r op.Response) error {
	if err := p.hit("recovery.settlement", "Settle an interrupted submission", fmt.Sprintf(`{"attempt":%d}`, pending.Attempt)); err != nil {
		return err
	}
	p.announceRecovered(ctx, r.Message, pending.ResponseEntryID)
	return p.lane.settle(ctx, p.operationID, func(_ context.Context, _ store.Queries, t op.Turn) (op.Plan, error) {
		return op.SettleAdopted(t, r)
	})
}

// api names the wire protocol of a captured model, when it is still known.
func (p *pass) api(ref message.ModelRef) string {
	model, err := p.lane.h.opts.Models.Resolve(ref)
	if err != nil {
		return ref.Provider
	}
	return model.Info().API
}

// reduceFrames folds the committed frames of one response, page by page; nil when
// no start frame was committed.
func reduceFrames(ctx context.Context, q store.Queries, operationID, responseID string) (message.Message, error) {
	var r message.Reducer
	query := store.ListQuery{Limit: store.MaxListPage}
	for {
		page, err := q.ReadList(ctx, op.Frames(operationID, responseID).Address(), query)
		if err != nil {
			return nil, fmt.Errorf("read frames of %s: %w", responseID, err)
		}
		for _, element := range page {
			if err := r.Add(element.Seq, message.Frame(element.Value)); err != nil {
				return nil, fmt.Errorf("frames of %s: %w", responseID, err)
			}
			query.Cursor = element.Seq
		}
		if len(page) < store.MaxListPage {
			m, _ := r.Message()
			return m, nil
		}
	}
}
