package rewrite_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/rewrite"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
)

// conversation writes entries as a script says, one a line: NAME PARENT KIND,
// where a parent of - is none and the kinds are user, text, call:ID,..., result:ID,
// compaction, summary:FROM. It returns the ids by name.
func (w *world) conversation(script string) map[string]string {
	w.tb.Helper()
	ids := map[string]string{"-": ""}
	for line := range strings.Lines(strings.TrimSpace(script)) {
		f := strings.Fields(line)
		kind, arg, _ := strings.Cut(f[2], ":")
		t, payload := store.TypeMessage, ""
		switch kind {
		case "user":
			payload = fmt.Sprintf(`{"message":{"role":"user","content":%q,"timestamp":1}}`, f[0])
		case "text":
			payload = assistant(fmt.Sprintf(`{"type":"text","text":%q}`, f[0]), "")
		case "call":
			var calls []string
			for c := range strings.SplitSeq(arg, ",") {
				calls = append(calls, fmt.Sprintf(`{"type":"toolCall","id":%q,"name":"bash","arguments":{}}`, c))
			}
			payload = assistant(strings.Join(calls, ","), "")
		case "result":
			payload = fmt.Sprintf(`{"message":{"role":"toolResult","toolCallId":%q,"toolName":"bash","content":[],"isError":false,"timestamp":1}}`, arg)
		case "compaction":
			t = store.TypeCompaction
			payload = `{"summary":"all","retainedTail":[{"role":"user","content":"u1","timestamp":1},{"role":"user","content":"u2","timestamp":1}],"tokensBefore":1,"fromHook":false,"details":{"files":[1]}}`
		case "summary":
			t = store.TypeBranchSummary
			payload = fmt.Sprintf(`{"fromId":%q,"summary":"a branch","fromHook":false}`, ids[arg])
		}
		ids[f[0]] = w.below(ids[f[1]], t, "", payload)
	}
	return ids
}

// shown is the tree after a rewrite, NAME<PARENT in order, and main's leaf.
func (w *world) shown(ids map[string]string) string {
	w.tb.Helper()
	names := make(map[string]string)
	for name, id := range ids {
		names[id] = name
	}
	var out []string
	leaf := ""
	for _, r := range records(w.tb, w.s) {
		switch {
		case r.Entry != nil:
			out = append(out, names[r.Entry.ID]+"<"+names[r.Entry.ParentID])
		case r.Address.Namespace == "pi.lane.leaf":
			leaf = string(r.Value)
		}
	}
	for id, name := range names {
		leaf = strings.ReplaceAll(leaf, `"`+id+`"`, name)
	}
	return strings.Join(out, " ") + " leaf " + leaf
}

func (w *world) leafAt(id string) {
	w.tb.Helper()
	w.commit(store.LaneLeaf("main").Set(store.LeafID(id)))
	w.leaf = id
}

const talk = `
u1 - user
a1 u1 call:c1,c2
r1 a1 result:c1
r2 r1 result:c2
a2 r2 text
u2 a2 user
a3 u2 text
`

func TestWhatGoes(t *testing.T) {
	for _, tt := range []struct {
		name, script, leaf string
		drop, branch       string
		prune              bool
		want               string
	}{
		{name: "one entry", script: talk, drop: "u2", want: "u1<- a1<u1 r1<a1 r2<r1 a2<r2 a3<a2 leaf a3"},
		{name: "a result takes its call and the other results along", script: talk, drop: "r2", want: "u1<- a2<u1 u2<a2 a3<u2 leaf a3"},
		{name: "a call takes its results along", script: talk, drop: "a1", want: "u1<- a2<u1 u2<a2 a3<u2 leaf a3"},
		{name: "the root", script: talk, drop: "u1", want: "a1<- r1<a1 r2<r1 a2<r2 u2<a2 a3<u2 leaf a3"},
		{name: "everything", script: talk, branch: "u1", want: " leaf null"},
		{name: "a branch moves the lane up", script: talk, branch: "u2", want: "u1<- a1<u1 r1<a1 r2<r1 a2<r2 leaf a2"},
		{name: "a branch that begins between call and result", script: talk, branch: "r2", want: "u1<- leaf u1"},
		{name: "results beside what goes on leave the call", script: talk + "u3 a1 user\n", leaf: "u3", prune: true, want: "u1<- a1<u1 u3<a1 leaf u3"},
		{name: "a call of a pruned branch", script: talk + "u3 u1 user\n", leaf: "u3", prune: true, want: "u1<- u3<u1 leaf u3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, jsonl.Driver{})
			ids := w.conversation(tt.script)
			if tt.leaf != "" {
				w.leafAt(ids[tt.leaf])
			}
			s := &rewrite.Selection{PruneAbandoned: tt.prune}
			if tt.drop != "" {
				s.DropEntries = []string{ids[tt.drop]}
			}
			if tt.branch != "" {
				s.DropBranches = []string{ids[tt.branch]}
			}
			w.rewrite(s)
			if got := w.shown(ids); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

const summarized = `
u1 - user
u2 u1 user
c1 u2 compaction
u3 c1 user
c2 u3 compaction
x1 u1 user
x2 x1 user
b1 c2 summary:x2
u4 b1 user
`

// Content that was made from what goes is refused, dropped or emptied, whether it
// is a summary of the path, of a branch, or of another summary.
func TestDerived(t *testing.T) {
	for _, tt := range []struct{ drop, derived, dropped string }{
		{"u1", "c1 c2", "u2<- u3<u2 x1<- x2<x1 b1<u3 u4<b1 leaf u4"},
		{"u3", "c2", "u1<- u2<u1 c1<u2 x1<u1 x2<x1 b1<c1 u4<b1 leaf u4"},
		{"x1", "b1", "u1<- u2<u1 c1<u2 u3<c1 c2<u3 x2<u1 u4<c2 leaf u4"},
		{"u4", "", "u1<- u2<u1 c1<u2 u3<c1 c2<u3 x1<u1 x2<x1 b1<c2 leaf b1"},
	} {
		t.Run(tt.drop, func(t *testing.T) {
			w := newWorld(t, jsonl.Driver{})
			ids := w.conversation(summarized)
			p, err := w.plan(&rewrite.Selection{DropEntries: []string{ids[tt.drop]}})
			if err != nil {
				t.Fatal(err)
			}
			var want, got []string
			for _, name := range strings.Fields(tt.derived) {
				want = append(want, ids[name])
			}
			for _, d := range p.Derived {
				got = append(got, d.EntryID)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("derived (-want +got):\n%s", diff)
			}
			if _, refused := errors.AsType[*rewrite.DerivedContent](p.Refusal()); refused != (len(want) > 0) {
				t.Errorf("refusal: %v", p.Refusal())
			}
			w.rewrite(&rewrite.Selection{DropEntries: []string{ids[tt.drop]}, Derived: rewrite.DerivedDrop})
			if got := w.shown(ids); got != tt.dropped {
				t.Errorf("got  %s\nwant %s", got, tt.dropped)
			}
		})
	}
}

// Summaries that go with the branch that they are of are not asked about. One that
// stays is, also when it was made from a summary that goes.
func TestDerivedThatGoes(t *testing.T) {
	for _, tt := range []struct{ branch, derived string }{
		{"u1", ""},
		{"c1", ""},
		{"x1", "b1"},
	} {
		w := newWorld(t, jsonl.Driver{})
		ids := w.conversation(summarized + "c3 x2 compaction\n")
		p, err := w.plan(&rewrite.Selection{DropBranches: []string{ids[tt.branch]}})
		if err != nil {
			t.Fatal(err)
		}
		var want []rewrite.DerivedEntry
		for _, name := range strings.Fields(tt.derived) {
			want = append(want, rewrite.DerivedEntry{EntryID: ids[name], Type: store.TypeBranchSummary})
		}
		if diff := cmp.Diff(want, p.Derived); diff != "" {
			t.Errorf("below %s (-want +got):\n%s", tt.branch, diff)
		}
	}
}

func TestDerivedRedact(t *testing.T) {
	w := newWorld(t, jsonl.Driver{})
	ids := w.conversation(summarized)
	w.rewrite(&rewrite.Selection{DropEntries: []string{ids["u2"], ids["x2"]}, Derived: rewrite.DerivedRedact})
	entries, err := w.s.Entries(t.Context(), []string{ids["c1"], ids["b1"]})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"c1": `{"summary":"[redacted]","retainedTail":[{"role":"user","content":"u1","timestamp":1}],"tokensBefore":1,"fromHook":false}`,
		"b1": fmt.Sprintf(`{"fromId":%q,"summary":"[redacted]","fromHook":false}`, ids["x1"]),
	} {
		if got := string(entries[ids[name]].Payload); got != want {
			t.Errorf("%s is %s\nwant %s", name, got, want)
		}
	}
}

// What refers to a dropped entry leads to its nearest kept ancestor, or goes; the
// ledger keeps its numbers (D55).
func TestReferences(t *testing.T) {
	w := newWorld(t, jsonl.Driver{})
	ids := w.conversation(talk + "b1 u1 summary:a3\n")
	w.leafAt(ids["a3"])
	w.set("pi.entry.label", ids["a3"], `"gone with its entry"`)
	w.set("pi.lane.lastResult", "main", fmt.Sprintf(`{"operationId":"op","kind":"run","outcome":"completed","leafId":%q,"finalAssistantEntryId":%[1]q,"runCompletion":"assistant"}`, ids["a3"]))
	w.commit(store.InsertUsage(store.NewUsage{ID: id(900), EntryID: ids["a3"], RawUsage: []byte(`{"input":7}`), Details: []byte(`{"note":"x","attribution":{"lane":"main"}}`)}))
	w.commit(store.InsertUsage(store.NewUsage{ID: id(901), EntryID: ids["u2"], RawUsage: []byte(`{"input":5}`), Details: []byte(`{"note":"x"}`)}))
	p := w.rewrite(&rewrite.Selection{DropEntries: []string{ids["a3"]}, Derived: rewrite.DerivedRedact})
	if want := (rewrite.Counts{Entries: 1, Values: 1}); p.Dropped != want {
		t.Errorf("dropped %+v", p.Dropped)
	}
	var got []string
	for _, r := range records(t, w.s) {
		switch {
		case r.Usage != nil:
			got = append(got, fmt.Sprintf("%s %s %s", r.Usage.EntryID, r.Usage.Usage, r.Usage.Details))
		case r.Entry != nil && r.Entry.ID == ids["b1"]:
			got = append(got, string(r.Entry.Payload))
		case slices.Contains([]string{"pi.lane.leaf", "pi.lane.lastResult", "pi.entry.label"}, r.Address.Namespace):
			got = append(got, string(r.Value))
		}
	}
	want := []string{
		fmt.Sprintf(`{"fromId":%q,"summary":"[redacted]","fromHook":false}`, ids["u2"]),
		`"` + ids["u2"] + `"`,
		fmt.Sprintf(`{"operationId":"op","kind":"run","outcome":"completed","leafId":%q,"runCompletion":"assistant"}`, ids["u2"]),
		` {"input":7} {"attribution":{"lane":"main"}}`,
		ids["u2"] + ` {"input":5} {"note":"x"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	p = w.rewrite(&rewrite.Selection{DropEntries: []string{ids["u2"]}, DropUsage: true, Derived: rewrite.DerivedRedact})
	if p.Dropped.Usage != 1 {
		t.Errorf("dropped %+v", p.Dropped)
	}
}

// New ids keep the time of their entries, and every reference follows.
func TestRemint(t *testing.T) {
	w := newWorld(t, jsonl.Driver{})
	ids := w.conversation(summarized)
	w.set("pi.entry.label", ids["u4"], `"label"`)
	before := records(t, w.s)
	w.rewrite(&rewrite.Selection{RemintIDs: true, IDs: w.s.IDs()})
	after := records(t, w.s)
	to := make(map[string]string)
	for i, r := range before {
		if r.Entry == nil {
			continue
		}
		old, next := r.Entry.ID, after[i].Entry.ID
		to[old] = next
		if at, err := store.IDTime(next); old == next || err != nil || at != r.Entry.Timestamp {
			t.Errorf("%s became %s, %v", old, next, err)
		}
	}
	swap := func(text string) string {
		for old, next := range to {
			text = strings.ReplaceAll(text, old, next)
		}
		return text
	}
	for i, r := range before {
		if got, want := shownRecord(after[i]), swap(shownRecord(r)); got != want {
			t.Errorf("record %d is %s\nwant %s", i, got, want)
		}
	}
}

func shownRecord(r store.Record) string {
	if e := r.Entry; e != nil {
		return fmt.Sprintf("%d %+v %s", r.Seq, e.Structure, e.Payload)
	}
	return fmt.Sprintf("%d %v %s", r.Seq, r.Address, r.Value)
}

func TestUnknownIDs(t *testing.T) {
	w := newWorld(t, jsonl.Driver{})
	w.conversation(talk)
	for _, s := range []*rewrite.Selection{{DropEntries: []string{"x"}}, {DropBranches: []string{"x"}}} {
		if _, err := w.plan(s); !errors.As(err, new(*store.UnknownTarget)) {
			t.Errorf("got %v", err)
		}
		s.Lenient = true
		if p, err := w.plan(s); err != nil || !p.Empty() {
			t.Errorf("lenient: %+v, %v", p, err)
		}
	}
}
