package cli

import (
	"context"
	"slices"

	"github.com/drover-run/drover/pkg/subsession"
)

// selected are the sessions that the filters choose. What stays although it was
// chosen says why.
func (o *deleteOptions) selected(ctx context.Context) ([]deletion, error) {
	o.list.base = o.base
	found, err := o.list.collect(ctx)
	if err != nil {
		return nil, err
	}
	// Names are not in headers.
	if err := o.list.read(ctx, found.items); err != nil {
		return nil, err
	}
	everything, err := o.repo.List(ctx)
	if err != nil {
		return nil, err
	}
	there := make(map[string]bool, len(everything))
	for _, l := range everything {
		there[l.Ref.ID] = true
	}
	damaged := slices.Contains(o.list.filter.statuses, "damaged")
	var items []deletion
	for _, i := range found.items {
		if o.olderThan > 0 && i.updatedAt > o.olderThan {
			continue
		}
		item := deletion{session: i.ref.ID, root: subsession.Root{ID: i.ref.ID, Ref: i.ref}}
		spawn, child := subsession.ParseSpawn(i.header.Spawn)
		switch {
		case i.err != nil && !damaged:
			item.skipped = "it is damaged; delete it by its name or with --status damaged"
		case i.ref.Legacy:
			item.skipped = "it is a legacy file"
		case child && there[spawn.ParentSessionID]:
			item.skipped = "it goes with its parent " + escapeLine(spawn.ParentSessionID)
		case i.name != "" && o.list.filter.name == "":
			item.skipped = "it has a name; delete it by that"
		}
		items = append(items, item)
	}
	return items, nil
}

// protectYoung keeps a tree of which anything changed after the cutoff, Unix ms.
func (d *deletion) protectYoung(cutoff int64) {
	for _, n := range d.plan.Existing() {
		if n.Changed > cutoff {
			d.skipped = "its descendant " + escapeLine(n.ID) + " was changed since"
			return
		}
	}
}
