package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// DriveOptions fence and bound one pass (spec §5.1).
type DriveOptions struct {
	// OperationID is the expected operation; a stale call drives nothing else.
	OperationID string
	// Deadline, Unix ms, is looked at only at safe boundaries; 0 is none.
	Deadline int64
	// WaitForRetry waits in this process through retry waits.
	WaitForRetry bool
}

// pass is the process-local ownership of one stretch of an operation: the
// ActiveOperation of §4.1.
type pass struct {
	lane        *Lane
	operationID string
	options     DriveOptions
	gate        *effect.Gate
	done        chan struct{}
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
	l.mu.Lock()
	active := l.active
	l.mu.Unlock()
	switch {
	case active != nil && active.operationID == o.OperationID:
		return installed{pass: active}, nil
	case t.State == nil:
		settled, err := l.settledResult(ctx, m, o.OperationID)
		return installed{settled: settled}, err
	case t.Operation.OperationID != o.OperationID:
		return installed{}, &OperationMismatch{Lane: l.name, Expected: o.OperationID, Current: t.Operation.OperationID}
	case active != nil:
		return installed{pass: active}, nil
	}
	if err := l.h.admission(); err != nil {
		return installed{}, err
	}
	p := &pass{lane: l, operationID: o.OperationID, options: o, gate: effect.NewGate(context.Background()), done: make(chan struct{})}
	l.mu.Lock()
	l.active, l.missing = p, nil
	l.mu.Unlock()
	l.h.passes.Add(1)
	go p.run()
	return installed{pass: p}, nil
}

// settledResult answers for an operation that is not current: its outcome when
// it was the latest to end (spec §4.1).
func (l *Lane) settledResult(ctx context.Context, q store.Queries, id string) (*DriveOutcome, error) {
	last, ok, err := store.Get(ctx, q, op.LastResult(l.name))
	if err != nil {
		return nil, err
	}
	if !ok || last.Value.OperationID != id {
		state, err := required(ctx, q, l.name, store.LaneStateOf(l.name))
		if err != nil {
			return nil, err
		}
		return nil, &OperationMismatch{Lane: l.name, Expected: id, Current: string(state.CurrentOperationID)}
	}
	outcome, err := hydrate(ctx, q, last.Value)
	if err != nil {
		return nil, err
	}
	return &DriveOutcome{Kind: Settled, OperationID: id, Outcome: &outcome}, nil
}

// run is the pass from end to end. Its record is removed only after its last
// event, so that the lane stays locally busy until then.
func (p *pass) run() {
	defer p.lane.h.passes.Done()
	p.outcome, p.err = p.drive(context.Background())
	p.remove()
	p.gate.Close(errOperationEnded)
	close(p.done)
}

// remove takes the pass off the lane in a job of its own; a sealed line no
// longer orders anything, so there the record just goes.
func (p *pass) remove() {
	drop := func() {
		p.lane.mu.Lock()
		defer p.lane.mu.Unlock()
		if p.lane.active == p {
			p.lane.active, p.lane.draft = nil, nil
			p.lane.missing = p.outcome.Missing
		}
	}
	err := p.lane.h.session.Mutate(context.Background(), p.lane.name, func(*store.Mutator) error {
		drop()
		return nil
	})
	if err != nil {
		drop()
	}
}

// drive dispatches on the durable state until it settles, waits or yields (spec
// §4.1). Procedures run on across their own restart points; what comes back here
// must have moved.
func (p *pass) drive(ctx context.Context) (DriveOutcome, error) {
	t, err := p.current(ctx)
	if err != nil {
		return p.ended(ctx, err)
	}
	if p.mustYield(t) {
		return DriveOutcome{Kind: Yielded, OperationID: p.operationID}, nil
	}
	if !t.State.Cancel().Cancelled() {
		if err := p.beforeDrive(t); err != nil {
			return p.ended(ctx, err)
		}
	}
	for {
		stop, err := p.step(ctx, t)
		if err != nil || stop != nil {
			return p.finishPass(ctx, stop, err)
		}
		next, err := p.current(ctx)
		if err != nil {
			return p.ended(ctx, err)
		}
		if op.PointOf(next.State) == op.PointOf(t.State) && sameState(t.State, next.State) {
			return DriveOutcome{}, &Defect{Lane: p.lane.name, Err: fmt.Errorf("no progress at %s", op.PointOf(t.State))}
		}
		t = next
		// A retry wait that is not due yet says more than that time is up (§4.5).
		if p.mustYield(t) && !waits(t) {
			return DriveOutcome{Kind: Yielded, OperationID: p.operationID}, nil
		}
	}
}

func (p *pass) finishPass(ctx context.Context, stop *DriveOutcome, err error) (DriveOutcome, error) {
	if err != nil {
		return p.ended(ctx, err)
	}
	return *stop, nil
}

// ended turns the signal that a terminal transaction won into its outcome.
func (p *pass) ended(ctx context.Context, err error) (DriveOutcome, error) {
	if !errors.Is(err, errOperationEnded) {
		return DriveOutcome{}, err
	}
	settled, err := p.lane.settledResult(ctx, p.lane.h.session, p.operationID)
	if err != nil {
		return DriveOutcome{}, err
	}
	return *settled, nil
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
	return p.options.Deadline != 0 && t.Now >= p.options.Deadline && op.PointOf(t.State).Safe() && !t.State.Cancel().Cancelled()
}

// waits reports whether a run waits for a retry that is not due.
func waits(t op.Turn) bool {
	run, _ := t.Run()
	a, _ := run.Phase.(op.Assistant)
	wait, ok := a.Generation.(op.RetryWait)
	return ok && t.Now < wait.NotBefore
}

// step runs the procedure that continues a state. A non-nil outcome ends the
// pass.
func (p *pass) step(ctx context.Context, t op.Turn) (*DriveOutcome, error) {
	switch op.Next(t.State) {
	case op.StepBegin:
		return nil, p.begin(ctx, t)
	case op.StepGenerate:
		return p.startStep(ctx, t)
	case op.StepRequest:
		return p.request(ctx, t)
	case op.StepRecover:
		return nil, p.recover(ctx, t)
	case op.StepRetry:
		return p.retry(ctx, t)
	case op.StepFinish:
		return p.finish(ctx)
	case op.StepReconcile:
		return nil, &Unsupported{What: "a cancelled operation"}
	}
	return nil, &Unsupported{What: "an operation at " + string(op.PointOf(t.State))}
}

// hit stands before code whose boundary a manual drive exposes.
func (p *pass) hit(kind, description, details string) error {
	a := effect.Action{Kind: kind, Description: description}
	if details != "" {
		a.Details = []byte(details)
	}
	return p.lane.barrier.Hit(p.gate.Context(), a)
}

// finish commits the end of the run and answers with it, whatever the lane does
// next (spec §3.13).
func (p *pass) finish(ctx context.Context) (*DriveOutcome, error) {
	if err := p.hit("checkpoint.finish", "End the run", ""); err != nil {
		return nil, err
	}
	end := DriveOutcome{Kind: Settled, OperationID: p.operationID, Outcome: &Outcome{}}
	err := p.lane.settle(ctx, p.operationID, func(ctx context.Context, q store.Queries, t op.Turn) (op.Plan, error) {
		for _, prefix := range op.Owned(p.operationID) {
			values, err := q.ScanValues(ctx, prefix)
			if err != nil {
				return op.Plan{}, err
			}
			for _, v := range values {
				t.Leftovers = append(t.Leftovers, v.Address)
			}
		}
		plan, err := op.Finish(t)
		if err != nil {
			return plan, err
		}
		*end.Outcome, err = hydrate(ctx, q, *plan.Result)
		plan.Events[len(plan.Events)-1].Message = end.Outcome.FinalMessage // of run_end
		return plan, err
	})
	if err != nil {
		return nil, err
	}
	return &end, nil
}

// retry waits for, then leaves, a retry wait (spec §4.5).
func (p *pass) retry(ctx context.Context, t op.Turn) (*DriveOutcome, error) {
	run, _ := t.Run()
	wait := run.Phase.(op.Assistant).Generation.(op.RetryWait)
	if t.Now < wait.NotBefore {
		early := p.options.Deadline != 0 && p.options.Deadline < wait.NotBefore
		if !p.options.WaitForRetry || early {
			notBefore := wait.NotBefore
			return &DriveOutcome{Kind: Waiting, OperationID: p.operationID, Reason: WaitRetry, NotBefore: &notBefore}, nil
		}
		if err := p.sleep(wait); err != nil {
			return nil, err
		}
	}
	return nil, p.lane.proceed(ctx, p.operationID, func(_ context.Context, _ store.Queries, t op.Turn) (op.Plan, error) {
		// A timer may end a little before a clock that runs beside it.
		t.Now = max(t.Now, wait.NotBefore)
		return op.RetryDue(t)
	})
}

// longestTimer is the longest wait that a timer can be set to, in ms.
const longestTimer = int64(math.MaxInt64 / time.Millisecond)

func (p *pass) sleep(wait op.RetryWait) error {
	details := fmt.Sprintf(`{"attempt":%d,"notBefore":%d}`, wait.NextAttempt, wait.NotBefore)
	if err := p.hit("retry.sleep", "Wait before the next attempt", details); err != nil {
		return err
	}
	_, err := effect.Admit(p.gate, func(ctx context.Context) (struct{}, error) {
		ms := min(wait.NotBefore-p.lane.h.opts.Now(), longestTimer)
		timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
			return struct{}{}, nil
		case <-ctx.Done():
			return struct{}{}, context.Cause(ctx)
		}
	})
	return err
}
