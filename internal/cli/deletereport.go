package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/subsession"
)

// explainDeletion knows the refusals of a deletion; nil for any other error.
func explainDeletion(err error) *failure {
	if e, ok := errors.AsType[*subsession.Leased](err); ok {
		f := &failure{code: exitLocked, tag: "lease_held", details: func(o *object) {
			o.array("leased", len(e.Held), func(i int, o *object) {
				o.str("path", e.Held[i].Path)
				o.lease(&e.Held[i].Lease)
			})
		}}
		return f.withHint("wait with --lease-wait 30s, or delete what nobody owns with --partial")
	}
	if e, ok := errors.AsType[*subsession.OpenOperation](err); ok {
		f := &failure{code: exitRefused, tag: "open_operation", details: func(o *object) { writeOperations(o, "operations", e.Operations) }}
		return f.withHint("abort it with `drover abort`, or delete it as it is with --force")
	}
	if e, ok := errors.AsType[*subsession.TreeUnstable](err); ok {
		return &failure{code: exitRefused, tag: "tree_unstable", details: func(o *object) { o.str("root", e.Root) }}
	}
	if e, ok := errors.AsType[*subsession.BadRef](err); ok {
		return &failure{code: exitCorrupt, tag: "state_corrupt", details: func(o *object) {
			o.str("session", e.SessionID)
			o.str("refKey", e.Key)
		}}
	}
	if errors.Is(err, subsession.ErrChildKept) {
		return &failure{code: exitRefused, tag: "child_kept"}
	}
	return nil
}

func writeOperations(o *object, name string, all []subsession.Operation) {
	o.array(name, len(all), func(i int, o *object) {
		o.str("sessionId", all[i].SessionID)
		o.str("lane", all[i].Lane)
		o.str("operationId", all[i].OperationID)
	})
}

// isReadOnly reports a repository in which nothing can be deleted.
func isReadOnly(err error) bool {
	return errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission)
}

// report ends the command: one named session is its own document. What a signal has
// kept from being begun is only counted.
func (o *deleteOptions) report(ctx context.Context, all []deletion) error {
	items := slices.DeleteFunc(slices.Clone(all), func(d deletion) bool { return d.left })
	left := len(all) - len(items)
	var errs []error
	skipped := 0
	for i := range items {
		item := &items[i]
		if item.skipped != "" {
			skipped++
			o.out.note("kept %s: %s", escapeLine(item.session), item.skipped)
			continue
		}
		errs = append(errs, item.err)
		if item.done != nil {
			for _, w := range item.done.Warnings {
				o.out.note("warning: %s", escapeLine(w))
			}
		}
	}
	if o.selects && len(all) == 0 {
		o.out.note("no session matches")
	}
	err := o.outcome(items, errs)
	if cut := left + cutItems(errs); cut > 0 {
		err = leftUndone(ctx, cut, len(all))
	}
	text := func(w io.Writer) error { return o.text(w, items) }
	if o.alone() {
		if len(items) == 0 || !o.tells(&items[0]) {
			return err // there is nothing to report but the error
		}
		return o.out.result(err, func(d *object) { o.members(d, &items[0]) }, text)
	}
	return o.out.result(err, func(d *object) {
		d.array("items", len(items), func(i int, d *object) { o.write(d, &items[i]) })
		d.object("totals", func(d *object) {
			o.totals(d, items, skipped)
			d.notDone(left)
		})
	}, text)
}

// alone reports that one session was asked for, by one argument.
func (o *deleteOptions) alone() bool { return len(o.sessions) == 1 }

// tells reports a deletion that has more to tell than its error.
func (o *deleteOptions) tells(item *deletion) bool {
	return item.done != nil || o.dryRun && item.plan != nil
}

func (o *deleteOptions) totals(d *object, items []deletion, skipped int) {
	var usage message.Usage
	deleted, would, failed := 0, 0, 0
	counted := map[string]bool{}
	for _, item := range items {
		switch {
		case item.refused != nil:
		case o.dryRun && item.plan != nil && item.skipped == "":
			for _, node := range item.plan.Existing() {
				if !counted[node.ID] {
					counted[node.ID] = true
					would++
					usage = usage.Add(node.Usage)
				}
			}
		case item.done != nil:
			deleted += len(item.done.Deleted)
			usage = usage.Add(item.done.Usage)
		}
		if item.err != nil {
			failed++
		}
	}
	d.int("sessions", int64(len(items)))
	d.int("deleted", int64(deleted))
	d.int("wouldDelete", int64(would))
	d.int("skipped", int64(skipped))
	d.int("failed", int64(failed))
	d.value("usageTotals", usage)
}

// write is one item of several.
func (o *deleteOptions) write(d *object, item *deletion) {
	d.str("session", item.session)
	o.members(d, item)
	if item.skipped != "" {
		d.str("skipped", item.skipped)
	}
	d.itemError(item.err)
}

func (o *deleteOptions) members(d *object, item *deletion) {
	switch {
	case item.skipped != "":
	case o.dryRun && item.plan != nil:
		o.writePlan(d, item.plan)
	case item.done != nil:
		writeDeletion(d, item.done)
	}
}

func writeDeletion(d *object, done *subsession.Deletion) {
	d.str("cascadeId", done.CascadeID)
	d.str("root", done.Root)
	d.bool("rootExisted", done.RootExisted)
	d.strs("deleted", done.Deleted)
	d.strs("alreadyGone", done.AlreadyGone)
	writeFailed(d, done.Failed)
	d.strs("keptRemote", done.KeptRemote)
	d.strs("keptForks", done.KeptForks)
	d.strs("unreadable", done.Unreadable)
	d.value("usageTotals", done.Usage)
	d.bool("searchRemoved", done.SearchRemoved)
	d.strs("warnings", done.Warnings)
}

func (o *deleteOptions) writePlan(d *object, p *subsession.Plan) {
	d.bool("dryRun", true)
	d.str("root", p.Root)
	d.bool("rootExists", p.RootExists)
	nodes := p.Existing()
	d.array("plan", len(nodes), func(i int, d *object) {
		n := nodes[i]
		d.int("order", int64(i+1))
		d.str("id", n.ID)
		d.int("depth", int64(n.Depth))
		d.str("via", n.Via)
		d.bool("leased", ownerLive(n.Lease))
		writeOperations(d, "openOperations", n.Open)
		d.int("bytes", n.Bytes)
		d.value("usage", n.Usage)
		d.int("workspaces", 0)
	})
	d.array("keptRemote", len(p.KeptRemote), func(i int, d *object) {
		d.str("id", p.KeptRemote[i].ID)
		d.str("parent", p.KeptRemote[i].Parent)
		d.optStr("refKey", p.KeptRemote[i].RefKey)
	})
	d.strs("keptForks", p.KeptForks)
	d.key("cycles")
	d.b = append(d.b, '[')
	for i, cycle := range p.Cycles {
		if i > 0 {
			d.b = append(d.b, ',')
		}
		d.b = store.AppendTexts(d.b, cycle)
	}
	d.b = append(d.b, ']')
	d.strs("unreadable", p.Unreadable)
	d.value("usageTotals", p.Usage())
	refusals := o.refusals(nodes)
	d.array("wouldRefuse", len(refusals), func(i int, d *object) {
		d.str("id", refusals[i].id)
		d.str("code", refusals[i].code)
	})
}

// wouldRefuse is a session that would keep the tree from being deleted.
type wouldRefuse struct{ id, code string }

func (o *deleteOptions) refusals(nodes []*subsession.Node) []wouldRefuse {
	var all []wouldRefuse
	for _, n := range nodes {
		if n.Several != nil {
			all = append(all, wouldRefuse{n.ID, "session_exists"})
		} else if ownerLive(n.Lease) {
			all = append(all, wouldRefuse{n.ID, "lease_held"})
		} else if len(n.Open) > 0 && !o.force {
			all = append(all, wouldRefuse{n.ID, "open_operation"})
		}
	}
	return all
}

// text tells a person what goes or is gone.
func (o *deleteOptions) text(w io.Writer, items []deletion) error {
	if o.dryRun {
		return writePlans(w, items)
	}
	p := &lines{w: w}
	var usage message.Usage
	n := 0
	for _, item := range items {
		if item.done == nil {
			continue
		}
		for _, id := range item.done.Deleted {
			p.line("deleted %s", escapeLine(id))
		}
		if len(item.done.Deleted) == 0 && item.err == nil {
			p.line("already gone %s", escapeLine(item.session))
		}
		n += len(item.done.Deleted)
		usage = usage.Add(item.done.Usage)
	}
	p.line("%d session(s) deleted; they had used %d tokens, $%.4f", n, usage.TotalTokens, usage.Cost.Total)
	return p.err
}

// writePlans tells a person what would be deleted, in order.
func writePlans(w io.Writer, items []deletion) error {
	p := &lines{w: w}
	for _, item := range items {
		if item.plan == nil || item.skipped != "" {
			continue
		}
		for _, n := range item.plan.Existing() {
			verb, state := "delete", ""
			if item.refused != nil {
				verb = "keep"
			}
			switch {
			case n.Several != nil:
				state = "  has another file"
			case ownerLive(n.Lease):
				state = "  owned by another process"
			case len(n.Open) > 0:
				state = "  has an open operation"
			case n.Damaged != nil:
				state = "  damaged"
			}
			p.line("%s %s  %s  depth %d  %d bytes  $%.4f%s", verb, escapeLine(n.ID), n.Via, n.Depth, n.Bytes, n.Usage.Cost.Total, state)
		}
		for _, r := range item.plan.KeptRemote {
			p.line("keep %s  lives with another service", escapeLine(r.ID))
		}
		for _, id := range item.plan.KeptForks {
			p.line("keep %s  a fork", escapeLine(id))
		}
		for _, id := range item.plan.Unreadable {
			p.line("keep %s  cannot be read", escapeLine(id))
		}
	}
	return p.err
}

// usageExport appends ledgers to a file.
type usageExport struct{ f *os.File }

func openUsageExport(path string) (*usageExport, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--export-usage: %w", err)
	}
	return &usageExport{f}, nil
}

// write appends rows and returns when they survive power loss: their session is
// about to go.
func (e *usageExport) write(_ context.Context, id string, rows []store.UsageRow) error {
	var text []byte
	for _, row := range rows {
		raw, err := row.AppendJSON(nil)
		if err != nil {
			return err
		}
		text = append(rawjson.AppendQuote(append(text, `{"sessionId":`...), id), ',')
		text = append(append(text, raw[1:]...), '\n')
	}
	if _, err := e.f.Write(text); err != nil {
		return err
	}
	return e.f.Sync()
}

// close closes a file whose every write was synced.
func (e *usageExport) close() { _ = e.f.Close() }
