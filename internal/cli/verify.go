package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/store"
)

type verifyOptions struct {
	base
	sessions []string
	all      bool
	fast     bool
	repair   bool

	leftovers []string // of the repository, when all of it is checked
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
usage ledger. Nothing is written, unless --repair-index asks for it: then what is
derived from the entries and the ledger is made anew before the check; a session for
which that cannot be done, as another process owns it, is checked all the same.
Warnings alone are no failure. With --all, the temporary files of sessions that never came
into being are told as well; the next session that is made removes them.` +
			exitHelp(exitOK, exitUsage, exitPartial, exitNotFound, exitCorrupt, exitIO, exitVersion, exitRefused, exitLocked),
		ValidArgsFunction: completeSessions(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.sessions, err = severalArgs(f, args, o.all); err != nil {
				return err
			}
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
	target
	counts   *store.Counts
	problems []store.Problem
	// unrepaired is why --repair-index could do nothing, which says nothing of damage.
	unrepaired error
}

func runVerify(ctx context.Context, o *verifyOptions) error {
	targets, err := o.targets(ctx, o.sessions, o.all)
	if err != nil {
		return err
	}
	if o.all {
		if o.leftovers, err = o.repo.Leftovers(ctx); err != nil {
			return bySignal(ctx, err)
		}
	}
	items := make([]verified, len(targets))
	for i, t := range targets {
		items[i].target = t
	}
	items, left, err := sweepItems(ctx, items, func(v *verified) error {
		o.verify(ctx, v)
		return firstOf(ctx.Err(), v.err) // what was cut short has found nothing out
	}, func(v *verified) {
		// A failed write sticks to the stream and is reported at the end.
		_ = o.out.item(v.write)
	})
	if err != nil {
		return err
	}
	return o.report(ctx, items, left)
}

// verify checks one session. What the listing held against it counts too, also
// when the session itself is sound, as a second file of an id may be.
func (o *verifyOptions) verify(ctx context.Context, item *verified) {
	listing := item.err
	item.err = nil
	if item.ref.Path != "" {
		if err := o.check(ctx, item); err != nil {
			listing = err
		}
	}
	if listing != nil {
		item.err = listing
		item.problems = append(item.problems, store.ProblemOf(listing))
		return
	}
	item.err = item.unrepaired
	if n, first := item.damage(); n > 0 {
		item.err = &failure{code: exitCorrupt, tag: "corrupt", message: fmt.Sprintf("session %s has %d problem(s), the first: %s", item.session, n, first)}
	}
}

func (o *verifyOptions) check(ctx context.Context, item *verified) error {
	if o.repair {
		err := o.repairIndex(ctx, &item.target)
		if codeOf(err) == exitCorrupt {
			return err
		}
		item.unrepaired = err
	}
	view := o.repo.ViewToVerify
	if o.fast {
		view = o.repo.View
	}
	r, err := view(ctx, item.ref)
	if err != nil {
		return err
	}
	v := store.Verification{Checks: []store.Check{engine.Check}, Fast: o.fast}
	for p := range v.Problems(ctx, r) {
		item.problems = append(item.problems, p)
	}
	if !o.fast {
		item.counts = &v.Counts
	}
	return firstOf(ctx.Err(), r.Close())
}

// repairIndex takes the session for as long as the repair needs it.
func (o *verifyOptions) repairIndex(ctx context.Context, t *target) error {
	if err := t.convert(ctx, &o.base); err != nil {
		return err
	}
	s, err := o.open(ctx, &t.ref)
	if err != nil {
		return err
	}
	return firstOf(s.RepairIndex(ctx), s.Close())
}

// damage counts the errors and tells the first.
func (v *verified) damage() (n int, first string) {
	for _, p := range v.problems {
		if p.Severity != store.SeverityError {
			continue
		}
		if n++; n == 1 {
			first = p.Message
		}
	}
	return n, first
}

func (v *verified) sound() bool {
	n, _ := v.damage()
	return n == 0
}

func (v *verified) write(o *object) {
	o.str("session", v.session)
	o.optStr("path", v.ref.Path)
	o.bool("ok", v.sound())
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
	writeProblems(o, "problems", v.problems)
	if v.err != nil {
		o.itemError(v.err)
	}
}

func writeProblems(o *object, name string, all []store.Problem) {
	o.array(name, len(all), func(i int, o *object) {
		o.str("code", all[i].Code)
		o.str("severity", string(all[i].Severity))
		o.str("message", all[i].Message)
		o.str("where", all[i].Where)
	})
}

func (o *verifyOptions) report(ctx context.Context, items []verified, left int) error {
	var errs []error
	problems, ok := 0, true
	for _, item := range items {
		errs = append(errs, item.err)
		problems += len(item.problems)
		ok = ok && item.sound()
	}
	return o.out.result(sweepFailure(ctx, errs, left, len(items)+left), func(d *object) {
		d.array("items", len(items), func(i int, d *object) { items[i].write(d) })
		d.object("totals", func(d *object) {
			d.bool("ok", ok)
			d.int("sessions", int64(len(items)))
			d.int("problems", int64(problems))
			if o.all {
				d.strs("leftovers", o.leftovers)
			}
			d.notDone(left)
		})
	}, func(w io.Writer) error {
		p := &lines{w: w}
		for _, item := range items {
			item.print(p)
		}
		for _, path := range o.leftovers {
			p.line("warning leftover: %s is a temporary file of a session that never came into being", escapeLine(path))
		}
		return p.err
	})
}

func (v *verified) print(p *lines) {
	verdict := "ok"
	switch f := explain(v.err); {
	case f == nil:
	case f.code == exitNotFound:
		verdict = "not found" // or not the only one: nothing was looked at
	case v.sound():
		verdict = "not repaired"
	default:
		verdict = "damaged"
	}
	if v.counts != nil {
		verdict += fmt.Sprintf("  %d entries, %d usage rows, %d values, %d lists, %d lanes",
			v.counts.Entries, v.counts.Usage, v.counts.Values, v.counts.Lists, v.counts.Lanes)
	}
	p.line("%s  %s", escapeLine(v.session), verdict)
	if v.unrepaired != nil {
		p.line("  not repaired: %s", escapeLine(explain(v.unrepaired).message))
	}
	for _, problem := range v.problems {
		p.line("  %s %s: %s%s", problem.Severity, problem.Code, escapeLine(problem.Message), inBrackets(problem.Where))
	}
}
