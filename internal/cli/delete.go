package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/subsession"
)

type deleteOptions struct {
	base
	sessions  []string
	selects   bool // by filters, not by name
	list      listOptions
	olderThan int64 // Unix ms, 0 is any time
	dryRun    bool
	yes       bool
	force     bool
	partial   bool
	mustExist bool
	export    string

	// passed is told each stage of a removal, for tests; nil otherwise.
	passed func(subsession.Stage, string)
	// forget takes a session out of the search index; nil without one.
	forget func(ctx context.Context, id string) error
}

func newDeleteCmd(f *factory, runF func(context.Context, *deleteOptions) error) *cobra.Command {
	if runF == nil {
		runF = runDelete
	}
	o := &deleteOptions{passed: f.passed}
	var since, olderThan string
	cmd := &cobra.Command{
		Use:   "delete SESSION...",
		Short: "Delete sessions and what they spawned",
		Long: `Delete sessions with all of their local descendants, the deepest first, with side
files and backups. Forks stay, and so do children that live with another service. A
tombstone in .tombstones keeps the id, the generations and what the session had
cost; what was said is in no session and in no search any more. The words that the search
index takes longest to give up lie in its file until it is built anew, with
` + "`drover search --rebuild`" + `. Run again after an interruption, it finishes.

Nothing is deleted while another process owns a session of the tree (see
--partial) or an operation has not ended (see --force); nor while a session of it has
a second file, such as a backup that was put back, which would bring it back. A
session that cannot be read is deleted only by its own name. --dry-run is refused as
the deletion would be, except for what another process owns: it tells of that.

Files that tools have written elsewhere, such as bash's full output in the folder for
temporary files, are no part of a session, and stay. Those that a deleted session names
and that are still there are told on stderr.

Instead of naming sessions, select them as list does: --older-than, --status,
--cwd, --name, --since. Then the last change of a session and of its descendants
counts; children go only with their parents, and sessions that have a name or are
damaged stay unless --name or --status damaged asks for them.

In JSON one named session answers with what was done to it; several, and those
that were selected, with "items" and "totals".` +
			exitHelp(exitOK, exitUsage, exitPartial, exitNotFound, exitCorrupt, exitIO, exitVersion, exitRefused, exitLocked),
		ValidArgsFunction: completeSessions(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			for _, name := range []string{"older-than", "status", "cwd", "name", "since"} {
				o.selects = o.selects || cmd.Flags().Changed(name)
			}
			if err := o.target(f, args); err != nil {
				return err
			}
			if o.base, err = f.base("delete"); err != nil {
				return err
			}
			if x := f.searchIndexOf(o.repo); x != nil {
				o.forget = x.remove
			}
			if olderThan != "" {
				d, err := parseDuration(olderThan)
				if err != nil {
					return usagef("--older-than %q: %v", escapeLine(olderThan), err)
				}
				o.olderThan = f.now() - d.Milliseconds()
			}
			if since != "" {
				if o.list.filter.since, err = parseWhen("--since", since, f.now(), -1); err != nil {
					return err
				}
			}
			o.list.sort = "id"
			if err := o.list.check(); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.dryRun, "dry-run", false, "tell what would be deleted and change nothing")
	flags.BoolVar(&o.yes, "yes", false, "do not ask")
	flags.BoolVar(&o.force, "force", false, "also with operations that have not ended")
	flags.BoolVar(&o.partial, "partial", false, "keep what another process owns, and its ancestors, and delete the rest")
	flags.BoolVar(&o.mustExist, "must-exist", false, "fail when the session is gone already")
	flags.StringVar(&o.export, "export-usage", "", "append the ledger of what is deleted to `FILE`, one JSON object a line")
	flags.StringVar(&olderThan, "older-than", "", "sessions that nobody changed for `DUR`")
	flags.StringSliceVar(&o.list.filter.statuses, "status", nil, "sessions of these `STATUS`es: "+strings.Join(statuses(), ", "))
	flags.StringVar(&o.list.filter.cwd, "cwd", "", "sessions of this `DIR`")
	flags.StringVar(&o.list.filter.name, "name", "", "sessions of exactly this `NAME`")
	flags.StringVar(&since, "since", "", "sessions changed since `T`, a duration back or an instant")
	return cmd
}

func (o *deleteOptions) target(f *factory, args []string) (err error) {
	if o.selects {
		if len(args) > 0 {
			return usagef("name sessions or select them, not both")
		}
		return nil
	}
	for _, arg := range args {
		if arg == "" {
			return usagef("the session argument is empty")
		}
	}
	o.sessions, err = severalArgs(f, args, false)
	return err
}

// deletion is what becomes of one session that was named or selected.
type deletion struct {
	session string
	root    subsession.Root
	plan    *subsession.Plan
	refused error // why a deletion would be refused now, of a rehearsal
	done    *subsession.Deletion
	skipped string // why a selected session stays, "" when it does not
	err     error
	left    bool // a signal came before anything was done about it
}

func runDelete(ctx context.Context, o *deleteOptions) error {
	if o.dryRun {
		o.repo = o.repo.Untouched()
	}
	items, err := o.items(ctx)
	if err != nil {
		return bySignal(ctx, err)
	}
	if !o.dryRun {
		if err := o.confirm(items); err != nil {
			return err
		}
		if err := o.carryOut(ctx, items); err != nil {
			return err
		}
	}
	return bySignal(ctx, o.report(ctx, items))
}

// items finds the sessions and plans what goes with each.
func (o *deleteOptions) items(ctx context.Context) ([]deletion, error) {
	var items []deletion
	var err error
	if o.selects {
		items, err = o.selected(ctx)
	} else {
		taken := map[string]bool{} // a session that is named twice is taken once
		for _, arg := range o.sessions {
			root, err := o.named(ctx, arg)
			if err == nil && taken[root.ID] {
				continue
			}
			taken[root.ID] = taken[root.ID] || err == nil
			items = append(items, deletion{session: root.ID, root: root, err: err})
		}
	}
	if err != nil {
		return nil, err
	}
	c := o.cascade()
	for i := range items {
		item := &items[i]
		if item.err == nil && item.skipped == "" {
			item.plan, item.err = c.Plan(ctx, item.root)
		}
		if errors.Is(item.err, store.ErrNotFound) {
			item.err = o.noSession(ctx, item.session, item.err)
		}
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		if item.plan != nil && o.selects && o.olderThan > 0 {
			item.protectYoung(o.olderThan)
		}
		if item.plan != nil && item.skipped == "" && o.dryRun {
			item.rehearse(c)
		}
	}
	return items, nil
}

// named is the root that an argument means; it may be gone, and then only its full
// id names it.
func (o *deleteOptions) named(ctx context.Context, arg string) (subsession.Root, error) {
	ref, err := o.repo.Resolve(ctx, arg)
	switch {
	case err == nil:
		return subsession.Root{ID: ref.ID, Ref: ref}, o.inside(ref)
	case !errors.Is(err, store.ErrNotFound):
		return subsession.Root{ID: arg}, err
	}
	root := subsession.Root{ID: arg}
	if invalid := store.CheckID(arg); invalid != nil {
		if strings.ContainsAny(arg, "/:@") {
			return root, o.noSession(ctx, arg, err) // a path, a name, or @last
		}
		return root, invalid
	}
	if o.mustExist {
		return root, o.noSession(ctx, arg, err)
	}
	return root, nil
}

// inside refuses a file of another folder: its family is there.
func (o *deleteOptions) inside(ref store.Ref) error {
	dir := filepath.Dir(ref.Path)
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	if repo, err := filepath.EvalSymlinks(o.repo.Dir()); err == nil && repo == real {
		return nil
	}
	f := unsupportedf("%s is not in the repository %s", escapeLine(ref.Path), escapeLine(o.repo.Dir()))
	return f.withHint("say where its family lives: --repo %s", escapeLine(dir))
}

func (o *deleteOptions) cascade() *subsession.Cascade {
	return &subsession.Cascade{
		Repo: o.repo, Now: o.now, NewID: o.newID, Force: o.force, Partial: o.partial,
		Forget: o.forget, Passed: o.passed,
	}
}

// confirm asks before anything is deleted.
func (o *deleteOptions) confirm(items []deletion) error {
	n := 0
	for _, item := range items {
		if item.plan != nil {
			n += len(item.plan.Existing())
		}
	}
	if o.yes || n == 0 {
		return nil
	}
	if !o.out.inTTY {
		return &failure{
			code: exitUsage, tag: "confirmation_required",
			message: fmt.Sprintf("%d session(s) would be deleted, and there is no terminal to ask at", n),
			hint:    "look with --dry-run, then confirm with --yes",
		}
	}
	var plan strings.Builder
	if err := writePlans(&plan, items); err != nil {
		return err
	}
	_, err := fmt.Fprintf(o.out.err, "%sDelete %d session(s)? [y/N] ", plan.String(), n)
	if err != nil {
		return err
	}
	answer, err := bufio.NewReader(o.out.in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return &failure{code: exitRefused, tag: "declined", message: "nothing was deleted"}
}

// carryOut deletes one tree after the other. Only what ends the whole command is
// returned.
func (o *deleteOptions) carryOut(ctx context.Context, items []deletion) error {
	c := o.cascade()
	if o.export != "" {
		export, err := openUsageExport(o.export)
		if err != nil {
			return err
		}
		defer export.close()
		c.Export = export.write
	}
	for i := range items {
		item := &items[i]
		if item.plan == nil || item.skipped != "" || item.err != nil {
			continue
		}
		if item.left = ctx.Err() != nil; item.left {
			continue
		}
		outside := o.outside(ctx, item.plan)
		item.done, item.err = c.Delete(ctx, item.root)
		if item.done != nil {
			for _, id := range item.done.Deleted {
				o.warnOutside(outside[id])
			}
		}
		item.settle()
		item.err = bySignal(ctx, item.err)
		if item.left = item.done == nil && cutShort(item.err); item.left {
			continue
		}
		if !o.alone() || o.tells(item) {
			// A failed write sticks to the stream and is reported at the end.
			_ = o.out.item(func(d *object) { o.write(d, item) })
		}
	}
	return nil
}

// outside are the files that the sessions of a plan name. One that cannot be read has
// none that anybody knows.
func (o *deleteOptions) outside(ctx context.Context, plan *subsession.Plan) map[string][]string {
	found := make(map[string][]string)
	for _, n := range plan.Existing() {
		if n.Damaged != nil || o.out.quiet {
			continue
		}
		_ = o.view(ctx, n.Ref, func(r store.Reader) (err error) {
			found[n.ID], err = outsideFiles(ctx, r)
			return err
		})
	}
	return found
}

// rehearse asks for what would refuse the deletion. A lease is told and fails nothing:
// a rehearsal works on what others own, and they may be done before the deletion.
func (d *deletion) rehearse(c *subsession.Cascade) {
	d.refused = c.Refusal(d.plan)
	if _, leased := errors.AsType[*subsession.Leased](d.refused); !leased {
		d.err = d.refused
	}
}

// settle turns what a deletion ended with into the item's error.
func (d *deletion) settle() {
	switch {
	case errors.Is(d.err, store.ErrOpen):
		d.err = &failure{code: exitRefused, tag: "session_open", message: d.err.Error(), cause: d.err}
	case d.err != nil && d.done == nil && isReadOnly(d.err):
		d.err = unsupportedf("nothing can be deleted here: %v", d.err)
	case d.done != nil && len(d.done.Failed) > 0 && d.err == nil:
		d.err = incomplete(d.done.Failed)
	}
}
