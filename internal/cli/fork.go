package cli

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/pkg/store"
)

type forkOptions struct {
	base
	session string
	fork    store.ForkOptions
}

func newForkCmd(f *factory, runF func(context.Context, *forkOptions) error) *cobra.Command {
	if runF == nil {
		runF = runFork
	}
	o := &forkOptions{}
	var scope, position string
	cmd := &cobra.Command{
		Use:   "fork SESSION",
		Short: "Copy a session, or one path of it, into a new session",
		Long: `Copy a session into a new one and print the new id. In scope tree the whole tree
is copied with every lane; in scope branch one path, which becomes the new
session's main: of a lane, up to its leaf or to the entry given with --entry.
Operations, queues and the ledger stay behind. The source is not touched, and may
be driven meanwhile. --lane, --entry and --position mean scope branch.` +
			exitHelp(exitOK, exitUsage, exitNotFound, exitCorrupt, exitIO, exitVersion, exitRefused),
		Args:              maxArgs(1),
		ValidArgsFunction: completeSession(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.session, _, err = sessionArg(f, args); err != nil {
				return err
			}
			narrow := slices.ContainsFunc([]string{"lane", "entry", "position"}, cmd.Flags().Changed)
			if err := o.choose(scope, position, narrow, cmd.Flags().Changed("scope")); err != nil {
				return err
			}
			if o.base, err = f.base("fork"); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&scope, "scope", string(store.ForkTree), "what to copy: `SCOPE` branch or tree")
	flags.StringVar(&o.fork.Lane, "lane", store.MainLane, "the `LANE` whose path is copied")
	flags.StringVar(&o.fork.EntryID, "entry", "", "the `ID` of the entry to fork at; the lane's leaf by default")
	flags.StringVar(&position, "position", "at", "fork at that entry or before it: `WHERE` at or before")
	flags.StringVar(&o.fork.ID, "id", "", "the new session's `ID`")
	flags.StringVar(&o.fork.Backend, "backend", "", "the new session's storage, `KIND` sqlite or jsonl; the source's by default")
	return cmd
}

func (o *forkOptions) choose(scope, position string, narrow, given bool) error {
	o.fork.Scope = store.ForkScope(scope)
	switch {
	case o.fork.Scope != store.ForkTree && o.fork.Scope != store.ForkBranch:
		return usagef("--scope %q: want branch or tree", escapeLine(scope))
	case narrow && given && o.fork.Scope == store.ForkTree:
		return usagef("--lane, --entry and --position go with --scope branch")
	case narrow:
		o.fork.Scope = store.ForkBranch
	}
	switch position {
	case "at":
	case "before":
		o.fork.Before = true
	default:
		return usagef("--position %q: want at or before", escapeLine(position))
	}
	switch o.fork.Backend {
	case "", "sqlite", "jsonl":
		return nil
	}
	return usagef("--backend %q: want sqlite or jsonl", escapeLine(o.fork.Backend))
}

func runFork(ctx context.Context, o *forkOptions) error {
	src, err := o.resolve(ctx, o.session)
	if err != nil {
		return err
	}
	if o.fork.EntryID != "" {
		err := o.view(ctx, src, func(r store.Reader) (err error) {
			o.fork.EntryID, err = o.entryID(ctx, r, o.fork.EntryID)
			return err
		})
		if err != nil {
			return err
		}
	}
	fork, err := o.repo.Fork(ctx, src, nil, o.fork)
	if err != nil {
		return err
	}
	slices.Sort(fork.Lanes)
	return o.out.result(nil, func(d *object) {
		d.str("id", fork.Ref.ID)
		d.str("path", fork.Ref.Path)
		d.str("parentSessionId", fork.Parent)
		d.str("scope", string(o.fork.Scope))
		d.int("entries", int64(fork.Entries))
		d.strs("lanes", fork.Lanes)
	}, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, fork.Ref.ID)
		return err
	})
}
