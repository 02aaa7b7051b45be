package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

type compactOptions struct {
	operation
	instructions string
}

func newCompactCmd(f *factory, runF func(context.Context, *compactOptions) error) *cobra.Command {
	if runF == nil {
		runF = runCompact
	}
	o := &compactOptions{}
	cmd := &cobra.Command{
		Use:   "compact SESSION",
		Short: "Replace a lane's older messages by a summary",
		Long: `Have the lane's model summarize its older messages, so that later requests send
the summary and the newest messages only. Nothing is removed from the session.` +
			exitHelp(exitOK, exitFailed, exitUsage, exitNotFound, exitCorrupt, exitIO, exitVersion, exitRefused,
				exitAborted, exitLocked, exitLater, exitInt, exitTerm),
		Args:              maxArgs(1),
		ValidArgsFunction: completeSession(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.session, _, err = sessionArg(f, args); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			if err := o.start(f, "compact"); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	o.bind(cmd)
	o.laneFlags.bindLasting(cmd)
	cmd.Flags().StringVar(&o.instructions, "instructions", "", "what the summary should look at, as `TEXT`")
	mayBeEmpty(cmd.Flags(), "instructions")
	return cmd
}

func runCompact(ctx context.Context, o *compactOptions) error {
	configure, err := o.laneFlags.configure()
	if err != nil {
		return err
	}
	if err := checkUTF8("--instructions", []byte(o.instructions)); err != nil {
		return err
	}
	request := engine.CompactRequest{OperationID: o.operationID, CustomInstructions: o.instructions, Configure: configure}
	return o.runStructural(ctx, func(ctx context.Context, _ *engine.Harness, lane *engine.Lane) (engine.Admission, error) {
		return lane.AcceptCompaction(ctx, request)
	})
}

// runStructural accepts and drives an operation that changes the shape of a lane.
func (o *operation) runStructural(ctx context.Context, accept accepter) error {
	s, ref, err := o.openToDrive(ctx, o.session)
	if err != nil {
		return err
	}
	ctx, cancel := withDeadline(ctx, o.deadline, o.now())
	defer cancel()
	return o.engage(ctx, ref, s, func(e *engaged) error {
		return o.carry(ctx, e, accepted{ref: ref}, accept, func() {})
	})
}

type navigateOptions struct {
	operation
	target       string // an entry's id, or root
	summarize    bool
	label        string
	instructions string
}

func newNavigateCmd(f *factory, runF func(context.Context, *navigateOptions) error) *cobra.Command {
	if runF == nil {
		runF = runNavigate
	}
	o := &navigateOptions{}
	cmd := &cobra.Command{
		Use:   "navigate SESSION ENTRY|root",
		Short: "Move a lane to another entry of the tree",
		Long: `Move a lane to an entry, or to before the first one, so that the conversation goes
on from there. What the lane leaves behind stays in the tree; with --summarize its
model summarizes it for the new place.` +
			exitHelp(exitOK, exitFailed, exitUsage, exitNotFound, exitCorrupt, exitIO, exitVersion, exitRefused,
				exitAborted, exitLocked, exitLater, exitInt, exitTerm),
		Args:              maxArgs(2),
		ValidArgsFunction: completeSession(f, completeTargets),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.session, o.target, err = sessionAndOne(f, args, "where to? Name an entry, or root; `drover log` shows them"); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			if err := checkOneLine("--label", o.label); err != nil {
				return err
			}
			if o.instructions != "" && !o.summarize {
				return usagef("--instructions goes with --summarize only")
			}
			if err := o.start(f, "navigate"); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	o.bind(cmd)
	o.laneFlags.bindLasting(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.summarize, "summarize", false, "summarize what the lane leaves behind")
	flags.StringVar(&o.label, "label", "", "label the target with this `TEXT`")
	flags.StringVar(&o.instructions, "instructions", "", "what the summary should look at, as `TEXT`")
	mayBeEmpty(flags, "instructions")
	return cmd
}

func runNavigate(ctx context.Context, o *navigateOptions) error {
	configure, err := o.laneFlags.configure()
	if err != nil {
		return err
	}
	if err := checkUTF8("--instructions", []byte(o.instructions)); err != nil {
		return err
	}
	request := engine.NavigateRequest{
		OperationID: o.operationID, Summarize: o.summarize, Label: o.label, CustomInstructions: o.instructions, Configure: configure,
	}
	return o.runStructural(ctx, func(ctx context.Context, h *engine.Harness, lane *engine.Lane) (engine.Admission, error) {
		request := request
		if o.target != rootTarget {
			target, err := o.entryID(ctx, h.Session(), o.target)
			if err != nil {
				return engine.Admission{}, err
			}
			request.Target = store.LeafID(target)
		}
		a, err := lane.AcceptNavigation(ctx, request)
		return a, unknownTarget(err)
	})
}

// rootTarget stands for the place before the first entry.
const rootTarget = "root"

// unknownTarget names a missing target as the specification does (spec §5.1).
func unknownTarget(err error) error {
	e, ok := errors.AsType[*store.UnknownTarget](err)
	if !ok {
		return err
	}
	f := notFoundf("unknown_target", "the session has no entry %q", escapeLine(e.ID))
	f.cause = err
	f.details = func(d *object) { d.str("targetId", e.ID) }
	return f.withHint("`drover log` shows the entries")
}

// describeStructural is an ended compaction or navigation in a few words, "" for
// anything that its error tells.
func describeStructural(o engine.Outcome) string {
	switch {
	case o.Kind != op.Completed:
	case o.Operation == op.KindCompaction && o.Entry != nil:
		return "compacted: " + escapeLine(o.Entry.ID)
	case o.Operation == op.KindNavigation:
		if o.LeafID == "" {
			return "moved to root"
		}
		return fmt.Sprintf("moved to %s", escapeLine(string(o.LeafID)))
	}
	return ""
}
