package fsx_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/internal/fsx/fsxtest"
)

func content(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// folder lists what a folder holds: name to content.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got[e.Name()] = string(b)
	}
	return got
}

func wantFolder(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, folder(t, dir)); diff != "" {
		t.Errorf("folder (-want +got):\n%s", diff)
	}
}

func wantMode(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != want {
		t.Errorf("mode of %s is %o, want %o", filepath.Base(path), info.Mode().Perm(), want)
	}
}

func TestReplaceCreates(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.jsonl")
	if err := fsx.Replace(fsx.OS{}, path, fsx.ReplaceOptions{}, content("new")); err != nil {
		t.Fatal(err)
	}
	wantFolder(t, dir, map[string]string{"s.jsonl": "new"})
	wantMode(t, path, 0o600)

	err := fsx.Replace(fsx.OS{}, path, fsx.ReplaceOptions{}, content("newer"))
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("second creation: %v, want one that wraps fs.ErrExist", err)
	}
	wantFolder(t, dir, map[string]string{"s.jsonl": "new"})
}

func TestReplaceRefusesAFileThatAppearsMeanwhile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.jsonl")
	err := fsx.Replace(fsx.OS{}, path, fsx.ReplaceOptions{}, func(w io.Writer) error {
		return os.WriteFile(path, []byte("rival"), 0o600)
	})
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v, want one that wraps fs.ErrExist", err)
	}
	wantFolder(t, dir, map[string]string{"s.jsonl": "rival"})
}

func TestReplaceKeepsModeAndLink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target.jsonl"), filepath.Join(dir, "link.jsonl")
	if err := os.WriteFile(target, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(target, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("target.jsonl", link); err != nil {
		t.Fatal(err)
	}
	if err := fsx.Replace(fsx.OS{}, link, fsx.ReplaceOptions{Existing: true}, content("new")); err != nil {
		t.Fatal(err)
	}
	wantFolder(t, dir, map[string]string{"target.jsonl": "new", "link.jsonl": "new"})
	wantMode(t, target, 0o640)
	if to, err := os.Readlink(link); err != nil || to != "target.jsonl" {
		t.Errorf("link points to %q (%v)", to, err)
	}
}

func TestReplaceKeepsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give files away")
	}
	path := filepath.Join(t.TempDir(), "s.jsonl")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, 4711, 4712); err != nil {
		t.Fatal(err)
	}
	if err := fsx.Replace(fsx.OS{}, path, fsx.ReplaceOptions{Existing: true}, content("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); st.Uid != 4711 || st.Gid != 4712 {
		t.Errorf("owner is %d:%d", st.Uid, st.Gid)
	}
}

func TestReplaceRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	if err := fsx.Replace(fsx.OS{}, dir, fsx.ReplaceOptions{Existing: true}, content("x")); err == nil {
		t.Error("a folder was replaced")
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink("nowhere", dangling); err != nil {
		t.Fatal(err)
	}
	if err := fsx.Replace(fsx.OS{}, dangling, fsx.ReplaceOptions{Existing: true}, content("x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("dangling link: %v", err)
	}
	if err := fsx.Replace(fsx.OS{}, dangling, fsx.ReplaceOptions{}, content("x")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("creation over a dangling link: %v", err)
	}
	if err := os.Remove(dangling); err != nil {
		t.Fatal(err)
	}
	wantFolder(t, dir, map[string]string{})
}

func TestReplaceLeavesNothingBehind(t *testing.T) {
	boom := errors.New("boom")
	tests := []struct {
		name  string
		rule  fsxtest.Rule
		write func(io.Writer) error
	}{
		{name: "temp cannot be created", rule: fsxtest.Rule{Op: fsxtest.Open, Err: syscall.EACCES}},
		{name: "disk full", rule: fsxtest.Rule{Op: fsxtest.Write, Err: syscall.ENOSPC}},
		{name: "short write", rule: fsxtest.Rule{Op: fsxtest.Write, Short: 2, Err: syscall.ENOSPC}},
		{name: "write error", rule: fsxtest.Rule{Op: fsxtest.Write, Err: syscall.EIO}},
		{name: "sync error", rule: fsxtest.Rule{Op: fsxtest.Sync, Err: syscall.EIO}},
		{name: "close error", rule: fsxtest.Rule{Op: fsxtest.Close, Err: syscall.EDQUOT}},
		{name: "rename error", rule: fsxtest.Rule{Op: fsxtest.Rename, Err: syscall.EXDEV}},
		{name: "writer gives up", write: func(io.Writer) error { return boom }},
	}
	for _, tt := range tests {
		for _, existing := range []bool{false, true} {
			name := tt.name + ", new file"
			if existing {
				name = tt.name + ", old file"
			}
			t.Run(name, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "s.jsonl")
				want := map[string]string{}
				if existing {
					want["s.jsonl"] = "old"
					if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				var fsys fsxtest.FS
				cause, write := boom, tt.write
				if write == nil {
					fsys.Fail(tt.rule)
					cause, write = tt.rule.Err, content("new")
				}
				err := fsx.Replace(&fsys, path, fsx.ReplaceOptions{Existing: existing}, write)
				if !errors.Is(err, cause) {
					t.Errorf("got %v, want one that wraps %v", err, cause)
				}
				wantFolder(t, dir, want)
			})
		}
	}
}

func TestReplaceFolderSyncFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.jsonl")
	var fsys fsxtest.FS
	fsys.Fail(fsxtest.Rule{Op: fsxtest.SyncDir, Err: syscall.EIO})
	if err := fsx.Replace(&fsys, path, fsx.ReplaceOptions{}, content("new")); !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v", err)
	}
	wantFolder(t, dir, map[string]string{})
}

func TestReplaceCleansUpAfterAPanic(t *testing.T) {
	dir := t.TempDir()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = fsx.Replace(fsx.OS{}, filepath.Join(dir, "s"), fsx.ReplaceOptions{}, func(io.Writer) error { panic("boom") })
	}()
	wantFolder(t, dir, map[string]string{})
}

func TestReplaceSyncsFileBeforeRenameAndFolderAfter(t *testing.T) {
	var fsys fsxtest.FS
	path := filepath.Join(t.TempDir(), "s.jsonl")
	if err := fsx.Replace(&fsys, path, fsx.ReplaceOptions{}, content("x")); err != nil {
		t.Fatal(err)
	}
	want := []string{"open", "write", "sync", "close", "rename", "syncdir"}
	if diff := cmp.Diff(want, fsys.Calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestTempNames(t *testing.T) {
	dir := t.TempDir()
	var temp string
	err := fsx.Replace(fsx.OS{}, filepath.Join(dir, "s.jsonl"), fsx.ReplaceOptions{}, func(io.Writer) error {
		for name := range folder(t, dir) {
			temp = name
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !fsx.IsTemp(temp) || filepath.Ext(temp) == ".jsonl" {
		t.Errorf("temporary name %q", temp)
	}
	if fsx.IsTemp("s.jsonl") {
		t.Error("a session passes for a temporary file")
	}
}

func TestTempsAreTheTargetsOwn(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		".a.tmp-0123abcd", ".a.tmp-89efffff", ".a.tmp-0123abcd-wal", ".a.tmp-0123abcd-shm",
		"a", "a.tmp-0123abcd", ".a.tmp-", ".a.tmp-0123abc", ".a.tmp-0123abcg", ".a.tmp-0123Abcd", ".a.tmp-0123abcde",
		".a.tmp-0123abcd.tmp-0123abcd", ".b.tmp-0123abcd", ".a.b.tmp-0123abcd",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := fsx.Temps(filepath.Join(dir, "a"), "-wal")
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i] = filepath.Base(got[i])
	}
	want := []string{".a.tmp-0123abcd", ".a.tmp-0123abcd-wal", ".a.tmp-89efffff"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTempTarget(t *testing.T) {
	for name, want := range map[string]string{
		".s.jsonl.tmp-0a1b2c3d":        "s.jsonl",
		".s.db.tmp-0a1b2c3d-wal":       "s.db",
		".a.tmp-00000000.tmp-0a1b2c3d": "a.tmp-00000000", // a name may hold the mark
		"s.jsonl.tmp-0a1b2c3d":         "",
		".s.jsonl.tmp-0a1b2c3":         "",
		".s.jsonl.tmp-0a1b2c3d4":       "",
		".s.jsonl.tmp-0A1B2C3D":        "",
		".s.jsonl.tmp-0a1b2c3d-other":  "",
		".tmp-0a1b2c3d":                "",
		".s.jsonl":                     "",
		"":                             "",
	} {
		if got, ok := fsx.TempTarget(name, "-wal"); got != want || ok != (want != "") {
			t.Errorf("%q is a temporary file of %q, %t; want %q", name, got, ok, want)
		}
	}
}
