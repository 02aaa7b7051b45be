package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/internal/owner"
	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

type usageOptions struct {
	base
	session string
	all     bool
	rows    bool
	by      string // "" groups nothing
	since   int64  // Unix ms, 0 is any time
	csv     bool
}

func newUsageCmd(f *factory, runF func(context.Context, *usageOptions) error) *cobra.Command {
	if runF == nil {
		runF = runUsage
	}
	o := &usageOptions{}
	var since string
	cmd := &cobra.Command{
		Use:   "usage SESSION",
		Short: "Show what was spent",
		Long: `Show what the requests of a session, or with --all of every session, have used:
totals, the ledger with --rows, or groups with --by. Days are UTC. What an import
brought is one row, of no model and no lane; it counts as unknown there.` +
			exitHelp(exitOK, exitUsage, exitPartial, exitNotFound, exitCorrupt, exitIO, exitVersion),
		Args:              maxArgs(1),
		ValidArgsFunction: completeSession(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := o.target(f, args); err != nil {
				return err
			}
			if o.base, err = f.base("usage"); err != nil {
				return err
			}
			if since != "" {
				if o.since, err = parseWhen("--since", since, f.now(), -1); err != nil {
					return err
				}
			}
			if o.csv && o.out.format != formatText {
				return usagef("--csv and %s exclude each other", o.out.chosenBy)
			}
			return runF(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.all, "all", false, "over every session of the repository")
	flags.BoolVar(&o.rows, "rows", false, "the ledger, row by row")
	flags.StringVar(&o.by, "by", "", "group by `KEY`: session, model, provider, day or lane")
	flags.StringVar(&since, "since", "", "only rows since `T`, a duration back or an instant")
	flags.BoolVar(&o.csv, "csv", false, "as comma-separated values")
	cmd.AddCommand(newUsageRecordCmd(f, nil))
	return cmd
}

func (o *usageOptions) target(f *factory, args []string) (err error) {
	switch o.by {
	case "", "session", "model", "provider", "day", "lane":
	default:
		return usagef("--by %q: want session, model, provider, day or lane", escapeLine(o.by))
	}
	if o.rows && o.by != "" {
		return usagef("--rows and --by exclude each other")
	}
	if !o.all {
		o.session, _, err = sessionArg(f, args)
		return err
	}
	if len(args) > 0 {
		return usagef("--all and SESSION exclude each other")
	}
	return nil
}

// spending is what one session has used.
type spending struct {
	session string
	totals  message.Usage
	rows    []spent // where they are shown
	groups  groups  // where they are asked for
	err     error
}

func runUsage(ctx context.Context, o *usageOptions) error {
	if o.all {
		return o.overAll(ctx)
	}
	ref, err := o.resolve(ctx, o.session)
	if err != nil {
		return err
	}
	s, err := o.spending(ctx, ref)
	if err != nil {
		return err
	}
	if o.by != "" {
		return o.grouped(nil, []spending{s})
	}
	return o.out.result(nil, func(d *object) { o.write(d, s) }, func(w io.Writer) error {
		return o.text(w, []spending{s}, s.totals)
	})
}

// spending reads one session; the rows only where something needs them.
func (o *usageOptions) spending(ctx context.Context, ref store.Ref) (s spending, err error) {
	s.session = ref.ID
	err = o.view(ctx, ref, func(r store.Reader) error {
		if !o.withRows() && o.by == "" && o.since == 0 {
			stats, err := r.Stats(ctx)
			s.totals = tidied(stats.Usage)
			return err
		}
		var sum usageSum
		s.groups = groups{}
		err := readLedger(ctx, r, ref.ID, o.since, o.by == "model" || o.by == "provider", func(rows []spent) {
			for _, row := range rows {
				sum.add(row.usage)
			}
			if o.by != "" {
				s.groups.add(o.by, rows)
			}
			if o.withRows() {
				s.rows = append(s.rows, rows...)
			}
		})
		s.totals = sum.total()
		return err
	})
	return s, err
}

// withRows reports whether the answer holds the ledger: the document of one
// session always does, whatever people asked to be shown.
func (o *usageOptions) withRows() bool {
	return o.rows || !o.all && o.by == "" && o.out.format != formatText
}

func (o *usageOptions) write(d *object, s spending) {
	d.str("session", s.session)
	d.value("totals", s.totals)
	if o.withRows() {
		d.values("rows", len(s.rows), func(i int) store.Appender { return s.rows[i].row })
	}
}

func (o *usageOptions) overAll(ctx context.Context) error {
	listed, err := o.repo.List(ctx)
	if err != nil {
		return err
	}
	var all []spending
	var errs []error
	var sum usageSum
	for _, l := range listed {
		s, err := spending{session: l.Ref.ID}, l.Err
		if err == nil {
			s, err = o.spending(ctx, l.Ref)
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if s.session, s.err = l.Ref.ID, err; err != nil {
			s.groups = nil // half a ledger is none
			o.out.note("failed %s: %s", escapeLine(l.Ref.ID), escapeLine(explain(err).message))
		}
		if err == nil {
			sum.add(s.totals)
		}
		all, errs = append(all, s), append(errs, err)
		if o.by == "" {
			// A failed write sticks to the stream and is reported at the end.
			_ = o.out.item(func(d *object) { o.writeItem(d, s) })
		}
	}
	totals := sum.total()
	err = itemsFailure("sessions", errs)
	if o.by != "" {
		return o.grouped(err, all)
	}
	return o.out.result(err, func(d *object) {
		d.array("items", len(all), func(i int, d *object) { o.writeItem(d, all[i]) })
		d.value("totals", totals)
	}, func(w io.Writer) error { return o.text(w, all, totals) })
}

func (o *usageOptions) writeItem(d *object, s spending) {
	o.write(d, s)
	d.itemError(s.err)
}

// text prints totals or rows for a person, or as CSV.
func (o *usageOptions) text(w io.Writer, all []spending, totals message.Usage) error {
	switch {
	case o.rows:
		return o.render(w, o.ledger(all))
	case o.all:
		t := table{header: append([]string{"session"}, usageColumns()...)}
		var ids []string
		for _, s := range all {
			ids = append(ids, s.session)
		}
		short := o.shortIDs(ids)
		for _, s := range all {
			t.rows = append(t.rows, append([]string{short(s.session)}, usageCells(s.totals)...))
		}
		t.rows = append(t.rows, append([]string{"total"}, usageCells(totals)...))
		return o.render(w, t)
	}
	return o.render(w, table{header: usageColumns(), rows: [][]string{usageCells(totals)}})
}

type recordOptions struct {
	base
	session string
	lane    string
	onLane  bool   // the lane was named, so that the row belongs to it
	usage   string // JSON
	entry   string
	details string // JSON
}

func newUsageRecordCmd(f *factory, runF func(context.Context, *recordOptions) error) *cobra.Command {
	if runF == nil {
		runF = runUsageRecord
	}
	o := &recordOptions{}
	cmd := &cobra.Command{
		Use:   "record SESSION USAGE",
		Short: "Add an adjustment to the ledger",
		Long: `Add a row to the ledger that no provider reported, such as a correction after an
invoice. USAGE is a JSON object as in the ledger; counts may be negative.` +
			exitHelp(exitOK, exitUsage, exitNotFound, exitCorrupt, exitIO, exitVersion, exitLocked),
		Args:              maxArgs(2),
		ValidArgsFunction: completeSession(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.session, o.usage, err = sessionAndOne(f, args, "how much? Give USAGE as JSON, or - for stdin"); err != nil {
				return err
			}
			o.onLane = cmd.Flags().Changed("lane")
			if o.base, err = f.base("usage record"); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.lane, "lane", store.MainLane, "the `LANE` that writes it; once it is named, the row counts as that lane's")
	flags.StringVar(&o.entry, "entry", "", "the `ID` of the entry that it belongs to")
	flags.StringVar(&o.details, "details", "", "more about it, as `JSON`")
	return cmd
}

// row is what to add, with an id that stays the same when it is asked again.
func (o *recordOptions) row() (u store.NewUsage, err error) {
	raw, err := readJSON(o.out, "USAGE", o.usage)
	if err != nil {
		return u, err
	}
	u = store.NewUsage{ID: o.newID(), Adjustment: true, RawUsage: json.RawMessage(raw)}
	if u.Usage, err = message.ParseUsage(u.RawUsage); err != nil {
		return u, usagef("USAGE: %v", err)
	}
	if err := wholeCounts(raw); err != nil {
		return u, err
	}
	if o.details != "" {
		details, err := readJSON(o.out, "--details", o.details)
		if err != nil {
			return u, err
		}
		u.Details = json.RawMessage(details)
	}
	if o.onLane {
		u.Details, err = attributed(u.Details, o.lane)
	}
	return u, err
}

// wholeCounts refuses fractions of tokens, and counts that sums cannot hold. Readers
// take them, since other writers' rows may have some; the ledger need not get more.
func wholeCounts(usage []byte) error {
	for _, name := range []string{"input", "output", "cacheRead", "cacheWrite", "cacheWrite1h", "reasoning", "totalTokens"} {
		raw, _ := rawjson.Get(usage, name)
		if n, err := strconv.ParseFloat(string(raw), 64); err == nil && n != math.Trunc(n) {
			return usagef("USAGE: %s is no whole number of tokens: %.40s", name, raw)
		} else if err == nil && math.Abs(n) > message.MaxCount {
			return usagef("USAGE: %s is more than %d, with which sums would overflow: %.40s", name, int64(message.MaxCount), raw)
		}
	}
	return nil
}

// attributed adds the lane to a row's details, which the sums by lane read (D55).
func attributed(details json.RawMessage, lane string) (json.RawMessage, error) {
	if details == nil {
		details = json.RawMessage("{}")
	}
	if rawjson.KindOf(details) != rawjson.Object {
		return nil, usagef("--details: with --lane it must be a JSON object")
	}
	if _, ok := rawjson.Get(details, "attribution"); ok {
		return details, nil
	}
	return rawjson.Set(details, "attribution", append(rawjson.AppendQuote([]byte(`{"lane":`), lane), '}'))
}

func runUsageRecord(ctx context.Context, o *recordOptions) error {
	row, err := o.row()
	if err != nil {
		return err
	}
	ref, err := o.target(ctx, o.session)
	if err != nil {
		return err
	}
	if o.entry != "" {
		err := o.view(ctx, ref, func(r store.Reader) error {
			if row.EntryID, err = o.entryID(ctx, r, o.entry); err != nil {
				return err
			}
			return checkEntry(ctx, r, row.EntryID)
		})
		if err != nil {
			return err
		}
	}
	if err := o.record(ctx, ref, row); err != nil {
		return err
	}
	return o.out.result(nil, func(d *object) {
		d.str("session", ref.ID)
		d.str("lane", o.lane)
		d.str("usageId", row.ID)
	}, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, row.ID)
		return err
	})
}

func (o *recordOptions) record(ctx context.Context, ref store.Ref, row store.NewUsage) error {
	asked := false
	return o.reachLane(ctx, ref, o.lane, func(c *owner.Client) error {
		asked = true
		_, err := c.RecordUsage(ctx, o.lane, row)
		return err
	}, func(lane *engine.Lane, s *store.Session) error {
		_, err := lane.RecordUsage(ctx, row)
		if _, taken := errors.AsType[*store.InvalidWrite](err); taken && asked {
			// The owner that did not answer may have written it.
			if known, look := hasUsage(ctx, s, row.ID); look == nil && known {
				return nil
			}
		}
		return err
	})
}

// hasUsage looks for a row among the newest ones.
func hasUsage(ctx context.Context, q store.Queries, id string) (bool, error) {
	rows, err := q.ScanUsage(ctx, store.UsageQuery{Descending: true, Limit: 1000})
	for _, row := range rows {
		if row.ID == id {
			return true, err
		}
	}
	return false, err
}
