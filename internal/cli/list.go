package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/pkg/store"
)

type listOptions struct {
	base
	filter sessionFilter
	limit  int
	sort   string
	fields []string
}

// sessionFilter says which sessions count.
type sessionFilter struct {
	statuses []string
	cwd      string
	name     string
	since    int64 // Unix ms, 0 is any time
}

func newListCmd(f *factory, runF func(context.Context, *listOptions) error) *cobra.Command {
	if runF == nil {
		runF = runList
	}
	o := &listOptions{}
	var since string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the sessions of the repository",
		Long: `List the sessions of the repository, the newest change first.

A session that cannot be read is listed as damaged, whatever the filters say
about the others. What is shown of a session is kept in the repository, in
.drover-catalog, and read again once the session has changed; the file may be
deleted at any time. With --fields of the header alone (` + strings.Join(headerFields(), ", ") + `)
no more than the headers is read; the cwd is then the folder that the session was
made in, unless the catalog knows a later one. --cwd compares folders without
their symbolic links.` + exitHelp(exitOK, exitUsage, exitPartial, exitCorrupt, exitIO, exitVersion),
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.base, err = f.base("list"); err != nil {
				return err
			}
			if since != "" {
				if o.filter.since, err = parseWhen("--since", since, f.now(), -1); err != nil {
					return err
				}
			}
			if err := o.check(); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.filter.statuses, "status", nil, "only these `STATUS`es: "+strings.Join(statuses(), ", "))
	flags.StringVar(&o.filter.cwd, "cwd", "", "only sessions of this `DIR`")
	flags.StringVar(&o.filter.name, "name", "", "only sessions of exactly this `NAME`")
	flags.StringVar(&since, "since", "", "only sessions changed since `T`, a duration back or an instant")
	flags.IntVar(&o.limit, "limit", 0, "at most `N` sessions, 0 for all")
	flags.StringVar(&o.sort, "sort", "-updatedAt", "order by `FIELD`, a minus in front reverses")
	flags.StringSliceVar(&o.fields, "fields", nil, "only these `FIELDS`, joined by commas")
	return cmd
}

func statuses() []string { return []string{"idle", "running", "suspended", "aborting", "damaged"} }

func (o *listOptions) check() error {
	for _, s := range o.filter.statuses {
		if !slices.Contains(statuses(), s) {
			return usagef("--status %q: want one of %s", escapeLine(s), strings.Join(statuses(), ", "))
		}
	}
	if o.limit < 0 {
		return usagef("--limit must not be negative")
	}
	var names []string
	for _, f := range sessionFields() {
		names = append(names, f.name)
	}
	for _, name := range append([]string{strings.TrimPrefix(o.sort, "-")}, o.fields...) {
		if !slices.Contains(names, name) {
			return usagef("unknown field %q; the nearest is %s", escapeLine(name), nearest(name, names))
		}
	}
	if o.filter.cwd != "" {
		cwd, err := filepath.Abs(o.filter.cwd)
		if err != nil {
			return fmt.Errorf("locate --cwd: %w", err)
		}
		o.filter.cwd = realFolder(cwd)
	}
	return nil
}

func runList(ctx context.Context, o *listOptions) error {
	found, err := o.collect(ctx)
	if err != nil {
		return err
	}
	items, sessions := found.items, len(found.items)
	if o.limit > 0 && len(items) > o.limit {
		items = items[:o.limit]
	}
	if err := o.complete(ctx, items); err != nil {
		return err
	}
	fields := chosenFields(o.fields)
	var errs []error
	damaged := 0
	for _, item := range items {
		if item.err != nil {
			damaged++
			o.out.note("damaged: %s", escapeLine(item.err.Error()))
		}
		errs = append(errs, item.err)
		// A failed write sticks to the stream and is reported at the end.
		_ = o.out.item(func(d *object) { item.write(d, fields) })
	}
	if len(items) == 0 {
		o.out.note("%s", found.nothing(o.repo.Dir()))
	}
	if found.backups > 0 {
		o.out.note("note: %d backup file(s) (*.bak) are no sessions and not listed", found.backups)
	}
	return o.out.result(itemsFailure("sessions", errs), func(d *object) {
		d.array("items", len(items), func(i int, d *object) { items[i].write(d, fields) })
		d.object("totals", func(d *object) {
			d.int("sessions", int64(sessions))
			d.int("damaged", int64(damaged))
			d.int("backups", int64(found.backups))
		})
	}, func(w io.Writer) error { return o.table(w, items) })
}

// collected are the sessions that passed the filters, of all that the repository has.
type collected struct {
	items        []*sessionItem
	all, backups int
}

// nothing says why there is no item.
func (c collected) nothing(dir string) string {
	if c.all == 0 {
		return "no sessions in " + escapeLine(dir)
	}
	return fmt.Sprintf("none of the %d session(s) in %s matches", c.all, escapeLine(dir))
}

// collect lists the sessions that pass the filters, in order, and counts the backups.
// It reads more than headers only when a filter or the order needs it.
func (o *listOptions) collect(ctx context.Context) (collected, error) {
	order := strings.TrimPrefix(o.sort, "-")
	full := len(o.filter.statuses) > 0 || o.filter.name != "" || o.filter.cwd != "" || !slices.Contains(headerFields(), order)
	depth := store.ListHeaders
	if o.filter.since == 0 && (full || o.limit == 0 && !o.headerOnly()) {
		depth = store.ListSummaries
	}
	listed, err := o.repo.ListFolder(ctx, depth)
	if err != nil {
		return collected{}, err
	}
	var items []*sessionItem
	for i := range listed.Sessions {
		if item := newSessionItem(&listed.Sessions[i]); o.filter.passHeader(item) {
			items = append(items, item)
		}
	}
	if full {
		if err := o.read(ctx, items); err != nil {
			return collected{}, err
		}
	}
	items = slices.DeleteFunc(items, func(i *sessionItem) bool { return !o.filter.passContent(i) })
	slices.SortStableFunc(items, func(a, b *sessionItem) int { return compareItems(a, b, order) })
	if strings.HasPrefix(o.sort, "-") {
		slices.Reverse(items)
	}
	return collected{items, len(listed.Sessions), len(listed.Backups)}, nil
}

// complete reads what the fields need of the items that are left.
func (o *listOptions) complete(ctx context.Context, items []*sessionItem) error {
	if o.headerOnly() {
		return nil
	}
	return o.read(ctx, items)
}

// headerOnly tells that the fields are all in the headers.
func (o *listOptions) headerOnly() bool {
	known := headerFields()
	for _, f := range o.fields {
		if !slices.Contains(known, f) {
			return false
		}
	}
	return len(o.fields) > 0
}

func (o *listOptions) read(ctx context.Context, items []*sessionItem) error {
	listed := make([]*store.Listed, len(items))
	for i, item := range items {
		listed[i] = item.listed
	}
	if err := o.repo.Summarize(ctx, listed); err != nil {
		return err
	}
	var open []*sessionItem // whose status the session alone does not tell
	for _, item := range items {
		if s := item.listed.Summary; s != nil && s.Open {
			open = append(open, item)
		} else {
			item.read(ctx, o.repo)
		}
	}
	return inOrder(len(open), func(i int) error {
		open[i].read(ctx, o.repo)
		return ctx.Err()
	}, func(int) {})
}

// passHeader judges what no summary is needed for.
func (f *sessionFilter) passHeader(i *sessionItem) bool {
	return i.updatedAt >= f.since
}

// passContent judges the rest. Nothing is known of a damaged session, so it passes.
func (f *sessionFilter) passContent(i *sessionItem) bool {
	if len(f.statuses) > 0 && !slices.Contains(f.statuses, i.status) {
		return false
	}
	if i.err != nil {
		return true
	}
	return (f.name == "" || i.name == f.name) && (f.cwd == "" || realFolder(i.header.CWD) == f.cwd)
}

func compareItems(a, b *sessionItem, field string) int {
	switch field {
	case "createdAt":
		return cmp.Compare(a.header.CreatedAt, b.header.CreatedAt)
	case "updatedAt":
		return cmp.Or(cmp.Compare(a.updatedAt, b.updatedAt), cmp.Compare(a.ref.ID, b.ref.ID))
	case "messages":
		return cmp.Compare(a.stats.MessageCount, b.stats.MessageCount)
	case "usage":
		return cmp.Compare(a.stats.Usage.TotalTokens, b.stats.Usage.TotalTokens)
	}
	return strings.Compare(a.text(field), b.text(field))
}

// table draws the sessions for a person.
func (o *listOptions) table(w io.Writer, items []*sessionItem) error {
	if len(items) == 0 {
		return nil
	}
	fields := o.fields
	if len(fields) == 0 {
		fields = []string{"id", "name", "status", "messages", "updatedAt", "cwd"}
	}
	var ids []string
	for _, i := range items {
		ids = append(ids, i.ref.ID)
	}
	short := o.out.shortIDs(ids)
	t := table{}
	for _, name := range fields {
		t.header = append(t.header, fieldTitle(name))
	}
	for _, i := range items {
		row := make([]string, len(fields))
		for c, name := range fields {
			switch name {
			case "id":
				row[c] = short(i.ref.ID)
			case "createdAt", "updatedAt":
				row[c] = o.out.when(i.time(name))
			default:
				row[c] = escapeLine(i.text(name))
			}
		}
		t.rows = append(t.rows, row)
	}
	return t.render(w, o.out.width)
}

// ownerLive tells whether a living process owns a session.
func ownerLive(l *store.Lease) bool { return l != nil && l.Live }
