package cli

import (
	"slices"

	"github.com/drover-run/drover/pkg/rewrite"
)

// fateLines is how many entries a rehearsal names without --verbose.
const fateLines = 20

// describeFates names the entries that go or change, by id, type and role: what they
// say shall not be kept by whoever keeps the output.
func (o *rewriteOptions) describeFates(p *lines, plan *rewrite.Plan) {
	all := slices.Collect(plan.Fates())
	var ids []string
	for _, f := range all {
		ids = append(ids, f.EntryID, f.With, f.Parent)
	}
	short := o.out.shortIDs(ids)
	for i, f := range all {
		if i == fateLines && !o.out.verbose {
			p.line("  and %d more entries, which -v names", len(all)-i)
			return
		}
		kind := string(f.Type)
		if f.Role != "" {
			kind += " " + string(f.Role)
		}
		p.line("  %-9s %s  %s%s", o.fateOf(f), short(f.EntryID), escapeLine(kind), fateWhy(f, short))
	}
}

func (o *rewriteOptions) fateOf(f rewrite.Fate) string {
	switch {
	case f.Dropped:
		return "drop"
	case f.Derived && o.selection.Derived == rewrite.DerivedRedact:
		return "empty"
	case f.Derived:
		return "derived"
	}
	return "move"
}

func fateWhy(f rewrite.Fate, short func(string) string) (why string) {
	if f.With != "" {
		why += ", goes with " + short(f.With)
	}
	if f.Derived {
		why += ", made from what goes"
	}
	switch {
	case f.Moved && f.Parent == "":
		why += ", becomes a root"
	case f.Moved:
		why += ", under " + short(f.Parent)
	}
	return why
}
