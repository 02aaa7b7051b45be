package cli

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

type logOptions struct {
	base
	session string
}

func newLogCmd(f *factory, runF func(context.Context, *logOptions) error) *cobra.Command {
	if runF == nil {
		runF = runLog
	}
	o := &logOptions{}
	return &cobra.Command{
		Use:   "log SESSION",
		Short: "Draw the whole tree of a session",
		Long: `Draw the whole tree of a session, the oldest entry first: every branch, where the
lanes stand, the labels, and what was compacted. The branch of main goes straight
down, others are indented.` + exitHelp(exitOK, exitUsage, exitNotFound, exitCorrupt, exitIO, exitVersion),
		Args:              maxArgs(1),
		ValidArgsFunction: completeSession(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.session, _, err = sessionArg(f, args); err != nil {
				return err
			}
			if o.base, err = f.base("log"); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
}

func runLog(ctx context.Context, o *logOptions) error {
	return o.withReader(ctx, o.session, func(ref store.Ref, r store.Reader) error {
		t, err := readTree(ctx, r)
		if err != nil {
			return err
		}
		return o.out.result(nil, func(d *object) {
			d.str("session", ref.ID)
			d.array("entries", len(t.entries), func(i int, d *object) { t.write(d, i) })
		}, func(w io.Writer) error { return t.draw(w, o.out) })
	})
}

// tree is every entry of a session in seq order, with what hangs on it.
type tree struct {
	entries []store.Entry
	labels  map[string]string
	lanes   map[string][]string // by leaf, "" is before the first entry
	main    string              // the leaf of main

	children [][]int // by index of the parent, the roots last
}

func readTree(ctx context.Context, r store.Reader) (*tree, error) {
	t := &tree{labels: map[string]string{}, lanes: map[string][]string{}}
	var err error
	if t.entries, err = r.ScanEntries(ctx, store.EntryQuery{}); err != nil {
		return nil, err
	}
	labels, err := store.Scan(ctx, r, store.EntryLabels())
	if err != nil {
		return nil, err
	}
	for _, l := range labels {
		t.labels[l.Address.Key] = l.Value
	}
	known := make(map[string]bool, len(t.entries))
	for _, e := range t.entries {
		if known[e.ID] = true; e.ParentID != "" && !known[e.ParentID] {
			return nil, store.MissingEntry(e.ParentID, "entry "+e.ID)
		}
	}
	leaves, err := store.Scan(ctx, r, store.LaneLeaves())
	if err != nil {
		return nil, err
	}
	for _, l := range leaves {
		if l.Value != "" && !known[string(l.Value)] {
			return nil, store.MissingEntry(string(l.Value), "lane "+l.Address.Key)
		}
		t.lanes[string(l.Value)] = append(t.lanes[string(l.Value)], l.Address.Key)
		if l.Address.Key == store.MainLane {
			t.main = string(l.Value)
		}
	}
	return t, nil
}

func (t *tree) write(d *object, i int) {
	e := t.entries[i]
	d.str("id", e.ID)
	d.value("parentId", store.LeafID(e.ParentID))
	d.int("seq", e.Seq)
	d.str("type", string(e.Type))
	d.optStr("customType", e.CustomType)
	d.int("timestamp", e.Timestamp)
	d.optStr("label", t.labels[e.ID])
	d.strs("lanes", t.lanes[e.ID])
	d.str("text", entryText(e))
}

// entryText is what an entry says.
func entryText(e store.Entry) string {
	if m := e.Message(); m != nil {
		return m.Text()
	}
	summary, _ := rawjson.GetString(e.Payload, "summary")
	return summary
}

// link finds the children of every entry, in seq order, the one that goes
// straight on last: towards main's leaf, else towards the newest entry.
func (t *tree) link() {
	root := len(t.entries)
	index := make(map[string]int, root)
	for i, e := range t.entries {
		index[e.ID] = i
	}
	parent := make([]int, root)
	newest := make([]int, root) // of the entry and what is below it
	t.children = make([][]int, root+1)
	for i, e := range t.entries {
		p, ok := index[e.ParentID]
		if !ok {
			p = root
		}
		parent[i], newest[i] = p, i
		t.children[p] = append(t.children[p], i)
	}
	for i := root - 1; i >= 0; i-- {
		if p := parent[i]; p < root {
			newest[p] = max(newest[p], newest[i])
		}
	}
	straight := make([]bool, root)
	if i, ok := index[t.main]; ok {
		for ; i < root; i = parent[i] {
			straight[i] = true
		}
	}
	for _, children := range t.children {
		slices.SortStableFunc(children, func(a, b int) int {
			switch {
			case straight[a] != straight[b]:
				return int(one(straight[a]) - one(straight[b]))
			case len(children) > 1:
				return newest[a] - newest[b]
			}
			return 0
		})
	}
}

// step is an entry to be drawn: what stands before it, and before what follows
// it.
type step struct {
	entry      int
	lead, rest string
}

func (t *tree) draw(w io.Writer, p *printer) error {
	t.link()
	ids := make([]string, len(t.entries))
	for i, e := range t.entries {
		ids[i] = e.ID
	}
	short, out := p.shortIDs(ids), &lines{w: w}
	if lanes := t.lanes[""]; len(lanes) > 0 {
		out.line("%s", p.paint(dim, "○ root", p.outTTY)+t.marks(p, lanes, ""))
	}
	var stack []step
	push := func(children []int, prefix string) {
		for i := len(children) - 1; i >= 0; i-- {
			if i == len(children)-1 {
				stack = append(stack, step{children[i], prefix, prefix})
			} else {
				stack = append(stack, step{children[i], prefix + "├─", prefix + "│ "})
			}
		}
	}
	push(t.children[len(t.entries)], "")
	for len(stack) > 0 && out.err == nil {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		out.line("%s", t.node(p, s, short))
		push(t.children[s.entry], s.rest)
	}
	return out.err
}

// node is the line of one entry.
func (t *tree) node(p *printer, s step, short func(string) string) string {
	e := t.entries[s.entry]
	mark, who := describeEntry(e)
	head := s.lead + mark + " " + p.paint(dim, short(e.ID), p.outTTY) + " " + who
	marks := t.marks(p, t.lanes[e.ID], t.labels[e.ID])
	text, _, _ := strings.Cut(strings.TrimSpace(entryText(e)), "\n")
	if text == "" {
		return head + marks
	}
	width := foldWidth
	if p.width > 0 {
		width = p.width
	}
	// Every character may take an escape: what cannot fit is cut before.
	text = escapeLine(text[:min(len(text), 4*width)])
	used := len([]rune(s.lead)) + len(short(e.ID)) + len(who) + len([]rune(marks)) + 5
	return head + marks + ": " + shorten(text, max(width-used, 20))
}

// marks shows the lanes that stand at an entry and its label.
func (t *tree) marks(p *printer, lanes []string, label string) string {
	s := ""
	if len(lanes) > 0 {
		s += " " + p.paint(cyan, "["+escapeLine(strings.Join(lanes, ", "))+"]", p.outTTY)
	}
	if label != "" {
		s += " " + p.paint(bold, "«"+escapeLine(label)+"»", p.outTTY)
	}
	return s
}

// describeEntry says what kind of entry it is.
func describeEntry(e store.Entry) (mark, who string) {
	switch e.Type {
	case store.TypeCompaction:
		return "◆", "compaction"
	case store.TypeBranchSummary:
		return "◇", "branch summary"
	case store.TypeCustom:
		return "·", "custom " + escapeLine(e.CustomType)
	case store.TypeMessage:
		return "●", describeMessage(e.Message())
	}
	return "●", escapeLine(string(e.Type))
}

func describeMessage(m message.Message) string {
	who := speaker(m)
	if m.Role() == message.RoleToolResult {
		name, _ := rawjson.GetString(m, "toolName")
		who = "result of " + escapeLine(name)
	}
	if m.Role() != message.RoleAssistant {
		return who
	}
	for _, call := range m.ToolCalls() {
		who += " → " + escapeLine(call.Name)
	}
	if reason := m.StopReason(); reason == message.StopError || reason == message.StopAborted {
		who += " (" + string(reason) + ")"
	}
	return who
}
