package storetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/internal/fsx/fsxtest"
	"github.com/drover-run/drover/pkg/store"
)

// faultyOperation is one thing that can be done with a session, s1, or that makes
// another, s2. It calls arm where the failing may begin.
type faultyOperation struct {
	name string
	do   func(w *faultWorld) error
	// ends tells that s1 may be gone afterwards.
	ends bool
}

var faultyOperations = []faultyOperation{
	{name: "create", do: func(w *faultWorld) error {
		w.arm()
		s, _, err := w.repo.Create(w.t.Context(), store.CreateOptions{ID: "s2", Name: "new", Config: &forkConfig})
		if err != nil {
			return err
		}
		// What was created is there, whatever its closing says.
		w.harmless = true
		return s.Close()
	}},
	{name: "import", do: func(w *faultWorld) error {
		snap := store.NewSnapshot(header("s2"), w.before.Records)
		w.arm()
		_, err := w.repo.Import(w.t.Context(), snap, store.ImportOptions{})
		return err
	}},
	{name: "replace", do: func(w *faultWorld) error {
		snap := store.NewSnapshot(header("s1"), slices.DeleteFunc(slices.Clone(w.before.Records), func(r store.Record) bool {
			return r.Address == listA.Address()
		}))
		w.arm()
		_, err := w.repo.Import(w.t.Context(), snap, store.ImportOptions{Replace: true})
		return err
	}},
	{name: "open and close", do: func(w *faultWorld) error {
		w.arm()
		s, err := w.repo.Open(w.t.Context(), w.ref)
		if err != nil {
			return err
		}
		return s.Close()
	}},
	{name: "commit", do: func(w *faultWorld) error { return w.commit(false) }},
	{name: "power-safe commit", do: func(w *faultWorld) error { return w.commit(true) }},
	{name: "compact", do: func(w *faultWorld) error {
		s := w.open()
		w.arm()
		_, err := s.Compact(w.t.Context(), store.CompactOptions{})
		w.fs.Heal()
		if got := contents(w.t, s); !cmp.Equal(got, w.before, wholeBytes) {
			w.t.Errorf("the owner sees %s", cmp.Diff(w.before, got))
		}
		return errors.Join(err, s.Close())
	}},
	{name: "exchange", do: func(w *faultWorld) error {
		s := w.open()
		w.arm()
		err := s.Exchange(w.t.Context(), store.Exchange{
			Next:  without(listA.Address()),
			Judge: func(context.Context, string, store.Reader) error { return nil },
		})
		w.fs.Heal()
		return errors.Join(err, s.Close())
	}},
	{name: "migrate", do: func(w *faultWorld) error {
		makeOlder(w.t, w.real, w.ref.Path, header("s1"), w.before.Records)
		w.arm()
		s, err := w.repo.Open(w.t.Context(), w.ref)
		w.fs.Heal()
		if err != nil {
			return err
		}
		same(w.t, "the owner sees", contents(w.t, s).Records, afterWrapping(w.before.Records))
		return s.Close()
	}},
	{name: "plan a compaction", do: func(w *faultWorld) error {
		w.arm()
		_, err := w.repo.PlanCompaction(w.t.Context(), w.ref, store.CompactOptions{})
		return err
	}},
	{name: "fork", do: func(w *faultWorld) error {
		w.arm()
		_, err := w.repo.Fork(w.t.Context(), w.ref, nil, store.ForkOptions{ID: "s2"})
		return err
	}},
	{name: "fork of an open session", do: func(w *faultWorld) error {
		s := w.open()
		w.arm()
		_, err := w.repo.Fork(w.t.Context(), w.ref, s, store.ForkOptions{ID: "s2"})
		w.fs.Heal()
		return errors.Join(err, s.Close())
	}},
	{name: "view", do: func(w *faultWorld) error {
		w.arm()
		v, err := w.repo.View(w.t.Context(), w.ref)
		if err != nil {
			return err
		}
		snap, err := v.Snapshot(w.t.Context())
		if err == nil {
			_, err = store.Collect(snap)
		}
		return errors.Join(err, v.Close())
	}},
	{name: "delete", ends: true, do: func(w *faultWorld) error {
		w.arm()
		return w.repo.Delete(w.t.Context(), w.ref)
	}},
}

// commit makes one commit that may fail and wants another, where nothing fails,
// refused if it did.
func (w *faultWorld) commit(powerSafe bool) error {
	b, err := w.driver.Open(w.t.Context(), w.ref.Path, store.OpenOptions{PowerSafe: powerSafe, Now: w.now})
	if err != nil {
		w.t.Fatal(err)
	}
	w.arm()
	_, err = b.Commit(w.t.Context(), store.Tx{userEntry("e4", "e3", "four"), valueB.Set(raw(`"all or nothing"`))})
	w.fs.Heal()
	if err != nil {
		if got := contents(w.t, b); !cmp.Equal(got, w.before, wholeBytes) {
			w.t.Errorf("after the failed commit it reads %s", cmp.Diff(w.before, got))
		}
		if _, again := b.Commit(w.t.Context(), store.Tx{valueA.Set(raw("1"))}); !errors.Is(again, w.cause) {
			w.t.Errorf("a commit after the failed one: %v", again)
		}
	}
	return errors.Join(err, b.Close())
}

// RunFaults makes every call that an operation makes to its file system fail, one
// run each, writes also half done and all done: the operation fails with that
// very error, s1 is what it was before or what it becomes, and sound; s2 appears
// whole or not at all; nothing is left over; the next owner goes on (D21).
func RunFaults(t *testing.T, newDriver func(fsx.FS) store.Driver) {
	template, before := faultTemplate(t, newDriver(fsx.OS{}))
	for _, op := range faultyOperations {
		t.Run(op.name, func(t *testing.T) {
			run := func(t *testing.T, rule fsxtest.Rule) *faultWorld {
				w := newFaultWorld(t, newDriver, template, before, rule)
				w.run(op)
				return w
			}
			sound := run(t, fsxtest.Rule{Skip: 1 << 30})
			if sound.err != nil {
				t.Fatal(sound.err)
			}
			for n := 0; ; n++ {
				var hit []fsxtest.Op
				for i, short := range []int{0, 100, 1 << 30} {
					if i > 0 && !slices.Contains(hit, fsxtest.Write) {
						continue
					}
					t.Run(fmt.Sprintf("call %d short %d", n, short), func(t *testing.T) {
						w := run(t, fsxtest.Rule{Skip: n, Err: syscall.EIO, Short: short})
						if hit = w.fs.Hits(); len(hit) > 0 {
							w.judge(op, sound)
						}
					})
				}
				if len(hit) == 0 {
					return
				}
			}
		})
	}
}

// faultTemplate is a worn session, closed, in a folder to copy.
func faultTemplate(t *testing.T, d store.Driver) (dir string, before content) {
	f := &fixture{driver: d, dir: t.TempDir(), now: start}
	_, s, _ := f.worn(t)
	before = contents(t, s)
	closeSession(t, s)
	return f.dir, before
}

type faultWorld struct {
	t      *testing.T
	fs     *fsxtest.FS
	driver store.Driver
	real   store.Driver
	repo   *store.Repo
	ref    store.Ref
	before content
	rule   fsxtest.Rule
	cause  error

	err      error
	harmless bool               // an error at the end undoes nothing
	left     map[string]content // by session; what is there afterwards
}

func newFaultWorld(t *testing.T, newDriver func(fsx.FS) store.Driver, template string, before content, rule fsxtest.Rule) *faultWorld {
	t.Helper()
	w := &faultWorld{t: t, fs: &fsxtest.FS{Lazy: true}, before: before, rule: rule, cause: rule.Err, real: newDriver(&fsxtest.FS{Lazy: true})}
	w.driver = newDriver(w.fs)
	dir := t.TempDir()
	name := "s1" + w.real.Ext()
	w.ref = store.Ref{ID: "s1", Path: filepath.Join(dir, name), Backend: w.real.Name()}
	file, err := os.ReadFile(filepath.Join(template, name))
	if err == nil {
		err = os.WriteFile(w.ref.Path, file, 0o600)
	}
	if err == nil {
		w.repo, err = store.NewRepo(store.RepoOptions{Dir: dir, Drivers: []store.Driver{w.driver}, Now: w.now, Migrations: wrapping})
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *faultWorld) now() int64 { return start }

func (w *faultWorld) arm() { w.fs.Fail(w.rule) }

func (w *faultWorld) open() *store.Session {
	s, err := w.repo.Open(w.t.Context(), w.ref)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// run does the operation and looks at what there is then.
func (w *faultWorld) run(op faultyOperation) {
	w.err = op.do(w)
	w.fs.Heal()
	w.left = make(map[string]content)
	for _, id := range []string{"s1", "s2"} {
		v, err := w.real.View(w.t.Context(), w.path(id))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			w.t.Fatalf("%s cannot be read: %v", id, err)
		}
		w.left[id] = contents(w.t, v)
		for p := range store.Verify(w.t.Context(), v) {
			if p.Code != "leftover" || !slices.Contains(w.fs.Hits(), fsxtest.Remove) {
				w.t.Errorf("%s: %+v", id, p)
			}
		}
		if err := v.Close(); err != nil {
			w.t.Error(err)
		}
	}
}

func (w *faultWorld) path(id string) string {
	return filepath.Join(filepath.Dir(w.ref.Path), id+w.real.Ext())
}

// judge compares with the run in which nothing failed.
func (w *faultWorld) judge(op faultyOperation, sound *faultWorld) {
	switch hits := w.fs.Hits(); {
	case w.err == nil && !cmp.Equal(w.left, sound.left, wholeBytes):
		w.t.Errorf("%v failed, nothing was said, and the outcome is %s", hits, cmp.Diff(sound.left, w.left, wholeBytes))
	case w.err != nil && !errors.Is(w.err, w.cause):
		w.t.Errorf("%v failed with %v, want %v", hits, w.err, w.cause)
	}
	s1, there := w.left["s1"]
	if !there && !op.ends {
		w.t.Error("s1 is gone")
	}
	after, stays := sound.left["s1"]
	if there && !cmp.Equal(s1, w.before, wholeBytes) && !(stays && cmp.Equal(s1, after, wholeBytes)) {
		w.t.Errorf("s1 is neither old nor new: %s", cmp.Diff(w.before, s1, wholeBytes))
	}
	if s2, there := w.left["s2"]; there && w.err != nil && !w.harmless {
		w.t.Errorf("a failure left s2, with %d records", len(s2.Records))
	}
	if left := temporaries(w.t, w.ref.Path); len(left) > 0 && !slices.Contains(w.fs.Hits(), fsxtest.Remove) {
		w.t.Errorf("left over: %v", left)
	}
	w.next(there)
}

// next is another owner, who finds everything in order and can do it all.
func (w *faultWorld) next(there bool) {
	f := &fixture{driver: w.real, dir: filepath.Dir(w.ref.Path), now: start}
	r := f.repo(w.t)
	if there {
		s := openSession(w.t, r, w.ref)
		commitAs(w.t, s, valueA.Set(raw(`"the next owner's"`)))
		if _, err := s.Compact(w.t.Context(), store.CompactOptions{}); err != nil {
			w.t.Errorf("the next compaction: %v", err)
		}
		closeSession(w.t, s)
		if left := temporaries(w.t, w.ref.Path); slices.ContainsFunc(left, func(name string) bool { return name[:3] == ".s1" }) {
			w.t.Errorf("left over after the next compaction: %v", left)
		}
		if err := r.Delete(w.t.Context(), w.ref); err != nil {
			w.t.Errorf("delete: %v", err)
		}
	}
	if _, taken := w.left["s2"]; !taken {
		create(w.t, r, store.CreateOptions{ID: "s2"})
	}
}
