package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/internal/owner"
	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

type abortOptions struct {
	base
	session     string
	lane        string
	operation   string // "" is whatever is open
	requestOnly bool
	wait        time.Duration
}

func newAbortCmd(f *factory, runF func(context.Context, *abortOptions) error) *cobra.Command {
	if runF == nil {
		runF = runAbort
	}
	o := &abortOptions{}
	cmd := &cobra.Command{
		Use:   "abort SESSION",
		Short: "Cancel an open operation and see it to its end",
		Long: `Cancel the open operation of a lane and wait until it has ended: in the process
that drives it, or here when nobody does. The cancellation is durable before
anything stops: whatever ends this process, the next drive only cleans up.

What waited in the run's steer and follow-up queues is given back in the answer.
An operation that ended in another way first is told with its outcome (8).` +
			exitHelp(exitOK, exitUsage, exitNotFound, exitCorrupt, exitIO, exitVersion, exitRefused, exitLocked, exitLater, exitInt, exitTerm),
		Args:              maxArgs(1),
		ValidArgsFunction: completeSession(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.session, _, err = sessionArg(f, args); err != nil {
				return err
			}
			if o.operation != "" {
				if _, err := store.IDTime(o.operation); err != nil {
					return usagef("--operation: %v", err)
				}
			}
			if o.wait < 0 {
				return usagef("--wait: a duration must not be negative")
			}
			if o.base, err = f.drivingBase("abort"); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.lane, "lane", store.MainLane, "the `LANE` whose operation ends")
	flags.StringVar(&o.operation, "operation", "", "cancel only the operation with this `ID`")
	flags.BoolVar(&o.requestOnly, "request-only", false, "write the cancellation and wait for nothing")
	flags.DurationVar(&o.wait, "wait", 30*time.Second, "how long (`DUR`) to wait for the end")
	return cmd
}

// abortion is what is known of a cancellation.
type abortion struct {
	id              string
	newlyRequested  bool
	steer, followUp []message.Message
	outcome         json.RawMessage // TerminalOperationOutcome, nil while it is open
}

func runAbort(ctx context.Context, o *abortOptions) error {
	ref, err := o.target(ctx, o.session)
	if err != nil {
		return err
	}
	// The operation that was open first is the one that is meant, also when its
	// owner goes away in between and another one starts.
	a := &abortion{id: o.operation}
	waiting, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	err = o.reach(ctx, ref, func(c *owner.Client) error {
		return o.remote(ctx, waiting, c, a)
	}, func(s *store.Session) error {
		return o.engage(ctx, ref, s, func(e *engaged) error { return o.onFile(ctx, waiting, e, a) })
	})
	if err != nil {
		return err
	}
	return o.answer(ref, a)
}

// remote has the owner cancel the operation and waits for its end.
func (o *abortOptions) remote(ctx, waiting context.Context, c *owner.Client, a *abortion) error {
	if a.id == "" {
		lanes, err := c.Inspect(ctx, o.lane, false)
		if err != nil {
			return err
		}
		if len(lanes) == 0 || lanes[0].OperationID == "" {
			return &engine.NoActiveOperation{Lane: o.lane}
		}
		a.id = lanes[0].OperationID
	}
	r, err := c.Abort(ctx, o.lane, a.id, o.requestOnly)
	if err != nil {
		return err
	}
	a.note(r.AbortRequest)
	a.outcome = r.Outcome
	if a.outcome != nil || o.requestOnly {
		return nil
	}
	a.outcome, err = c.WaitOperation(waiting, o.lane, a.id)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return nil // the wait ran out
	}
	if err == nil && a.outcome == nil {
		return owner.ErrGone // nobody there drives it to its end
	}
	return err
}

// note keeps what the first request that took effect gave back.
func (a *abortion) note(r engine.AbortRequest) {
	a.newlyRequested = a.newlyRequested || r.NewlyRequested
	if len(r.Steer)+len(r.FollowUp) > 0 {
		a.steer, a.followUp = r.Steer, r.FollowUp
	}
}

// onFile cancels an operation that nobody drives, and drives it to its end.
func (o *abortOptions) onFile(ctx, waiting context.Context, e *engaged, a *abortion) error {
	lane, err := e.Lane(o.lane)
	if err != nil {
		return err
	}
	if a.id == "" {
		info, err := lane.InspectExecution(ctx)
		if err != nil {
			return err
		}
		if info.Current == nil {
			return &engine.NoActiveOperation{Lane: o.lane}
		}
		a.id = info.Current.ID
	}
	defer e.server.Driving(o.lane)()
	r, err := lane.RequestAbort(ctx, a.id)
	if _, over := errors.AsType[*engine.OperationMismatch](err); err != nil && !over {
		return err
	}
	a.note(r)
	if err == nil && o.requestOnly {
		return nil
	}
	d, err := lane.Drive(waiting, engine.DriveOptions{OperationID: a.id})
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return nil // the wait ran out; the next drive goes on
	}
	if err != nil || d.Outcome == nil {
		return err
	}
	a.outcome, err = d.Outcome.AppendJSON(nil)
	return err
}

func (o *abortOptions) answer(ref store.Ref, a *abortion) error {
	err := o.failure(ref, a)
	return o.out.result(err, func(d *object) {
		d.str("session", ref.ID)
		d.str("lane", o.lane)
		d.str("operationId", a.id)
		d.bool("newlyRequested", a.newlyRequested)
		d.values("steer", len(a.steer), func(i int) store.Appender { return a.steer[i] })
		d.values("followUp", len(a.followUp), func(i int) store.Appender { return a.followUp[i] })
		if a.outcome != nil {
			d.raw("outcome", a.outcome)
			return
		}
		d.null("outcome")
		if err != nil {
			d.null("notBefore")
		}
	}, func(w io.Writer) error {
		said := "aborted"
		switch {
		case err != nil:
			return nil
		case o.requestOnly && a.outcome == nil:
			said = "abort requested"
		}
		_, err := fmt.Fprintf(w, "%s: %s\n", said, escapeLine(a.id))
		return err
	})
}

// failure says how the command ends: nil when the operation was aborted.
func (o *abortOptions) failure(ref store.Ref, a *abortion) error {
	details := func(d *object) {
		d.str("session", ref.ID)
		d.str("lane", o.lane)
		d.str("operationId", a.id)
	}
	if a.outcome == nil {
		if o.requestOnly {
			return nil
		}
		f := &failure{code: exitLater, tag: "waiting", details: details}
		f.message = fmt.Sprintf("the operation is cancelled but has not ended within %s", o.wait)
		return f.withHint("`drover wait %s` waits for its end", o.naming(ref))
	}
	kind, _ := rawjson.GetString(a.outcome, "kind")
	if kind == "aborted" {
		return nil
	}
	return &failure{
		code: exitRefused, tag: "already_settled", details: details,
		message: fmt.Sprintf("operation %s had %s before it could be aborted", a.id, kind),
	}
}
