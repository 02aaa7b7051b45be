package enginetest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Story is what a session has come to, without ids and times.
type Story struct {
	Branches []string // every branch of the tree, a line per entry, errors left out
	Main     string   // the branch that main stands on
	End      []string // of the last operation: kind, outcome, completion, code, final answer
	Values   []string
	Bills    []string // of entries, as what they say and cost
	// Summaries are the ledger rows of answers that a summary was made of, Refusals
	// those of answers that failed.
	Summaries, Refusals int
	Failures            int // answers that are errors
	// Called is how each call of a tool ended, Ran how often it was run.
	Called map[string]string
	Ran    map[string]int
	Never  map[string]bool // calls of tools that must not run again
}

// teller builds a story.
type teller struct {
	Story
	box     *Toolbox
	entries map[string]store.Entry
	lines   map[string]string
}

// Story reads the session as another process would.
func (w *World) Story() (Story, error) {
	w.TB.Helper()
	t := &teller{
		Story: Story{Called: map[string]string{}, Never: map[string]bool{}}, box: w.Toolbox,
		entries: map[string]store.Entry{}, lines: map[string]string{},
	}
	ctx, r := w.TB.Context(), w.View()
	entries, err := r.ScanEntries(ctx, store.EntryQuery{})
	if err != nil {
		return t.Story, err
	}
	parents := map[string]bool{}
	for _, e := range entries {
		t.entries[e.ID] = e
		t.lines[e.ID] = t.line(e)
		parents[e.ParentID] = true
	}
	for _, e := range entries {
		if !parents[e.ID] {
			t.Branches = append(t.Branches, t.branch(e.ID))
		}
	}
	for _, step := range []func(context.Context, store.Reader) error{t.end, t.values, t.bills} {
		if err := step(ctx, r); err != nil {
			return t.Story, err
		}
	}
	t.Ran, err = w.Toolbox.Ran()
	return t.Story, err
}

// branch writes a branch, oldest first.
func (t *teller) branch(leaf string) string {
	var lines []string
	for id := leaf; id != ""; id = t.entries[id].ParentID {
		if line := t.lines[id]; line != "" {
			lines = append(lines, line)
		}
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}

// line writes an entry, "" for one that a crash may leave out.
func (t *teller) line(e store.Entry) string {
	switch e.Type {
	case store.TypeMessage:
		return t.message(e.Message())
	case store.TypeCustom:
		data, _ := rawjson.Get(e.Payload, "data")
		return fmt.Sprintf("custom %s %s", e.CustomType, data)
	}
	summary, _ := rawjson.GetString(e.Payload, "summary")
	hook, _ := rawjson.GetBool(e.Payload, "fromHook")
	s := fmt.Sprintf("%s %q from hook %t", e.Type, summary, hook)
	tail, _ := rawjson.Get(e.Payload, "retainedTail")
	for m, err := range rawjson.Elements(tail) {
		if err == nil {
			s += fmt.Sprintf(" keeps %q", message.Message(m).Text())
		}
	}
	if from, ok := rawjson.GetString(e.Payload, "fromId"); ok {
		s += fmt.Sprintf(" from %q", t.entries[from].Message().Text())
	}
	return s
}

func (t *teller) message(m message.Message) string {
	switch m.Role() {
	case message.RoleAssistant:
		return t.answer(m)
	case message.RoleToolResult:
		return t.result(m)
	}
	return fmt.Sprintf("%s %q", m.Role(), m.Text())
}

func (t *teller) answer(m message.Message) string {
	if m.StopReason() == message.StopError {
		t.Failures++
		return ""
	}
	s := fmt.Sprintf("answer %s %s", m.StopReason(), strings.TrimSuffix(fmt.Sprintf("%q", m.Text()), `"`))
	if m.StopReason() == message.StopAborted {
		return s // the calls of an aborted answer are no calls
	}
	for _, c := range m.ToolCalls() {
		s += fmt.Sprintf(" %s=%s(%s)", c.ID, c.Name, c.Arguments)
		tool, known := t.box.Lookup(c.Name)
		t.Never[c.ID] = !known || !tool.ReplaySafe()
	}
	return s
}

func (t *teller) result(m message.Message) string {
	id := resultOf(m)
	how := "done"
	if isError, _ := rawjson.GetBool(m, "isError"); isError {
		how = "error"
	}
	details, _ := m.Get("details")
	text := m.Text()
	if reason, ok := rawjson.GetString(details, "synthetic"); ok {
		how = reason
		blocks, _ := m.Blocks() // the last one explains; before it stands what was saved
		text = ""
		for _, b := range blocks[:max(0, len(blocks)-1)] {
			text += b.Text
		}
	}
	t.Called[id] = how
	if text != "" {
		how += " " + text
	}
	return "result " + id + " " + how
}

func (t *teller) end(ctx context.Context, r store.Reader) error {
	info, err := engine.ReadExecution(ctx, r, store.MainLane, engine.Owner{})
	if err != nil {
		return err
	}
	t.Main = t.branch(string(info.LeafID))
	if info.Current != nil {
		t.End = append(t.End, "open at "+string(info.Current.Point))
	}
	if last := info.LastResult; last != nil {
		code := ""
		if last.Error != nil {
			code = last.Error.Code
		}
		t.End = append(t.End, string(last.Kind), string(last.Outcome), string(last.RunCompletion), code, t.lines[last.FinalAssistantEntryID])
	}
	return nil
}

// values are the values that outlive operations; anything else is left over.
func (t *teller) values(ctx context.Context, r store.Reader) error {
	snap, err := r.Snapshot(ctx)
	if err != nil {
		return err
	}
	records, err := store.Collect(snap)
	for _, rec := range records {
		if rec.Kind != store.KindValue && rec.Kind != store.KindList {
			continue
		}
		switch ns := rec.Address.Namespace; ns {
		case "pi.lane.leaf", "pi.lane.lastResult", "pi.lane.state":
		case "pi.entry.label":
			t.Values = append(t.Values, fmt.Sprintf("%s of %q = %s", ns, t.lines[rec.Address.Key], rec.Value))
		case "pi.pending.entry":
			t.Values = append(t.Values, fmt.Sprintf("%s %s", ns, pendingText(rec.Value)))
		default:
			t.Values = append(t.Values, fmt.Sprintf("%s = %s", rec.Address, rec.Value))
		}
	}
	return err
}

func pendingText(raw []byte) string {
	m, _ := rawjson.Get(raw, "message")
	return message.Message(m).Text()
}

func (t *teller) bills(ctx context.Context, r store.Reader) error {
	rows, err := r.ScanUsage(ctx, store.UsageQuery{})
	if err != nil {
		return err
	}
	billed := map[string]int{}
	for _, row := range rows {
		if row.EntryID == "" {
			if t.summary(row.Details) == message.StopError {
				t.Refusals++
			} else {
				t.Summaries++
			}
			continue
		}
		billed[row.EntryID]++
		usage, _ := message.ParseUsage(row.Usage)
		if line := t.lines[row.EntryID]; line != "" {
			t.Bills = append(t.Bills, fmt.Sprintf("%d in, %d out: %s", usage.Input, usage.Output, line))
		}
	}
	for id, e := range t.entries {
		if e.Type == store.TypeMessage && e.Message().Role() == message.RoleAssistant && billed[id] != 1 {
			return fmt.Errorf("answer %q is billed %d times", t.lines[id], billed[id])
		}
	}
	return nil
}

// summary reads how the answer of a row that belongs to no entry had ended.
func (t *teller) summary(details []byte) message.StopReason {
	attribution, _ := rawjson.Get(details, "attribution")
	outcome, _ := rawjson.GetString(attribution, "outcome")
	return message.StopReason(outcome)
}

// difference says how a story differs from the one without deaths, beyond what
// they may change; "" when it does not.
func (d Differs) difference(want, got Story, deaths int) string {
	if len(got.Branches) == 1 && slices.Contains(d.Else, got.Main) {
		want.Branches, want.Main, want.Bills = got.Branches, got.Main, got.Bills
	}
	switch {
	case len(want.Branches) != len(got.Branches):
		return fmt.Sprintf("%d branches, want %d:\n%s", len(got.Branches), len(want.Branches), strings.Join(got.Branches, "\n---\n"))
	case !d.sameEnd(want.End, got.End):
		return fmt.Sprintf("it ends with %q, want %q", got.End, want.End)
	case got.Failures < want.Failures || got.Failures > want.Failures+deaths || d.Capped && got.Failures != want.Failures:
		return fmt.Sprintf("%d failed answers, %d without a death", got.Failures, want.Failures)
	case got.Summaries < want.Summaries && !d.Cut || got.Summaries > want.Summaries+2*deaths:
		return fmt.Sprintf("%d rows of summaries, %d without a death", got.Summaries, want.Summaries)
	case got.Refusals < want.Refusals-deaths || got.Refusals > want.Refusals+deaths:
		return fmt.Sprintf("%d rows of failed summaries, %d without a death", got.Refusals, want.Refusals)
	}
	for i := range want.Branches {
		if why := d.sameBranch(want.Branches[i], got.Branches[i]); why != "" {
			return why
		}
	}
	if why := d.sameBranch(want.Main, got.Main); why != "" {
		return "main: " + why
	}
	if !slices.Equal(want.Values, got.Values) {
		return fmt.Sprintf("values %q, want %q", got.Values, want.Values)
	}
	return d.sameBills(want.Bills, got.Bills)
}

func (d Differs) sameEnd(want, got []string) bool {
	return slices.EqualFunc(want, got, func(a, b string) bool { return a == b || slices.Contains(d.Codes, b) || d.sameLine(a, b) })
}

func (d Differs) sameBranch(want, got string) string {
	if slices.EqualFunc(strings.Split(want, "\n"), strings.Split(got, "\n"), d.sameLine) {
		return ""
	}
	return fmt.Sprintf("the branch is\n%s\nwant\n%s", got, want)
}

func (d Differs) sameLine(want, got string) bool {
	if want == got {
		return true
	}
	if d.Cut && strings.HasPrefix(want, "answer aborted") && strings.HasPrefix(got, "answer aborted") {
		return strings.HasPrefix(want, got)
	}
	id, _, ok := strings.Cut(strings.TrimPrefix(want, "result "), " ")
	how, same := strings.CutPrefix(got, "result "+id+" ")
	return ok && strings.HasPrefix(want, "result ") && same && slices.Contains(d.Results[id], how)
}

// sameBills compares what was paid for what: what a death may change in a line it
// may also change in its cost.
func (d Differs) sameBills(want, got []string) string {
	paid := map[string]int{}
	for _, bill := range want {
		paid[bill]++
	}
	for _, bill := range got {
		paid[bill]--
	}
	for bill, n := range paid {
		_, line, _ := strings.Cut(bill, ": ")
		id, _, _ := strings.Cut(strings.TrimPrefix(line, "result "), " ")
		if n == 0 || d.Cut && strings.HasPrefix(line, "answer aborted") || strings.HasPrefix(line, "result ") && len(d.Results[id]) > 0 {
			continue
		}
		return fmt.Sprintf("%q was paid %d times too few", bill, n)
	}
	return ""
}

// broken says what no end may show, whatever died: a call that ran although it
// was not to, or did not although it has a result.
func (s Story) broken() string {
	for id, how := range s.Called {
		ran := s.Ran[id]
		switch {
		case s.Never[id] && ran > 1:
			return fmt.Sprintf("call %s ran %d times", id, ran)
		case (how == "done" || how == "error") && ran == 0:
			return fmt.Sprintf("call %s has a result and never ran", id)
		case how != "done" && how != "error" && how != "interrupted" && ran > 0:
			return fmt.Sprintf("call %s ran, and its result says %s", id, how)
		}
	}
	if len(s.End) > 0 && strings.HasPrefix(s.End[0], "open") {
		return "an operation is " + s.End[0]
	}
	return ""
}
