package subsession_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/memory"
	"github.com/drover-run/drover/pkg/store/sqlite"
	"github.com/drover-run/drover/pkg/subsession"
)

// world is one repository and a cascade over it.
type world struct {
	t    testing.TB
	dir  string
	repo *store.Repo
	*subsession.Cascade
}

func newWorld(t testing.TB, drivers ...store.Driver) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	w.repo = w.open(drivers...)
	w.Cascade = w.cascade(w.repo)
	return w
}

func (w *world) open(drivers ...store.Driver) *store.Repo {
	w.t.Helper()
	r, err := store.NewRepo(store.RepoOptions{Dir: w.dir, Drivers: drivers, Past: subsession.Tombstones{Dir: w.dir}.Past})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) cascade(r *store.Repo) *subsession.Cascade {
	return &subsession.Cascade{Repo: r, Now: store.SystemNow, NewID: store.NewIDs(store.SystemNow, nil).NewID}
}

// everyBackend runs a test on each encoding.
func everyBackend(t *testing.T, test func(t *testing.T, w *world)) {
	for name, d := range map[string]func() store.Driver{
		"memory": func() store.Driver { return &memory.Driver{} },
		"jsonl":  func() store.Driver { return jsonl.Driver{} },
		"sqlite": func() store.Driver { return sqlite.Driver{} },
	} {
		t.Run(name, func(t *testing.T) { test(t, newWorld(t, d())) })
	}
}

// session is one session of a tree.
type session struct {
	id     string
	parent string   // spawned by, with a pointer in the header
	remote bool     // so says its own header
	fork   string   // forked from
	local  []string // children by refs
	away   []string // remote children by refs
	gen    int64    // outcome generation of every ref
	open   bool     // has an operation
	cost   float64
}

func (w *world) make(all ...session) {
	w.t.Helper()
	for _, s := range all {
		o := store.CreateOptions{ID: s.id, Name: "name of " + s.id, ParentSessionID: s.fork}
		if s.parent != "" {
			location := subsession.Local
			if s.remote {
				location = subsession.Remote
			}
			o.Spawn = json.RawMessage(fmt.Sprintf(`{"parentSessionId":%q,"rootSessionId":"P","depth":1,"refKey":"c:%s","location":%q}`, s.parent, s.id, location))
		}
		opened, _, err := w.repo.Create(context.Background(), o)
		if err != nil {
			w.t.Fatal(err)
		}
		if tx := s.content(opened.IDs()); len(tx) > 0 {
			err := opened.Mutate(context.Background(), store.MainLane, func(m *store.Mutator) error {
				_, err := m.Commit(tx)
				return err
			})
			if err != nil {
				w.t.Fatal(err)
			}
		}
		if err := opened.Close(); err != nil {
			w.t.Fatal(err)
		}
	}
}

func refAt(key, id, location string, gen int64) store.Write {
	raw := fmt.Sprintf(`{"key":%q,"subSessionId":%q,"location":%q,"status":"completed","outcomeGeneration":%d}`, key, id, location, gen)
	if location == "" {
		raw = fmt.Sprintf(`{"key":%q,"subSessionId":%q}`, key, id)
	}
	return store.NewValue[json.RawMessage]("drover.subs.ref", key).Set(json.RawMessage(raw))
}

func (s session) content(ids store.IDSource) store.Tx {
	var tx store.Tx
	for _, id := range s.local {
		tx = append(tx, refAt("c:"+id, id, subsession.Local, s.gen))
	}
	for _, id := range s.away {
		tx = append(tx, refAt("e:"+id, id, subsession.Remote, s.gen))
	}
	if s.open {
		tx = append(tx, store.LaneStateOf(store.MainLane).Set(store.LaneState{CurrentOperationID: store.LeafID(ids.NewID())}))
	}
	if s.cost != 0 {
		u := message.Usage{Input: 1, TotalTokens: 1, Cost: message.Cost{Total: s.cost}}
		tx = append(tx, store.InsertUsage(store.NewUsage{ID: ids.NewID(), Usage: u}))
	}
	return tx
}

func (w *world) root(id string) subsession.Root {
	ref, err := w.repo.Resolve(context.Background(), id)
	if err != nil {
		return subsession.Root{ID: id}
	}
	return subsession.Root{ID: id, Ref: ref}
}

// delete deletes a tree that nothing keeps.
func (w *world) delete(id string) *subsession.Deletion {
	w.t.Helper()
	d, err := w.Delete(context.Background(), w.root(id))
	if err != nil {
		w.t.Fatal(err)
	}
	if len(d.Failed) > 0 {
		w.t.Fatalf("not deleted: %+v", d.Failed)
	}
	return d
}

// left are the ids of the sessions that are there.
func (w *world) left() string {
	w.t.Helper()
	listed, err := w.repo.List(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	var ids []string
	for _, l := range listed {
		ids = append(ids, l.Ref.ID)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

// wantNoResidue looks at every file of the repository: the deleted ids are in the
// names and in the content of no file but their tombstones, and of those of their
// relatives.
func (w *world) wantNoResidue(ids ...string) {
	w.t.Helper()
	err := filepath.WalkDir(w.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Base(filepath.Dir(path)) == ".tombstones" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, id := range ids {
			if strings.HasPrefix(e.Name(), id+".") || strings.HasPrefix(e.Name(), "."+id+".") {
				w.t.Errorf("%s is left of %s", e.Name(), id)
			}
			if strings.Contains(string(text), "name of "+id+`"`) {
				w.t.Errorf("%s knows the name of %s", e.Name(), id)
			}
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// files is every file of the repository with its content and time.
func (w *world) files() map[string]string {
	w.t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(w.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		fi, statErr := e.Info()
		if err != nil || statErr != nil {
			return err
		}
		// What a reader may leave beside a database is no change (D10).
		if strings.HasSuffix(path, "-shm") || strings.HasSuffix(path, "-wal") && len(text) == 0 {
			return nil
		}
		all[path] = fi.ModTime().String() + " " + string(text)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}
