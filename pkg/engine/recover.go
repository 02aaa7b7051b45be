package engine

import (
	"context"
	"fmt"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// recover settles a request that no process owns any more: a deferred one with the
// job it had started, when that can be found (D34), any other with what its frames
// hold, which needs no model and starts nothing (spec §4.5).
func (p *pass) recover(ctx context.Context, t op.Turn) (*DriveOutcome, error) {
	run, _ := t.Run()
	pending := run.Phase.(op.Assistant).Generation.(op.EffectPending)
	found, wait, err := p.adopt(ctx, t, pending.Context, pending.Attempt, pending.ResponseEntryID)
	switch {
	case err != nil || wait != nil:
		return wait, err
	case found != nil:
		return nil, p.settleAdopted(ctx, pending.Attempt, pending.ResponseEntryID, *found)
	}
	m, err := p.interruptedAnswer(ctx, pending.ResponseEntryID, pending.Context.Configuration.Model, t.Now)
	if err != nil {
		return nil, err
	}
	if err := p.hit("recovery.settlement", "Settle an interrupted request", fmt.Sprintf(`{"attempt":%d}`, pending.Attempt)); err != nil {
		return nil, err
	}
	p.announceRecovered(ctx, m, pending.ResponseEntryID)
	return nil, p.lane.settle(ctx, p.operationID, func(_ context.Context, _ store.Queries, t op.Turn) (op.Plan, error) {
		return op.SettleOrphan(t, m)
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
