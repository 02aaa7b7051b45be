package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/pkg/search"
	"github.com/drover-run/drover/pkg/store"
)

type searchOptions struct {
	base
	cache   string // the folder of the indexes
	query   []string
	entries bool
	limit   int
	rebuild bool
	noSync  bool
}

func newSearchCmd(f *factory, runF func(context.Context, *searchOptions) error) *cobra.Command {
	if runF == nil {
		runF = runSearch
	}
	o := &searchOptions{}
	cmd := &cobra.Command{
		Use:   "search QUERY...",
		Short: "Find sessions by what was said in them",
		Long: `Find sessions by what was said in them, the best match first; with --entries, every
entry that matches. Looked for is the text of messages: what was asked and answered,
results of tools, commands with their output. A hit on a branch that no lane's leaf is
on says so.

The words of QUERY all have to occur, in any order; case and accents do not count.
Punctuation is no obstacle: fmt.Println is looked for as fmt followed by Println.
More can be said, as in FTS5 of SQLite (quote it for the shell):

  "exact phrase"      these words in this order
  migrat*             words that begin so
  a OR b, a NOT b     AND, OR and NOT in capitals; parentheses group
  ^word               the text begins with it
  NEAR(a b, 5)        with at most 5 words between them

QUERY - is read from stdin. The index is a file per repository in
$XDG_CACHE_HOME/drover (~/.cache/drover), which may be deleted at any time. What has
changed since the last search is read first. An index that is damaged is made anew.` +
			exitHelp(exitOK, exitUsage, exitIO),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			o.query = args
			if err := o.check(); err != nil {
				return err
			}
			if o.base, err = f.base("search"); err != nil {
				return err
			}
			if o.cache, err = cacheFolder(f.env); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.entries, "entries", false, "every entry that matches, instead of the best one of a session")
	flags.IntVar(&o.limit, "limit", 20, "at most `N` hits, 0 for all")
	flags.BoolVar(&o.rebuild, "rebuild", false, "make the index anew first")
	flags.BoolVar(&o.noSync, "no-sync", false, "ask the index as it is, without looking for what has changed")
	return cmd
}

func (o *searchOptions) check() error {
	switch {
	case len(o.query) == 0:
		return usagef("what shall be found? Give QUERY, or - for stdin")
	case o.limit < 0:
		return usagef("--limit must not be negative")
	case o.rebuild && o.noSync:
		return usagef("--rebuild and --no-sync exclude each other")
	}
	return nil
}

func cacheFolder(env func(string) string) (string, error) {
	cache, ok := homeFolder(env, "XDG_CACHE_HOME", ".cache")
	if !ok {
		return "", configf("no place for the search index: neither HOME nor XDG_CACHE_HOME is set")
	}
	return filepath.Join(cache, "drover"), nil
}

func runSearch(ctx context.Context, o *searchOptions) error {
	q := search.Query{Text: strings.Join(o.query, " "), Limit: o.limit}
	if q.Text == "-" {
		text, err := readStdin(o.out)
		if err != nil {
			return err
		}
		q.Text = string(text)
	}
	// Before anything is read for it.
	if err := search.CheckQuery(q.Text); err != nil {
		return explainQuery(err)
	}
	found, err := o.find(ctx, q)
	if err != nil {
		return bySignal(ctx, explainQuery(err))
	}
	return found.report(o)
}

// explainQuery makes a query that cannot be understood a wrong argument; any other
// error is returned as it is.
func explainQuery(err error) error {
	if e, ok := errors.AsType[*search.SyntaxError](err); ok {
		f := usagef("QUERY: %s", e.Msg)
		f.cause = err
		return f.withHint("put what is to be found as it stands into double quotes; see `drover search --help`")
	}
	return err
}

// found is the answer of a search.
type found struct {
	hits    []searchHit
	synced  *search.Synced // nil when nothing was
	rebuilt bool
}

type searchHit struct {
	search.Hit
	left bool // it is on a branch that was left
}

// find asks the index, which is made anew once when it cannot be trusted.
func (o *searchOptions) find(ctx context.Context, q search.Query) (found, error) {
	path, err := search.Path(o.cache, o.repo.Dir())
	if err != nil {
		return found{}, err
	}
	answer, err := o.ask(ctx, path, q)
	if damage, ok := errors.AsType[*store.Corrupt](err); ok && damage.Path == path {
		o.tellDamage(damage)
		if err := search.Discard(ctx, path); err != nil {
			return found{}, err
		}
		o.noSync = false
		answer, err = o.ask(ctx, path, q)
		answer.rebuilt = true
	}
	if err != nil {
		return found{}, err
	}
	return answer, o.mark(ctx, answer.hits)
}

func (o *searchOptions) tellDamage(err error) {
	o.out.note("note: %s; it is made anew", escapeLine(err.Error()))
}

func (o *searchOptions) ask(ctx context.Context, path string, q search.Query) (answer found, err error) {
	open := search.Open
	if o.noSync {
		open = search.OpenExisting
	}
	x, err := open(ctx, path)
	if o.noSync && errors.Is(err, fs.ErrNotExist) {
		o.out.note("note: there is no index yet; a search without --no-sync makes it")
		return answer, nil
	}
	if err != nil {
		return answer, err
	}
	defer func() { err = firstOf(err, x.Close()) }()
	if damage := x.Discarded(); damage != nil {
		o.tellDamage(damage)
		o.noSync, answer.rebuilt = false, true
	}
	if err := o.sync(ctx, x, &answer); err != nil {
		return answer, err
	}
	ask := x.Sessions
	if o.entries {
		ask = x.Entries
	}
	hits, err := ask(ctx, q)
	for _, h := range hits {
		answer.hits = append(answer.hits, searchHit{Hit: h})
	}
	return answer, err
}

// longSync is how many take so long to read that it is told, on a terminal or not.
const longSync = 100

func (o *searchOptions) sync(ctx context.Context, x *search.Index, answer *found) error {
	if o.noSync {
		return nil
	}
	if o.rebuild {
		answer.rebuilt = true
		if err := x.Clear(ctx); err != nil {
			return err
		}
	}
	bar := o.out.newProgress("index")
	defer bar.end()
	told := false
	done, err := x.Sync(ctx, o.repo, search.SyncOptions{
		Progress: func(done, total int) {
			if total >= longSync && !told {
				told = true
				o.out.note("note: %d sessions are read into the search index; the next search reads only what has changed", total)
			}
			bar.count(done, total)
		},
		Skipped: func(l store.Listed) {
			o.out.note("not searched: %s: %s", escapeLine(l.Ref.Path), escapeLine(explain(l.Err).message))
		},
	})
	answer.synced = &done
	return err
}

// mark finds the hits that are on no path of a leaf. What the session is now decides,
// and only it can tell; of one that cannot be read nothing is said.
func (o *searchOptions) mark(ctx context.Context, hits []searchHit) error {
	bySession := map[string][]int{}
	var sessions []string
	for i, h := range hits {
		if bySession[h.SessionID] == nil {
			sessions = append(sessions, h.SessionID)
		}
		bySession[h.SessionID] = append(bySession[h.SessionID], i)
	}
	return inOrder(len(sessions), func(i int) error {
		o.markSession(ctx, hits, bySession[sessions[i]])
		return ctx.Err()
	}, func(int) {})
}

func (o *searchOptions) markSession(ctx context.Context, hits []searchHit, of []int) {
	ref, err := o.repo.Resolve(ctx, hits[of[0]].SessionID)
	if err != nil {
		return
	}
	r, err := o.repo.View(ctx, ref)
	if err != nil {
		return
	}
	defer r.Close()
	for _, i := range of {
		onPath, err := search.OnLeafPath(ctx, r, hits[i].Hit)
		hits[i].left = err == nil && !onPath
	}
}

func (f found) report(o *searchOptions) error {
	for _, h := range f.hits {
		// A failed write sticks to the stream and is reported at the end.
		_ = o.out.item(h.write)
	}
	if len(f.hits) == 0 {
		o.out.note("nothing found")
	}
	return o.out.result(nil, func(d *object) {
		d.array("items", len(f.hits), func(i int, d *object) { f.hits[i].write(d) })
		d.object("totals", f.totals)
	}, func(w io.Writer) error { return f.print(w, o.out) })
}

func (f found) totals(d *object) {
	d.int("hits", int64(len(f.hits)))
	d.bool("synced", f.synced != nil)
	d.bool("rebuilt", f.rebuilt)
	if s := f.synced; s != nil {
		d.int("sessions", int64(s.Sessions))
		d.int("changed", int64(s.Changed))
		d.int("removed", int64(s.Removed))
		d.int("skipped", int64(s.Skipped))
	}
}

func (h searchHit) write(d *object) {
	d.str("session", h.SessionID)
	d.optStr("name", h.Name)
	d.float("score", h.Score)
	d.str("entryId", h.EntryID)
	d.str("snippet", h.Text())
	d.int("timestamp", h.Timestamp)
	if h.left {
		d.bool("onLeafPath", false)
	}
}

// print shows two lines a hit: where it is, and what it says.
func (f found) print(w io.Writer, p *printer) error {
	var sessions, entries []string
	for _, h := range f.hits {
		sessions, entries = append(sessions, h.SessionID), append(entries, h.EntryID)
	}
	shortSession, shortEntry := p.shortIDs(sessions), p.shortIDs(entries)
	out := &lines{w: w}
	for _, h := range f.hits {
		head := fmt.Sprintf("%s  %s  %s", p.paint(bold, shortSession(h.SessionID), p.outTTY), shortEntry(h.EntryID), p.when(h.Timestamp))
		if h.Name != "" {
			head += "  " + escapeLine(h.Name)
		}
		if h.left {
			head += "  " + p.paint(dim, "(on a branch that was left)", p.outTTY)
		}
		out.line("%s", head)
		out.line("  %s", h.snippet(p))
	}
	return out.err
}

// snippet is safe on a terminal, where it shows what was looked for.
func (h searchHit) snippet(p *printer) string {
	var b strings.Builder
	for _, piece := range h.Snippet {
		text := escapeLine(piece.Text)
		if piece.Match {
			text = p.paint(bold, text, p.outTTY)
		}
		b.WriteString(text)
	}
	return b.String()
}
