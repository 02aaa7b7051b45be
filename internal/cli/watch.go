package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/internal/owner"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/store"
)

type watchOptions struct {
	base
	session string
	lane    string // "" is the whole session
	follow  bool
}

func newWatchCmd(f *factory, runF func(context.Context, *watchOptions) error) *cobra.Command {
	if runF == nil {
		runF = runWatch
	}
	o := &watchOptions{}
	cmd := &cobra.Command{
		Use:   "watch SESSION",
		Short: "Show what happens in a session while another process drives it",
		Long: `Print a snapshot of a session, or of one lane, and then every event of the process
that drives it, as one JSON object a line. It ends with that process, at once when
there is none; with --follow it waits for the next one and starts over with a new
snapshot.` + exitHelp(exitOK, exitUsage, exitNotFound, exitCorrupt, exitIO, exitVersion, exitInt, exitTerm),
		Args:              maxArgs(1),
		ValidArgsFunction: completeSession(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.session, _, err = sessionArg(f, args); err != nil {
				return err
			}
			if o.base, err = f.base("watch"); err != nil {
				return err
			}
			if o.out.format == formatJSON {
				return usagef("watch prints many lines: --output json is one document").withHint("use --output ndjson")
			}
			o.out.format = formatNDJSON
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.lane, "lane", "", "only this `LANE`, with its transcript")
	cmd.Flags().BoolVar(&o.follow, "follow", false, "go on with the next process that drives the session")
	return cmd
}

func runWatch(ctx context.Context, o *watchOptions) error {
	ref, err := o.resolve(ctx, o.session)
	if err != nil {
		return err
	}
	seen := false // a snapshot of the session as nobody drives it
	for {
		watched, err := o.owner(ctx, ref)
		if err != nil {
			return err
		}
		if !watched && !seen {
			if err := o.still(ctx, ref); err != nil {
				return err
			}
		}
		if !o.follow {
			return o.out.result(nil, func(d *object) { d.str("session", ref.ID) }, nil)
		}
		seen = !watched
		if err := pause(ctx, ownerPause); err != nil {
			return err
		}
	}
}

// owner watches the process that drives the session to its end; false when there
// is none.
func (o *watchOptions) owner(ctx context.Context, ref store.Ref) (watched bool, err error) {
	err = o.remotely(ctx, ref, func(c *owner.Client) error {
		return c.Watch(ctx, o.lane, func(s owner.Sight) error {
			watched = true
			return o.show(ref, s)
		})
	})
	if errors.Is(err, owner.ErrGone) || errors.Is(err, owner.ErrClosing) {
		err = nil
	}
	return watched, err
}

// still is the snapshot of a session that nobody drives.
func (o *watchOptions) still(ctx context.Context, ref store.Ref) error {
	return o.view(ctx, ref, func(r store.Reader) error {
		lanes, err := engine.Inspect(ctx, r, engine.InspectOptions{Lane: o.lane, Snapshot: o.lane != ""})
		if err != nil {
			return err
		}
		var snapshot store.Appender
		if o.lane != "" {
			snapshot = lanes[0].Snapshot
		} else {
			all := engine.SessionSnapshot{}
			for _, l := range lanes {
				all.Lanes = append(all.Lanes, l.ExecutionInfo)
			}
			snapshot = all
		}
		raw, err := snapshot.AppendJSON(nil)
		if err != nil {
			return err
		}
		return o.show(ref, owner.Sight{Snapshot: raw})
	})
}

func (o *watchOptions) show(ref store.Ref, s owner.Sight) error {
	return o.out.stream(func(d *object) {
		if s.Event != nil {
			d.str("type", "event")
			d.raw("event", s.Event)
			return
		}
		d.str("type", "snapshot")
		d.str("session", ref.ID)
		d.members(s.Snapshot)
	})
}
