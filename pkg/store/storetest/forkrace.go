package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

func forkLeavesBehind(t *testing.T, f *fixture) {
	s := newForkSource(t, f)
	clean := map[store.ForkScope]forked{}
	for _, scope := range []store.ForkScope{store.ForkTree, store.ForkBranch} {
		fork, err := s.fork(store.ForkOptions{ID: "clean-" + string(scope), Scope: scope})
		if err != nil {
			t.Fatal(err)
		}
		clean[scope] = s.read(t, fork.Ref)
	}
	any := func(ns, key string) store.Write { return store.NewValue[json.RawMessage](ns, key).Set(raw(`{"x":1}`)) }
	s.mutate(t,
		store.LaneStateOf(store.MainLane).Set(store.LaneState{CurrentOperationID: "op1", PendingNextRun: []string{"n1"}}),
		any("pi.op.meta", "op1"), any("pi.op.state", "op1"), any("pi.op.tool_args", "op1/r1"), any("pi.op.tool_memo", "op1/r1/k"),
		any("pi.op.preparation", "op1"), any("pi.pending.tool_output", "op1/r1"), any("pi.lane.lastResult", "main"),
		store.Pending("n1").Set(store.PendingEntry{Type: store.TypeMessage, Payload: raw(userJSON("later"))}),
		store.NewList[json.RawMessage]("pi.pending.assistant_frame", "op1/r1").Append(raw(`{}`)),
		usageWrite("usage2", "", 3, 0),
	)
	for _, scope := range []store.ForkScope{store.ForkTree, store.ForkBranch} {
		fork, err := s.fork(store.ForkOptions{ID: "busy-" + string(scope), Scope: scope})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "fork beside an operation", s.read(t, fork.Ref), clean[scope])
	}
}

func forkRefusesUnknown(t *testing.T, f *fixture) {
	s := newForkSource(t, f)
	for _, ns := range []string{"pi", "pi.future", "pi.lane.later"} {
		v := store.NewValue[json.RawMessage](ns, "k")
		s.mutate(t, v.Set(raw("1")))
		for _, scope := range []store.ForkScope{store.ForkTree, store.ForkBranch} {
			_, err := s.fork(store.ForkOptions{ID: "dst", Scope: scope})
			var invalid *store.InvalidFork
			if !errors.As(err, &invalid) {
				t.Fatalf("%s in scope %s: got %v, want *InvalidFork", ns, scope, err)
			}
		}
		s.mutate(t, v.Delete())
	}
	s.wantListed(t, "src")
	closeSession(t, s.session)
	s.session = nil
	for _, scope := range []store.ForkScope{store.ForkTree, store.ForkBranch} {
		if _, err := s.fork(store.ForkOptions{ID: "dst-" + string(scope), Scope: scope}); err != nil {
			t.Fatalf("scope %s, once it is deleted: %v", scope, err)
		}
	}
}

// gate is a driver whose builds and headers stop at the first call of each until
// the test goes on.
type gate struct {
	store.Driver
	reached chan struct{}
	resume  chan struct{}
}

func (g *gate) Build(ctx context.Context, path string, snap *store.Snapshot, o store.BuildOptions) error {
	if g.reached != nil {
		reached := g.reached
		g.reached = nil
		close(reached)
		<-g.resume
	}
	return g.Driver.Build(ctx, path, snap, o)
}

// gatedRepo is a repository whose next build waits, over the fixture's stores.
func (s *forkSource) gatedRepo(t *testing.T) *gate {
	t.Helper()
	g := &gate{Driver: s.driver, reached: make(chan struct{}), resume: make(chan struct{})}
	r, err := store.NewRepo(store.RepoOptions{Dir: s.dir, Drivers: []store.Driver{g}, Now: func() int64 { return s.now }})
	if err != nil {
		t.Fatal(err)
	}
	s.repo = r
	return g
}

func createBeforeFork(t *testing.T, f *fixture) {
	s := newForkSource(t, f)
	g := s.gatedRepo(t)
	reached := g.reached
	created := make(chan error)
	go func() {
		made, _, err := s.repo.Create(t.Context(), store.CreateOptions{ID: "dst", Name: "created"})
		if err == nil {
			err = made.Close()
		}
		created <- err
	}()
	<-reached
	_, err := s.fork(store.ForkOptions{ID: "dst"})
	close(g.resume)
	if createErr := <-created; createErr != nil || !errors.Is(err, store.ErrExists) {
		t.Fatalf("create: %v; fork: %v, want ErrExists", createErr, err)
	}
	s.wantListed(t, "dst", "src")
}

func forkBeforeCreate(t *testing.T, f *fixture) {
	s := newForkSource(t, f)
	g := s.gatedRepo(t)
	reached := g.reached
	forked := make(chan error)
	go func() {
		_, err := s.fork(store.ForkOptions{ID: "dst"})
		forked <- err
	}()
	<-reached
	_, _, err := s.repo.Create(t.Context(), store.CreateOptions{ID: "dst"})
	close(g.resume)
	if forkErr := <-forked; forkErr != nil || !errors.Is(err, store.ErrExists) {
		t.Fatalf("fork: %v; create: %v, want ErrExists", forkErr, err)
	}
	h, err := s.repo.Header(t.Context(), store.Ref{ID: "dst", Path: s.path("dst"), Backend: s.driver.Name()})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "parent", h.ParentSessionID, "src")
}

// forkIsOneMoment asks for a fork while one commit is under way, and commits
// again after the fork took its moment and before it wrote anything: it has all
// of the first commit and nothing of the second.
func forkIsOneMoment(t *testing.T, f *fixture) {
	var gating *Gating
	g := &gate{Driver: Wrap(f.driver, func(b store.Backend) store.Backend {
		gating = NewGating(b)
		return gating
	})}
	f.driver = g
	r := f.repo(t)
	s, src := create(t, r, store.CreateOptions{ID: "src", Config: &forkConfig})
	t.Cleanup(gating.Open)
	g.reached, g.resume = make(chan struct{}), make(chan struct{})
	reached := g.reached

	first := momentJob(s, "1")
	parked := <-gating.arrivals // the commit queue is busy with it now
	type result struct {
		fork store.Fork
		err  error
	}
	forked := make(chan result)
	entered := make(chan struct{})
	go func() {
		close(entered)
		fork, err := r.Fork(context.Background(), src, s, store.ForkOptions{ID: "dst"})
		forked <- result{fork, err}
	}()
	<-entered
	parked.release <- nil
	<-reached
	second := momentJob(s, "2")
	gating.Next(1)
	for _, job := range []*store.Ticket{first, second} {
		if err := job.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	close(g.resume)
	got := <-forked
	if got.err != nil {
		t.Fatal(got.err)
	}
	wantMoment(t, r, got.fork.Ref, "1")
}

// momentJob commits an entry, the leaf, the name and a label in one transaction.
func momentJob(s *store.Session, n string) *store.Ticket {
	return s.Enqueue(store.MainLane, func(m *store.Mutator) error {
		id := "entry-" + n
		_, err := m.Commit(store.Tx{
			store.InsertEntry(store.MessageEntry(id, "", message.Message(userJSON(n)))),
			store.LaneLeaf(store.MainLane).Set(store.LeafID(id)),
			store.SessionName().Set("name " + n), store.EntryLabel(id).Set("label " + n),
		})
		return err
	})
}

func wantMoment(t *testing.T, r *store.Repo, ref store.Ref, n string) {
	t.Helper()
	v, err := r.View(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	same(t, "entries", entryIDs(t, v, store.EntryQuery{}), []string{"entry-" + n})
	for addr, want := range map[store.Address]string{
		store.SessionName().Address():               `"name ` + n + `"`,
		store.LaneLeaf(store.MainLane).Address():    `"entry-` + n + `"`,
		store.EntryLabel("entry-" + n).Address():    `"label ` + n + `"`,
		store.LaneStateOf(store.MainLane).Address(): idleText,
		store.LaneConfig(store.MainLane).Address():  configText,
	} {
		v, ok := value(t, v, addr)
		if !ok || string(v.Value) != want {
			t.Errorf("%s is %s, want %s", addr, v.Value, want)
		}
	}
	labels, err := v.ScanValues(t.Context(), store.EntryLabels().Address())
	if err != nil || len(labels) != 1 {
		t.Fatalf("labels %v, %v", labels, err)
	}
}

func forkHeader(t *testing.T, f *fixture) {
	r := f.repo(t)
	rs := sampleRecords(t)
	h := richHeader()
	src, err := r.Import(t.Context(), store.NewSnapshot(h, rs), store.ImportOptions{Backend: f.driver.Name()})
	if err != nil {
		t.Fatal(err)
	}
	f.now += 1000
	fork, err := r.Fork(t.Context(), src, nil, store.ForkOptions{ID: "dst"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Header(t.Context(), fork.Ref)
	if err != nil {
		t.Fatal(err)
	}
	got.NextSeq = 0
	same(t, "header", got, store.Header{
		ID: "dst", StorageVersion: store.StorageVersion, CreatedAt: f.now, CWD: h.CWD, ParentSessionID: h.ID, Generation: 1,
	})
	minted, err := r.Fork(t.Context(), src, nil, store.ForkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if store.CheckID(minted.Ref.ID) != nil || slices.Contains([]string{src.ID, fork.Ref.ID}, minted.Ref.ID) {
		t.Fatalf("minted id %q", minted.Ref.ID)
	}
	if _, err := r.Fork(t.Context(), src, nil, store.ForkOptions{ID: src.ID}); !errors.Is(err, store.ErrExists) {
		t.Fatalf("fork under the source's id: got %v, want ErrExists", err)
	}
	if _, err := r.Fork(t.Context(), store.Ref{ID: "absent", Path: f.path("absent"), Backend: f.driver.Name()}, nil, store.ForkOptions{ID: "new"}); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("fork of nothing: got %v, want ErrNotFound", err)
	}
}
