package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/internal/owner"
	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

type inspectOptions struct {
	base
	session  string
	lane     string
	snapshot bool
}

func newInspectCmd(f *factory, runF func(context.Context, *inspectOptions) error) *cobra.Command {
	if runF == nil {
		runF = runInspect
	}
	o := &inspectOptions{}
	cmd := &cobra.Command{
		Use:   "inspect SESSION",
		Short: "Show where a session stands, without touching it",
		Long: `Show where a session stands: its metadata, totals, lanes, open operations, and
who owns it now. Nothing is written and no lease is taken, so it also works
while another process drives the session; that one is asked for what it knows of
answers and tools before they are stored.` +
			exitHelp(exitOK, exitUsage, exitNotFound, exitCorrupt, exitIO, exitVersion),
		Args:              maxArgs(1),
		ValidArgsFunction: completeSession(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.session, _, err = sessionArg(f, args); err != nil {
				return err
			}
			if o.base, err = f.base("inspect"); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.lane, "lane", "", "only this `LANE`")
	cmd.Flags().BoolVar(&o.snapshot, "snapshot", false, "add each lane's transcript window, partial answer and retry")
	return cmd
}

// inspection is all that inspect reports.
type inspection struct {
	ref  store.Ref
	meta store.Header
	name string
	// parentGone is set for a fork whose source is not in the repository any more.
	parentGone bool
	stats      store.Stats
	lanes      []engine.LaneReport
	lease      *store.Lease
	live       []owner.LaneStatus // the lanes as their owner knows them, nil when nobody can be asked
}

func runInspect(ctx context.Context, o *inspectOptions) error {
	ref, r, err := o.resolveView(ctx, o.session)
	switch {
	case err != nil && ref == (store.Ref{}):
		return err
	case err != nil:
		return o.unreadable(ctx, ref, err)
	}
	in := inspection{ref: ref, meta: r.Header()}
	if err := firstOf(in.read(ctx, o, r), r.Close()); codeOf(err) == exitCorrupt {
		return o.unreadable(ctx, ref, err)
	} else if err != nil {
		return err
	}
	return o.out.result(nil, in.write, func(w io.Writer) error { return in.print(w, o.out) })
}

// unreadable reports why a session does not open, or not read to the end, with what
// its header says.
func (o *inspectOptions) unreadable(ctx context.Context, ref store.Ref, err error) error {
	f := explain(err)
	h, headerErr := o.repo.Header(ctx, ref)
	details := f.details
	f.details = func(d *object) {
		if details != nil {
			details(d)
		} else {
			d.str("path", ref.Path)
		}
		d.str("backend", ref.Backend)
		if headerErr == nil {
			d.raw("session", h.Metadata())
		}
	}
	return f
}

func (in *inspection) read(ctx context.Context, o *inspectOptions, r store.Reader) error {
	name, _, err := store.Get(ctx, r, store.SessionName())
	if err != nil {
		return err
	}
	in.name = name.Value
	if in.meta.CWD, err = store.WorkingFolder(ctx, r); err != nil {
		return err
	}
	if in.parentGone, err = o.parentGone(ctx, in.meta.ParentSessionID); err != nil {
		return err
	}
	if in.stats, err = r.Stats(ctx); err != nil {
		return err
	}
	if in.lease, err = o.leaseIn(ctx, r, in.ref); err != nil {
		return err
	}
	in.lanes, err = engine.Inspect(ctx, r, engine.InspectOptions{
		Lane: o.lane, Snapshot: o.snapshot, OwnerLive: ownerLive(in.lease),
	})
	if err == nil && ownerLive(in.lease) {
		in.ask(ctx, o)
	}
	return err
}

// parentGone reports that a session was forked from one that the repository does not
// hold; forks outlive their source.
func (o *inspectOptions) parentGone(ctx context.Context, id string) (bool, error) {
	if id == "" || store.CheckID(id) != nil {
		return id != "", nil
	}
	ref, err := o.repo.Resolve(ctx, id)
	_, several := errors.AsType[*store.Ambiguous](err)
	if errors.Is(err, store.ErrNotFound) || several {
		return true, nil
	}
	return ref.ID != id, err
}

// askPatience is how long an owner may take to say what only it knows; what is
// stored is an answer too.
const askPatience = time.Second

// ask has the owner report the lanes: it knows answers and tools as they grow.
func (in *inspection) ask(ctx context.Context, o *inspectOptions) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	c, err := owner.Dial(ctx, *in.lease, owner.DialOptions{SessionID: in.ref.ID, Path: in.ref.Path, Timeout: askPatience})
	if err != nil {
		return
	}
	defer c.Close()
	live, err := c.Inspect(ctx, o.lane, o.snapshot)
	if err != nil {
		return
	}
	in.live = live
	for i := range in.lanes {
		for _, l := range live {
			if c := in.lanes[i].Current; c != nil && l.Lane == in.lanes[i].Lane && l.OperationID == c.ID {
				c.Status = l.Status
			}
		}
	}
}

func (in *inspection) write(d *object) {
	d.object("session", func(d *object) {
		d.members(in.meta.Metadata())
		d.str("path", in.ref.Path)
		d.str("backend", in.ref.Backend)
	})
	if in.meta.ParentSessionID == "" {
		d.null("forkParent")
	} else {
		d.object("forkParent", func(d *object) {
			d.str("id", in.meta.ParentSessionID)
			d.bool("available", !in.parentGone)
		})
	}
	d.optStr("name", in.name)
	d.stats("stats", in.stats)
	if in.live != nil {
		d.values("lanes", len(in.live), func(i int) store.Appender { return message.Message(in.live[i].Raw) })
	} else {
		d.values("lanes", len(in.lanes), func(i int) store.Appender { return in.lanes[i] })
	}
	if in.lease == nil {
		d.null("lease")
		return
	}
	d.object("lease", func(d *object) { d.lease(in.lease) })
}

// stats writes the maintained projection (spec §1.6).
func (o *object) stats(name string, s store.Stats) {
	o.object(name, func(o *object) {
		o.int("messageCount", s.MessageCount)
		o.value("usage", s.Usage)
	})
}

func (in *inspection) print(w io.Writer, p *printer) error {
	pr := &lines{w: w}
	pr.line("session   %s", in.meta.ID)
	if in.name != "" {
		pr.line("name      %s", escapeLine(in.name))
	}
	pr.line("stored    %s, %s", in.ref.Backend, escapeLine(in.ref.Path))
	if in.ref.Legacy {
		pr.line("          a legacy file, read as it is")
	}
	pr.line("created   %s", p.when(in.meta.CreatedAt))
	if in.meta.CWD != "" {
		pr.line("cwd       %s", escapeLine(in.meta.CWD))
	}
	if in.meta.ParentSessionID != "" {
		gone := ""
		if in.parentGone {
			gone = ", which is not here"
		}
		pr.line("fork of   %s%s", escapeLine(in.meta.ParentSessionID), gone)
	}
	in.printRewrites(pr, p)
	u := in.stats.Usage
	pr.line("messages  %d", in.stats.MessageCount)
	pr.line("usage     %d tokens in, %d out, %d cached; $%.4f", u.Input, u.Output, u.CacheRead, u.Cost.Total)
	pr.line("owner     %s", describeLease(in.lease, p))
	for _, lane := range in.lanes {
		in.printLane(pr, lane, p)
	}
	return pr.err
}

// printRewrites tells of the records that rewrites have left: when, why and how much.
func (in *inspection) printRewrites(pr *lines, p *printer) {
	records, _ := rawjson.Get(in.meta.Metadata(), "rewrites")
	if rawjson.KindOf(records) != rawjson.Array {
		return
	}
	_ = rawjson.ElementsFunc(records, func(start, end int) bool {
		record := records[start:end]
		number := func(key string) int64 {
			raw, _ := rawjson.Get(record, key)
			n, _ := strconv.ParseInt(string(raw), 10, 64)
			return n
		}
		why := ""
		if reason, ok := rawjson.GetString(record, "reason"); ok {
			why = ": " + escapeLine(reason)
		}
		pr.line("rewritten %s, %d entries, %d usage rows and %d values dropped, %d texts replaced%s",
			p.when(number("at")), number("entries"), number("usage"), number("values"), number("redactions"), why)
		return true
	}) // what is no array any more says nothing
}

func describeLease(l *store.Lease, p *printer) string {
	switch {
	case l == nil:
		return "nobody"
	case !l.Live:
		return fmt.Sprintf("nobody; pid %d on %s ended without giving it up", l.PID, escapeLine(l.Host))
	}
	return fmt.Sprintf("pid %d on %s since %s", l.PID, escapeLine(l.Host), p.when(l.Since))
}

func (in *inspection) printLane(pr *lines, lane engine.LaneReport, p *printer) {
	pr.line("")
	pr.line("lane      %s", escapeLine(lane.Lane))
	if lane.Config == nil {
		pr.line("  model     not configured yet")
	} else {
		pr.line("  model     %s, thinking %s", escapeLine(lane.Config.Model.String()), lane.Config.ThinkingLevel)
		if len(lane.Config.ActiveToolNames) > 0 {
			pr.line("  tools     %s", escapeLine(fmt.Sprint(lane.Config.ActiveToolNames)))
		}
	}
	if c := lane.Current; c != nil {
		pr.line("  operation %s %s, %s at %s, started %s", c.Kind, c.ID, c.Status, c.Point, p.when(c.StartedAt))
		if s := c.Suspended; s != nil && s.PollFailed.Known {
			pr.line("  deferred  last poll: %s", escapeLine(s.PollFailed.Reason()))
		}
	} else {
		pr.line("  operation none")
	}
	if last := lane.LastResult; last != nil {
		pr.line("  last      %s %s, %s", last.Kind, last.OperationID, last.Outcome)
		if last.Error != nil {
			pr.line("            %s", escapeLine(last.Error.Message))
		}
	}
	q := lane.Queues
	if n := len(q.Steer) + len(q.FollowUp) + len(q.NextRun) + len(lane.PendingWrites); n > 0 {
		pr.line("  waiting   %d steer, %d follow-up, %d next-run, %d writes", len(q.Steer), len(q.FollowUp), len(q.NextRun), len(lane.PendingWrites))
	}
	s := lane.Snapshot
	if s == nil {
		return
	}
	pr.line("  window    %d entries", len(s.Transcript))
	if s.Streaming != nil {
		pr.line("  partial   %s", shorten(escapeLine(s.Streaming.Text()), 200))
	}
	for _, tool := range s.Running {
		pr.line("  running   %s %s", escapeLine(tool.ToolName), shorten(escapeLine(string(tool.Args)), foldWidth))
	}
	if s.Retry != nil {
		pr.line("  retry     attempt %d of %d, not before %s", s.Retry.Attempt, s.Retry.MaxAttempts, instant(s.Retry.NextAttemptAt))
	}
}

// lines prints line after line and remembers the first failure.
type lines struct {
	w   io.Writer
	err error
}

func (l *lines) line(format string, args ...any) {
	if l.err == nil {
		_, l.err = fmt.Fprintf(l.w, format+"\n", args...)
	}
}
