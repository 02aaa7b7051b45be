package cli

import (
	"context"
	"encoding/csv"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// spent is one row of the ledger with what is known of its cause (D55).
type spent struct {
	session  string
	row      store.UsageRow
	usage    message.Usage
	at       int64 // Unix ms, 0 when its id tells no time
	lane     string
	provider string
	model    string
	failed   bool // the request ended as an error
	retried  bool // it was not the first attempt of its step
	summary  bool // it made a summary, no answer
}

// unknownCause stands for what nothing tells of a row.
const unknownCause = "unknown"

// groupPage is how many rows are in memory at a time where only sums are kept.
const groupPage = 10_000

// readLedger hands on the rows since an instant, Unix ms, page by page. With
// models the entries of rows without an attribution are asked for theirs.
func readLedger(ctx context.Context, r store.Reader, session string, since int64, models bool, use func([]spent)) error {
	q := store.UsageQuery{Limit: groupPage}
	for {
		rows, err := r.ScanUsage(ctx, q)
		if err != nil {
			return err
		}
		page, err := readPage(ctx, r, session, rows, since, models)
		if err != nil {
			return err
		}
		use(page)
		if len(rows) < groupPage {
			return nil
		}
		q.FromSeq = rows[len(rows)-1].Seq + 1
	}
}

func readPage(ctx context.Context, r store.Reader, session string, rows []store.UsageRow, since int64, models bool) ([]spent, error) {
	var all []spent
	var silent []string // entries to ask
	for _, row := range rows {
		s, err := newSpent(session, row)
		if err != nil {
			return nil, err
		}
		if s.at < since {
			continue
		}
		if models && s.model == "" && row.EntryID != "" {
			silent = append(silent, row.EntryID)
		}
		all = append(all, s)
	}
	if len(silent) == 0 {
		return all, nil
	}
	entries, err := r.Entries(ctx, silent)
	if err != nil {
		return nil, err
	}
	for i, s := range all {
		if m := entries[s.row.EntryID].Message(); s.model == "" && m != nil {
			all[i].provider, _ = rawjson.GetString(m, "provider")
			all[i].model, _ = rawjson.GetString(m, "model")
		}
	}
	return all, nil
}

func newSpent(session string, row store.UsageRow) (s spent, err error) {
	s = spent{session: session, row: row}
	if s.usage, err = message.ParseUsage(row.Usage); err != nil {
		return s, &store.Corrupt{Path: "usage row " + row.ID, Offset: -1, Msg: err.Error()}
	}
	if row.Adjustment { // a sum, as that of an import
		s.usage = tidied(s.usage)
	}
	// An id of another kind tells no time: its row belongs to no day.
	s.at, _ = store.IDTime(row.ID)
	a, ok := rawjson.Get(row.Details, "attribution")
	if row.Details == nil || !ok || rawjson.KindOf(a) != rawjson.Object {
		return s, nil
	}
	text := func(name string) string {
		t, _ := rawjson.GetString(a, name)
		return t
	}
	s.lane, s.provider, s.model = text("lane"), text("provider"), text("modelId")
	s.failed = text("outcome") == string(message.StopError)
	s.summary = text("kind") == "compaction" || text("kind") == "branch_summary"
	if attempt, ok := rawjson.Get(a, "attempt"); ok && text("kind") != "deferred" {
		n, _ := rawjson.ParseInt(attempt)
		s.retried = n > 1
	}
	return s, nil
}

// key is the group that the row belongs to.
func (s spent) key(by string) string {
	key := ""
	switch by {
	case "session":
		key = s.session
	case "lane":
		key = s.lane
	case "provider":
		key = s.provider
	case "model":
		if s.provider != "" || s.model != "" {
			key = s.provider + "/" + s.model
		}
	case "day":
		if s.at > 0 {
			key = time.UnixMilli(s.at).UTC().Format(time.DateOnly)
		}
	}
	if key == "" {
		return unknownCause
	}
	return key
}

// ledger is the table of all rows.
func (o *usageOptions) ledger(all []spending) table {
	var sessions, ids, entries []string
	for _, s := range all {
		sessions = append(sessions, s.session)
		for _, row := range s.rows {
			ids, entries = append(ids, row.row.ID), append(entries, row.row.EntryID)
		}
	}
	session, id, entry := o.shortIDs(sessions), o.shortIDs(ids), o.shortIDs(entries)
	t := table{header: append([]string{"session", "time", "id", "entry", "lane", "model"}, usageColumns()...)}
	for _, s := range all {
		for _, row := range s.rows {
			at, model := "", ""
			if row.at > 0 {
				at = o.when(row.at)
			}
			if row.provider != "" {
				model = row.provider + "/" + row.model
			}
			cells := []string{session(row.session), at, id(row.row.ID), entry(row.row.EntryID), row.lane, model}
			t.rows = append(t.rows, append(cells, usageCells(row.usage)...))
		}
	}
	return t
}

// shortIDs is that of the printer, but for CSV, which is read by programs.
func (o *usageOptions) shortIDs(ids []string) func(string) string {
	if o.csv {
		return func(id string) string { return id }
	}
	return o.out.shortIDs(ids)
}

func (o *usageOptions) when(ms int64) string {
	if o.csv {
		return instant(ms)
	}
	return o.out.when(ms)
}

// group is what several rows have used together.
type group struct {
	key                        string
	totals                     usageSum
	rows, failed, retried, sum int64
}

// groups are the groups by their keys.
type groups map[string]*group

// at is the group of a key.
func (g groups) at(key string) *group {
	if g[key] == nil {
		g[key] = &group{key: key}
	}
	return g[key]
}

// add adds rows up by a key.
func (g groups) add(by string, rows []spent) {
	for _, row := range rows {
		to := g.at(row.key(by))
		to.totals.add(row.usage)
		to.rows++
		to.failed += one(row.failed)
		to.retried += one(row.retried)
		to.sum += one(row.summary)
	}
}

// merge adds the groups of another session.
func (g groups) merge(other groups) {
	for key, from := range other {
		to := g.at(key)
		to.totals.merge(from.totals)
		to.rows += from.rows
		to.failed += from.failed
		to.retried += from.retried
		to.sum += from.sum
	}
}

// sorted are the groups in the order of their keys.
func (g groups) sorted() []*group {
	all := slices.Collect(maps.Values(g))
	slices.SortFunc(all, func(a, b *group) int { return strings.Compare(a.key, b.key) })
	return all
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// grouped answers with the groups of all rows; err is what reading them ended
// with.
func (o *usageOptions) grouped(err error, all []spending) error {
	merged := groups{}
	for _, s := range all {
		merged.merge(s.groups)
	}
	groups := merged.sorted()
	return o.out.result(err, func(d *object) {
		d.array("groups", len(groups), func(i int, d *object) {
			g := groups[i]
			d.str("key", g.key)
			d.value("totals", g.totals.total())
			d.int("rows", g.rows)
			d.int("failed", g.failed)
			d.int("retried", g.retried)
			d.int("structural", g.sum)
		})
	}, func(w io.Writer) error {
		t := table{header: slices.Concat([]string{o.by}, usageColumns(), groupColumns())}
		name := func(key string) string { return key }
		if o.by == "session" {
			var ids []string
			for _, g := range groups {
				ids = append(ids, g.key)
			}
			name = o.shortIDs(ids)
		}
		for _, g := range groups {
			row := append([]string{name(g.key)}, usageCells(g.totals.total())...)
			for _, n := range []int64{g.rows, g.failed, g.retried, g.sum} {
				row = append(row, strconv.FormatInt(n, 10))
			}
			t.rows = append(t.rows, row)
		}
		return o.render(w, t)
	})
}

func groupColumns() []string { return []string{"rows", "failed", "retried", "structural"} }

func usageColumns() []string {
	return []string{"input", "output", "cacheRead", "cacheWrite", "totalTokens", "cost"}
}

func usageCells(u message.Usage) []string {
	cells := make([]string, 0, 6)
	for _, n := range []int64{u.Input, u.Output, u.CacheRead, u.CacheWrite, u.TotalTokens} {
		cells = append(cells, strconv.FormatInt(n, 10))
	}
	return append(cells, strconv.FormatFloat(u.Cost.Total, 'f', -1, 64))
}

// render writes a table as text or CSV.
func (o *usageOptions) render(w io.Writer, t table) error {
	if !o.csv {
		for _, row := range t.rows {
			for i, cell := range row {
				row[i] = escapeLine(cell)
			}
		}
		t.whole = slices.Concat([]string{"session", "id", "entry"}, usageColumns(), groupColumns())
		return t.render(w, o.out.width)
	}
	out := csv.NewWriter(w)
	if err := out.Write(t.header); err != nil {
		return err
	}
	return out.WriteAll(t.rows)
}
