package cli

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/store"
)

// sessionItem is one session of a list.
type sessionItem struct {
	listed    *store.Listed
	ref       store.Ref
	header    store.Header
	updatedAt int64 // Unix ms
	err       error // why it is damaged

	wasRead bool
	name    string
	status  string
	stats   store.Stats
}

// field is one column of a list.
type field struct {
	name   string
	header bool // known from the header alone
	write  func(*object, *sessionItem)
}

func sessionFields() []field {
	text := func(name string) func(*object, *sessionItem) {
		return func(o *object, i *sessionItem) { o.optStr(name, i.text(name)) }
	}
	return []field{
		{"id", true, func(o *object, i *sessionItem) { o.str("id", i.ref.ID) }},
		{"name", false, text("name")},
		{"path", true, text("path")},
		{"backend", true, text("backend")},
		{"createdAt", true, func(o *object, i *sessionItem) { i.writeTime(o, "createdAt") }},
		{"updatedAt", true, func(o *object, i *sessionItem) { i.writeTime(o, "updatedAt") }},
		{"cwd", true, text("cwd")},
		{"status", false, text("status")},
		{"messages", false, func(o *object, i *sessionItem) { i.writeStats(o, "messages") }},
		{"parentSessionId", true, text("parentSessionId")},
		{"usage", false, func(o *object, i *sessionItem) { i.writeStats(o, "usage") }},
		{"error", true, func(o *object, i *sessionItem) { o.itemError(i.err) }},
	}
}

// headerFields are the fields that cost no more than a header.
func headerFields() []string {
	var names []string
	for _, f := range sessionFields() {
		if f.header {
			names = append(names, f.name)
		}
	}
	return names
}

func fieldTitle(name string) string {
	switch name {
	case "createdAt":
		return "created"
	case "updatedAt":
		return "updated"
	case "parentSessionId":
		return "parent"
	}
	return name
}

func newSessionItem(l *store.Listed) *sessionItem {
	i := &sessionItem{listed: l, ref: l.Ref, header: l.Header, err: l.Err, updatedAt: l.Header.CreatedAt}
	if !l.ModTime.IsZero() {
		i.updatedAt = l.ModTime.UnixMilli()
	}
	if i.err != nil {
		i.status = "damaged"
	}
	return i
}

// read takes over the session's summary, once. One with an operation is looked
// into: its status is not the session's alone. What goes wrong makes it damaged.
func (i *sessionItem) read(ctx context.Context, repo *store.Repo) {
	if i.wasRead || i.err != nil {
		return
	}
	i.wasRead = true
	if i.err = i.listed.Err; i.err == nil {
		i.header = i.listed.Header
		i.name, i.stats, i.status = i.listed.Summary.Name, i.listed.Summary.Stats, "idle"
		if i.listed.Summary.Open {
			i.err = i.inspect(ctx, repo)
		}
	}
	if i.err != nil {
		i.status = "damaged"
	}
}

func (i *sessionItem) inspect(ctx context.Context, repo *store.Repo) error {
	r, err := repo.View(ctx, i.ref)
	if err != nil {
		return err
	}
	lease, err := repo.Lease(ctx, i.ref)
	if err != nil {
		return firstOf(err, r.Close())
	}
	reports, err := engine.Inspect(ctx, r, engine.InspectOptions{OwnerLive: ownerLive(lease)})
	i.status = sessionStatus(reports)
	return firstOf(err, r.Close())
}

// sessionStatus is the status of the lane that asks for the most attention.
func sessionStatus(reports []engine.LaneReport) string {
	found := map[engine.Status]bool{}
	for _, r := range reports {
		if r.Current != nil {
			found[r.Current.Status] = true
		}
	}
	for _, s := range []engine.Status{engine.StatusAborting, engine.StatusRunning, engine.StatusSuspended} {
		if found[s] {
			return string(s)
		}
	}
	return "idle"
}

// chosenFields are the fields of the given names, all of them when there are
// none.
func chosenFields(names []string) []field {
	return slices.DeleteFunc(sessionFields(), func(f field) bool {
		return len(names) > 0 && !slices.Contains(names, f.name)
	})
}

func (i *sessionItem) write(o *object, fields []field) {
	for _, f := range fields {
		f.write(o, i)
	}
}

func (i *sessionItem) text(name string) string {
	switch name {
	case "id":
		return i.ref.ID
	case "name":
		return i.name
	case "path":
		return i.ref.Path
	case "backend":
		return i.ref.Backend
	case "cwd":
		return i.header.CWD
	case "status":
		return i.status
	case "messages":
		return strconv.FormatInt(i.stats.MessageCount, 10)
	case "parentSessionId":
		return i.header.ParentSessionID
	case "usage":
		return strconv.FormatInt(i.stats.Usage.TotalTokens, 10) + " tokens"
	case "error":
		if i.err != nil {
			return strings.TrimSpace(explain(i.err).message)
		}
	}
	return ""
}

func (i *sessionItem) time(name string) int64 {
	if name == "createdAt" {
		return i.header.CreatedAt
	}
	return i.updatedAt
}

func (i *sessionItem) writeTime(o *object, name string) {
	t := i.time(name)
	if t == 0 {
		o.null(name)
		return
	}
	o.int(name, t)
}

func (i *sessionItem) writeStats(o *object, name string) {
	switch {
	case i.err != nil:
		o.null(name)
	case name == "messages":
		o.int(name, i.stats.MessageCount)
	default:
		o.value(name, tidied(i.stats.Usage))
	}
}

// itemError writes why one item of several failed, null when it did not.
func (o *object) itemError(err error) {
	f := explain(err)
	if f == nil {
		o.null("error")
		return
	}
	o.object("error", func(o *object) {
		o.str("code", f.tag)
		o.str("message", f.message)
		if f.details != nil {
			o.object("details", f.details)
		}
	})
}
