package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/pkg/subsession"
)

func newTombstonesCmd(f *factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tombstones",
		Short: "List and purge what deletions left",
		Long: `A deletion leaves a tombstone: the ids of the session and of its children, how far
their generations went, and what it had cost. A session that is made again under
the same id goes on from there.`,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTombstonesListCmd(f, nil), newTombstonesPurgeCmd(f, nil))
	return cmd
}

type tombstonesListOptions struct{ base }

func newTombstonesListCmd(f *factory, runF func(context.Context, *tombstonesListOptions) error) *cobra.Command {
	if runF == nil {
		runF = runTombstonesList
	}
	o := &tombstonesListOptions{}
	return &cobra.Command{
		Use:   "list",
		Short: "List the tombstones of the repository",
		Long:  `List the tombstones of the repository.` + exitHelp(exitOK, exitUsage, exitPartial, exitCorrupt, exitIO, exitVersion),
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.base, err = f.base("tombstones list"); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
}

func runTombstonesList(_ context.Context, o *tombstonesListOptions) error {
	found, err := o.tombstones().List()
	if err != nil {
		return err
	}
	var errs []error
	for _, t := range found {
		errs = append(errs, t.Err)
		// A failed write sticks to the stream and is reported at the end.
		_ = o.out.item(func(d *object) { writeTombstone(d, t) })
	}
	return o.out.result(itemsFailure("tombstones", errs), func(d *object) {
		d.array("items", len(found), func(i int, d *object) { writeTombstone(d, found[i]) })
		d.object("totals", func(d *object) { d.int("tombstones", int64(len(found))) })
	}, func(w io.Writer) error {
		t := table{
			header: []string{"id", "deleted", "root", "floor", "messages", "cost"},
			whole:  []string{"id", "root", "cost"}, // purge takes full ids
		}
		for _, s := range found {
			if s.Tombstone == nil {
				t.rows = append(t.rows, []string{escapeLine(s.ID), escapeLine(explain(s.Err).message), "", "", "", ""})
				continue
			}
			t.rows = append(t.rows, []string{
				escapeLine(s.ID), o.out.when(s.Tombstone.DeletedAt), escapeLine(s.Tombstone.Root),
				fmt.Sprint(s.Tombstone.GenerationFloor), fmt.Sprint(s.Tombstone.MessageCount),
				fmt.Sprintf("%.4f", s.Tombstone.UsageTotals.Cost.Total),
			})
		}
		if len(t.rows) == 0 {
			return nil
		}
		return t.render(w, o.out.width)
	})
}

func (b *base) tombstones() subsession.Tombstones {
	return subsession.Tombstones{Dir: b.repo.Dir()}
}

func writeTombstone(d *object, f subsession.Found) {
	d.str("id", f.ID)
	if t := f.Tombstone; t != nil {
		d.int("deletedAt", t.DeletedAt)
		d.str("cascadeId", t.CascadeID)
		d.str("root", t.Root)
		if t.SpawnParent == nil {
			d.null("spawnParent")
		} else {
			d.str("spawnParent", *t.SpawnParent)
		}
		d.int("generationFloor", t.GenerationFloor)
		d.int("storeGeneration", t.StoreGeneration)
		d.strs("localChildren", t.LocalChildren)
		d.strs("remoteChildren", t.RemoteChildren)
		d.value("usageTotals", t.UsageTotals)
		d.int("messageCount", t.MessageCount)
	}
	d.itemError(f.Err)
}

type tombstonesPurgeOptions struct {
	base
	before int64 // Unix ms
	dryRun bool
}

func newTombstonesPurgeCmd(f *factory, runF func(context.Context, *tombstonesPurgeOptions) error) *cobra.Command {
	if runF == nil {
		runF = runTombstonesPurge
	}
	o := &tombstonesPurgeOptions{}
	var olderThan string
	cmd := &cobra.Command{
		Use:   "purge --older-than DUR",
		Short: "Remove old tombstones",
		Long: `Remove the tombstones of sessions that were deleted longer ago than DUR. What they
knew is lost: the floors below which a session made again under the same id must
not begin, and which children live with another service.` + exitHelp(exitOK, exitUsage, exitPartial, exitIO),
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if olderThan == "" {
				return usagef("how old? Give --older-than DUR")
			}
			d, err := parseDuration(olderThan)
			if err != nil {
				return usagef("--older-than %q: %v", escapeLine(olderThan), err)
			}
			o.before = f.now() - d.Milliseconds()
			if o.base, err = f.base("tombstones purge"); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&olderThan, "older-than", "", "those of sessions deleted longer than `DUR` ago")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "tell what would be removed and change nothing")
	return cmd
}

func runTombstonesPurge(_ context.Context, o *tombstonesPurgeOptions) error {
	graves := o.tombstones()
	found, err := graves.List()
	if err != nil {
		return err
	}
	var purged []string
	var errs []error
	for _, t := range found {
		if t.Tombstone == nil || t.Tombstone.DeletedAt > o.before {
			continue
		}
		var err error
		if !o.dryRun {
			err = graves.Purge(t.ID)
		}
		errs = append(errs, err)
		if err == nil {
			purged = append(purged, t.ID)
		}
	}
	if len(purged) > 0 && !o.dryRun {
		o.out.note("note: the generation floors and remote exclusions of %d tombstone(s) are lost", len(purged))
	}
	return o.out.result(itemsFailure("tombstones", errs), func(d *object) {
		d.bool("dryRun", o.dryRun)
		d.strs("purged", purged)
		d.int("kept", int64(len(found)-len(purged)))
	}, func(w io.Writer) error {
		p := &lines{w: w}
		for _, id := range purged {
			p.line("%s", escapeLine(id))
		}
		return p.err
	})
}
