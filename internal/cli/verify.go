package cli

import (
	"context"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/store"
)

type verifyOptions struct {
	base
	sessions []string
	all      bool
	fast     bool
	repair   bool
}

func newVerifyCmd(f *factory, runF func(context.Context, *verifyOptions) error) *cobra.Command {
	if runF == nil {
		runF = runVerify
	}
	o := &verifyOptions{}
	cmd := &cobra.Command{
		Use:   "verify SESSION...",
		Short: "Check sessions for damage, without touching them",
		Long: `Check sessions against every invariant of the store: framing, ids, parents,
sequence numbers, lanes, operations, what is pending, and the totals against the
usage ledger. Nothing is written. Warnings alone are no failure.` +
			exitHelp(exitOK, exitUsage, exitPartial, exitNotFound, exitCorrupt, exitIO, exitVersion, exitRefused),
		ValidArgsFunction: completeSession(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			switch {
			case o.all && len(args) > 0:
				return usagef("--all and SESSION exclude each other")
			case !o.all && len(args) == 0:
				session, _, err := sessionArg(f, nil)
				if err != nil {
					return err
				}
				args = []string{session}
			}
			o.sessions = args
			if o.base, err = f.base("verify"); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "check every session of the repository")
	cmd.Flags().BoolVar(&o.fast, "fast", false, "check the structure only: what opening a session checks, and its lanes")
	cmd.Flags().BoolVar(&o.repair, "repair-index", false, "rebuild the branch index and totals first")
	return cmd
}

// verified is the finding on one session.
type verified struct {
	session  string
	path     string
	counts   *store.Counts
	problems []store.Problem
	err      error // why it could not be checked, or that it has problems
}

func runVerify(ctx context.Context, o *verifyOptions) error {
	if o.repair {
		return unsupportedf("--repair-index is not supported by this version of drover")
	}
	items, err := o.targets(ctx)
	if err != nil {
		return err
	}
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, item := range items {
		g.Go(func() error {
			if item.ref.Path != "" && ctx.Err() == nil {
				o.check(ctx, item)
			}
			return o.out.item(item.write)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return o.report(items)
}

// verifyItem is one session to check and what was found.
type verifyItem struct {
	verified
	ref store.Ref
}

// targets resolves what is to be checked; an argument that names no session is
// an item that failed.
func (o *verifyOptions) targets(ctx context.Context) ([]*verifyItem, error) {
	var items []*verifyItem
	if o.all {
		listed, err := o.repo.List(ctx)
		if err != nil {
			return nil, err
		}
		for _, l := range listed {
			items = append(items, &verifyItem{verified: verified{session: l.Ref.ID, path: l.Ref.Path}, ref: l.Ref})
		}
		return items, nil
	}
	for _, arg := range o.sessions {
		ref, err := o.resolve(ctx, arg)
		item := &verifyItem{verified: verified{session: ref.ID, path: ref.Path, err: err}, ref: ref}
		if err != nil {
			item.session, item.ref = arg, store.Ref{}
			item.problems = []store.Problem{store.ProblemOf(err)}
		}
		items = append(items, item)
	}
	return items, nil
}

func (o *verifyOptions) check(ctx context.Context, item *verifyItem) {
	r, err := o.repo.View(ctx, item.ref)
	if err == nil {
		err = firstOf(o.inspect(ctx, item, r), r.Close())
	}
	if err != nil {
		item.err = err
		item.problems = append(item.problems, store.ProblemOf(err))
		return
	}
	errors := 0
	for _, p := range item.problems {
		if p.Severity == store.SeverityError {
			errors++
		}
	}
	if errors > 0 {
		item.err = &failure{code: exitCorrupt, tag: "corrupt", message: fmt.Sprintf("session %s has %d problem(s), the first: %s", item.session, errors, item.firstError())}
	}
}

func (o *verifyOptions) inspect(ctx context.Context, item *verifyItem, r store.Reader) error {
	if o.fast {
		_, err := r.Stats(ctx)
		return err
	}
	for p := range store.Verify(ctx, r, engine.Check) {
		item.problems = append(item.problems, p)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	counts, err := store.CountOf(ctx, r)
	item.counts = &counts
	return err
}

func (v *verified) firstError() string {
	for _, p := range v.problems {
		if p.Severity == store.SeverityError {
			return p.Message
		}
	}
	return ""
}

func (v *verified) write(o *object) {
	o.str("session", v.session)
	o.optStr("path", v.path)
	o.bool("ok", v.err == nil)
	if v.counts == nil {
		o.null("counts")
	} else {
		o.object("counts", func(o *object) {
			o.int("entries", v.counts.Entries)
			o.int("messages", v.counts.Messages)
			o.int("usage", v.counts.Usage)
			o.int("values", v.counts.Values)
			o.int("lists", v.counts.Lists)
			o.int("lanes", v.counts.Lanes)
		})
	}
	o.array("problems", len(v.problems), func(i int, o *object) {
		p := v.problems[i]
		o.str("code", p.Code)
		o.str("severity", string(p.Severity))
		o.str("message", p.Message)
		o.str("where", p.Where)
	})
	if v.err != nil {
		o.itemError(v.err)
	}
}

func (o *verifyOptions) report(items []*verifyItem) error {
	var errs []error
	problems, ok := 0, true
	for _, item := range items {
		errs = append(errs, item.err)
		problems += len(item.problems)
		ok = ok && item.err == nil
	}
	return o.out.result(itemsFailure("sessions", errs), func(d *object) {
		d.array("items", len(items), func(i int, d *object) { items[i].write(d) })
		d.object("totals", func(d *object) {
			d.bool("ok", ok)
			d.int("sessions", int64(len(items)))
			d.int("problems", int64(problems))
		})
	}, func(w io.Writer) error {
		p := &lines{w: w}
		for _, item := range items {
			item.print(p)
		}
		return p.err
	})
}

func (v *verified) print(p *lines) {
	verdict := "ok"
	if v.err != nil {
		verdict = "damaged"
	}
	if v.counts != nil {
		verdict += fmt.Sprintf("  %d entries, %d usage rows, %d values, %d lists, %d lanes",
			v.counts.Entries, v.counts.Usage, v.counts.Values, v.counts.Lists, v.counts.Lanes)
	}
	p.line("%s  %s", escapeLine(v.session), verdict)
	for _, problem := range v.problems {
		where := ""
		if problem.Where != "" {
			where = " (" + escapeLine(problem.Where) + ")"
		}
		p.line("  %s %s: %s%s", problem.Severity, problem.Code, escapeLine(problem.Message), where)
	}
}
