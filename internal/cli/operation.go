package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/store"
)

// operation is what the commands that start one have in common: prompt, compact
// and navigate accept it, drive it and answer with its end (spec §5.1).
type operation struct {
	base
	session     string
	lane        string
	laneFlags   laneFlags
	operationID string
	detach      bool
	deadline    int64 // Unix ms, 0 for none
	noWait      bool

	until string // --deadline as it was typed
}

func (o *operation) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.lane, "lane", store.MainLane, "the `LANE` to work on")
	flags.StringVar(&o.operationID, "operation-id", "", "a fresh `UUID` (version 7) for the operation; repeating it does not run it twice")
	flags.BoolVar(&o.detach, "detach", false, "only accept the operation and leave it to a later drive")
	flags.StringVar(&o.until, "deadline", "", "stop at a safe point at `T`, a duration or an instant")
	flags.BoolVar(&o.noWait, "no-wait-retry", false, "end with 75 instead of waiting for a retry")
}

// check refuses bad flags before anything is opened.
func (o *operation) check() error {
	if o.operationID != "" {
		if _, err := store.IDTime(o.operationID); err != nil {
			return usagef("--operation-id: %v", err)
		}
	}
	return nil
}

// start resolves the dependencies.
func (o *operation) start(f *factory, command string) (err error) {
	if o.base, err = f.runningBase(command); err != nil {
		return err
	}
	if o.until != "" {
		o.deadline, err = parseWhen("--deadline", o.until, f.now(), 1)
	}
	return err
}

// accepter makes an operation durable; the lane knows nothing of its id yet.
type accepter func(context.Context, *engine.Harness, *engine.Lane) (engine.Admission, error)

// accepted is an operation that stands, with what its command prints of it.
type accepted struct {
	ref       store.Ref
	admission engine.Admission
	again     bool // it stood already: this command is a repeat
	text      bool // the answer has a text
}

// carry accepts an operation on an owned session, drives it and answers. onPlaced
// runs once the operation is durable.
func (o *operation) carry(ctx context.Context, e *engaged, a accepted, accept accepter, onPlaced func()) error {
	lane, err := e.Lane(o.lane)
	if err != nil {
		return err
	}
	follow := newFollower(o.out, o.lane)
	defer follow.watch(e.Harness)()
	defer e.server.Driving(o.lane)()
	if a.admission, a.again, err = o.admit(ctx, e.Harness, lane, accept); err != nil {
		return busyHint(err, o.namingLane(a.ref, o.lane))
	}
	onPlaced()
	if o.detach {
		return o.admitted(a)
	}
	id := a.admission.OperationID
	d, err := lane.Drive(ctx, engine.DriveOptions{OperationID: id, Deadline: o.deadline, WaitForRetry: !o.noWait})
	d, err = ended(ctx, pursuit{a.ref.ID, o.lane, id, o.namingLane(a.ref, o.lane)}, d, err)
	follow.endLine()
	if f := explain(err); f != nil && f.code == exitRefused {
		return err // a refusal is no result
	}
	if a.again {
		// Others may have driven it: what they used was not seen here. A session that
		// the deadline has closed tells nothing any more.
		used, unread := operationUsage(ctx, e.Session(), o.lane, d, id)
		if unread == nil {
			follow.usage = used
		}
		err = firstOf(err, unread)
	}
	return o.answer(err, lane, a, d, follow)
}

// admit makes the operation durable. An operation id that the lane knows is not
// accepted again: the command may be repeated until it has its answer.
func (o *operation) admit(ctx context.Context, h *engine.Harness, lane *engine.Lane, accept accepter) (a engine.Admission, again bool, err error) {
	if o.operationID == "" {
		a, err = accept(ctx, h, lane)
		return a, false, err
	}
	info, err := lane.InspectExecution(ctx)
	if err != nil {
		return a, false, err
	}
	if c := info.Current; c != nil && c.ID == o.operationID {
		return engine.Admission{OperationID: c.ID, Kind: c.Kind, StartedAt: c.StartedAt}, true, nil
	}
	if last := info.LastResult; last != nil && last.OperationID == o.operationID {
		minted, err := store.IDTime(last.OperationID)
		return engine.Admission{OperationID: last.OperationID, Kind: last.Kind, StartedAt: minted}, true, err
	}
	a, err = accept(ctx, h, lane)
	return a, false, err
}

func (o *operation) admitted(a accepted) error {
	return o.out.result(nil, func(d *object) {
		d.str("session", a.ref.ID)
		d.str("lane", o.lane)
		d.object("admission", func(d *object) {
			d.str("operationId", a.admission.OperationID)
			d.str("kind", string(a.admission.Kind))
			d.int("startedAt", a.admission.StartedAt)
		})
	}, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, a.admission.OperationID)
		return err
	})
}

func (o *operation) answer(err error, lane *engine.Lane, a accepted, d engine.DriveOutcome, follow *follower) error {
	var leaf *store.LeafID
	if d.Kind == engine.Waiting || d.Kind == engine.Yielded {
		// A session that the deadline has closed tells no leaf any more.
		if info, err := lane.InspectExecution(context.Background()); err == nil {
			leaf = &info.LeafID
		}
	}
	return o.out.result(err, func(doc *object) {
		doc.str("session", a.ref.ID)
		doc.str("lane", o.lane)
		doc.str("operationId", a.admission.OperationID)
		runOutcome(doc, d, leaf)
		switch {
		case !a.text:
		case d.Outcome != nil && d.Outcome.FinalMessage != nil:
			doc.str("text", d.Outcome.FinalMessage.Text())
		default:
			doc.null("text")
		}
		doc.value("usage", follow.usage)
		writeNotBefore(doc, d)
	}, func(w io.Writer) error { return settledText(w, o.out, d, follow) })
}

// structuralText says what a compaction or navigation has done; the text of a
// run has been shown while it came.
func structuralText(w io.Writer, d engine.DriveOutcome) error {
	if d.Outcome == nil || d.Outcome.FinalMessage != nil {
		return nil
	}
	said := describeStructural(*d.Outcome)
	if said == "" {
		return nil
	}
	_, err := fmt.Fprintln(w, said)
	return err
}

// heldToDrive says what else can be done about a session that another process
// drives (D25).
func heldToDrive(err error) error {
	held, ok := errors.AsType[*store.Held](err)
	if !ok {
		return err
	}
	f := explainHeld(held)
	f.cause = err
	return f.withHint("queue a message for when it is done with `drover next-run`, or wait for the session with --lease-wait 30s")
}

// openToDrive takes ownership of a session in order to drive it.
func (b *base) openToDrive(ctx context.Context, arg string) (*store.Session, store.Ref, error) {
	s, ref, err := b.openSession(ctx, arg)
	return s, ref, heldToDrive(err)
}
