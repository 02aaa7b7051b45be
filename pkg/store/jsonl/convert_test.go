package jsonl_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/internal/fsx/fsxtest"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
)

const legacyFile = `{"type":"session","version":3,"id":"old","timestamp":"2026-01-01T00:00:00Z","cwd":"/"}
{"type":"message","id":"a1","parentId":null,"timestamp":"2026-01-01T00:00:01Z","message":{"role":"user","content":"hi","timestamp":1}}
`

// conversion is one conversion in place, in a repository whose catalog knows the
// legacy file.
type conversion struct {
	t    *testing.T
	fs   *fsxtest.FS
	repo *store.Repo
	path string
}

func newConversion(t *testing.T) *conversion {
	t.Helper()
	c := &conversion{t: t, fs: &fsxtest.FS{Lazy: true}}
	c.path = filepath.Join(t.TempDir(), "old.jsonl")
	write(t, c.path, []byte(legacyFile))
	// What an attempt that was killed has left.
	write(t, filepath.Join(filepath.Dir(c.path), ".old.jsonl.tmp-0a1b2c3d"), []byte("half"))
	// A catalog keeps nothing of what has just been written.
	if err := os.Chtimes(c.path, time.Time{}, time.UnixMilli(now)); err != nil {
		t.Fatal(err)
	}
	var err error
	c.repo, err = store.NewRepo(store.RepoOptions{Dir: filepath.Dir(c.path), Drivers: []store.Driver{jsonl.Driver{}}})
	if err != nil {
		t.Fatal(err)
	}
	if messages, legacy := c.listed(); messages != 1 || !legacy {
		t.Fatalf("before, the list shows %d messages, legacy %t", messages, legacy)
	}
	return c
}

// listed is what the list shows, from the catalog where that is current.
func (c *conversion) listed() (messages int64, legacy bool) {
	c.t.Helper()
	listed, err := c.repo.List(c.t.Context())
	if err != nil || len(listed) != 1 {
		c.t.Fatalf("listed %d sessions, %v", len(listed), err)
	}
	if err := c.repo.Summarize(c.t.Context(), []*store.Listed{&listed[0]}); err != nil || listed[0].Err != nil {
		c.t.Fatalf("summarize: %v, %v", err, listed[0].Err)
	}
	return listed[0].Summary.Stats.MessageCount, listed[0].Ref.Legacy
}

func (c *conversion) convert() error {
	return jsonl.Driver{FS: c.fs}.Convert(c.t.Context(), c.path, options())
}

// judge wants the old file with nothing beside it, or the new one and the old one
// as its backup, and the same of the list.
func (c *conversion) judge(hits []fsxtest.Op, err error) (converted bool) {
	c.t.Helper()
	kept, keptErr := os.ReadFile(c.path + ".v3.bak")
	converted = string(read(c.t, c.path)) != legacyFile
	switch {
	case converted && string(kept) != legacyFile:
		c.t.Errorf("the backup of the converted file holds %q, %v", kept, keptErr)
	case !converted && !errors.Is(keptErr, fs.ErrNotExist) && !slices.Contains(hits, fsxtest.Remove):
		c.t.Errorf("beside the old file is a backup: %v", keptErr)
	case !converted && err == nil:
		c.t.Error("nothing was converted, and nothing said")
	}
	if messages, legacy := c.listed(); messages != 1 || legacy == converted {
		c.t.Errorf("converted %t, and the list shows %d messages, legacy %t", converted, messages, legacy)
	}
	temps, tempErr := fsx.Temps(c.path)
	if tempErr != nil || (len(temps) > 0 && !slices.Contains(hits, fsxtest.Remove)) {
		c.t.Errorf("left over: %v, %v", temps, tempErr)
	}
	return converted
}

// goesOn wants the next owner to find a session, converted now if not before.
func (c *conversion) goesOn(converted bool) {
	c.t.Helper()
	c.fs.Heal()
	if !converted {
		if err := c.convert(); err != nil {
			c.t.Fatalf("the next conversion: %v", err)
		}
		c.judge(nil, nil)
	}
	b := open(c.t, c.path)
	commit(c.t, b, store.SessionName().Set("mine"))
	closeStore(c.t, b)
	if temps, err := fsx.Temps(c.path); err != nil || len(temps) > 0 {
		c.t.Errorf("left over: %v, %v", temps, err)
	}
}

// Every call of a conversion in place fails once: its backup is there with the new
// file and only then, and the catalog tells nothing old (D58, D62).
func TestConvertFaultMatrix(t *testing.T) {
	for n := 0; ; n++ {
		c := newConversion(t)
		c.fs.Fail(fsxtest.Rule{Skip: n, Err: syscall.EIO})
		err := c.convert()
		hits := c.fs.Hits()
		if len(hits) > 0 && !errors.Is(err, syscall.EIO) {
			t.Errorf("call %d, %v, failed, and the conversion said %v", n, hits, err)
		}
		c.goesOn(c.judge(hits, err))
		if t.Failed() {
			t.Fatalf("call %d: %v", n, hits)
		}
		if len(hits) == 0 {
			if err != nil || n < 8 {
				t.Errorf("%d calls: %v", n, err)
			}
			return
		}
	}
}

// The backup's name lasts before the old file loses its own.
func TestConvertSyncsTheBackupFirst(t *testing.T) {
	c := newConversion(t)
	if err := c.convert(); err != nil {
		t.Fatal(err)
	}
	calls := slices.DeleteFunc(c.fs.Calls(), func(call string) bool { return call == string(fsxtest.Read) })
	want := []string{"remove", "link", "syncdir", "open", "write", "chmod", "sync", "close", "rename", "syncdir"}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// A conversion that was killed after its backup had got its name goes on from
// there; one whose backup is another file's is refused and takes nothing away.
func TestConvertMeetsABackup(t *testing.T) {
	c := newConversion(t)
	if err := os.Link(c.path, c.path+".v3.bak"); err != nil {
		t.Fatal(err)
	}
	if err := c.convert(); err != nil {
		t.Fatal(err)
	}
	c.goesOn(c.judge(nil, nil))

	c = newConversion(t)
	write(t, c.path+".v3.bak", []byte("another"))
	if err := c.convert(); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
	same(t, "file", string(read(t, c.path)), legacyFile)
	same(t, "backup", string(read(t, c.path+".v3.bak")), "another")
}
