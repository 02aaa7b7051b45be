package storetest

import (
	"errors"
	"testing"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

func assistantJSON(stop message.StopReason) message.Message {
	return message.Message(`{"role":"assistant","content":[{"type":"text","text":"é ` + string(stop) + `"}],"stopReason":"` + string(stop) + `","n":1.0}`)
}

func refusesPendingMessage(t *testing.T, f *fixture) {
	s, _ := create(t, f.repo(t), store.CreateOptions{ID: "s1"})
	before := contents(t, s)
	_, err := s.View(store.MainLane).AppendMessage(t.Context(), assistantJSON(message.StopPending))
	var invalid *store.InvalidWrite
	if !errors.As(err, &invalid) {
		t.Fatalf("append: got %v, want *InvalidWrite", err)
	}
	same(t, "contents", contents(t, s), before)
}

func keepsStopReasons(t *testing.T, f *fixture) {
	s, _ := create(t, f.repo(t), store.CreateOptions{ID: "s1"})
	tree := s.View(store.MainLane)
	stops := []message.StopReason{message.StopStop, message.StopLength, message.StopToolUse, message.StopError, message.StopAborted, message.StopDeferred}
	var last string
	for _, stop := range stops {
		id, err := tree.AppendMessage(t.Context(), assistantJSON(stop))
		if err != nil {
			t.Fatalf("append: %v", err)
		}
		last = id
	}
	es, err := tree.FindEntriesOnBranch(t.Context(), store.BranchQuery{OldestFirst: true})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "entries", len(es), len(stops))
	for i, e := range es {
		same(t, "message", string(e.Message()), string(assistantJSON(stops[i])))
	}
	leaf, err := tree.LeafID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "leaf", string(leaf), last)
	same(t, "stats", stats(t, s), store.Stats{MessageCount: int64(len(stops))})
}

func refusesBusyLane(t *testing.T, f *fixture) {
	s, _ := create(t, f.repo(t), store.CreateOptions{ID: "s1"})
	tree := s.View(store.MainLane)
	state := store.LaneStateOf(store.MainLane)
	if err := store.SetValue(t.Context(), tree, state, store.LaneState{CurrentOperationID: "op1"}); err != nil {
		t.Fatal(err)
	}
	before := contents(t, s)
	_, msgErr := tree.AppendMessage(t.Context(), message.Message(userJSON("x")))
	_, customErr := tree.AppendCustomEntry(t.Context(), "app.c", nil)
	for _, err := range []error{msgErr, customErr} {
		var busy *store.LaneBusy
		if !errors.As(err, &busy) || *busy != (store.LaneBusy{Lane: store.MainLane, OperationID: "op1"}) {
			t.Fatalf("append beside an operation: got %v, want *LaneBusy", err)
		}
	}
	same(t, "contents", contents(t, s), before)
	if err := store.SetValue(t.Context(), tree, state, store.LaneState{}); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.AppendCustomEntry(t.Context(), "app.c", nil); err != nil {
		t.Fatalf("append on an idle lane: %v", err)
	}
}

func createsLanes(t *testing.T, f *fixture) {
	r := f.repo(t)
	s, ref := create(t, r, store.CreateOptions{ID: "s1"})
	ctx := t.Context()
	root, err := s.View(store.MainLane).AppendMessage(ctx, message.Message(userJSON("root")))
	if err != nil {
		t.Fatal(err)
	}
	cfg := store.LaneConfiguration{Model: message.ModelRef{Provider: "p", ModelID: "m"}, ThinkingLevel: "off"}
	side, err := s.CreateLane(ctx, "sïde", root, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateLane(ctx, "empty", "", cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := side.AppendMessage(ctx, message.Message(userJSON("side"))); err != nil {
		t.Fatal(err)
	}
	before := contents(t, s)
	var exists *store.LaneExists
	if _, err := s.CreateLane(ctx, "sïde", "", cfg); !errors.As(err, &exists) || exists.Lane != "sïde" {
		t.Errorf("an existing lane: got %v", err)
	}
	var unknown *store.UnknownTarget
	if _, err := s.CreateLane(ctx, "other", "absent", cfg); !errors.As(err, &unknown) || unknown.ID != "absent" {
		t.Errorf("an unknown target: got %v", err)
	}
	for _, name := range []string{"", "a\x00", "a\n", "\u0085", "\xff", string(make([]byte, 129))} {
		var invalid *store.InvalidLane
		if _, err := s.CreateLane(ctx, name, "", cfg); !errors.As(err, &invalid) {
			t.Errorf("lane %q: got %v, want *InvalidLane", name, err)
		}
	}
	var noLane *store.UnknownLane
	if _, err := s.View("other").AppendCustomEntry(ctx, "c", nil); !errors.As(err, &noLane) || !errors.Is(err, store.ErrNotFound) {
		t.Errorf("append to an unknown lane: got %v", err)
	}
	same(t, "contents", contents(t, s), before)

	closeSession(t, s)
	s = openSession(t, r, ref)
	names, err := s.Lanes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "lanes", names, []string{"empty", "main", "sïde"})
	for lane, want := range map[string]int{"empty": 0, "main": 1, "sïde": 2} {
		es, err := s.View(lane).FindEntriesOnBranch(ctx, store.BranchQuery{})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "entries on "+lane, len(es), want)
	}
}

func importsSession(t *testing.T, f *fixture) {
	r := f.repo(t)
	rs := sampleRecords(t)
	h := richHeader()
	ref, err := r.Import(t.Context(), store.NewSnapshot(h, rs), store.ImportOptions{Backend: f.driver.Name()})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "ref", ref, store.Ref{ID: "s1", Path: f.path("s1"), Backend: f.driver.Name()})
	if _, err := r.Import(t.Context(), store.NewSnapshot(h, nil), store.ImportOptions{}); !errors.Is(err, store.ErrExists) {
		t.Fatalf("second import: got %v, want ErrExists", err)
	}
	s := openSession(t, r, ref)
	same(t, "records", records(t, s), rs)
	h.NextSeq = s.Header().NextSeq
	same(t, "header", s.Header(), h)
}

func replacesSession(t *testing.T, f *fixture) {
	r := f.repo(t)
	s, ref := create(t, r, store.CreateOptions{ID: "s1"})
	replace := func() error {
		_, err := r.Import(t.Context(), store.NewSnapshot(header("s1"), sampleRecords(t)), store.ImportOptions{Replace: true})
		return err
	}
	if err := replace(); !errors.Is(err, store.ErrOpen) {
		t.Fatalf("replacement of an open session: got %v, want ErrOpen", err)
	}
	closeSession(t, s)
	other := openSession(t, f.repo(t), ref)
	var held *store.Held
	if err := replace(); !errors.As(err, &held) {
		t.Fatalf("replacement of another's session: got %v, want *Held", err)
	}
	closeSession(t, other)
	for generation := int64(2); generation <= 3; generation++ {
		if err := replace(); err != nil {
			t.Fatalf("replace: %v", err)
		}
		h, err := r.Header(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "generation", h.Generation, generation)
	}
	same(t, "records", records(t, openSession(t, r, ref)), sampleRecords(t))
}
