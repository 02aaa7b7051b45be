package v3import_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/internal/fsx/fsxtest"
	"github.com/drover-run/drover/pkg/v3import"
)

// withManifest is run with a manifest that is opened for it.
func withManifest(t *testing.T, target v3import.Target, dir, manifest string, o v3import.BatchOptions) string {
	t.Helper()
	m, err := v3import.OpenManifest(fsx.OS{}, manifest, false)
	if err != nil {
		t.Fatal(err)
	}
	o.Manifest = m
	out := run(t, target, dir, o)
	if err := errors.Join(m.Close(), m.Close()); err != nil {
		t.Error(err)
	}
	return out
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestManifest passes over sources without reading them: they are swapped for
// rubbish of the same size and time, which a look would refuse.
func TestManifest(t *testing.T) {
	r := newRepo(t)
	dir := folder(t, map[string]string{"a.jsonl": session("aaa", "", "one"), "b.jsonl": session("bbb", "", "two"), "bad.jsonl": session("ccc", "") + "oops\n"})
	path := filepath.Join(t.TempDir(), "done.ndjson")
	at := func(name string) string { return filepath.Join(dir, name) }
	same(t, "first run", withManifest(t, r, dir, path, v3import.BatchOptions{}), "a.jsonl imported aaa", "b.jsonl imported bbb", "bad.jsonl failed  corrupt 2:92")
	before := content(t, path)
	if strings.Count(before, "\n") != 3 {
		t.Error(before)
	}
	spoil := func(name string) {
		stat, err := os.Stat(at(name))
		if err != nil {
			t.Fatal(err)
		}
		put(t, at(name), strings.Repeat("x", int(stat.Size())))
		if err := os.Chtimes(at(name), time.Time{}, stat.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	spoil("a.jsonl")
	spoil("b.jsonl")
	// A child that comes later still finds its parent, which is not read.
	put(t, at("child.jsonl"), session("child", `,"parentSession":"a.jsonl"`))
	for _, how := range []v3import.OnExists{v3import.OnExistsSkip, v3import.OnExistsFail, v3import.OnExistsReplace} {
		same(t, "resumed, "+string(how), withManifest(t, r, dir, path, v3import.BatchOptions{OnExists: how}),
			"a.jsonl skipped aaa", "b.jsonl skipped bbb", "bad.jsonl failed  corrupt 2:92",
			map[bool]string{true: "child.jsonl imported child", false: "child.jsonl skipped child"}[how == v3import.OnExistsSkip])
	}
	if h := headers(t, r); h["child"].ParentSessionID != "aaa" {
		t.Errorf("headers %+v", h)
	}
	// Time alone makes a source one to look at, and so does another repository.
	now := time.Unix(1e9, 5)
	if err := os.Chtimes(at("a.jsonl"), now, now); err != nil {
		t.Fatal(err)
	}
	same(t, "touched", withManifest(t, r, dir, path, v3import.BatchOptions{}),
		"a.jsonl failed  corrupt 1:0", "b.jsonl skipped bbb", "bad.jsonl failed  corrupt 2:92", "child.jsonl skipped child")
	same(t, "another repository", withManifest(t, newRepo(t), at("b.jsonl"), path, v3import.BatchOptions{}), "b.jsonl failed  corrupt 1:0")
	// The last line of a source counts.
	same(t, "failed since", withManifest(t, r, at("b.jsonl"), path, v3import.BatchOptions{}), "b.jsonl failed  corrupt 1:0")
}

// TestManifestProgress counts only what there is to do.
func TestManifestProgress(t *testing.T) {
	r := newRepo(t)
	dir := folder(t, map[string]string{"a.jsonl": session("aaa", "", "one")})
	path := filepath.Join(t.TempDir(), "done.ndjson")
	withManifest(t, r, dir, path, v3import.BatchOptions{})
	put(t, filepath.Join(dir, "b.jsonl"), session("bbb", "", "two"))
	var last v3import.Progress
	withManifest(t, r, dir, path, v3import.BatchOptions{Progress: func(p v3import.Progress) { last = p }})
	size := int64(len(session("bbb", "", "two")))
	if want := (v3import.Progress{Files: 2, FilesDone: 2, Bytes: size, BytesDone: size}); last != want {
		t.Errorf("%+v, want %+v", last, want)
	}
}

// TestManifestTorn cuts the manifest after every byte: the next run takes what is
// whole, looks at the rest and mends the file.
func TestManifestTorn(t *testing.T) {
	r := newRepo(t)
	dir := folder(t, map[string]string{"a.jsonl": session("aaa", "", "one"), "b.jsonl": session("bbb", "", "two")})
	path := filepath.Join(t.TempDir(), "done.ndjson")
	withManifest(t, r, dir, path, v3import.BatchOptions{Jobs: 1})
	whole := content(t, path)
	for cut := range len(whole) {
		put(t, path, whole[:cut])
		if _, err := v3import.OpenManifest(fsx.OS{}, path, true); err != nil || content(t, path) != whole[:cut] {
			t.Fatalf("read only, cut at %d: %v", cut, err)
		}
		same(t, "cut", withManifest(t, r, dir, path, v3import.BatchOptions{Jobs: 1}), "a.jsonl skipped aaa", "b.jsonl skipped bbb")
		if got := content(t, path); strings.ReplaceAll(got, `"skipped"`, `"imported"`) != whole {
			t.Fatalf("cut at %d:\n%s", cut, got)
		}
	}
}

func TestManifestOfAnotherShape(t *testing.T) {
	failed := `{"source":"/f","size":0,"mtime":null,"sha256":null,"status":"failed","session":null,"error":"io"}` + "\n"
	for _, c := range []struct {
		text string
		line int64
	}{
		{"{}", 1},
		{"hello", 1},
		{session("aaa", ""), 1},
		{failed + "\n", 2},
		{failed + failed + "[1]\n" + failed, 3},
		{failed + `{"source":"/f","size":0,"status":"done"}` + "\n", 2},
		{`{"source":"/f","status":"failed"}` + "\n", 1},
		{`{"source":"/f","size":-1,"status":"failed"}` + "\n", 1},
		{`{"source":"/f","size":1,"mtime":"yesterday","sha256":"x","status":"imported","session":"s"}` + "\n", 1},
		{`{"source":"/f","size":1,"mtime":"2026-01-01T00:00:00Z","sha256":null,"status":"imported","session":"s"}` + "\n", 1},
		{`{"source":"/f","size":1,"mtime":"2026-01-01T00:00:00Z","sha256":"x","status":"skipped"}` + "\n", 1},
		{failed + `{"source":"` + strings.Repeat("x", 1<<20), 2},
	} {
		path := filepath.Join(t.TempDir(), "m")
		put(t, path, c.text)
		_, err := v3import.OpenManifest(fsx.OS{}, path, false)
		var wrong *v3import.NoManifest
		if !errors.As(err, &wrong) || wrong.Line != c.line || content(t, path) != c.text {
			t.Errorf("%.60q: %v", c.text, err)
		}
	}
	path := filepath.Join(t.TempDir(), "m")
	put(t, path, failed+`{"source":"/f","more":[],"size":1,"mtime":"2026-01-01T00:00:00Z","sha256":"x","status":"skipped","session":"s"}`+"\n")
	m, err := v3import.OpenManifest(fsx.OS{}, path, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// TestManifestFails lets each call on the manifest fail: the batch stops with
// that error, and the next one goes on.
func TestManifestFails(t *testing.T) {
	for _, op := range []fsxtest.Op{fsxtest.Open, fsxtest.SyncDir, fsxtest.Write, fsxtest.Sync} {
		r := newRepo(t)
		dir := folder(t, map[string]string{"a.jsonl": session("aaa", "", "one"), "b.jsonl": session("bbb", "", "two")})
		path := filepath.Join(t.TempDir(), "done.ndjson")
		fsys := &fsxtest.FS{}
		fsys.Fail(fsxtest.Rule{Op: op, Err: syscall.ENOSPC, Short: 20})
		m, err := v3import.OpenManifest(fsys, path, false)
		if err == nil {
			var res *v3import.Result
			res, err = v3import.Import(t.Context(), r, v3import.Collect([]string{dir}, false).Sources, v3import.BatchOptions{Manifest: m, Jobs: 1})
			if len(res.Items) != 1 || res.Items[0].Status != v3import.StatusImported {
				t.Errorf("%s: items %+v", op, res.Items)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", op, err)
		}
		withManifest(t, r, dir, path, v3import.BatchOptions{})
		if h := headers(t, r); len(h) != 2 {
			t.Errorf("%s: headers %+v", op, h)
		}
	}
}
