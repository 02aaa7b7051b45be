package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/pkg/store"
)

type compactFileOptions struct {
	base
	sessions []string
	all      bool
	compact  store.CompactOptions
	dryRun   bool
}

func newCompactFileCmd(f *factory, runF func(context.Context, *compactFileOptions) error) *cobra.Command {
	if runF == nil {
		runF = runCompactFile
	}
	o := &compactFileOptions{}
	cmd := &cobra.Command{
		Use:   "compact-file SESSION...",
		Short: "Make session files smaller, without changing what they say",
		Long: `Rewrite session files without what is dead in them: values that were replaced,
lists that were deleted, free pages. Entries, current values, lists, the ledger and
every sequence number stay as they are. A file that would not get smaller is left
alone. With --all, a session that another process owns is skipped.` +
			exitHelp(exitOK, exitUsage, exitPartial, exitNotFound, exitCorrupt, exitIO, exitVersion, exitRefused, exitLocked),
		ValidArgsFunction: completeSessions(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.sessions, err = severalArgs(f, args, o.all); err != nil {
				return err
			}
			if d := o.compact.MinDead; !(d >= 0 && d <= 1) {
				return usagef("--min-dead must be between 0 and 1")
			}
			if o.base, err = f.base("compact-file"); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.all, "all", false, "every session of the repository")
	flags.Float64Var(&o.compact.MinDead, "min-dead", 0, "only files of which at least this `RATIO` is dead")
	flags.BoolVar(&o.dryRun, "dry-run", false, "tell what would happen and change nothing")
	return cmd
}

// compacted is what was done to one session.
type compacted struct {
	target
	store.Compaction
	skipped bool // another process owns the session
}

func runCompactFile(ctx context.Context, o *compactFileOptions) error {
	targets, err := o.targets(ctx, o.sessions, o.all)
	if err != nil {
		return err
	}
	items := make([]compacted, len(targets))
	for i, t := range targets {
		items[i].target = t
	}
	items, left, err := sweepItems(ctx, items, func(c *compacted) error {
		if c.err == nil {
			o.compactOne(ctx, c)
		}
		return c.err
	}, func(c *compacted) {
		if c.skipped {
			o.out.note("skipped %s: another process owns it", escapeLine(c.session))
		}
		// A failed write sticks to the stream and is reported at the end.
		_ = o.out.item(c.write)
	})
	if err != nil {
		return err
	}
	return o.report(ctx, items, left)
}

func (o *compactFileOptions) compactOne(ctx context.Context, item *compacted) {
	var err error
	if o.dryRun {
		item.Compaction, err = o.repo.PlanCompaction(ctx, item.ref, o.compact)
	} else {
		item.Compaction, err = o.compactOwned(ctx, &item.target)
	}
	_, held := errors.AsType[*store.Held](err)
	switch {
	case held && o.all:
		item.skipped = true
	case errors.Is(err, errors.ErrUnsupported):
		item.err = unsupportedf("session %s: this storage cannot be compacted", item.session)
	default:
		item.err = err
	}
}

func (o *compactFileOptions) compactOwned(ctx context.Context, t *target) (store.Compaction, error) {
	if err := t.convert(ctx, &o.base); err != nil {
		return store.Compaction{}, err
	}
	s, err := o.open(ctx, &t.ref)
	if err != nil {
		return store.Compaction{}, err
	}
	c, err := s.Compact(ctx, o.compact)
	return c, firstOf(err, s.Close())
}

func (c *compacted) write(o *object) {
	o.str("session", c.session)
	o.optStr("backend", c.ref.Backend)
	o.int("bytesBefore", c.BytesBefore)
	o.int("bytesAfter", c.BytesAfter)
	o.int("recordsBefore", c.RecordsBefore)
	o.int("recordsAfter", c.RecordsAfter)
	o.bool("changed", c.Changed)
	if c.skipped {
		o.bool("skipped", true)
	}
	if c.err != nil {
		o.itemError(c.err)
	}
}

func (o *compactFileOptions) report(ctx context.Context, items []compacted, left int) error {
	var errs []error
	var changed, before, after int64
	for _, c := range items {
		if !c.skipped {
			errs = append(errs, c.err)
		}
		if c.Changed {
			changed++
		}
		before += c.BytesBefore
		after += c.BytesAfter
	}
	return o.out.result(sweepFailure(ctx, errs, left, len(items)+left), func(d *object) {
		d.array("items", len(items), func(i int, d *object) { items[i].write(d) })
		d.object("totals", func(d *object) {
			d.int("sessions", int64(len(items)))
			d.int("changed", changed)
			d.int("bytesBefore", before)
			d.int("bytesAfter", after)
			d.notDone(left)
		})
	}, func(w io.Writer) error {
		p := &lines{w: w}
		for _, c := range items {
			p.line("%s  %s", escapeLine(c.session), c.describe(o.dryRun))
		}
		return p.err
	})
}

func (c *compacted) describe(dry bool) string {
	switch {
	case c.err != nil:
		return escapeLine(explain(c.err).message)
	case c.skipped:
		return "skipped"
	case !c.Changed:
		return fmt.Sprintf("unchanged, %d bytes", c.BytesBefore)
	}
	verb := "compacted"
	if dry {
		verb = "would be compacted"
	}
	return fmt.Sprintf("%s, %d to %d bytes, %d to %d records", verb, c.BytesBefore, c.BytesAfter, c.RecordsBefore, c.RecordsAfter)
}
