package cli

import (
	"context"
	"errors"
	"io"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// driven is what drive --all did with one lane.
type driven struct {
	session string
	lane    string // "" when the session was not opened
	id      string
	outcome engine.DriveOutcome
	skipped bool // another process owns the session
	err     error
}

// sweep collects what the workers did.
type sweep struct {
	out *printer

	mu    sync.Mutex
	lanes []driven
}

func (s *sweep) add(d driven) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lanes = append(s.lanes, d)
	// A failed write sticks to the stream and is reported at the end.
	_ = s.out.item(func(o *object) { d.write(o) })
	if d.skipped {
		s.out.note("skipped %s: another process owns it", escapeLine(d.session))
	}
}

func runDriveAll(ctx context.Context, o *driveOptions) error {
	if err := o.checkConfigured(); err != nil {
		return err
	}
	listed, err := o.repo.List(ctx)
	if err != nil {
		return err
	}
	if len(listed) == 0 {
		o.noteMissingRepo()
	}
	s := &sweep{out: o.out}
	working, cancel := withDeadline(ctx, o.deadline, o.now())
	defer cancel()
	var g errgroup.Group
	g.SetLimit(o.jobs)
	for _, l := range listed {
		if working.Err() != nil {
			break
		}
		g.Go(func() error {
			return guarded(func() error {
				o.sweepSession(working, s, l)
				return nil
			})
		})
	}
	if err := g.Wait(); err != nil {
		return err // a defect: everything else is reported through the sweep
	}
	return s.report(ctx)
}

// sweepSession drives the open operations of one session, all lanes at once.
func (o *driveOptions) sweepSession(ctx context.Context, s *sweep, l store.Listed) {
	fail := func(err error) { s.add(driven{session: l.Ref.ID, err: err}) }
	if l.Err != nil {
		fail(l.Err)
		return
	}
	open, err := o.openOperations(ctx, l)
	if err != nil {
		fail(err)
		return
	}
	if open == 0 || ctx.Err() != nil {
		return
	}
	session, err := o.repo.Open(ctx, l.Ref)
	if _, held := errors.AsType[*store.Held](err); held {
		s.add(driven{session: l.Ref.ID, skipped: true})
		return
	}
	if err != nil {
		fail(err)
		return
	}
	err = o.engage(ctx, l.Ref, session, func(e *engaged) error {
		notes := &answerTeller{out: o.out}
		defer e.On(func(ev engine.Event) {
			notes.tell(ev, escapeLine(l.Ref.ID)+": ")
			if ev.Type == op.EventHandlerError {
				o.out.note("%s: %s", escapeLine(l.Ref.ID), toldHook(ev))
			}
		})()
		var lanes errgroup.Group
		for _, lane := range e.Lanes() {
			lanes.Go(func() error {
				return guarded(func() error { return o.sweepLane(ctx, s, l.Ref, e, lane) })
			})
		}
		return lanes.Wait()
	})
	if err != nil {
		fail(err)
	}
}

// openOperations counts them without taking the lease.
func (o *driveOptions) openOperations(ctx context.Context, l store.Listed) (n int, err error) {
	if l.Ref.Legacy || l.Summary != nil && !l.Summary.Open {
		return 0, nil // read-only, or known to be idle
	}
	r, err := o.repo.View(ctx, l.Ref)
	if err != nil {
		return 0, err
	}
	reports, err := engine.Inspect(ctx, r, engine.InspectOptions{})
	for _, report := range reports {
		if report.Current != nil {
			n++
		}
	}
	return n, firstOf(err, r.Close())
}

func (o *driveOptions) sweepLane(ctx context.Context, s *sweep, ref store.Ref, e *engaged, lane *engine.Lane) error {
	info, err := lane.InspectExecution(ctx)
	if err != nil || info.Current == nil {
		return err
	}
	defer e.server.Driving(lane.Name())()
	d := driven{session: ref.ID, lane: lane.Name(), id: info.Current.ID}
	passes := *o
	if passes.pollDeferred, err = o.pollDue(ctx, e, lane); err != nil {
		return err
	}
	at := pursuit{ref.ID, d.lane, d.id, o.namingLane(ref, d.lane)}
	d.outcome, err = passes.drivePasses(ctx, lane, at)
	d.outcome, d.err = ended(ctx, at, d.outcome, err)
	s.add(d)
	return nil
}

// pollDue tells whether a deferred answer of the lane may be asked for now.
func (o *driveOptions) pollDue(ctx context.Context, e *engaged, lane *engine.Lane) (bool, error) {
	if !o.pollDeferred {
		return false, nil
	}
	x, err := engine.Explain(ctx, e.Session(), o.models(), lane.Name(), o.now())
	if err != nil {
		return false, err
	}
	wait := x.WaitingFor
	return wait != nil && wait.Reason == engine.WaitDeferred && *wait.NotBefore <= o.now(), nil
}

func (d *driven) write(o *object) {
	o.str("session", d.session)
	o.optStr("lane", d.lane)
	switch {
	case d.skipped:
		o.bool("skipped", true)
	case d.lane != "":
		writeDrive(o, d.id, d.outcome)
	}
	if d.outcome.Kind == "" {
		o.itemError(d.err)
	}
	if !d.skipped {
		o.exit(codeOf(d.err))
	}
}

// totals of a sweep.
type totals struct {
	driven, settled, waiting, yielded, skipped, failed int64
	nextWake                                           *int64
}

func (s *sweep) totals() totals {
	var t totals
	for _, d := range s.lanes {
		switch {
		case d.skipped:
			t.skipped++
			continue
		case d.outcome.Kind == "":
			t.failed++
			continue
		}
		t.driven++
		switch d.outcome.Kind {
		case engine.Settled:
			t.settled++
		case engine.Waiting:
			t.waiting++
		case engine.Yielded:
			t.yielded++
		}
		if at := d.outcome.NotBefore; at != nil && (t.nextWake == nil || *at < *t.nextWake) {
			t.nextWake = at
		}
	}
	return t
}

func (s *sweep) report(ctx context.Context) error {
	t := s.totals()
	err := s.failure(ctx)
	end := s.out.result(err, func(o *object) {
		o.array("items", len(s.lanes), func(i int, o *object) { s.lanes[i].write(o) })
		o.object("totals", func(o *object) {
			o.int("driven", t.driven)
			o.int("settled", t.settled)
			o.int("waiting", t.waiting)
			o.int("yielded", t.yielded)
			o.int("skipped", t.skipped)
			o.int("failed", t.failed)
			o.optInt("nextWake", t.nextWake)
		})
		if f := explain(err); f != nil && f.code == exitLater {
			o.optInt("notBefore", t.nextWake)
		}
	}, func(w io.Writer) error {
		p := &lines{w: w}
		for _, d := range s.lanes {
			if d.lane != "" {
				p.line("%s  %s  %s", escapeLine(d.session), escapeLine(d.lane), describeDriven(d))
			}
		}
		p.line("%d driven: %d settled, %d waiting, %d yielded; %d skipped, %d not driven", t.driven, t.settled, t.waiting, t.yielded, t.skipped, t.failed)
		if t.nextWake != nil {
			p.line("next wake: %s", instant(*t.nextWake))
		}
		return p.err
	})
	s.tell(err)
	return end
}

func describeDriven(d driven) string {
	if d.err != nil {
		return escapeLine(explain(d.err).message)
	}
	return string(d.outcome.Kind)
}
