package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// The rules of forks (spec §2.7).
var forkRules = []rule{
	{"a fresh session forks and stays unconfigured", forksFresh},
	{"an unknown lane refuses and releases the destination id", forkReleasesID},
	{"one lane becomes main, with a zero ledger", forksOneLane},
	{"at and before stand on the lane's path", forkPlacement},
	{"a closed source forks alike", forksClosed},
	{"copies application values and lists in tree scope, keeps list cursors", forksTree},
	{"never copies operations, pending content, frames, results or the ledger", forkLeavesBehind},
	{"surviving unknown reserved values refuse", forkRefusesUnknown},
	{"a creation that reserved the id first wins", createBeforeFork},
	{"a fork that reserved the id first wins", forkBeforeCreate},
	{"is coherent between two commits", forkIsOneMoment},
	{"describes itself and not its source's origin", forkHeader},
}

var forkConfig = store.LaneConfiguration{
	Model: message.ModelRef{Provider: "p", ModelID: "m"}, ThinkingLevel: "low", ActiveToolNames: []string{"t"},
}

// forkSource is a session with everything that a fork copies or leaves:
//
//	e1 - e2 - e3 - e4   main, e2 and e4 labelled
//	       \- e5        side
type forkSource struct {
	*fixture
	repo    *store.Repo
	session *store.Session
	ref     store.Ref
	e       [6]string // from 1
}

func newForkSource(t *testing.T, f *fixture) *forkSource {
	t.Helper()
	s := &forkSource{fixture: f, repo: f.repo(t)}
	s.session, s.ref = create(t, s.repo, store.CreateOptions{ID: "src", Name: "näme", CWD: "/w", Config: &forkConfig})
	main := s.session.View(store.MainLane)
	for i := 1; i <= 4; i++ {
		s.e[i] = s.append(t, main, i)
	}
	side, err := s.session.CreateLane(t.Context(), "side", s.e[2], forkConfig)
	if err != nil {
		t.Fatal(err)
	}
	s.e[5] = s.append(t, side, 5)
	if _, err := s.session.CreateLane(t.Context(), "empty", "", forkConfig); err != nil {
		t.Fatal(err)
	}
	s.mutate(t, store.EntryLabel(s.e[2]).Set("two"), store.EntryLabel(s.e[4]).Set("four"), valueA.Set(raw(`{"n":1.0}`)),
		listA.Append(raw(`"x"`)), listA.Append(raw(`"y"`)), usageWrite("usage1", s.e[4], 7, 1))
	return s
}

func (s *forkSource) append(t *testing.T, tree *store.Tree, n int) string {
	t.Helper()
	id, err := tree.AppendMessage(t.Context(), message.Message(userJSON(fmt.Sprint("m", n))))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// mutate commits writes as they are, one job.
func (s *forkSource) mutate(t *testing.T, writes ...store.Write) {
	t.Helper()
	err := s.session.Mutate(t.Context(), store.MainLane, func(m *store.Mutator) error {
		_, err := m.Commit(store.Tx(writes))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *forkSource) fork(o store.ForkOptions) (store.Fork, error) {
	return s.repo.Fork(context.Background(), s.ref, s.session, o)
}

// forked is what a fork holds, by what the source calls it.
type forked struct {
	Entries []string          // numbers of the source, in sequence order
	Values  map[string]string // by address
	List    []store.ListElement
	Stats   store.Stats
}

func (s *forkSource) read(t *testing.T, ref store.Ref) forked {
	t.Helper()
	r, err := s.repo.View(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for p := range store.Verify(t.Context(), r) {
		t.Errorf("fork %s: %+v", ref.ID, p)
	}
	got := forked{Values: map[string]string{}, List: list(t, r, listA.Address(), store.ListQuery{}), Stats: stats(t, r)}
	for _, rec := range records(t, r) {
		switch rec.Kind {
		case store.KindEntry:
			got.Entries = append(got.Entries, s.name(rec.Entry.ID))
		case store.KindValue:
			got.Values[s.names(rec.Address.String())] = s.names(string(rec.Value))
		case store.KindUsage:
			t.Errorf("fork %s has usage row %s", ref.ID, rec.Usage.ID)
		}
	}
	return got
}

func (s *forkSource) name(id string) string {
	return fmt.Sprint("e", slices.Index(s.e[:], id))
}

// names replaces the ids of the source's entries by their numbers.
func (s *forkSource) names(text string) string {
	for i, id := range s.e {
		if id != "" {
			text = strings.ReplaceAll(text, id, fmt.Sprint("e", i))
		}
	}
	return text
}

const (
	idleText   = `{"currentOperationId":null,"pendingNextRun":[]}`
	configText = `{"model":{"provider":"p","modelId":"m"},"thinkingLevel":"low","activeToolNames":["t"]}`
)

// mainOnly are the values of a fork in branch scope.
func mainOnly(leaf string, labels ...string) map[string]string {
	values := map[string]string{
		"pi.lane.leaf/main": leaf, "pi.lane.state/main": idleText, "pi.lane.config/main": configText, "pi.session.name": `"näme"`,
	}
	for i := 0; i < len(labels); i += 2 {
		values["pi.entry.label/"+labels[i]] = labels[i+1]
	}
	return values
}

// branchFork forks in branch scope and wants exactly this.
func (s *forkSource) branchFork(t *testing.T, o store.ForkOptions, entries []string, values map[string]string) {
	t.Helper()
	o.Scope = store.ForkBranch
	fork, err := s.fork(o)
	if err != nil {
		t.Fatalf("fork %+v: %v", o, err)
	}
	same(t, "lanes", fork.Lanes, []string{store.MainLane})
	same(t, "count of entries", fork.Entries, len(entries))
	if diff := cmp.Diff(forked{Entries: entries, Values: values, List: nil, Stats: store.Stats{MessageCount: int64(len(entries))}}, s.read(t, fork.Ref), emptyIsNil); diff != "" {
		t.Fatalf("fork %+v (-want +got):\n%s", o, diff)
	}
}

var emptyIsNil = cmp.FilterValues(
	func(a, b []store.ListElement) bool { return len(a) == 0 && len(b) == 0 },
	cmp.Comparer(func(a, b []store.ListElement) bool { return true }),
)

func forksFresh(t *testing.T, f *fixture) {
	r := f.repo(t)
	s, src := create(t, r, store.CreateOptions{ID: "src"})
	for _, scope := range []store.ForkScope{store.ForkTree, store.ForkBranch, ""} {
		fork, err := r.Fork(t.Context(), src, s, store.ForkOptions{Scope: scope, ID: "fork" + string(scope)})
		if err != nil {
			t.Fatalf("scope %q: %v", scope, err)
		}
		same(t, "fork", fork, store.Fork{
			Ref: store.Ref{ID: "fork" + string(scope), Path: f.path("fork" + string(scope)), Backend: f.driver.Name()}, Parent: "src", Lanes: []string{store.MainLane},
		})
		opened := openSession(t, r, fork.Ref)
		same(t, "contents", contents(t, opened), contents(t, s))
		same(t, "parent", opened.Header().ParentSessionID, "src")
	}
}

func forkReleasesID(t *testing.T, f *fixture) {
	s := newForkSource(t, f)
	_, err := s.fork(store.ForkOptions{ID: "dst", Scope: store.ForkBranch, Lane: "nowhere"})
	var unknown *store.UnknownLane
	if !errors.As(err, &unknown) || unknown.Lane != "nowhere" {
		t.Fatalf("fork of an unknown lane: got %v, want *UnknownLane", err)
	}
	s.wantListed(t, "src")
	create(t, s.repo, store.CreateOptions{ID: "dst"})
}

func (s *forkSource) wantListed(t *testing.T, want ...string) {
	t.Helper()
	listed, err := s.repo.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, l := range listed {
		ids = append(ids, l.Ref.ID)
	}
	slices.Sort(ids)
	same(t, "listed", ids, want)
}

func forksOneLane(t *testing.T, f *fixture) {
	s := newForkSource(t, f)
	s.branchFork(t, store.ForkOptions{ID: "f1"}, []string{"e1", "e2", "e3", "e4"}, mainOnly(`"e4"`, "e2", `"two"`, "e4", `"four"`))
	s.branchFork(t, store.ForkOptions{ID: "f2", Lane: "side"}, []string{"e1", "e2", "e5"}, mainOnly(`"e5"`, "e2", `"two"`))
	s.branchFork(t, store.ForkOptions{ID: "f3", Lane: "side", EntryID: s.e[2]}, []string{"e1", "e2"}, mainOnly(`"e2"`, "e2", `"two"`))
	s.branchFork(t, store.ForkOptions{ID: "f4", Lane: "empty"}, nil, mainOnly("null"))
	before := records(t, s.session)
	var entries []store.Record
	for _, r := range before {
		if r.Kind == store.KindEntry && slices.Contains([]string{s.e[1], s.e[2]}, r.Entry.ID) {
			entries = append(entries, r)
		}
	}
	opened := openSession(t, s.repo, store.Ref{ID: "f3", Path: f.path("f3"), Backend: f.driver.Name()})
	same(t, "copied entries", slices.DeleteFunc(records(t, opened), func(r store.Record) bool { return r.Kind != store.KindEntry }), entries)
	if id := s.append(t, opened.View(store.MainLane), 9); slices.Contains(s.e[:], id) {
		t.Fatalf("the fork mints %s again", id)
	}
}

func forkPlacement(t *testing.T, f *fixture) {
	s := newForkSource(t, f)
	s.branchFork(t, store.ForkOptions{ID: "f1", Before: true}, []string{"e1", "e2", "e3"}, mainOnly(`"e3"`, "e2", `"two"`))
	s.branchFork(t, store.ForkOptions{ID: "f2", EntryID: s.e[2]}, []string{"e1", "e2"}, mainOnly(`"e2"`, "e2", `"two"`))
	s.branchFork(t, store.ForkOptions{ID: "f3", EntryID: s.e[2], Before: true}, []string{"e1"}, mainOnly(`"e1"`))
	s.branchFork(t, store.ForkOptions{ID: "f4", EntryID: s.e[1], Before: true}, nil, mainOnly("null"))
	before := contents(t, s.session)
	var invalid *store.InvalidFork
	var unknown *store.UnknownTarget
	for name, refused := range map[string]struct {
		o    store.ForkOptions
		want any
	}{
		"an entry of another lane":    {store.ForkOptions{EntryID: s.e[5]}, &invalid},
		"an unknown entry":            {store.ForkOptions{EntryID: "absent"}, &unknown},
		"any entry of an empty lane":  {store.ForkOptions{Lane: "empty", EntryID: s.e[1]}, &invalid},
		"before nothing":              {store.ForkOptions{Lane: "empty", Before: true}, &invalid},
		"a usage row for an entry":    {store.ForkOptions{EntryID: "usage1"}, &unknown},
		"before an entry out of path": {store.ForkOptions{Lane: "side", EntryID: s.e[3], Before: true}, &invalid},
	} {
		refused.o.ID, refused.o.Scope = "refused", store.ForkBranch
		if _, err := s.fork(refused.o); !errors.As(err, refused.want) {
			t.Errorf("%s: got %v, want %T", name, err, refused.want)
		}
	}
	same(t, "source", contents(t, s.session), before)
	s.wantListed(t, "f1", "f2", "f3", "f4", "src")
}

func forksClosed(t *testing.T, f *fixture) {
	s := newForkSource(t, f)
	for _, scope := range []store.ForkScope{store.ForkTree, store.ForkBranch} {
		if _, err := s.fork(store.ForkOptions{ID: "open-" + string(scope), Scope: scope}); err != nil {
			t.Fatal(err)
		}
	}
	closeSession(t, s.session)
	s.session = nil
	for _, scope := range []store.ForkScope{store.ForkTree, store.ForkBranch} {
		fork, err := s.fork(store.ForkOptions{ID: "closed-" + string(scope), Scope: scope})
		if err != nil {
			t.Fatal(err)
		}
		id := "open-" + string(scope)
		same(t, "fork of the closed source", s.read(t, fork.Ref), s.read(t, store.Ref{ID: id, Path: f.path(id), Backend: f.driver.Name()}))
	}
}

func forksTree(t *testing.T, f *fixture) {
	s := newForkSource(t, f)
	cursors := list(t, s.session, listA.Address(), store.ListQuery{})
	fork, err := s.fork(store.ForkOptions{ID: "dst", Scope: store.ForkTree})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(fork.Lanes)
	same(t, "lanes", fork.Lanes, []string{"empty", "main", "side"})
	values := mainOnly(`"e4"`, "e2", `"two"`, "e4", `"four"`)
	for lane, leaf := range map[string]string{"side": `"e5"`, "empty": "null"} {
		values["pi.lane.leaf/"+lane], values["pi.lane.state/"+lane], values["pi.lane.config/"+lane] = leaf, idleText, configText
	}
	values["app.value/a"] = `{"n":1.0}`
	same(t, "fork", s.read(t, fork.Ref), forked{
		Entries: []string{"e1", "e2", "e3", "e4", "e5"}, Values: values, List: cursors, Stats: store.Stats{MessageCount: 5},
	})
	opened := openSession(t, s.repo, fork.Ref)
	wantList(t, opened, listA.Address(), store.ListQuery{Cursor: cursors[0].Seq}, cursors[1])
	high := s.session.Header()
	if err := store.SetValue(t.Context(), opened.View(store.MainLane), valueB, raw("1")); err != nil {
		t.Fatal(err)
	}
	v, _ := value(t, opened, valueB.Address())
	last := records(t, s.session)
	if v.Seq <= last[len(last)-1].Seq || v.Seq < high.NextSeq {
		t.Fatalf("the fork goes on at %d, not above its source's %d", v.Seq, last[len(last)-1].Seq)
	}
}
