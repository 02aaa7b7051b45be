package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/telemetry"
)

// DriveOptions fence and bound one pass (spec §5.1).
type DriveOptions struct {
	// OperationID is the expected operation; a stale call drives nothing else.
	OperationID string
	// Deadline, Unix ms, is looked at only at safe boundaries; 0 is none.
	Deadline int64
	// WaitForRetry waits in this process through retry waits.
	WaitForRetry bool
	// PollDeferred permits at most one poll of a deferred answer.
	PollDeferred bool
}

// pass is the process-local ownership of one stretch of an operation: the
// ActiveOperation of §4.1.
type pass struct {
	lane        *Lane
	operationID string
	options     DriveOptions
	polled      bool // the permit is used up
	kind        op.Kind
	spans       spans
	gate        *effect.Gate
	done        chan struct{}
	result      *op.LaneLastResult // of the terminal transaction, once it committed
	planned     *op.LaneLastResult // of the terminal transaction that this pass planned
	hydrated    Outcome            // of planned
	outcome     DriveOutcome
	err         error
}

// Drive runs one pass of an operation, joins the pass that already runs, or
// answers with the operation's settled outcome; anything else is an
// *OperationMismatch (spec §4.1). A caller whose context ends stops waiting; the
// pass goes on until the harness closes.
func (l *Lane) Drive(ctx context.Context, o DriveOptions) (DriveOutcome, error) {
	for {
		in, err := onLine(ctx, l, func(m *store.Mutator) (installed, error) { return l.install(ctx, m, o) })
		if err != nil {
			return DriveOutcome{}, err
		}
		if in.settled != nil {
			return *in.settled, nil
		}
		select {
		case <-in.pass.done:
		case <-ctx.Done():
			return DriveOutcome{}, context.Cause(ctx)
		}
		if in.pass.operationID == o.OperationID {
			return in.pass.outcome, in.pass.err
		}
		// That was the pass of the operation before, telling its end: a lane has one
		// pass at a time.
	}
}

// installed is what a drive waits for: the answer that is there already, or a
// pass.
type installed struct {
	settled *DriveOutcome
	pass    *pass
}

// install decides on the lane line which of §4.1's rules applies. The pass starts
// here: its caller may have stopped waiting for this job.
func (l *Lane) install(ctx context.Context, m *store.Mutator, o DriveOptions) (installed, error) {
	t, err := l.load(ctx, m)
	if err != nil {
		return installed{}, err
	}
	active := l.activePass()
	switch {
	case active != nil && active.operationID == o.OperationID:
		return installed{pass: active}, nil
	case t.State == nil:
		settled, err := l.settledResult(ctx, m, t, o.OperationID)
		return installed{settled: settled}, err
	case t.Operation.OperationID != o.OperationID:
		return installed{}, mismatch(ctx, m, t, o.OperationID)
	case active != nil:
		return installed{pass: active}, nil
	}
	if err := l.h.admission(); err != nil {
		return installed{}, err
	}
	p := &pass{
		lane: l, operationID: o.OperationID, kind: t.Operation.Intent.Kind, options: o,
		gate: effect.NewGate(context.Background()), done: make(chan struct{}),
	}
	l.setActive(p)
	go p.run()
	return installed{pass: p}, nil
}

// settledResult answers for an operation that is not current: its outcome when
// it was the latest to end (spec §4.1).
func (l *Lane) settledResult(ctx context.Context, q store.Queries, t op.Turn, id string) (*DriveOutcome, error) {
	last, ok, err := store.Get(ctx, q, op.LastResult(l.name))
	if err != nil {
		return nil, err
	}
	if !ok || last.Value.OperationID != id {
		return nil, mismatch(ctx, q, t, id)
	}
	outcome, err := hydrate(ctx, q, last.Value)
	if err != nil {
		return nil, err
	}
	return &DriveOutcome{Kind: Settled, OperationID: id, Outcome: &outcome}, nil
}

// mismatch refuses an operation that is neither open nor the latest to end, and
// names those that are (spec §5.1).
func mismatch(ctx context.Context, q store.Queries, t op.Turn, expected string) error {
	last, _, err := store.Get(ctx, q, op.LastResult(t.Lane))
	if err != nil {
		return err
	}
	return &OperationMismatch{
		Lane: t.Lane, Expected: expected, Current: string(t.LaneState.CurrentOperationID), Last: last.Value.OperationID,
	}
}

// run is the pass from end to end. Its record is removed only after its last
// event, so that the lane stays locally busy until then.
func (p *pass) run() {
	defer p.lane.h.passes.Done()
	deepen(passStack)
	p.spans.begin(p.lane.h.opts.Telemetry, p)
	p.err = p.lane.h.session.Guard(func() (err error) {
		p.outcome, err = p.drive(context.Background())
		return err
	})
	p.spans.end(p.outcome.Kind, p.err)
	p.remove()
	p.gate.Close(errOperationEnded)
	close(p.done)
}

// passStack is how much stack a pass needs, in bytes.
const passStack = 16 << 10

// deepen gives a young goroutine the stack that it will need in one step; it would
// be copied at every doubling, with more on it each time.
//
//go:noinline
func deepen(size int) byte {
	var room [passStack]byte
	return room[size-1]
}

// remove takes the pass off the lane in a job of its own; a sealed line no
// longer orders anything, so there the record just goes.
func (p *pass) remove() {
	drop := func(*store.Mutator) error {
		p.lane.dropActive(p)
		return nil
	}
	if err := p.lane.h.session.Mutate(context.Background(), p.lane.name, drop); err != nil {
		p.lane.dropActive(p)
	}
}

// drive dispatches on the durable state until it settles, waits or yields (spec
// §4.1). Procedures run on across their own restart points; what comes back here
// must have moved.
func (p *pass) drive(ctx context.Context) (DriveOutcome, error) {
	t, err := p.current(ctx)
	if err == nil && !t.State.Cancel().Cancelled() {
		if p.mustYield(t) {
			return p.yielded(), nil
		}
		err = p.beforeDrive(t)
	}
	var before []byte // the state from which the last step went on
	for err == nil || p.interrupted(err) {
		if t, err = p.current(ctx); err == nil && before != nil {
			err = p.progress(before, t)
		}
		if err != nil {
			break
		}
		if p.mustYield(t) && !waits(t) {
			return p.yielded(), nil
		}
		var stop *DriveOutcome
		if stop, err = p.step(ctx, t); stop != nil && err == nil {
			return *stop, nil
		}
		before = nil
		if errors.Is(err, errAgain) {
			err = nil
		} else if err == nil {
			before = t.Stored
		}
	}
	if !errors.Is(err, errOperationEnded) {
		return DriveOutcome{}, err
	}
	return p.settled(ctx)
}

// settled answers with the end that this pass committed, whatever the lane does
// next, or with the one that another finalizer left (spec §3.13, §4.9).
func (p *pass) settled(ctx context.Context) (DriveOutcome, error) {
	if result := p.lane.resultOf(p); result != nil {
		if result == p.planned { // what it names never changes
			return DriveOutcome{Kind: Settled, OperationID: p.operationID, Outcome: &p.hydrated}, nil
		}
		outcome, err := hydrate(ctx, p.lane.h.session, *result)
		return DriveOutcome{Kind: Settled, OperationID: p.operationID, Outcome: &outcome}, err
	}
	t, err := p.lane.load(ctx, p.lane.h.session)
	if err != nil {
		return DriveOutcome{}, err
	}
	settled, err := p.lane.settledResult(ctx, p.lane.h.session, t, p.operationID)
	if err != nil {
		return DriveOutcome{}, err
	}
	return *settled, nil
}

// interrupted waits for the cancellation that stopped ordinary work to be
// durable, or void; the loop then reads what is so (spec §4.1).
func (p *pass) interrupted(err error) bool {
	var abort *effect.AbortRequested
	if errors.As(err, &abort) {
		if abort.Settled != nil {
			<-abort.Settled
		}
		return true
	}
	return errors.Is(err, errCancelled)
}

// progress refuses a step that left the state as it was: going round again would
// never end.
func (p *pass) progress(before []byte, after op.Turn) error {
	if bytes.Equal(before, after.Stored) {
		return &Defect{Lane: p.lane.name, Err: fmt.Errorf("no progress at %s", op.PointOf(after.State))}
	}
	return nil
}

// current loads the operation off the line; every transition loads it again on
// the line.
func (p *pass) current(ctx context.Context) (op.Turn, error) {
	if err := p.lane.h.admission(); err != nil {
		return op.Turn{}, err
	}
	t, err := p.lane.load(ctx, p.lane.h.session)
	if err != nil {
		return t, err
	}
	return t, fence(t, p.operationID)
}

// mustYield reports whether the caller's time is up where a pass may stop; a
// cancelled operation is reconciled first (spec §4.5).
func (p *pass) mustYield(t op.Turn) bool {
	return p.options.Deadline != 0 && t.Now >= p.options.Deadline && op.Safe(t.State) && !t.State.Cancel().Cancelled()
}

// waits reports whether an operation waits for a retry that is not due: that says
// more than that time is up (spec §4.5).
func waits(t op.Turn) bool {
	notBefore, ok := op.RetryAt(t.State)
	return ok && t.Now < notBefore
}

func (p *pass) yielded() DriveOutcome {
	return DriveOutcome{Kind: Yielded, OperationID: p.operationID}
}

// step runs the procedure that continues a state. A non-nil outcome ends the
// pass.
func (p *pass) step(ctx context.Context, t op.Turn) (stop *DriveOutcome, err error) {
	leave := p.spans.step(t)
	defer func() { leave(spanError(err)) }()
	switch op.Next(t.State) {
	case op.StepReconcile:
		return nil, p.reconcile(ctx, t)
	case op.StepBegin:
		return nil, p.begin(ctx, t)
	case op.StepCheckpoint:
		return nil, p.checkpoint(ctx, t)
	case op.StepRequest:
		return p.request(ctx, t)
	case op.StepRecover:
		return p.recover(ctx, t)
	case op.StepRetry:
		return p.retry(ctx, t)
	case op.StepTools:
		return p.tools(ctx, t)
	case op.StepPoll:
		return p.poll(ctx, t)
	case op.StepDecide:
		return nil, p.decideSummary(ctx, t)
	case op.StepSummarize:
		return p.summarize(ctx, t)
	case op.StepSummaryOrphan:
		return nil, p.summaryOrphan(ctx)
	case op.StepSummaryRetry:
		return p.summaryRetry(ctx, t)
	case op.StepDrain:
		return nil, p.failureDrain(ctx)
	case op.StepNavigate:
		return nil, p.navigate(ctx)
	}
	panic("unreachable: step of unknown kind")
}

// hit stands before code whose boundary a manual drive exposes; an abort rejects
// it.
func (p *pass) hit(kind, description, details string) error {
	return p.lane.barrier.Hit(context.Background(), action(kind, description, details), p.gate.Check)
}

// hitProtected is a breakpoint of cancellation work, which an abort does not
// reject.
func (p *pass) hitProtected(kind, description, details string) error {
	return p.lane.barrier.HitProtected(context.Background(), action(kind, description, details), p.gate.Closed)
}

func action(kind, description, details string) effect.Action {
	a := effect.Action{Kind: kind, Description: description}
	if details != "" {
		a.Details = []byte(details)
	}
	return a
}

// retry waits for, then leaves, a retry wait (spec §4.5).
func (p *pass) retry(ctx context.Context, t op.Turn) (*DriveOutcome, error) {
	run, _ := t.Run()
	wait := run.Phase.(op.Assistant).Generation.(op.RetryWait)
	return p.waitRetry(ctx, t, wait.NextAttempt, wait.NotBefore, op.RetryDue)
}

func (p *pass) waitRetry(ctx context.Context, t op.Turn, attempt, notBefore int64, due func(op.Turn) (op.Plan, error)) (*DriveOutcome, error) {
	if t.Now < notBefore {
		early := p.options.Deadline != 0 && p.options.Deadline < notBefore
		if !p.options.WaitForRetry || early {
			return &DriveOutcome{Kind: Waiting, OperationID: p.operationID, Reason: WaitRetry, NotBefore: &notBefore}, nil
		}
		if err := p.sleep(attempt, notBefore); err != nil {
			return nil, err
		}
	}
	return nil, p.lane.proceed(ctx, p.operationID, func(_ context.Context, _ store.Queries, t op.Turn) (op.Plan, error) {
		// A timer may end a little before a clock that runs beside it.
		t.Now = max(t.Now, notBefore)
		return due(t)
	})
}

// longestTimer is the longest wait that a timer can be set to, in ms.
const longestTimer = int64(math.MaxInt64 / time.Millisecond)

func (p *pass) sleep(attempt, notBefore int64) error {
	details := fmt.Sprintf(`{"attempt":%d,"notBefore":%d}`, attempt, notBefore)
	if err := p.hit("retry.sleep", "Wait before the next attempt", details); err != nil {
		return err
	}
	span := p.spans.Start(telemetry.SpanSleep, telemetry.Int("pi.attempt", attempt))
	_, err := effect.Admit(p.gate, func(ctx context.Context) (struct{}, error) {
		ms := min(notBefore-p.lane.h.opts.Now(), longestTimer)
		timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
			return struct{}{}, nil
		case <-ctx.Done():
			return struct{}{}, context.Cause(ctx)
		}
	})
	span.End(err)
	return err
}
