package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/internal/owner"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/store"
)

type waitOptions struct {
	base
	session string
	lane    string // "" is every lane
}

func newWaitCmd(f *factory, runF func(context.Context, *waitOptions) error) *cobra.Command {
	if runF == nil {
		runF = runWait
	}
	o := &waitOptions{}
	cmd := &cobra.Command{
		Use:   "wait SESSION",
		Short: "Wait until a session's lanes are idle",
		Long: `Wait until the process that drives a session is done with its lanes. An operation
that is open and that nobody drives is not waited for: it would wait for ever
(75).` + exitHelp(exitOK, exitUsage, exitNotFound, exitCorrupt, exitIO, exitVersion, exitLater, exitInt, exitTerm),
		Args:              maxArgs(1),
		ValidArgsFunction: completeSession(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.session, _, err = sessionArg(f, args); err != nil {
				return err
			}
			if o.base, err = f.base("wait"); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.lane, "lane", "", "only this `LANE`")
	return cmd
}

// waited is a lane at the end of the wait.
type waited struct {
	lane       string
	open       string          // the operation that nobody drives, "" when it is idle
	lastResult json.RawMessage // nil before the first operation has ended
}

func runWait(ctx context.Context, o *waitOptions) error {
	ref, err := o.resolve(ctx, o.session)
	if err != nil {
		return err
	}
	lanes, err := o.untilIdle(ctx, ref)
	if err != nil {
		return err
	}
	return o.out.result(o.failure(lanes), func(d *object) {
		d.str("session", ref.ID)
		d.array("lanes", len(lanes), func(i int, d *object) {
			d.str("lane", lanes[i].lane)
			if lanes[i].lastResult == nil {
				d.null("lastResult")
			} else {
				d.raw("lastResult", lanes[i].lastResult)
			}
		})
		if o.failure(lanes) != nil {
			d.null("notBefore")
		}
	}, func(io.Writer) error { return nil })
}

// untilIdle waits as long as a living process owns the session and works on the
// lanes. What the file says of the lanes is asked for when nobody can be asked.
func (o *waitOptions) untilIdle(ctx context.Context, ref store.Ref) ([]waited, error) {
	for {
		lease, err := o.lease(ctx, ref)
		if err != nil {
			return nil, err
		}
		if !ownerLive(lease) {
			return o.onFile(ctx, ref)
		}
		lanes, err := o.askOwner(ctx, ref, *lease)
		if err == nil || !errors.Is(err, owner.ErrGone) && !errors.Is(err, owner.ErrClosing) {
			return lanes, err
		}
		if err := pause(ctx, ownerPause); err != nil {
			return nil, err
		}
	}
}

func (o *waitOptions) askOwner(ctx context.Context, ref store.Ref, lease store.Lease) ([]waited, error) {
	c, err := owner.Dial(ctx, lease, owner.DialOptions{SessionID: ref.ID, Path: ref.Path})
	if err != nil {
		return nil, err
	}
	found, err := c.Wait(ctx, o.lane)
	lanes := make([]waited, len(found))
	for i, l := range found {
		lanes[i] = waited{l.Lane, l.OperationID, l.LastResult}
	}
	return lanes, firstOf(err, c.Close())
}

func (o *waitOptions) onFile(ctx context.Context, ref store.Ref) (lanes []waited, err error) {
	err = o.view(ctx, ref, func(r store.Reader) error {
		reports, err := engine.Inspect(ctx, r, engine.InspectOptions{Lane: o.lane})
		if err != nil {
			return err
		}
		for _, report := range reports {
			l := waited{lane: report.Lane}
			if report.Current != nil {
				l.open = report.Current.ID
			}
			if report.LastResult != nil {
				if l.lastResult, err = report.LastResult.MarshalJSON(); err != nil {
					return err
				}
			}
			lanes = append(lanes, l)
		}
		return nil
	})
	return lanes, err
}

// failure is 75 when an operation is open and nobody drives it.
func (o *waitOptions) failure(lanes []waited) error {
	open := slices.DeleteFunc(slices.Clone(lanes), func(l waited) bool { return l.open == "" })
	if len(open) == 0 {
		return nil
	}
	names := make([]string, len(open))
	for i, l := range open {
		names[i] = l.lane
	}
	f := &failure{code: exitLater, tag: "waiting", details: func(d *object) {
		d.array("open", len(open), func(i int, d *object) {
			d.str("lane", open[i].lane)
			d.str("operationId", open[i].open)
		})
	}}
	f.message = "an operation is open and nobody drives it: lane " + escapeLine(strings.Join(names, ", "))
	return f.withHint("drive it with `drover drive`")
}

// pause waits, and tells why when the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
