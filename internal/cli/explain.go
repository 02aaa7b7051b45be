package cli

import (
	"context"
	"encoding/json"
	"io"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// runExplain says what a drive would do next, and does nothing.
func runExplain(ctx context.Context, o *driveOptions) error {
	return o.withReader(ctx, o.session, func(ref store.Ref, r store.Reader) error {
		if err := checkLane(ctx, r, o.lane); err != nil {
			return err
		}
		e, err := engine.Explain(ctx, r, o.models(), o.lane, o.now())
		if err != nil {
			return err
		}
		if o.operation != "" && o.operation != e.OperationID {
			last, _, err := store.Get(ctx, r, op.LastResult(o.lane))
			if err != nil {
				return err
			}
			return &engine.OperationMismatch{
				Lane: o.lane, Expected: o.operation, Current: e.OperationID, Last: last.Value.OperationID,
			}
		}
		lease, err := o.base.lease(ctx, ref)
		if err != nil {
			return err
		}
		if ownerLive(lease) {
			o.out.note("note: pid %d is driving the session; this is what a drive would do if that process ended now", lease.PID)
		}
		return o.out.result(nil, func(d *object) { writeExplanation(d, ref, e) }, func(w io.Writer) error { return printExplanation(w, e) })
	})
}

// checkLane refuses a lane that the session does not have.
func checkLane(ctx context.Context, r store.Queries, lane string) error {
	names, err := engine.LaneNames(ctx, r)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == lane {
			return nil
		}
	}
	return &engine.LaneNotFound{Lane: lane, Known: names}
}

func writeExplanation(d *object, ref store.Ref, e engine.Explanation) {
	d.str("session", ref.ID)
	d.str("lane", e.Lane)
	d.str("operationId", e.OperationID)
	d.str("point", string(e.Point))
	d.array("next", len(e.Next), func(i int, d *object) {
		s := e.Next[i]
		d.str("kind", s.Kind)
		d.str("description", s.Description)
		d.str("effect", string(s.Effect))
		writeStepDetails(d, s)
	})
	if e.WaitingFor == nil {
		d.null("waitingFor")
		return
	}
	d.object("waitingFor", func(d *object) {
		d.str("reason", string(e.WaitingFor.Reason))
		d.optInt("notBefore", e.WaitingFor.NotBefore)
	})
}

func writeStepDetails(d *object, s op.NextStep) {
	if len(s.Details) == 0 {
		d.raw("details", []byte("{}"))
		return
	}
	// Ids and numbers only: nothing here came from a payload.
	raw, err := json.Marshal(s.Details)
	d.fail(err)
	d.raw("details", raw)
}

func printExplanation(w io.Writer, e engine.Explanation) error {
	p := &lines{w: w}
	p.line("operation %s on lane %s stands at %s", e.OperationID, escapeLine(e.Lane), e.Point)
	for i, s := range e.Next {
		when := "then "
		if i == 0 {
			when = "next "
		}
		p.line("%s %-26s %s (%s)", when, s.Kind, s.Description, describeEffect(s.Effect))
	}
	if wait := e.WaitingFor; wait != nil && wait.NotBefore != nil {
		p.line("waits %s, not before %s", wait.Reason, instant(*wait.NotBefore))
	}
	return p.err
}

func describeEffect(e op.Effect) string {
	switch e {
	case op.EffectNew:
		return "starts something new"
	case op.EffectRepeats:
		return "repeats what may have happened already"
	case op.EffectUnknown:
		return "repeats nothing: whether it happened is unknown"
	}
	return "touches nothing outside"
}
