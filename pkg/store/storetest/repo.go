package storetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// The rules of the repository over one encoding (spec §2.8, §5.3).
var repoRules = []rule{
	{"creates main with a null leaf, idle and unconfigured", createsMain},
	{"creates with what it is told", createsConfigured},
	{"refuses a duplicate id", refusesDuplicate},
	{"refuses ids that are no safe file names", refusesIDs},
	{"one of two creations of one id succeeds", racingCreates},
	{"close waits for a held mutation and refuses a waiting one", closeRefusesWaiting},
	{"close drains enqueued jobs", closeDrainsEnqueued},
	{"lists sessions and keeps their state across a reopen", listsAndReopens},
	{"a list that is to be summarized is the same list", listsToSummarize},
	{"deletes a closed session and no other", deletesSession},
	{"a session has one open owner", oneOwner},
	{"a reader needs no ownership", viewsOwned},
	{"refuses pending assistant messages", refusesPendingMessage},
	{"keeps every settled stop reason", keepsStopReasons},
	{"appends wait for no open operation", refusesBusyLane},
	{"lanes are permanent and independent", createsLanes},
	{"imports a prepared session", importsSession},
	{"replaces an imported session and raises its generation", replacesSession},
}

// repo opens a repository over the fixture's driver.
func (f *fixture) repo(t testing.TB) *store.Repo {
	t.Helper()
	r, err := store.NewRepo(store.RepoOptions{
		Dir: f.dir, Drivers: []store.Driver{f.driver}, Now: func() int64 { return f.now },
		Migrations: wrapping,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func create(t testing.TB, r *store.Repo, o store.CreateOptions) (*store.Session, store.Ref) {
	t.Helper()
	s, ref, err := r.Create(t.Context(), o)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	t.Cleanup(func() { closeSession(t, s) })
	return s, ref
}

func openSession(t testing.TB, r *store.Repo, ref store.Ref) *store.Session {
	t.Helper()
	s, err := r.Open(t.Context(), ref)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { closeSession(t, s) })
	return s
}

func closeSession(t testing.TB, s *store.Session) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func createsMain(t *testing.T, f *fixture) {
	r := f.repo(t)
	s, ref := create(t, r, store.CreateOptions{ID: "s1"})
	same(t, "ref", ref, store.Ref{ID: "s1", Path: f.path("s1"), Backend: f.driver.Name()})
	want := header("s1")
	want.NextSeq = s.Header().NextSeq
	same(t, "header", s.Header(), want)
	state := store.LaneStateOf(store.MainLane).Address()
	same(t, "contents", contents(t, s), content{Records: []store.Record{
		{Kind: store.KindValue, Op: store.OpSet, Seq: 1, Address: store.LaneLeaf(store.MainLane).Address(), Value: raw("null")},
		{Kind: store.KindValue, Op: store.OpSet, Seq: 2, Address: state, Value: raw(`{"currentOperationId":null,"pendingNextRun":[]}`)},
	}})
	leaf, err := s.View(store.MainLane).LeafID(t.Context())
	if err != nil || leaf != "" {
		t.Fatalf("leaf %q, %v", leaf, err)
	}
	minted, mintedRef := create(t, r, store.CreateOptions{})
	if ms, err := store.IDTime(mintedRef.ID); err != nil || ms != start || minted.Header().ID != mintedRef.ID {
		t.Fatalf("minted id %q, time %d, %v", mintedRef.ID, ms, err)
	}
}

func createsConfigured(t *testing.T, f *fixture) {
	r := f.repo(t)
	cfg := store.LaneConfiguration{Model: message.ModelRef{Provider: "p", ModelID: "m"}, ThinkingLevel: "low", ActiveToolNames: []string{"a<b"}}
	s, ref := create(t, r, store.CreateOptions{
		ID: "s1", Name: "näme\xed\xa0\x80", CWD: "/w", ParentSessionID: "p1", Spawn: raw(`{"by":1.0}`), Config: &cfg,
	})
	closeSession(t, s)
	s = openSession(t, r, ref)
	h := s.Header()
	h.NextSeq = 0
	same(t, "header", h, store.Header{
		ID: "s1", StorageVersion: store.StorageVersion, CreatedAt: start, CWD: "/w", ParentSessionID: "p1", Spawn: raw(`{"by":1.0}`), Generation: 1,
	})
	name, ok, err := s.View(store.MainLane).Name(t.Context())
	if err != nil || !ok || name != "näme\xed\xa0\x80" {
		t.Fatalf("name %q, %v, %v", name, ok, err)
	}
	got, ok, err := store.Get(t.Context(), s, store.LaneConfig(store.MainLane))
	if err != nil || !ok {
		t.Fatalf("config %v, %v", ok, err)
	}
	same(t, "config", got.Value, cfg)
}

func refusesDuplicate(t *testing.T, f *fixture) {
	r := f.repo(t)
	s, ref := create(t, r, store.CreateOptions{ID: "s1", Name: "first"})
	refused := func(when string) {
		t.Helper()
		if _, _, err := r.Create(t.Context(), store.CreateOptions{ID: "s1"}); !errors.Is(err, store.ErrExists) {
			t.Fatalf("second creation, %s: got %v, want ErrExists", when, err)
		}
	}
	refused("while it is open")
	closeSession(t, s)
	refused("once it is closed")
	name, _, err := openSession(t, r, ref).View(store.MainLane).Name(t.Context())
	if err != nil || name != "first" {
		t.Fatalf("name %q, %v", name, err)
	}
}

func refusesIDs(t *testing.T, f *fixture) {
	r := f.repo(t)
	for _, id := range []string{"../x", "/etc/passwd", "a/b", `a\b`, "..", ".", ".a", "a..b", "a\x00b", "-rf", "%2e%2e", "a b", "é", "CON", "com1.x", string(make([]byte, 129))} {
		_, _, err := r.Create(t.Context(), store.CreateOptions{ID: id})
		var invalid *store.InvalidID
		if !errors.As(err, &invalid) {
			t.Errorf("create %q: got %v, want *InvalidID", id, err)
		}
		if _, err := r.Import(t.Context(), store.NewSnapshot(store.Header{ID: id, StorageVersion: store.StorageVersion}, nil), store.ImportOptions{}); !errors.As(err, &invalid) {
			t.Errorf("import %q: got %v, want *InvalidID", id, err)
		}
	}
	listed, err := r.List(t.Context())
	if err != nil || len(listed) != 0 {
		t.Fatalf("refused ids left %v, %v", listed, err)
	}
}

func racingCreates(t *testing.T, f *fixture) {
	r := f.repo(t)
	const n = 8
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			s, _, err := r.Create(t.Context(), store.CreateOptions{ID: "s1", Name: fmt.Sprint(i)})
			if err == nil {
				defer s.Close()
			}
			errs[i] = err
		})
	}
	wg.Wait()
	made := 0
	for _, err := range errs {
		switch {
		case err == nil:
			made++
		case !errors.Is(err, store.ErrExists):
			t.Errorf("create: %v", err)
		}
	}
	same(t, "creations that succeeded", made, 1)
}

func closeRefusesWaiting(t *testing.T, f *fixture) {
	s, _ := create(t, f.repo(t), store.CreateOptions{ID: "s1"})
	held, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	var heldErr, waitingErr error
	wg.Go(func() {
		heldErr = s.Mutate(t.Context(), store.MainLane, func(m *store.Mutator) error {
			close(held)
			<-release
			_, err := m.Commit(store.Tx{valueA.Set(raw("1"))})
			return err
		})
	})
	<-held
	started := make(chan struct{})
	wg.Go(func() {
		close(started)
		waitingErr = s.Mutate(t.Context(), store.MainLane, func(*store.Mutator) error {
			t.Error("the waiting mutation ran")
			return nil
		})
	})
	<-started
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	// Whether the second mutation was waiting already or arrives now, Close has
	// begun: a new one is refused.
	for {
		err := s.Enqueue("other", func(*store.Mutator) error { return nil }).Wait(t.Context())
		if errors.Is(err, store.ErrClosed) {
			break
		}
	}
	select {
	case err := <-closed:
		t.Fatalf("close returned %v beside a held mutation", err)
	default:
	}
	close(release)
	wg.Wait()
	if err := <-closed; err != nil {
		t.Fatalf("close: %v", err)
	}
	if heldErr != nil || !errors.Is(waitingErr, store.ErrClosed) {
		t.Fatalf("held mutation: %v, waiting mutation: %v", heldErr, waitingErr)
	}
}

func closeDrainsEnqueued(t *testing.T, f *fixture) {
	r := f.repo(t)
	s, ref := create(t, r, store.CreateOptions{ID: "s1"})
	const n = 100
	tickets := make([]*store.Ticket, n)
	for i := range tickets {
		tickets[i] = s.Enqueue(store.MainLane, func(m *store.Mutator) error {
			_, err := m.Commit(store.Tx{listA.Append(raw(fmt.Sprint(i)))})
			return err
		})
	}
	closeSession(t, s)
	for i, ticket := range tickets {
		if err := ticket.Wait(t.Context()); err != nil {
			t.Fatalf("job %d: %v", i, err)
		}
	}
	s = openSession(t, r, ref)
	els := list(t, s, listA.Address(), store.ListQuery{})
	same(t, "elements", len(els), n)
	for i, el := range els {
		same(t, "element", string(el.Value), fmt.Sprint(i))
	}
}

func listsAndReopens(t *testing.T, f *fixture) {
	r := f.repo(t)
	a, refA := create(t, r, store.CreateOptions{ID: "a", Name: "one"})
	_, refB := create(t, r, store.CreateOptions{ID: "b", ParentSessionID: "a"})
	if err := a.View(store.MainLane).SetName(t.Context(), "two"); err != nil {
		t.Fatal(err)
	}
	closeSession(t, a)
	if _, err := a.Stats(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Fatalf("read of a closed session: got %v, want ErrClosed", err)
	}
	listed, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range listed {
		listed[i].Header.NextSeq = 0
	}
	wantB := header("b")
	wantB.ParentSessionID = "a"
	want := []store.Listed{{Ref: refA, Header: header("a")}, {Ref: refB, Header: wantB}}
	if diff := cmp.Diff(want, listed, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".ModTime" || p.Last().String() == ".Summary" }, cmp.Ignore()), cmpopts.IgnoreUnexported(store.Listed{})); diff != "" {
		t.Fatalf("listed (-want +got):\n%s", diff)
	}
	again := openSession(t, r, refA)
	name, ok, err := again.View(store.MainLane).Name(t.Context())
	if err != nil || !ok || name != "two" {
		t.Fatalf("name %q, %v, %v", name, ok, err)
	}
}

func listsToSummarize(t *testing.T, f *fixture) {
	r := f.repo(t)
	for _, id := range []string{"a", "b", "c"} {
		s, _ := create(t, r, store.CreateOptions{ID: id, Name: "session " + id})
		closeSession(t, s)
	}
	if _, err := os.Stat(f.path("a")); err == nil { // the stores are files
		if err := os.WriteFile(f.path("damaged"), []byte("no session\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got [3][]store.Listed
	for i := range got {
		if err := os.RemoveAll(filepath.Join(f.dir, ".drover-catalog")); err != nil {
			t.Fatal(err)
		}
		listing, err := r.ListFolder(t.Context(), store.Depth(i))
		if err != nil {
			t.Fatal(err)
		}
		listed := listing.Sessions
		if err := r.ReadUnread(t.Context(), listed, nil); err != nil {
			t.Fatal(err)
		}
		all := make([]*store.Listed, len(listed))
		for j := range listed {
			all[j] = &listed[j]
		}
		if err := r.Summarize(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		for _, l := range listed {
			if l.Err == nil && (l.Summary == nil || l.Summary.Name != "session "+l.Ref.ID) {
				t.Errorf("list %d: %s has summary %v", i, l.Ref.ID, l.Summary)
			}
		}
		got[i] = listed
	}
	text := cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) })
	if diff := cmp.Diff(got[0], got[1], text, cmpopts.IgnoreUnexported(store.Listed{})); diff != "" {
		t.Errorf("lists differ (-list +to summarize):\n%s", diff)
	}
}

func deletesSession(t *testing.T, f *fixture) {
	r := f.repo(t)
	a, refA := create(t, r, store.CreateOptions{ID: "a"})
	_, refB := create(t, r, store.CreateOptions{ID: "b"})
	if err := r.Delete(t.Context(), refA); !errors.Is(err, store.ErrOpen) {
		t.Fatalf("delete of an open session: got %v, want ErrOpen", err)
	}
	closeSession(t, a)
	if err := r.Delete(t.Context(), refA); err != nil {
		t.Fatalf("delete: %v", err)
	}
	listed, err := r.List(t.Context())
	if err != nil || len(listed) != 1 || listed[0].Ref != refB {
		t.Fatalf("listed %v, %v", listed, err)
	}
	_, openErr := r.Open(t.Context(), refA)
	_, viewErr := r.View(t.Context(), refA)
	for call, err := range map[string]error{"open": openErr, "view": viewErr, "delete": r.Delete(t.Context(), refA)} {
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s of a deleted session: got %v, want ErrNotFound", call, err)
		}
	}
}

func oneOwner(t *testing.T, f *fixture) {
	r := f.repo(t)
	s, ref := create(t, r, store.CreateOptions{ID: "s1"})
	for range 2 {
		if _, err := r.Open(t.Context(), ref); !errors.Is(err, store.ErrOpen) {
			t.Fatalf("open of an open session: got %v, want ErrOpen", err)
		}
		var held *store.Held
		if _, err := f.repo(t).Open(t.Context(), ref); !errors.As(err, &held) {
			t.Fatalf("open by another repository: got %v, want *Held", err)
		}
		closeSession(t, s)
		s = openSession(t, r, ref)
	}
}

func viewsOwned(t *testing.T, f *fixture) {
	r := f.repo(t)
	s, ref := create(t, r, store.CreateOptions{ID: "s1"})
	v, err := r.View(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "contents", contents(t, v), contents(t, s))
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	lease := func() *store.Lease {
		l, err := r.Lease(context.Background(), ref)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if l := lease(); l == nil || !l.Live {
		t.Fatalf("lease of an open session: %+v", l)
	}
	closeSession(t, s)
	if l := lease(); l != nil {
		t.Fatalf("lease of a closed session: %+v", l)
	}
}
