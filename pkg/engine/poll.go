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

// poll asks once for a deferred answer, when the pass has a permit left (spec
// §3.2, §4.5).
func (p *pass) poll(ctx context.Context, t op.Turn) (*DriveOutcome, error) {
	run, _ := t.Run()
	d := run.Phase.(op.DeferredPhase).Deferred
	source, err := deferredSource(ctx, p.lane.h.session, p.lane.name, d)
	if err != nil {
		return nil, err
	}
	if !p.options.PollDeferred || p.polled {
		return p.waitDeferred(source), nil
	}
	model, err := p.lane.ready(p.gate.Context(), d.Configuration)
	if err != nil {
		return p.missing(ctx, err)
	}
	deferred, ok := model.(effect.DeferredModel)
	if !ok {
		missing := &MissingIdentities{Lane: p.lane.name, Missing: op.Missing{Tools: []string{}, Model: d.Configuration.Model.String()}}
		return p.missing(ctx, missing)
	}
	p.polled = true
	options := d.StreamOptions
	options.Deferred = json.RawMessage("false")
	number := d.Poll
	if d.Status == op.DeferredSuspended {
		number++
	}
	req, err := p.prepare(ctx, t, wanted{"deferred", number, d.Configuration, options}, model)
	refused, err := refusal(err)
	if err != nil {
		return nil, err
	}
	answer, err := p.fetch(ctx, deferred, req, refused, source.handle, number)
	if err != nil {
		return nil, err
	}
	return nil, p.settlePoll(ctx, d, req, model.Info(), answer, source.handle)
}

// fetch is one poll: intent, then effect.
func (p *pass) fetch(ctx context.Context, model effect.DeferredModel, req effect.Request, refused *HookFailed, source message.DeferredHandle, number int64) (message.Message, error) {
	details := fmt.Sprintf(`{"poll":%d}`, number)
	if err := p.hit("deferred.intent", "Record the intent to ask for a deferred answer", details); err != nil {
		return nil, err
	}
	usageID := p.lane.h.session.IDs().NewID()
	err := p.lane.proceed(ctx, p.operationID, func(_ context.Context, _ store.Queries, t op.Turn) (op.Plan, error) {
		return op.IntendPoll(t, req.ResponseEntryID, usageID)
	})
	if err != nil {
		return nil, err
	}
	if err := p.hit("deferred.fetch", "Ask for a deferred answer", details); err != nil {
		return nil, err
	}
	return p.exchange(ctx, req, model, refused, source.Raw, func(ctx context.Context, req effect.Request) effect.Events {
		return model.Poll(ctx, source, req)
	})
}

// settlePoll commits the answer of a poll. A job that goes on though its run was
// cancelled is dropped first (spec §4.6).
func (p *pass) settlePoll(ctx context.Context, d op.Deferred, req effect.Request, info effect.ModelInfo, answer message.Message, source message.DeferredHandle) error {
	if err := p.settlementPoint("deferred.settlement", "Settle the answer of a poll", ""); err != nil {
		return err
	}
	goesOn := answer.StopReason() == message.StopDeferred || answer.StopReason() == message.StopAborted
	settle := func(_ context.Context, _ store.Queries, t op.Turn) (op.Plan, error) {
		run, _ := t.Run()
		switch {
		case op.PendingResponse(run) != req.ResponseEntryID:
			return op.Plan{}, &Defect{Lane: p.lane.name, Err: fmt.Errorf("poll %s is no longer pending", req.ResponseEntryID)}
		case goesOn && run.Control.Cancelled():
			return op.Plan{}, errCancelled
		}
		return op.SettlePoll(t, p.response(req.ResponseEntryID, info, answer), source)
	}
	err := p.lane.settle(ctx, p.operationID, settle)
	if !errors.Is(err, errCancelled) {
		return err
	}
	p.cancelDeferred(ctx, d)
	goesOn = false
	return p.lane.settle(ctx, p.operationID, settle)
}

// pendingAnswer is the newest answer that left a deferred job pending.
type pendingAnswer struct {
	handle message.DeferredHandle
	at     int64             // when it was given, Unix ms
	failed message.ErrorInfo // why the poll that it is of was not answered (D33)
}

// deferredSource reads the answer whose handle an operation waits on.
func deferredSource(ctx context.Context, q store.Queries, lane string, d op.Deferred) (pendingAnswer, error) {
	entries, err := q.Entries(ctx, []string{d.SourceEntryID})
	if err != nil {
		return pendingAnswer{}, err
	}
	e, ok := entries[d.SourceEntryID]
	raw, has := e.Message().Get("deferred")
	if !ok || !has {
		return pendingAnswer{}, &Defect{Lane: lane, Err: fmt.Errorf("entry %s holds no deferred handle", d.SourceEntryID)}
	}
	return pendingAnswer{message.DeferredHandle{Raw: raw}, e.Timestamp, message.ProviderError(e.Message())}, nil
}

// pollAfterDefault is how long to wait before a poll when the provider does not
// say, in ms.
const pollAfterDefault = 60_000

// due is when the job is worth asking about again, Unix ms.
func (a pendingAnswer) due() int64 {
	after, ok := a.handle.PollAfterMs()
	if !ok {
		after = pollAfterDefault
	}
	return a.at + after
}

// waitDeferred ends the pass in a wait for the answer. Only the pass that polled
// tells why the poll failed.
func (p *pass) waitDeferred(source pendingAnswer) *DriveOutcome {
	notBefore := source.due()
	d := &DriveOutcome{Kind: Waiting, OperationID: p.operationID, Reason: WaitDeferred, Deferred: source.handle.Raw, NotBefore: &notBefore}
	if p.polled {
		d.PollFailed = source.failed
	}
	return d
}
