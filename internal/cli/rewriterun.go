package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/rewrite"
	"github.com/drover-run/drover/pkg/store"
)

// rewritten is what was done to one session, or would be.
type rewritten struct {
	ref     store.Ref
	session string
	plan    *rewrite.Plan // nil when none could be made
	nothing bool          // there was nothing to do
	before  int64         // bytes
	after   *int64        // nil when nothing was written
	proven  *proven       // nil when nothing had to be proven, or was
	outside []string      // files that the session names, and that stay
	err     error
}

// proven is how much was searched for in vain, and where.
type proven struct {
	rewrite.Extent
	files int
	index bool // the search index, too
}

func runRewrite(ctx context.Context, o *rewriteOptions) error {
	if err := o.checkTargets(); err != nil {
		return err
	}
	ref, err := o.rewritable(ctx)
	if err != nil {
		return err
	}
	if ref.Legacy {
		return &store.Legacy{Path: ref.Path}
	}
	if err := o.fullIDs(ctx, ref); err != nil {
		return err
	}
	item := o.rewriteOne(ctx, ref, &o.selection)
	if item.plan == nil {
		return item.err
	}
	result := &rewriteResult{rewritten: item, end: item.err}
	if err := o.related(ctx, result); err != nil {
		result.end = bySignal(ctx, err) // the session itself is rewritten all the same
	}
	if item.err == nil && o.report != "" && !o.dryRun {
		result.end = o.writeReport(result)
	}
	outside := item.outside
	for _, f := range result.forks {
		outside = append(outside, f.outside...)
	}
	slices.Sort(outside) // forks name the same files
	o.warnOutside(slices.Compact(outside))
	return o.printRewrite(result)
}

// rewritable is the session to rewrite. A legacy file is not converted only to be
// refused for the backup that the conversion keeps.
func (o *rewriteOptions) rewritable(ctx context.Context) (store.Ref, error) {
	ref, err := o.resolve(ctx, o.session)
	if err == nil {
		err = o.checkKept(ref.Path)
	}
	switch {
	case err != nil || o.dryRun:
		return ref, err
	case ref.Legacy && o.inPlace && !o.removeBackups:
		f := &failure{code: exitRefused, tag: "backups", message: fmt.Sprintf("converting %s keeps the old file, and with it what is erased", escapeLine(ref.Path))}
		return ref, f.withHint("give --remove-backups, too")
	}
	return o.converted(ctx, ref)
}

// fullIDs completes the ids that were given by their endings.
func (o *rewriteOptions) fullIDs(ctx context.Context, ref store.Ref) error {
	s := &o.selection
	if len(s.DropEntries)+len(s.DropBranches) == 0 {
		return nil
	}
	return o.view(ctx, ref, func(r store.Reader) (err error) {
		for _, ids := range [][]string{s.DropEntries, s.DropBranches} {
			for i := range ids {
				if ids[i], err = o.entryID(ctx, r, ids[i]); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// rewriteOne plans for one session and, unless that is all that was asked for,
// carries the plan out.
func (o *rewriteOptions) rewriteOne(ctx context.Context, ref store.Ref, s *rewrite.Selection) rewritten {
	item := rewritten{ref: ref, session: ref.ID}
	files, err := footprintOf(ref.Path)
	if err == nil {
		item.before = files.size
		err = files.check(o.removeBackups)
	}
	if err == nil {
		err = o.repo.Sole(ctx, ref)
	}
	switch {
	case err != nil:
	case o.dryRun:
		err = o.planOnly(ctx, &item, s, files)
	default:
		err = o.rewriteOwned(ctx, &item, s, files)
	}
	if followed(&ref, err) {
		return o.rewriteOne(ctx, ref, s)
	}
	item.err = bySignal(ctx, rewriteFailure(err, o.naming(ref)))
	return item
}

// planOnly reads the session and changes nothing.
func (o *rewriteOptions) planOnly(ctx context.Context, item *rewritten, s *rewrite.Selection, files footprint) error {
	return o.view(ctx, item.ref, func(r store.Reader) error {
		planned := *s
		planned.IDs = store.NewIDs(o.now, nil)
		if err := o.plan(ctx, item, r, &planned); err != nil {
			return err
		}
		return o.nothingToDo(ctx, item, files)
	})
}

func (o *rewriteOptions) plan(ctx context.Context, item *rewritten, q store.Queries, s *rewrite.Selection) error {
	snap, err := q.Snapshot(ctx)
	if err != nil {
		return err
	}
	item.plan, err = rewrite.Make(ctx, snap, s, o.prove)
	if err = firstOf(err, snap.Close()); err != nil {
		return err
	}
	if err := item.plan.Refusal(); err != nil || o.out.quiet || o.proof(item.plan).Empty() {
		return err
	}
	item.outside = stillThere(item.plan.Outside)
	return nil
}

// nothingToDo finds out whether a plan without changes leaves nothing to do: the
// text may still lie where nothing is any more.
func (o *rewriteOptions) nothingToDo(ctx context.Context, item *rewritten, files footprint) error {
	if !item.plan.Empty() {
		return nil
	}
	found, err := o.proof(item.plan).Files(ctx, files.all()...)
	item.nothing = err == nil && len(found) == 0
	return err
}

func (o *rewriteOptions) proof(p *rewrite.Plan) *rewrite.Proof {
	proof := rewrite.NewProof(o.selection.Rules, o.prove)
	proof.Gone(p)
	return proof
}

// rewriteOwned takes the session for as long as the rewrite needs it.
func (o *rewriteOptions) rewriteOwned(ctx context.Context, item *rewritten, s *rewrite.Selection, files footprint) error {
	// What a killed fork of this session has left says what it says.
	if err := o.repo.SweepDead(ctx); err != nil {
		return err
	}
	session, err := o.repo.Open(ctx, item.ref)
	if err != nil {
		return err
	}
	planned := *s
	planned.IDs = session.IDs()
	err = o.plan(ctx, item, session, &planned)
	if err == nil {
		err = o.nothingToDo(ctx, item, files)
	}
	if err != nil {
		return firstOf(err, session.Close())
	}
	if item.nothing { // a run that was cut short may have left something around the session
		return firstOf(session.Close(), o.clear(ctx, item))
	}
	r := &rewrite.Rewrite{
		Plan: item.plan, Proof: o.proof(item.plan), Checks: []store.Check{engine.Check},
		At: o.now(), Reason: o.reason, Before: o.keeping(files),
	}
	if err := r.Execute(ctx, session); err != nil {
		return firstOf(errors.Join(err, o.unkeep(session, item)), session.Close())
	}
	return o.confirm(ctx, item, r, session)
}

// keeping copies the old session before it goes. Right before the swap its file is
// complete, whatever the encoding.
func (o *rewriteOptions) keeping(files footprint) func(context.Context) error {
	if o.keepOriginal == "" {
		return nil
	}
	return func(ctx context.Context) error { return keepCopy(ctx, files.path, o.keepOriginal) }
}

// unkeep removes the copy of a session that was not replaced after all.
func (o *rewriteOptions) unkeep(s *store.Session, item *rewritten) error {
	if o.keepOriginal == "" || s.Header().Generation >= item.plan.Generation {
		return nil
	}
	if err := os.Remove(o.keepOriginal); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// confirm verifies the new session where it lies; clear searches its files (D51).
// What has been swapped is confirmed, whoever wants to stop now.
func (o *rewriteOptions) confirm(ctx context.Context, item *rewritten, r *rewrite.Rewrite, session *store.Session) error {
	ctx = context.WithoutCancel(ctx)
	err := o.verifyNew(ctx, item.ref, r)
	if err = firstOf(err, session.Close()); err != nil {
		return afterSwap(err)
	}
	return o.clear(ctx, item)
}

func (o *rewriteOptions) verifyNew(ctx context.Context, ref store.Ref, r *rewrite.Rewrite) error {
	q, err := o.repo.ViewToVerify(ctx, ref)
	if err != nil {
		return err
	}
	return firstOf(r.Verify(ctx, q), q.Close())
}

// clear removes what else knew of the old session: the catalog, backups, the index.
func (o *rewriteOptions) clear(ctx context.Context, item *rewritten) error {
	err := o.repo.Forget(item.ref)
	if err == nil {
		err = o.confirmClosed(ctx, item)
	}
	if err != nil {
		return afterSwap(err)
	}
	if o.purgeIndex == nil {
		return nil
	}
	if err := o.purgeIndex(ctx, item.ref.ID, o.proof(item.plan).Texts()); err != nil {
		f := &failure{code: exitPartial, tag: "index_not_proven", cause: err}
		f.message = "the session is rewritten, but what was erased may still be in the search index: " + explain(err).message
		return f.withHint("build the index anew with `drover search --rebuild`")
	}
	if item.proven != nil {
		item.proven.index = true
	}
	return nil
}

// confirmClosed searches the files as the owner has left them.
func (o *rewriteOptions) confirmClosed(ctx context.Context, item *rewritten) error {
	files, err := footprintOf(item.ref.Path)
	if err != nil {
		return err
	}
	for _, backup := range files.backups { // without --remove-backups there are none
		if err := os.Remove(backup); err != nil {
			return err
		}
	}
	item.after = &files.size
	proof := o.proof(item.plan)
	found, err := proof.Files(ctx, files.all()...)
	switch {
	case err != nil:
		return err
	case len(found) > 0:
		return &rewrite.NotProven{Matches: found}
	case !proof.Empty():
		item.proven = &proven{Extent: proof.Extent(), files: files.present()}
	}
	return nil
}

// afterSwap tells of a failure that came too late to keep the old session.
func afterSwap(err error) error {
	f := explain(rewriteFailure(err, ""))
	late := *f
	late.message = "the session is rewritten, but: " + f.message
	if late.code == exitRefused {
		late.code = exitPartial
	}
	return &late
}

// rewriteFailure explains what only a rewrite fails with; any other error is
// returned as it is. A hint names the session as at, unless it is empty.
func rewriteFailure(err error, at string) error {
	if e, ok := errors.AsType[*rewrite.DerivedContent](err); ok {
		f := &failure{code: exitRefused, tag: "derived_content", cause: err, message: e.Error(), details: func(d *object) { d.derived(e.Entries) }}
		for _, entry := range e.Entries[1:] {
			f.message += ", " + entry.EntryID
		}
		return f.withHint("give --derived drop to drop them too, or --derived redact to empty them")
	}
	if e, ok := errors.AsType[*rewrite.StructuralMatch](err); ok {
		f := &failure{code: exitRefused, tag: "structural_match", cause: err, message: e.Error(), details: func(d *object) { d.matches(e.Matches) }}
		return f.withHint("ids, names of tools and models and the like are never changed: narrow the rule")
	}
	if e, ok := errors.AsType[*rewrite.NotProven](err); ok {
		f := &failure{code: exitRefused, tag: "not_proven", cause: err, message: e.Error(), details: func(d *object) { d.matches(e.Matches) }}
		return f.withHint("--redact-file replaces texts; one that ids, numbers or the words of the storage itself hold is never proven gone")
	}
	if e, ok := errors.AsType[*rewrite.Unsound](err); ok {
		f := &failure{code: exitCorrupt, tag: "corrupt", cause: err, message: e.Error()}
		return f.withHint("`drover verify` tells all that is wrong")
	}
	if e, ok := errors.AsType[*rewrite.BadWhere](err); ok {
		flag := "--drop-where"
		if e.Keep {
			flag = "--keep-where"
		}
		return usagef("%s fails at entry %s: %v", flag, escapeLine(e.Entry), e)
	}
	if errors.Is(err, rewrite.ErrEmptyKey) || errors.Is(err, rewrite.ErrEndless) {
		return usagef("--redact-file: %v", err)
	}
	if at == "" {
		return err
	}
	err = busyHint(err, at)
	if f, ok := errors.AsType[*failure](err); ok && f.tag == "lane_busy" {
		return f.withHint("%s; `drover abort %s` gives it up", f.hint, at)
	}
	return err
}
