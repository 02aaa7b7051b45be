package repair

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/drover-run/drover/pkg/store"
)

// MendOptions say what to mend of a session.
type MendOptions struct {
	// IndexOnly makes the branch index and the totals anew, and nothing else (D61).
	IndexOnly bool
	// DryRun changes nothing: what would be mended is told.
	DryRun bool
	// Checks are the parts of verify that other packages know.
	Checks []store.Check
}

// Mended is what became of a session's problems.
type Mended struct {
	Mended []store.Problem // found before and gone now, or, in a dry run, to be mended
	Left   []store.Problem
}

// OK reports that no error is left.
func (m Mended) OK() bool {
	return !slices.ContainsFunc(m.Left, func(p store.Problem) bool { return p.Severity == store.SeverityError })
}

// Mend puts right what verify finds and what can be put right without losing a
// committed byte. Damage of the content itself is left, and no failure. It fails
// with *store.Held while another process owns the session.
func Mend(ctx context.Context, repo *store.Repo, ref store.Ref, o MendOptions) (Mended, error) {
	before, opens, err := examine(ctx, repo, ref, o.Checks)
	if err != nil {
		return Mended{}, err
	}
	if o.DryRun {
		return o.plan(before, opens && !damaged(before)), nil
	}
	if !opens || !o.IndexOnly && damaged(before) {
		return Mended{Left: before}, nil // a write could make it worse
	}
	if err := o.mend(ctx, repo, ref); err != nil {
		return Mended{}, err
	}
	after, _, err := examine(ctx, repo, ref, o.Checks)
	m := Mended{Left: after}
	for _, p := range before {
		if !slices.ContainsFunc(after, func(q store.Problem) bool { return p.Code == q.Code && p.Where == q.Where }) {
			m.Mended = append(m.Mended, p)
		}
	}
	return m, err
}

// mend does the work as the session's owner. Damage that stands in its way is for
// the examination that follows to tell.
func (o MendOptions) mend(ctx context.Context, repo *store.Repo, ref store.Ref) error {
	s, err := repo.Open(ctx, ref)
	if err != nil {
		return unlessDamaged(err)
	}
	work := s.Mend
	if o.IndexOnly {
		work = s.RepairIndex
	}
	err = unlessDamaged(work(ctx))
	return errors.Join(err, s.Close())
}

func unlessDamaged(err error) error {
	if _, damaged := errors.AsType[*store.Corrupt](err); damaged {
		return nil
	}
	return err
}

// damaged reports that pages or lines of the file itself cannot be trusted, beyond
// the indexes.
func damaged(found []store.Problem) bool {
	return slices.ContainsFunc(found, func(p store.Problem) bool {
		return p.Code == "corrupt" || p.Code == "unreadable" || p.Code == "integrity" && !ofIndex(p)
	})
}

func ofIndex(p store.Problem) bool {
	return p.Code == "integrity" && strings.HasPrefix(p.Where, "index ")
}

// plan tells the problems apart by what Mend can do about them.
func (o MendOptions) plan(found []store.Problem, writable bool) Mended {
	var m Mended
	tree := !slices.ContainsFunc(found, func(p store.Problem) bool { return p.Code == "missing_parent" || p.Code == "parent_order" })
	for _, p := range found {
		if writable && o.mends(p, tree) {
			m.Mended = append(m.Mended, p)
		} else {
			m.Left = append(m.Left, p)
		}
	}
	return m
}

// mends tells whether one can be mended. What is derived from the entries cannot
// when they form no tree.
func (o MendOptions) mends(p store.Problem, tree bool) bool {
	switch p.Code {
	case "branch_index", "stats":
		return tree
	case "torn_tail", "leftover":
		return !o.IndexOnly
	case "lease": // what an owner writes anew; an error keeps owners out
		return !o.IndexOnly && p.Severity == store.SeverityWarning
	case "schema": // the tables of the branch index, or an index
		for _, prefix := range []string{"branch_", "ix_be_", "ix_bm_"} {
			if strings.HasPrefix(p.Where, prefix) {
				return tree
			}
		}
		return !o.IndexOnly && strings.HasPrefix(p.Where, "ix_")
	}
	return !o.IndexOnly && ofIndex(p)
}

// examine runs verify; opens tells that the session can be read at all.
func examine(ctx context.Context, repo *store.Repo, ref store.Ref, checks []store.Check) (found []store.Problem, opens bool, err error) {
	r, err := repo.ViewToVerify(ctx, ref)
	if damaged, ok := errors.AsType[*store.Corrupt](err); ok {
		return []store.Problem{store.ProblemOf(damaged)}, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	found = slices.Collect(store.Verify(ctx, r, checks...))
	return found, true, errors.Join(ctx.Err(), r.Close())
}
