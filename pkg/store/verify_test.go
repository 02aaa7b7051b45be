package store_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// dump is a reader of records as they are, sound or not.
type dump struct {
	store.Reader // no query but those below
	records      []store.Record
	stats        []store.Stats // answers in turn, the last one from then on
	nextSeq      int64
	err          error // after the records
	own          []store.Problem
	header       store.Header
}

func (d *dump) Header() store.Header { return d.header }

func (d *dump) Stats(context.Context) (store.Stats, error) {
	s := d.stats[0]
	if len(d.stats) > 1 {
		d.stats = d.stats[1:]
	}
	return s, nil
}

func (d *dump) Snapshot(context.Context) (*store.Snapshot, error) {
	snap := store.NewSnapshot(store.Header{ID: "s"}, d.records)
	snap.NextSeq = d.nextSeq
	records := snap.Records
	snap.Records = func(yield func(store.Record, error) bool) {
		for r := range records {
			if !yield(r, nil) {
				return
			}
		}
		if d.err != nil {
			yield(store.Record{}, d.err)
		}
	}
	return snap, nil
}

func (d *dump) Problems(context.Context) iter.Seq[store.Problem] { return slices.Values(d.own) }

const (
	mainLeaf   = `"e1"`
	idleState  = `{"currentOperationId":null,"pendingNextRun":[]}`
	busyState  = `{"currentOperationId":"o1","pendingNextRun":[]}`
	goodConfig = `{"model":{"provider":"p","modelId":"m"},"thinkingLevel":"off","activeToolNames":[]}`
)

func valueRecord(ns, key, text string) store.Record {
	return store.Record{Kind: store.KindValue, Op: store.OpSet, Address: store.Address{Namespace: ns, Key: key}, Value: raw(text)}
}

func listRecord(ns, key, text string) store.Record {
	return store.Record{Kind: store.KindList, Op: store.OpAppend, Address: store.Address{Namespace: ns, Key: key}, Value: raw(text)}
}

func entryRecord(id, parent string, typ store.EntryType, customType, payload string) store.Record {
	return store.Record{Kind: store.KindEntry, Entry: &store.Entry{
		Structure: store.Structure{ID: id, ParentID: parent, Type: typ, CustomType: customType}, Payload: raw(payload)}}
}

func messageRecord(id, parent, text string) store.Record {
	return entryRecord(id, parent, store.TypeMessage, "", `{"message":`+text+`}`)
}

func usageRecord(id, entryID, text string) store.Record {
	return store.Record{Kind: store.KindUsage, Usage: &store.UsageRow{ID: id, EntryID: entryID, Usage: raw(text)}}
}

// sound is a session without a problem; extra records follow it.
func sound(extra ...store.Record) *dump {
	records := append([]store.Record{
		valueRecord("pi.lane.leaf", "main", mainLeaf), valueRecord("pi.lane.state", "main", idleState),
		messageRecord("e1", "", `{"role":"user","content":"hi"}`),
		usageRecord("u1", "e1", `{"input":3,"cost":{"total":0.1}}`),
	}, extra...)
	return number(records)
}

func number(records []store.Record) *dump {
	d := &dump{records: records, nextSeq: int64(len(records)) + 1}
	var stats store.Stats
	for i := range d.records {
		d.records[i].Seq = int64(i) + 1
		stats = stats.Add(d.records[i])
	}
	d.stats = []store.Stats{stats}
	return d
}

func verify(t *testing.T, r store.Reader, checks ...store.Check) []string {
	t.Helper()
	var got []string
	for p := range store.Verify(t.Context(), r, checks...) {
		got = append(got, fmt.Sprintf("%s %s %s: %s", p.Severity, p.Code, p.Where, p.Message))
	}
	return got
}

const (
	userText      = `{"role":"user","content":"x"}`
	callText      = `{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"n","arguments":{}},{"type":"toolCall","id":"c2","name":"n","arguments":{}}],"stopReason":"toolUse"}`
	twiceText     = `{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"n","arguments":{}},{"type":"toolCall","id":"c1","name":"n","arguments":{}}],"stopReason":"toolUse"}`
	pendingText   = `{"role":"assistant","content":[],"stopReason":"pending"}`
	goodSummary   = `{"summary":"s","retainedTail":[],"tokensBefore":1,"fromHook":false}`
	goodBranchSum = `{"summary":"s","fromId":"e1","fromHook":true}`
)

func resultText(call string) string {
	return `{"role":"toolResult","toolCallId":"` + call + `","toolName":"n","content":[],"isError":false}`
}

func TestVerifySoundSessions(t *testing.T) {
	for name, d := range map[string]*dump{
		"small": sound(),
		"every kind": sound(
			valueRecord("pi.lane.config", "main", goodConfig), valueRecord("pi.lane.lastResult", "main", `{}`),
			valueRecord("pi.lane.leaf", "side", "null"), valueRecord("pi.lane.state", "side", busyState), valueRecord("pi.lane.config", "side", goodConfig),
			valueRecord("pi.op.meta", "o1", `{}`), valueRecord("pi.op.state", "o1", `{}`), valueRecord("pi.session.name", "", `"n"`),
			valueRecord("pi.entry.label", "e1", `"l"`), valueRecord("app", "k", `null`), valueRecord("drover.subs.ref", "k", `1`),
			valueRecord("pi.pending.entry", "p1", `{"type":"message","payload":{"role":"user"}}`),
			valueRecord("pi.pending.entry", "p2", `{"type":"custom","customType":"c"}`),
			listRecord("pi.pending.assistant_frame", "o1:x", `{}`), listRecord("pi.pending.assistant_frame", "o1:x", `{}`), listRecord("app", "l", `1`),
			entryRecord("e2", "e1", store.TypeCompaction, "", goodSummary), entryRecord("e3", "e2", store.TypeBranchSummary, "", goodBranchSum),
			entryRecord("e4", "e3", store.TypeCustom, "c", `{}`), messageRecord("r2", "", userText), usageRecord("u2", "", `{}`),
			usageRecord("u3", "later", `{}`), messageRecord("later", "e4", userText)),
		"tool results": sound(
			messageRecord("a", "e1", callText), messageRecord("r1", "a", resultText("c1")), entryRecord("note", "r1", store.TypeCustom, "c", `{}`),
			messageRecord("r2", "note", resultText("c2")),
			messageRecord("r1'", "a", resultText("c1")), // on another branch
			messageRecord("u", "r2", userText), messageRecord("a'", "u", callText), messageRecord("r1''", "a'", resultText("c1"))),
	} {
		if got := verify(t, d); len(got) > 0 {
			t.Errorf("%s: %s", name, strings.Join(got, "\n"))
		}
	}
}

func TestVerifyFindsDamage(t *testing.T) {
	for name, c := range map[string]struct {
		d    *dump
		want []string
	}{
		"an entry under an entry's id":     {sound(messageRecord("e1", "", userText)), []string{"error duplicate_id entry e1: the id is taken by an earlier entry or usage row"}},
		"usage without an id":              {sound(usageRecord("", "", `{}`)), []string{`error empty_id usage "": the id is empty`}},
		"usage under an entry's id":        {sound(usageRecord("e1", "", `{}`)), []string{"error duplicate_id usage e1: the id is taken by an earlier entry or usage row"}},
		"an entry under a usage row's id":  {sound(messageRecord("u1", "", userText)), []string{"error duplicate_id entry u1: the id is taken by an earlier entry or usage row"}},
		"a parent that is missing":         {sound(messageRecord("e2", "gone", userText)), []string{"error missing_parent entry e2: parent gone does not exist"}},
		"a parent that is a usage row":     {sound(messageRecord("e2", "u1", userText)), []string{"error missing_parent entry e2: parent u1 is a usage row"}},
		"a parent that comes later":        {sound(messageRecord("e2", "e3", userText), messageRecord("e3", "e1", userText)), []string{"error parent_order entry e2: parent e3 comes after its child"}},
		"an entry that is its own parent":  {sound(messageRecord("e2", "e2", userText)), []string{"error parent_order entry e2: parent e2 comes after its child"}},
		"custom without a custom type":     {sound(entryRecord("e2", "e1", store.TypeCustom, "", `{}`)), []string{`error custom_type entry e2: a custom entry has custom type ""`}},
		"a message with a custom type":     {sound(entryRecord("e2", "e1", store.TypeMessage, "c", `{"message":`+userText+`}`)), []string{`error custom_type entry e2: a message entry has custom type "c"`}},
		"an unknown type":                  {sound(entryRecord("e2", "e1", "novel", "", `{}`)), []string{`error unknown_type entry e2: entry type "novel" is unknown`}},
		"a payload that is not JSON":       {sound(entryRecord("e2", "e1", store.TypeCustom, "c", `{"a":}`)), []string{"error invalid_payload entry e2: payload is not JSON: expected a value"}},
		"a payload that is no object":      {sound(entryRecord("e2", "e1", store.TypeCustom, "c", `[]`)), []string{"error invalid_payload entry e2: payload is no JSON object"}},
		"a message without a role":         {sound(messageRecord("e2", "e1", `{"0":"{","1":"\""}`)), []string{"error invalid_message entry e2: message field role is missing"}},
		"a message of an unknown role":     {sound(messageRecord("e2", "e1", `{"role":"robot"}`)), []string{`warning unknown_role entry e2: message field role "robot" is unknown`}},
		"a message of an empty role":       {sound(messageRecord("e2", "e1", `{"role":""}`)), []string{`error invalid_message entry e2: message field role "" is unknown`}},
		"a payload that is not UTF-8":      {sound(messageRecord("e2", "e1", "{\"role\":\"user\",\"content\":\"a\xff\"}")), []string{"error invalid_utf8 entry e2: byte 38 of the payload is not UTF-8"}},
		"a value that is not UTF-8":        {sound(valueRecord("app", "k", "\"\xed\xa0\x80\"")), []string{"error invalid_utf8 app/k: byte 1 of the payload is not UTF-8"}},
		"a message that is no object":      {sound(messageRecord("e2", "e1", `"text"`)), []string{"error invalid_message entry e2: message is not a JSON object"}},
		"a message entry without one":      {sound(entryRecord("e2", "e1", store.TypeMessage, "", `{"terminate":true}`)), []string{"error invalid_message entry e2: message entry has no message"}},
		"an odd message":                   {sound(messageRecord("e2", "e1", `{"role":"user","content":7}`)), []string{"warning message_shape entry e2: message field content is neither text nor blocks"}},
		"a pending answer":                 {sound(messageRecord("e2", "e1", pendingText)), []string{"error pending_assistant entry e2: assistant message is still pending"}},
		"a compaction without its tail":    {sound(entryRecord("e2", "e1", store.TypeCompaction, "", `{"summary":"s","tokensBefore":1,"fromHook":false}`)), []string{"error invalid_payload entry e2: compaction entry has no proper retainedTail"}},
		"a summary that is no text":        {sound(entryRecord("e2", "e1", store.TypeBranchSummary, "", `{"summary":null,"fromHook":false}`)), []string{"error invalid_payload entry e2: branch_summary entry has no proper summary"}},
		"two calls of one id":              {sound(messageRecord("a", "e1", twiceText), messageRecord("r1", "a", resultText("c1")), messageRecord("r2", "r1", resultText("c1"))), nil},
		"three results of them":            {sound(messageRecord("a", "e1", twiceText), messageRecord("r1", "a", resultText("c1")), messageRecord("r2", "r1", resultText("c1")), messageRecord("r3", "r2", resultText("c1"))), []string{`warning second_result entry r3: tool call "c1" has a result already`}},
		"two results of one call":          {sound(messageRecord("a", "e1", callText), messageRecord("r1", "a", resultText("c1")), messageRecord("r2", "r1", resultText("c2")), messageRecord("r3", "r2", resultText("c1"))), []string{`warning second_result entry r3: tool call "c1" has a result already`}},
		"a result without a call":          {sound(messageRecord("r", "e1", resultText("c1")), messageRecord("a", "r", callText), messageRecord("r2", "a", resultText("c9"))), []string{`warning result_without_call entry r: no assistant message before it made the tool call "c1"`, `warning result_without_call entry r2: no assistant message before it made the tool call "c9"`}},
		"usage that is no object":          {sound(usageRecord("u2", "", `7`)), []string{"error invalid_usage usage u2: usage payload is no JSON object"}},
		"usage of an absent entry":         {sound(usageRecord("u2", "gone", `{}`), usageRecord("u3", "u1", `{}`)), []string{"warning usage_entry usage u2: the usage row belongs to entry gone, which does not exist", "warning usage_entry usage u3: the usage row belongs to entry u1, which does not exist"}},
		"details that are not JSON":        {sound(store.Record{Kind: store.KindUsage, Usage: &store.UsageRow{ID: "u2", Usage: raw(`{}`), Details: raw(`{`)}}), []string{"error invalid_usage usage u2: details are not JSON: unexpected end of text"}},
		"an unknown reserved namespace":    {sound(valueRecord("pi.novel", "a", `1`), valueRecord("pi.novel", "b", `1`), listRecord("pi", "", `1`)), []string{"warning unknown_namespace pi.novel/a: namespace pi.novel is reserved and unknown", "warning unknown_namespace pi: namespace pi is reserved and unknown"}},
		"a list where a value belongs":     {sound(listRecord("pi.op.meta", "o", `1`)), []string{"error address_kind pi.op.meta/o: a list where a value belongs"}},
		"a value where a list belongs":     {sound(valueRecord("pi.pending.assistant_frame", "o", `1`)), []string{"error address_kind pi.pending.assistant_frame/o: a value where a list belongs"}},
		"a value and a list of one name":   {sound(valueRecord("app", "k", `1`), listRecord("app", "k", `1`)), []string{"error address_kind app/k: both a value and a list have this address"}},
		"a value stored twice":             {sound(valueRecord("app", "k", `1`), valueRecord("app", "k", `2`)), []string{"error duplicate_value app/k: the value is stored twice"}},
		"an unusable address":              {sound(valueRecord("", "k", `1`)), []string{"error invalid_address /k: address has an empty namespace"}},
		"a value that is not JSON":         {sound(valueRecord("app", "k", `{`)), []string{"error bad_value app/k: not JSON: unexpected end of text"}},
		"a name that is no text":           {sound(valueRecord("pi.session.name", "", `7`)), []string{"error bad_value pi.session.name: not a string"}},
		"a label of an absent entry":       {sound(valueRecord("pi.entry.label", "gone", `"l"`), valueRecord("pi.entry.label", "u1", `"l"`)), []string{"warning label_target pi.entry.label/gone: the label's entry does not exist", "warning label_target pi.entry.label/u1: the label's entry does not exist"}},
		"pending content of a placed id":   {sound(valueRecord("pi.pending.entry", "e1", `{"type":"custom","customType":"c"}`)), []string{"error pending_placed pi.pending.entry/e1: the pending content is an entry already"}},
		"pending content of a usage id":    {sound(valueRecord("pi.pending.entry", "u1", `{"type":"custom","customType":"c"}`)), []string{"error pending_placed pi.pending.entry/u1: the reserved id is a usage row"}},
		"pending content without a type":   {sound(valueRecord("pi.pending.entry", "p", `{}`)), []string{"error bad_value pi.pending.entry/p: pending entry has no type"}},
		"pending content of another type":  {sound(valueRecord("pi.pending.entry", "p", `{"type":"compaction"}`)), []string{`error bad_value pi.pending.entry/p: pending entry has type "compaction"`}},
		"a pending message without one":    {sound(valueRecord("pi.pending.entry", "p", `{"type":"message"}`)), []string{"error bad_value pi.pending.entry/p: pending message has no message"}},
		"a pending custom without a type":  {sound(valueRecord("pi.pending.entry", "p", `{"type":"custom"}`)), []string{"error bad_value pi.pending.entry/p: pending custom entry has no custom type"}},
		"a lane without a leaf and state":  {sound(valueRecord("pi.lane.config", "side", goodConfig)), []string{"error lane_incomplete lane side: the lane has no leaf", "error lane_incomplete lane side: the lane has no state"}},
		"a result of a lane that is none":  {sound(valueRecord("pi.lane.lastResult", "side", `{}`)), []string{"error lane_incomplete lane side: the lane has no leaf", "error lane_incomplete lane side: the lane has no state", "error lane_incomplete lane side: the lane has no configuration"}},
		"an idle lane without a config":    {sound(valueRecord("pi.lane.leaf", "side", `null`), valueRecord("pi.lane.state", "side", idleState)), []string{"error lane_incomplete lane side: the lane has no configuration"}},
		"a leaf that does not exist":       {sound(valueRecord("pi.lane.leaf", "a", `"gone"`), valueRecord("pi.lane.state", "a", idleState), valueRecord("pi.lane.config", "a", goodConfig)), []string{"error lane_leaf lane a: leaf gone does not exist"}},
		"a leaf that is a usage row":       {sound(valueRecord("pi.lane.leaf", "a", `"u1"`), valueRecord("pi.lane.state", "a", idleState), valueRecord("pi.lane.config", "a", goodConfig)), []string{"error lane_leaf lane a: leaf u1 does not exist"}},
		"lane values of the wrong shape":   {sound(valueRecord("pi.lane.leaf", "a", `7`), valueRecord("pi.lane.state", "a", `{"currentOperationId":null}`), valueRecord("pi.lane.config", "a", `{"model":{"provider":"p","modelId":"m"},"thinkingLevel":"off"}`)), []string{"error bad_value pi.lane.leaf/a: neither an entry id nor null", "error bad_value pi.lane.state/a: lane state has no pendingNextRun", "error bad_value pi.lane.config/a: lane configuration has no activeToolNames"}},
		"a lane name that nobody can type": {sound(valueRecord("pi.lane.leaf", "a\n", `null`), valueRecord("pi.lane.state", "a\n", idleState), valueRecord("pi.lane.config", "a\n", goodConfig)), []string{"warning lane_name lane a\n: lane name \"a\\n\" holds the control character U+000A"}},
		"no lane main":                     {number([]store.Record{messageRecord("e1", "", userText)}), []string{"error no_main lane main: the session has no lane main"}},
		"a busy main without a config":     {number([]store.Record{valueRecord("pi.lane.leaf", "main", `null`), valueRecord("pi.lane.state", "main", busyState)}), []string{"error lane_incomplete lane main: the lane has no configuration"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, verify(t, c.d)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVerifyLineage(t *testing.T) {
	for parent, want := range map[string][]string{
		"":      nil,
		"other": nil,
		"s1":    {"error fork_lineage header: the session is its own parent"},
		"../s":  {`warning fork_lineage header: parent session "../s" is no session id`},
	} {
		d := sound()
		d.header = store.Header{ID: "s1", ParentSessionID: parent}
		if diff := cmp.Diff(want, verify(t, d)); diff != "" {
			t.Errorf("parent %q (-want +got):\n%s", parent, diff)
		}
	}
}

func TestVerifySequenceNumbers(t *testing.T) {
	d := sound(messageRecord("e2", "e1", userText), valueRecord("app", "k", "1"))
	d.records[4].Seq, d.records[5].Seq = 4, 4 // as the usage row
	d.nextSeq = 4
	want := []string{
		"error sequence entry e2: sequence number 4 does not rise above 4",
		"error sequence app/k: sequence number 4 does not rise above 4",
		"error sequence : the next sequence number is 4, but 4 has been given",
	}
	if diff := cmp.Diff(want, verify(t, d)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestVerifyStats(t *testing.T) {
	good := sound().stats[0]
	more := good.Add(messageRecord("x", "", userText))
	dearer := good
	dearer.Usage.Cost.Total = 0.2
	for name, c := range map[string]struct {
		stats []store.Stats
		want  int
	}{
		"equal":                        {[]store.Stats{good}, 0},
		"another count":                {[]store.Stats{more}, 1},
		"another cost":                 {[]store.Stats{dearer}, 1},
		"a commit before the snapshot": {[]store.Stats{more, good}, 0},
		"a commit after the snapshot":  {[]store.Stats{good, more}, 0},
		"commits on both sides":        {[]store.Stats{dearer, more}, 0},
	} {
		d := sound()
		d.stats = c.stats
		got := verify(t, d)
		if len(got) != c.want || c.want == 1 && !strings.HasPrefix(got[0], "error stats : stats say") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestVerifyUnreadable(t *testing.T) {
	d := sound()
	d.err = &store.Corrupt{Path: "/s.jsonl", Line: 3, Offset: 77, Msg: "broken"}
	if diff := cmp.Diff([]string{"error corrupt line 3, byte 77: /s.jsonl: line 3 (byte 77): broken"}, verify(t, d)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for p := range store.Verify(ctx, sound()) {
		if p.Code != "unreadable" || p.Message != context.Canceled.Error() {
			t.Errorf("a cancelled check reports %+v", p)
		}
	}
}

func TestProblemOf(t *testing.T) {
	for want, err := range map[store.Problem]error{
		{Code: "corrupt", Severity: "error", Message: "open: p: byte 5: bad", Where: "byte 5"}:                                fmt.Errorf("open: %w", &store.Corrupt{Path: "p", Offset: 5, Msg: "bad"}),
		{Code: "corrupt", Severity: "error", Message: "p: bad"}:                                                               &store.Corrupt{Path: "p", Offset: -1, Msg: "bad"},
		{Code: "newer_version", Severity: "error", Message: (&store.NewerVersion{Path: "p", Found: 2, Supported: 1}).Error()}: &store.NewerVersion{Path: "p", Found: 2, Supported: 1},
		{Code: "unreadable", Severity: "error", Message: "disk gone"}:                                                         errors.New("disk gone"),
	} {
		if got := store.ProblemOf(err); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestVerifyRunsOtherChecks(t *testing.T) {
	d := sound()
	d.own = []store.Problem{{Code: "framing", Severity: store.SeverityError, Message: "m", Where: "w"}}
	want := []string{"error framing w: m", "warning op saw [1 2 3 4]: ", "warning more saw [1 2 3 4]: "}
	if diff := cmp.Diff(want, verify(t, d, checkCoded("op"), checkCoded("more"))); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// A check that could not see every record has nothing to say.
func TestVerifyDropsChecksOfWhatCannotBeRead(t *testing.T) {
	d := sound()
	d.err = errors.New("disk gone")
	if diff := cmp.Diff([]string{"error unreadable : disk gone"}, verify(t, d, checkCoded("op"))); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// seen is a check whose one finding tells which records came.
type seen struct {
	code string
	seqs []int64
}

func checkCoded(code string) store.Check {
	return func(context.Context, store.Reader) store.Inspection { return &seen{code: code} }
}

func (s *seen) Record(r *store.Record) { s.seqs = append(s.seqs, r.Seq) }

func (s *seen) Problems() iter.Seq[store.Problem] {
	return slices.Values([]store.Problem{{Code: s.code, Severity: store.SeverityWarning, Where: fmt.Sprintf("saw %d", s.seqs)}})
}

// patient is a reader whose own check has an end only when it is cut short.
type patient struct{ *dump }

func (p patient) Problems(ctx context.Context) iter.Seq[store.Problem] {
	return func(func(store.Problem) bool) { <-ctx.Done() }
}

// Nobody waits for a check of the encoding whose findings are not wanted.
func TestVerifyCutsTheEncodingsCheckShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := sound(messageRecord("a", "gone", userText))
		for p := range store.Verify(context.Background(), patient{d}) {
			if p.Code != "missing_parent" {
				t.Errorf("got %+v", p)
			}
			break
		}
	})
}

func TestVerifyStopsWhenToldTo(t *testing.T) {
	d := sound(messageRecord("a", "gone", userText), messageRecord("a", "gone", userText), valueRecord("pi.x", "", `1`))
	d.own = []store.Problem{{Code: "own"}, {Code: "own"}}
	never := checkCoded("late")
	all := verify(t, d, never)
	for n := range len(all) {
		seen := 0
		for range store.Verify(t.Context(), d, never) {
			if seen++; seen > n {
				break // a check that went on would panic
			}
		}
	}
	if len(all) != 7 {
		t.Errorf("problems %q", all)
	}
}

func TestVerifyRealSession(t *testing.T) {
	s, _ := recorded(t)
	tree := s.View("main")
	id := appendUser(t, tree)
	if err := tree.SetLabel(t.Context(), id, "l"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateLane(t.Context(), "side", id, store.LaneConfiguration{Model: message.ModelRef{Provider: "p", ModelID: "m"}, ThinkingLevel: "off"}); err != nil {
		t.Fatal(err)
	}
	if got := verify(t, s); len(got) > 0 {
		t.Errorf("problems %q", got)
	}
	counts, err := store.CountOf(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(store.Counts{Entries: 1, Messages: 1, Values: 6, Lanes: 2}, counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func TestCountOf(t *testing.T) {
	d := sound(entryRecord("e2", "e1", store.TypeCustom, "c", `{}`), listRecord("app", "a", `1`), listRecord("app", "a", `2`), listRecord("app", "b", `3`))
	counts, err := store.CountOf(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(store.Counts{Entries: 2, Messages: 1, Usage: 1, Values: 2, Lists: 2, Lanes: 1}, counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	d.err = errors.New("disk gone")
	if _, err := store.CountOf(t.Context(), d); !errors.Is(err, d.err) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkVerify(b *testing.B) {
	records := sound().records
	parent := "e1"
	ids := store.NewIDs(store.SystemNow, nil)
	size := 0
	for range 100_000 {
		id := ids.NewID()
		r := messageRecord(id, parent, `{"role":"assistant","content":[{"type":"text","text":"`+strings.Repeat("x", 900)+`"}],"stopReason":"stop"}`)
		size += len(r.Entry.Payload)
		records = append(records, r)
		parent = id
	}
	d := number(records)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		for p := range store.Verify(b.Context(), d) {
			b.Fatal(p)
		}
	}
}
