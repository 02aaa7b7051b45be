package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/repair"
	"github.com/drover-run/drover/pkg/store"
)

type repairOptions struct {
	base
	session string
	only    string // "" or "index"
	salvage string // the file of a new session, "" for none
	dryRun  bool
	drivers []store.Driver
}

func newRepairCmd(f *factory, runF func(context.Context, *repairOptions) error) *cobra.Command {
	if runF == nil {
		runF = runRepair
	}
	o := &repairOptions{drivers: f.drivers}
	cmd := &cobra.Command{
		Use:   "repair SESSION",
		Short: "Mend a session, or save what is readable of a damaged one",
		Long: `Mend what "drover verify" finds and what can be mended without losing a
committed byte: the branch index and the totals, SQLite's own indexes, the
beginning of a commit that was not finished, the files that interrupted
replacements left, a lock file or lease that nobody holds. What was mended and
what is left is told; damage of the content itself is left as it is.

With --salvage OUT the session is not touched. What is readable of it is written
into a new one, OUT, a file that ends in .db or .jsonl and does not exist; its name
without the ending is the new session's id. Every line (JSONL) and every page or
row (SQLite) that was not kept is told. An entry whose parent is lost hangs on its
nearest kept ancestor, or is a root where none is known; a lane whose leaf is lost
goes back in the same way, or is set to the newest entry that was saved where none is
known, which the report tells; an operation that does not fit together any more is
left out. The new session passes verify. It takes the old one's place when OUT is named
ID.db or ID.jsonl in another folder, the old file is moved away, and OUT to its place.

The JSON is {"session","mended":[{"code","where"}],"left":[PROBLEM...],"salvage":null|
{"id","path","backend","entries","usage","values","elements","lost":[{"code",
"where","message"}],"changed":[{"code","where","message"}]},"ok":bool}.` +
			exitHelp(exitOK, exitUsage, exitNotFound, exitCorrupt, exitIO, exitVersion, exitRefused, exitLocked),
		Args:              maxArgs(1),
		ValidArgsFunction: completeSession(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.session, _, err = sessionArg(f, args); err != nil {
				return err
			}
			switch {
			case o.only != "" && o.only != "index":
				return usagef("--only %q: want index", escapeLine(o.only))
			case o.salvage != "" && o.only != "":
				return usagef("--only and --salvage exclude each other")
			}
			if o.base, err = f.base("repair"); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.only, "only", "", "mend only this `PART`: index, which is the branch index and the totals")
	flags.StringVar(&o.salvage, "salvage", "", "write what is readable into a new session, the file `OUT`")
	flags.BoolVar(&o.dryRun, "dry-run", false, "tell what would happen and change nothing")
	_ = cmd.RegisterFlagCompletionFunc("only", cobra.FixedCompletions([]string{"index"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func runRepair(ctx context.Context, o *repairOptions) error {
	ref, err := o.resolve(ctx, o.session)
	if err != nil {
		return err
	}
	if o.salvage == "" && !o.dryRun {
		if ref, err = o.converted(ctx, ref); err != nil {
			return err
		}
	}
	if ref.Legacy {
		return &store.Legacy{Path: ref.Path}
	}
	if o.salvage != "" {
		return o.save(ctx, ref)
	}
	m, err := repair.Mend(ctx, o.repo, ref, repair.MendOptions{
		IndexOnly: o.only == "index", DryRun: o.dryRun, Checks: []store.Check{engine.Check},
	})
	if err != nil {
		return bySignal(ctx, err)
	}
	var failed error
	if !m.OK() {
		f := &failure{code: exitCorrupt, tag: "corrupt", message: fmt.Sprintf("session %s: damage is left, which cannot be mended in place", ref.ID)}
		failed = f.withHint("`drover repair %s --salvage OUT.%s` writes what is readable into a new session", o.naming(ref), extOf(ref.Backend))
	}
	return o.out.result(failed, func(d *object) {
		d.str("session", ref.ID)
		d.array("mended", len(m.Mended), func(i int, d *object) {
			d.str("code", m.Mended[i].Code)
			d.str("where", m.Mended[i].Where)
		})
		writeProblems(d, "left", m.Left)
		d.null("salvage")
		d.bool("ok", m.OK())
	}, func(w io.Writer) error {
		p := &lines{w: w}
		verb := "mended"
		if o.dryRun {
			verb = "would mend"
		}
		for _, problem := range m.Mended {
			p.line("%s %s: %s%s", verb, problem.Code, escapeLine(problem.Message), inBrackets(problem.Where))
		}
		for _, problem := range m.Left {
			p.line("left %s %s: %s%s", problem.Severity, problem.Code, escapeLine(problem.Message), inBrackets(problem.Where))
		}
		if len(m.Mended)+len(m.Left) == 0 {
			p.line("%s  nothing to mend", escapeLine(ref.ID))
		}
		return p.err
	})
}

func extOf(backend string) string {
	if backend == "sqlite" {
		return "db"
	}
	return backend
}

func inBrackets(where string) string {
	if where == "" {
		return ""
	}
	return " (" + escapeLine(where) + ")"
}

// save salvages a session, unless somebody writes it now.
func (o *repairOptions) save(ctx context.Context, ref store.Ref) error {
	out, err := filepath.Abs(o.salvage)
	if err != nil {
		return fmt.Errorf("locate --salvage: %w", err)
	}
	from, to := o.driverOf(ref.Backend, ""), o.driverOf("", filepath.Ext(out))
	if to == nil {
		return usagef("--salvage %q: want a file that ends in .db or .jsonl", escapeLine(o.salvage))
	}
	if err := o.vacant(ctx, out); err != nil {
		return err
	}
	// Of a damaged store the owner may be unknown; then nobody can be writing it.
	if l, err := o.repo.Lease(ctx, ref); err == nil && ownerLive(l) {
		return &store.Held{Path: ref.Path, Lease: *l}
	}
	s, err := repair.Salvage(ctx, repair.SalvageOptions{
		From: from, Path: ref.Path, To: to, Out: out, DryRun: o.dryRun, Checks: []store.Check{engine.Check},
	})
	if err != nil {
		return bySignal(ctx, err)
	}
	o.noteSaved(ref, out, s)
	return o.out.result(nil, func(d *object) {
		d.str("session", ref.ID)
		d.array("mended", 0, nil)
		d.array("left", 0, nil)
		d.object("salvage", func(d *object) {
			d.str("id", s.ID)
			d.str("path", out)
			d.str("backend", to.Name())
			d.int("entries", s.Entries)
			d.int("usage", s.Usage)
			d.int("values", s.Values)
			d.int("elements", s.Elements)
			writeLosses(d, "lost", s.Lost)
			writeLosses(d, "changed", s.Changed)
		})
		d.bool("ok", true)
	}, func(w io.Writer) error { return o.printSaved(w, out, s) })
}

// vacant refuses a file of the repository whose id a session there has, in whatever
// encoding: every command would take one for the other.
func (o *repairOptions) vacant(ctx context.Context, out string) error {
	if realPath(filepath.Dir(out)) != realPath(o.repo.Dir()) {
		return nil
	}
	taken, err := o.repo.Has(ctx, strings.TrimSuffix(filepath.Base(out), filepath.Ext(out)))
	if err == nil && taken {
		err = store.ErrExists
	}
	if err != nil {
		return fmt.Errorf("salvage to %s: %w", out, err)
	}
	return nil
}

// noteSaved tells what is left to do, so that the new session takes the place of the
// old one, whose id it has when its file is named like that.
func (o *repairOptions) noteSaved(ref store.Ref, out string, s repair.Salvaged) {
	for _, c := range s.Changed {
		if c.Code == "lane_leaf" {
			o.out.note("note: `drover log` shows all entries, and `drover navigate` sets a lane elsewhere")
			break
		}
	}
	place := filepath.Join(filepath.Dir(ref.Path), filepath.Base(out))
	switch {
	case s.ID != ref.ID:
		o.out.note("note: the new session has the id %s; one that shall take the place of %s is saved in another folder as %s.db or .jsonl", escapeLine(s.ID), escapeLine(ref.ID), escapeLine(ref.ID))
	case place == out:
		o.out.note("note: move %s out of this folder: %s is the session then", escapeLine(ref.Path), escapeLine(out))
	default:
		o.out.note("note: to take the old one's place, move %s out of its folder, and then %s to %s", escapeLine(ref.Path), escapeLine(out), escapeLine(place))
	}
}

// driverOf finds the driver of a name or of a file's ending, nil for none.
func (o *repairOptions) driverOf(name, ext string) store.Driver {
	for _, d := range o.drivers {
		if d.Name() == name || d.Ext() == ext {
			return d
		}
	}
	return nil
}

func writeLosses(d *object, name string, all []store.Loss) {
	d.array(name, len(all), func(i int, d *object) {
		d.str("code", all[i].Code)
		d.str("where", all[i].Where)
		d.str("message", all[i].Message)
	})
}

func (o *repairOptions) printSaved(w io.Writer, out string, s repair.Salvaged) error {
	p := &lines{w: w}
	verb := "saved"
	if o.dryRun {
		verb = "would save"
	}
	for _, l := range s.Lost {
		p.line("lost %s: %s%s", l.Code, escapeLine(l.Message), inBrackets(l.Where))
	}
	for _, l := range s.Changed {
		p.line("changed %s: %s%s", l.Code, escapeLine(l.Message), inBrackets(l.Where))
	}
	p.line("%s %d entries, %d usage rows, %d values and %d list elements in %s", verb, s.Entries, s.Usage, s.Values, s.Elements, escapeLine(out))
	return p.err
}
