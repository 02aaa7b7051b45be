package cli

import (
	"fmt"
	"io"
	"os/user"
	"strings"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/rewrite"
)

// rewriteResult is what a rewrite came to.
type rewriteResult struct {
	rewritten
	forks []rewritten // with --include-forks
	held  []relative  // what still holds a copy
	end   error       // what the command ends with, when the session itself is done, too
	again []string    // the commands that rewrite those in the same way
}

// failure is what the command ends with once the session itself is done.
func (r *rewriteResult) failure() error {
	failed := 0
	for _, f := range r.forks {
		if f.err != nil {
			failed++
		}
	}
	switch {
	case failed > 0:
		return &failure{code: exitPartial, tag: "partial", message: fmt.Sprintf("%d of %d forks and children did not succeed", failed, len(r.forks))}
	case len(r.held) > 0:
		f := &failure{code: exitPartial, tag: "held_elsewhere", details: func(d *object) { d.held(r.held) }}
		f.message = fmt.Sprintf("%d related session(s) hold what was to go, the first is %s, a %s", len(r.held), r.held[0].ref.ID, r.held[0].relation)
		if len(r.again) > 0 {
			return f.withHint("this session is done; rewrite the others with `%s`", strings.Join(r.again, "` and `"))
		}
		return f.withHint("--include-forks rewrites forks and children too; a source is rewritten by itself")
	}
	return nil
}

func (o *rewriteOptions) printRewrite(r *rewriteResult) error {
	return o.out.result(r.end, func(d *object) { o.write(d, r) }, func(w io.Writer) error {
		p := &lines{w: w}
		o.describe(p, &r.rewritten)
		for i := range r.forks {
			o.describe(p, &r.forks[i])
		}
		for _, h := range r.held {
			p.line("  held by %s, a %s", escapeLine(h.ref.ID), h.relation)
		}
		return p.err
	})
}

func (o *rewriteOptions) write(d *object, r *rewriteResult) {
	r.rewritten.write(d, o.dryRun)
	d.held(r.held)
	r.rewritten.writeBytes(d)
	if !o.forks {
		return
	}
	d.array("forks", len(r.forks), func(i int, d *object) {
		f := &r.forks[i]
		if f.plan == nil {
			d.str("session", f.session)
		} else {
			f.write(d, o.dryRun)
			f.writeBytes(d)
		}
		d.itemError(f.err)
	})
}

func (r *rewritten) write(d *object, dry bool) {
	p := r.plan
	d.str("session", r.session)
	d.bool("dryRun", dry)
	d.object("kept", func(d *object) { d.counted(p.Kept) })
	d.object("dropped", func(d *object) { d.counted(p.Dropped) })
	d.int("redactions", int64(p.Redactions))
	d.int("reparented", int64(p.Reparented))
	d.derived(p.Derived)
	generation := p.Generation
	if r.nothing {
		generation-- // the store stays
	}
	d.int("generation", generation)
}

func (r *rewritten) writeBytes(d *object) {
	d.int("bytesBefore", r.before)
	after := r.after
	if r.nothing {
		after = &r.before
	}
	d.optInt("bytesAfter", after)
}

func (o *object) counted(c rewrite.Counts) {
	o.int("entries", c.Entries)
	o.int("usage", c.Usage)
	o.int("values", c.Values)
	o.int("lists", c.Lists)
}

func (o *object) derived(all []rewrite.DerivedEntry) {
	o.array("derived", len(all), func(i int, o *object) {
		o.str("entryId", all[i].EntryID)
		o.str("type", string(all[i].Type))
	})
}

func (o *object) matches(all []rewrite.Match) {
	o.array("places", len(all), func(i int, o *object) {
		o.str("where", all[i].Where)
		o.optStr("field", all[i].Field)
	})
}

func (o *object) held(all []relative) {
	o.array("heldElsewhere", len(all), func(i int, o *object) {
		o.str("session", all[i].ref.ID)
		o.str("relation", all[i].relation)
		if all[i].err != nil {
			o.itemError(all[i].err)
		}
	})
}

// describe tells a person what was done, or would be.
func (o *rewriteOptions) describe(p *lines, r *rewritten) {
	if r.plan == nil {
		p.line("%s  %s", escapeLine(r.session), escapeLine(explain(r.err).message))
		return
	}
	if r.nothing {
		p.line("%s  nothing to do", escapeLine(r.session))
		r.proven.print(p)
		return
	}
	n := r.plan
	size := fmt.Sprintf("%d bytes", r.before)
	if r.after != nil {
		size = fmt.Sprintf("%d to %d bytes", r.before, *r.after)
	}
	p.line("%s  %s, generation %d, %s", escapeLine(r.session), o.verdict(r), n.Generation, size)
	p.line("  dropped   %s", countedText(n.Dropped))
	p.line("  kept      %s", countedText(n.Kept))
	p.line("  replaced  %d texts; reparented %d entries", n.Redactions, n.Reparented)
	r.proven.print(p)
	if n.Paired > 0 {
		p.line("  %d entries go with their tool call or result", n.Paired)
	}
	if n.Attachments > 0 && !o.selection.Rules.Empty() {
		p.line("  %d attachments were not looked into", n.Attachments)
	}
	if o.dryRun {
		o.describeFates(p, n)
	} else {
		for _, d := range n.Derived {
			p.line("  made from what goes: %s %s", d.Type, escapeLine(d.EntryID))
		}
	}
	for _, m := range n.Structural {
		p.line("  cannot be changed: %s", escapeLine(m.String()))
	}
}

// print tells what the search found to be gone, by numbers: the texts themselves would
// be kept by whoever keeps the output.
func (v *proven) print(p *lines) {
	if v == nil {
		return
	}
	said := fmt.Sprintf("%d texts and %d entry ids occur nowhere in %d files", v.Texts, v.EntryIDs, v.files)
	if v.index {
		said += " and in the search index"
	}
	if v.Patterns > 0 {
		said += fmt.Sprintf("; %d patterns match nothing that is said", v.Patterns)
	}
	p.line("  proven    %s", said)
}

func (v *proven) write(d *object) {
	if v == nil {
		d.null("proven")
		return
	}
	d.object("proven", func(d *object) {
		d.int("texts", int64(v.Texts))
		d.int("patterns", int64(v.Patterns))
		d.int("entryIds", int64(v.EntryIDs))
		d.int("files", int64(v.files))
		d.bool("searchIndex", v.index)
	})
}

func (o *rewriteOptions) verdict(r *rewritten) string {
	switch {
	case r.after != nil:
		return "rewritten"
	case cutShort(r.err):
		return "interrupted"
	case r.err != nil:
		return "refused"
	}
	return "would be rewritten"
}

func countedText(c rewrite.Counts) string {
	return fmt.Sprintf("%d entries, %d usage rows, %d values, %d lists", c.Entries, c.Usage, c.Values, c.Lists)
}

// writeReport tells who, when, why and how much, never what (B44).
func (o *rewriteOptions) writeReport(r *rewriteResult) error {
	d := newObject()
	d.str("session", r.session)
	d.int("at", o.now())
	by := whoami()
	if o.proof(r.plan).Text(by) {
		by = "" // it is what had to go
	}
	d.optStr("by", by)
	d.str("reason", o.reason)
	sessions := append([]rewritten{r.rewritten}, r.forks...)
	d.array("sessions", len(sessions), func(i int, d *object) {
		s := &sessions[i]
		if s.plan == nil {
			d.str("session", s.session)
			d.itemError(s.err)
			return
		}
		s.write(d, false)
		d.int("paired", int64(s.plan.Paired))
		d.int("attachments", int64(s.plan.Attachments))
		s.writeBytes(d)
		s.proven.write(d)
	})
	d.held(r.held)
	b, err := d.bytes()
	if err != nil {
		return err
	}
	err = fsx.Replace(fsx.OS{}, o.report, fsx.ReplaceOptions{}, func(w io.Writer) error {
		_, err := w.Write(append(b, '\n'))
		return err
	})
	if err != nil {
		return firstOf(r.end, fmt.Errorf("write the report: %w", err))
	}
	return r.end
}

// whoami names the user who runs this process.
func whoami() string {
	u, err := user.Current()
	if err != nil {
		return "unknown"
	}
	return u.Username
}
