package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/store"
)

type resumeOptions struct {
	base
	session string
	lane    string
}

func newResumeCmd(f *factory, runF func(context.Context, *resumeOptions) error) *cobra.Command {
	if runF == nil {
		runF = runResume
	}
	o := &resumeOptions{}
	cmd := &cobra.Command{
		Use:   "resume SESSION",
		Short: "Go on with an open operation and wait for its retries",
		Long: `Go on with the open operation of a lane, wherever it stands: wait for its retries,
and ask once for an answer that was deferred. To drive with a fence, a deadline or
one pass at a time use "drover drive".` +
			exitHelp(exitOK, exitFailed, exitUsage, exitNotFound, exitCorrupt, exitIO, exitVersion, exitRefused,
				exitAborted, exitLocked, exitLater, exitInt, exitTerm),
		Args:              maxArgs(1),
		ValidArgsFunction: completeSession(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.session, _, err = sessionArg(f, args); err != nil {
				return err
			}
			if o.base, err = f.runningBase("resume"); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.lane, "lane", store.MainLane, "the `LANE` to go on with")
	return cmd
}

func runResume(ctx context.Context, o *resumeOptions) error {
	if err := o.checkConfigured(); err != nil {
		return err
	}
	s, ref, err := o.openToDrive(ctx, o.session)
	if err != nil {
		return err
	}
	return o.engage(ctx, ref, s, func(e *engaged) error { return o.run(ctx, e, ref) })
}

func (o *resumeOptions) run(ctx context.Context, e *engaged, ref store.Ref) error {
	lane, err := e.Lane(o.lane)
	if err != nil {
		return err
	}
	info, err := lane.InspectExecution(ctx)
	if err != nil {
		return err
	}
	if info.Current == nil {
		return &engine.NothingToResume{Lane: o.lane}
	}
	id := info.Current.ID
	follow := newFollower(o.out, o.lane)
	defer follow.watch(e.Harness)()
	defer e.server.Driving(o.lane)()
	d, err := lane.Resume(ctx)
	return o.out.driven(ctx, pursuit{ref.ID, o.lane, id, o.namingLane(ref, o.lane)}, d, err, follow)
}
