package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/storetest"
)

var userMessage = message.Message(`{"role":"user","content":"hi"}`)

// recorded serves a fresh session and records what it commits.
func recorded(t *testing.T) (*store.Session, *storetest.Recorder) {
	t.Helper()
	r := storetest.NewRecorder(newBackend(t))
	s := serve(t, r)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, r
}

func wantTrace(t *testing.T, r *storetest.Recorder, lines ...string) {
	t.Helper()
	if diff := cmp.Diff(strings.Join(lines, "\n")+"\n", r.String()); diff != "" {
		t.Errorf("commits (-want +got):\n%s", diff)
	}
}

func appendUser(t *testing.T, tree *store.Tree) string {
	t.Helper()
	id, err := tree.AppendMessage(t.Context(), userMessage)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestAppendsAreBornPlaced(t *testing.T) {
	s, r := recorded(t)
	tree := s.View("main")
	if tree.Lane() != "main" {
		t.Errorf("lane %q", tree.Lane())
	}
	first := appendUser(t, tree)
	second, err := tree.AppendCustomEntry(t.Context(), "app.c", raw(`{"a": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	wantTrace(t, r,
		`TX[ insert entry n1 (message), upsert pi.lane.leaf/main = "n1" ]`,
		`TX[ insert entry n2 (custom app.c) under n1, upsert pi.lane.leaf/main = "n2" ]`)
	leaf, err := tree.LeafID(t.Context())
	if err != nil || string(leaf) != second {
		t.Errorf("leaf %q, %v", leaf, err)
	}
	e, ok, err := tree.Entry(t.Context(), second)
	if err != nil || !ok || string(e.Payload) != `{"data":{"a":1}}` || e.ParentID != first {
		t.Errorf("entry %+v, %v, %v", e, ok, err)
	}
	if e, ok, err := tree.Entry(t.Context(), "absent"); err != nil || ok {
		t.Errorf("an absent entry: %+v, %v, %v", e, ok, err)
	}
}

func TestRefusedAppendWritesNothing(t *testing.T) {
	s, r := recorded(t)
	for name, tree := range map[string]*store.Tree{"unknown lane": s.View("nowhere"), "custom entry without a type": s.View("main")} {
		if id, err := tree.AppendCustomEntry(t.Context(), "", nil); err == nil || id != "" {
			t.Errorf("%s: got %q, %v", name, id, err)
		}
	}
	if got := r.String(); got != "" {
		t.Errorf("committed %s", got)
	}
}

func TestConcurrentAppendsFormOneChain(t *testing.T) {
	s := store.NewSession(newBackend(t), store.SessionOptions{})
	defer s.Close()
	tree := s.View("main")
	const n = 40
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { appendUser(t, tree) })
	}
	wg.Wait()
	branch, err := tree.FindEntriesOnBranch(t.Context(), store.BranchQuery{})
	if err != nil || len(branch) != n {
		t.Errorf("%d entries on the branch, %v; want all %d", len(branch), err, n)
	}
}

func TestAppendAfterItsCallerLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, newBackend(t))
		gate := make(chan struct{})
		s.Enqueue("main", func(*store.Mutator) error { <-gate; return nil })
		ctx, cancel := context.WithCancel(t.Context())
		var id string
		var err error
		var wg sync.WaitGroup
		wg.Go(func() { id, err = s.View("main").AppendMessage(ctx, userMessage) })
		synctest.Wait()
		cancel()
		wg.Wait()
		if !errors.Is(err, context.Canceled) || id != "" {
			t.Errorf("got %q, %v", id, err)
		}
		close(gate)
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestNamesAndLabels(t *testing.T) {
	s, r := recorded(t)
	ctx, tree := t.Context(), s.View("main")
	id := appendUser(t, tree)
	r.Reset()
	if name, ok, err := tree.Name(ctx); name != "" || ok || err != nil {
		t.Errorf("name of a new session: %q, %v, %v", name, ok, err)
	}
	for _, name := range []string{"one", "two <é>"} {
		if err := tree.SetName(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	if name, ok, err := tree.Name(ctx); name != "two <é>" || !ok || err != nil {
		t.Errorf("name %q, %v, %v", name, ok, err)
	}
	if err := tree.SetLabel(ctx, id, "here"); err != nil {
		t.Fatal(err)
	}
	var unknown *store.UnknownTarget
	if err := tree.SetLabel(ctx, "absent", "x"); !errors.As(err, &unknown) || unknown.ID != "absent" || !errors.Is(err, store.ErrNotFound) {
		t.Errorf("label of an absent entry: %v", err)
	}
	if label, ok, err := tree.Label(ctx, id); label != "here" || !ok || err != nil {
		t.Errorf("label %q, %v, %v", label, ok, err)
	}
	for _, clear := range []func() error{
		func() error { return tree.SetName(ctx, "") },
		func() error { return tree.SetLabel(ctx, id, "") },
		func() error { return tree.SetLabel(ctx, "absent", "") },
	} {
		if err := clear(); err != nil {
			t.Errorf("clear: %v", err)
		}
	}
	if label, ok, err := tree.Label(ctx, id); label != "" || ok || err != nil {
		t.Errorf("a cleared label: %q, %v, %v", label, ok, err)
	}
	wantTrace(t, r,
		`TX[ upsert pi.session.name = "one" ]`,
		`TX[ upsert pi.session.name = "two <é>" ]`,
		`TX[ upsert pi.entry.label/n1 = "here" ]`,
		`TX[ delete pi.session.name ]`,
		`TX[ delete pi.entry.label/n1 ]`,
		`TX[ delete pi.entry.label/absent ]`)
}

func TestTypedValuesAndLists(t *testing.T) {
	type point struct {
		X int    `json:"x"`
		T string `json:"t"`
	}
	s, r := recorded(t)
	ctx, tree := t.Context(), s.View("main")
	where := store.NewValue[point]("app.where", "k")
	trail := store.NewList[point]("app.trail", "")
	if err := store.SetValue(ctx, tree, where, point{1, "a<b"}); err != nil {
		t.Fatal(err)
	}
	for x := range 3 {
		if err := store.AppendList(ctx, tree, trail, point{X: x}); err != nil {
			t.Fatal(err)
		}
	}
	got, ok, err := store.Get(ctx, tree, where)
	if err != nil || !ok {
		t.Fatalf("get: %v, %v", ok, err)
	}
	if diff := cmp.Diff(store.Stored[point]{Address: where.Address(), Value: point{1, "a<b"}, Seq: 3}, got); diff != "" {
		t.Errorf("value (-want +got):\n%s", diff)
	}
	page, err := store.ReadList(ctx, tree, trail, store.ListQuery{Cursor: 4})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]store.Element[point]{{5, point{X: 1}}, {6, point{X: 2}}}, page); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	scanned, err := store.Scan(ctx, tree, store.NewPrefix[point]("app.where", ""))
	if err != nil || len(scanned) != 1 || scanned[0] != got {
		t.Errorf("scan %+v, %v", scanned, err)
	}
	if err := store.DeleteValue(ctx, tree, where); err != nil {
		t.Fatal(err)
	}
	if err := store.DeleteList(ctx, tree, trail); err != nil {
		t.Fatal(err)
	}
	wantTrace(t, r,
		`TX[ upsert app.where/k = {"x":1,"t":"a<b"} ]`,
		`TX[ append app.trail += {"x":0,"t":""} ]`,
		`TX[ append app.trail += {"x":1,"t":""} ]`,
		`TX[ append app.trail += {"x":2,"t":""} ]`,
		`TX[ delete app.where/k ]`,
		`TX[ delete list app.trail ]`)
}

func TestBadStoredValuesNameTheirAddress(t *testing.T) {
	s, _ := recorded(t)
	ctx, tree := t.Context(), s.View("main")
	if err := store.SetValue(ctx, tree, noteA, raw(`{"x":1}`)); err != nil {
		t.Fatal(err)
	}
	if err := store.AppendList(ctx, tree, logA, raw(`"text"`)); err != nil {
		t.Fatal(err)
	}
	_, _, getErr := store.Get(ctx, tree, store.NewValue[int]("app.note", "a"))
	_, scanErr := store.Scan(ctx, tree, store.NewPrefix[int]("app.note", ""))
	_, listErr := store.ReadList(ctx, tree, store.NewList[int]("app.log", "a"), store.ListQuery{})
	_, textErr := store.ReadList(ctx, tree, store.NewList[map[string]string]("app.log", "a"), store.ListQuery{})
	for i, err := range []error{getErr, scanErr, listErr, textErr} {
		want := []store.Address{noteA.Address(), noteA.Address(), logA.Address(), logA.Address()}[i]
		var bad *store.BadValue
		if !errors.As(err, &bad) || bad.Address != want {
			t.Errorf("read %d: got %v, want *BadValue of %s", i, err, want)
		}
	}
	if _, _, err := store.Get(ctx, tree, store.NewValue[int]("", "a")); err == nil {
		t.Error("an unusable address was read")
	}
}

func TestFindEntries(t *testing.T) {
	s, _ := recorded(t)
	ctx, tree := t.Context(), s.View("main")
	m1 := appendUser(t, tree) // seq 3
	for range 2 {
		if _, err := tree.AppendCustomEntry(ctx, "app.c", nil); err != nil { // seqs 5, 7
			t.Fatal(err)
		}
	}
	side, err := s.CreateLane(ctx, "side", m1, store.LaneConfiguration{}) // seqs 9 to 11
	if err != nil {
		t.Fatal(err)
	}
	appendUser(t, side) // n4, seq 12
	ids := func(es []store.Entry, err error) []string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		out := []string{}
		for _, e := range es {
			out = append(out, e.ID)
		}
		return out
	}
	for name, c := range map[string]struct {
		q    store.FindQuery
		want []string
	}{
		"newest first over all branches": {store.FindQuery{}, []string{"n4", "n3", "n2", "n1"}},
		"oldest first":                   {store.FindQuery{OldestFirst: true}, []string{"n1", "n2", "n3", "n4"}},
		"filter":                         {store.FindQuery{Type: store.TypeCustom, CustomType: "app.c"}, []string{"n3", "n2"}},
		"cursor":                         {store.FindQuery{Cursor: 7}, []string{"n2", "n1"}},
		"cursor, oldest first":           {store.FindQuery{Cursor: 5, OldestFirst: true}, []string{"n3", "n4"}},
		"cursor before limit":            {store.FindQuery{Cursor: 12, Limit: 1}, []string{"n3"}},
		"cursor at the first number":     {store.FindQuery{Cursor: 1}, []string{}},
		"cursor before the first number": {store.FindQuery{Cursor: -1}, []string{}},
		"cursor of the first entry":      {store.FindQuery{Cursor: 3}, []string{}},
	} {
		if diff := cmp.Diff(c.want, ids(tree.FindEntries(ctx, c.q))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff([]string{"n4", "n1"}, ids(side.FindEntriesOnBranch(ctx, store.BranchQuery{}))); diff != "" {
		t.Errorf("side branch (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"n2", "n1"}, ids(side.FindEntriesOnBranch(ctx, store.BranchQuery{Start: "n2"}))); diff != "" {
		t.Errorf("branch of a given start (-want +got):\n%s", diff)
	}
	if e, ok, err := tree.FindEntry(ctx, store.FindQuery{Type: store.TypeCustom}); err != nil || !ok || e.ID != "n3" {
		t.Errorf("first: %s, %v, %v", e.ID, ok, err)
	}
	if e, ok, err := tree.FindEntry(ctx, store.FindQuery{CustomType: "absent"}); err != nil || ok {
		t.Errorf("first of none: %s, %v, %v", e.ID, ok, err)
	}
	if e, ok, err := side.FindEntryOnBranch(ctx, store.BranchQuery{CustomType: "app.c"}); err != nil || ok {
		t.Errorf("first on a branch without: %s, %v, %v", e.ID, ok, err)
	}
	if e, ok, err := tree.FindEntryOnBranch(ctx, store.BranchQuery{OldestFirst: true}); err != nil || !ok || e.ID != "n1" {
		t.Errorf("root: %s, %v, %v", e.ID, ok, err)
	}
	if _, err := s.View("nowhere").FindEntriesOnBranch(ctx, store.BranchQuery{}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("branch of an unknown lane: %v", err)
	}
}

func TestCreateLaneWritesItsThreeValues(t *testing.T) {
	s, r := recorded(t)
	cfg := store.LaneConfiguration{Model: message.ModelRef{Provider: "p", ModelID: "m/1"}, ThinkingLevel: "high", ActiveToolNames: []string{"bash", "a\"b"}}
	if _, err := s.CreateLane(t.Context(), "side", "", cfg); err != nil {
		t.Fatal(err)
	}
	wantTrace(t, r, `TX[ upsert pi.lane.config/side = {"model":{"provider":"p","modelId":"m/1"},"thinkingLevel":"high","activeToolNames":["bash","a\"b"]}, `+
		`upsert pi.lane.leaf/side = null, upsert pi.lane.state/side = {"currentOperationId":null,"pendingNextRun":[]} ]`)
	got, ok, err := store.Get(t.Context(), s, store.LaneConfig("side"))
	if err != nil || !ok {
		t.Fatalf("config: %v, %v", ok, err)
	}
	if diff := cmp.Diff(cfg, got.Value); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

func TestTwoCreationsOfOneLane(t *testing.T) {
	s, _ := recorded(t)
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { _, errs[i] = s.CreateLane(t.Context(), "side", "", store.LaneConfiguration{}) })
	}
	wg.Wait()
	made := 0
	for _, err := range errs {
		var exists *store.LaneExists
		if err == nil {
			made++
		} else if !errors.As(err, &exists) {
			t.Error(err)
		}
	}
	if made != 1 {
		t.Errorf("%d creations succeeded", made)
	}
}

func TestCheckLane(t *testing.T) {
	for _, name := range []string{"a", "main", "slack/C1:17.5", "é 会話", strings.Repeat("x", 128), ".."} {
		if err := store.CheckLane(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, want := range map[string]string{
		"": "is empty", strings.Repeat("é", 65): "has 130 bytes, more than 128", "a\x00": "holds the control character U+0000",
		"a\tb": "holds the control character U+0009", "\u0085": "holds the control character U+0085", "a\xff": "is not UTF-8", "\xed\xa0\x80": "is not UTF-8",
	} {
		var invalid *store.InvalidLane
		if err := store.CheckLane(name); !errors.As(err, &invalid) || *invalid != (store.InvalidLane{Lane: name, Reason: want}) {
			t.Errorf("%q: got %v, want %s", name, err, want)
		}
	}
}

func TestBuiltinValuesOnTheWire(t *testing.T) {
	encode := func(w store.Write) string { return string(w.Value) }
	for want, got := range map[string]string{
		`null`:      encode(store.LaneLeaf("l").Set("")),
		`"e\ud800"`: encode(store.LaneLeaf("l").Set("e\xed\xa0\x80")),
		`{"currentOperationId":null,"pendingNextRun":[]}`:                                encode(store.LaneStateOf("l").Set(store.LaneState{})),
		`{"currentOperationId":"o","pendingNextRun":["a","b"]}`:                          encode(store.LaneStateOf("l").Set(store.LaneState{CurrentOperationID: "o", PendingNextRun: []string{"a", "b"}})),
		`{"model":{"provider":"","modelId":""},"thinkingLevel":"","activeToolNames":[]}`: encode(store.LaneConfig("l").Set(store.LaneConfiguration{})),
		`{"type":"message","payload":{"role":"user"}}`:                                   encode(store.Pending("e").Set(store.PendingEntry{Type: store.TypeMessage, Payload: raw(`{"role":"user"}`)})),
		`{"type":"custom","customType":"c"}`:                                             encode(store.Pending("e").Set(store.PendingEntry{Type: store.TypeCustom, CustomType: "c"})),
		`"<&>"`:                                                                          encode(store.SessionName().Set("<&>")),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for _, p := range []store.PendingEntry{
		{Type: store.TypeMessage, Payload: raw(`{"role":"user","a":1.0}`)},
		{Type: store.TypeCustom, CustomType: "c", Payload: raw(`null`)},
		{Type: store.TypeCustom, CustomType: "c"},
	} {
		s, _ := recorded(t)
		if err := store.SetValue(t.Context(), s.View("main"), store.Pending("e"), p); err != nil {
			t.Fatal(err)
		}
		got, ok, err := store.Get(t.Context(), s, store.Pending("e"))
		if err != nil || !ok {
			t.Fatalf("pending entry: %v, %v", ok, err)
		}
		if diff := cmp.Diff(p, got.Value); diff != "" {
			t.Errorf("pending entry (-want +got):\n%s", diff)
		}
	}
}

func TestEntryAndUsageOnTheWire(t *testing.T) {
	msg := store.Entry{
		Structure: store.Structure{ID: "e1", Seq: 3, Timestamp: 4, Type: store.TypeMessage},
		Payload:   raw(`{"message":{"role":"user","n":1.0},"terminate":true}`),
	}
	bare := store.Entry{Structure: store.Structure{ID: "e2", ParentID: "e1", Seq: 5, Timestamp: 6, Type: store.TypeCustom, CustomType: "c\""}, Payload: raw(`{}`)}
	row := store.UsageRow{ID: "u1", Seq: 7, EntryID: "e1", Adjustment: true, Usage: raw(`{"input":1}`), Details: raw(`null`)}
	for want, got := range map[string]json.Marshaler{
		`{"id":"e1","parentId":null,"seq":3,"timestamp":4,"type":"message","message":{"role":"user","n":1.0},"terminate":true}`: msg,
		`{"id":"e2","parentId":"e1","seq":5,"timestamp":6,"type":"custom","customType":"c\""}`:                                  bare,
		`{"id":"u1","seq":7,"entryId":"e1","adjustment":true,"usage":{"input":1},"details":null}`:                               row,
		`{"id":"u2","seq":8,"adjustment":false,"usage":{}}`:                                                                     store.UsageRow{ID: "u2", Seq: 8, Usage: raw(`{}`)},
	} {
		b, err := got.MarshalJSON()
		if err != nil || string(b) != want {
			t.Errorf("got %s, %v; want %s", b, err, want)
		}
	}
	if m := msg.Message(); string(m) != `{"role":"user","n":1.0}` {
		t.Errorf("message %s", m)
	}
	if m := bare.Message(); m != nil {
		t.Errorf("message of a custom entry: %s", m)
	}
}
