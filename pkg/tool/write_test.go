package tool

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// content reads a file, "(none)" when there is none.
func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return "(none)"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// names lists the entries of a folder: a tool must leave no temporary files.
func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	w := toolNamed("write", Options{CWD: dir})
	old := put(t, dir, "old", "before")
	if err := os.Chmod(old, 0o751); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "file", "")
	if err := os.Symlink("old", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	makeFIFO(t, dir, "pipe")
	cases := []struct {
		name, args string
		want       outcome
		path       string
		content    string
	}{
		{"new", `{"path":"new","content":"a\nb"}`, outcome{Text: "Created new: 3 bytes, 2 lines."}, "new", "a\nb"},
		{"new folders", `{"path":"x/y/z","content":"é😀\u0000"}`, outcome{Text: "Created x/y/z: 7 bytes, 1 lines."}, "x/y/z", "é😀\x00"},
		{"replace", `{"path":"` + dir + `/old","content":""}`, outcome{Text: "Replaced " + dir + "/old: 0 bytes, 0 lines."}, "old", ""},
		{"through a link", `{"path":"link","content":"linked\r\n"}`, outcome{Text: "Replaced link: 8 bytes, 1 lines."}, "old", "linked\r\n"},
		{"a folder", `{"path":"x","content":""}`, outcome{Err: "write x: " + dir + "/x is a directory"}, "x/y/z", "é😀\x00"},
		{"a pipe", `{"path":"pipe","content":""}`, outcome{Err: "write pipe: " + dir + "/pipe is a named pipe"}, "old", "linked\r\n"},
		{"below a file", `{"path":"file/f","content":""}`, outcome{Err: "create folder for file/f: mkdir " + dir + "/file: not a directory"}, "file", ""},
		{"half a surrogate", `{"path":"file","content":"\udc00"}`, outcome{
			Err: "$.content is a string that holds half of a surrogate pair or bytes that are not UTF-8"}, "file", ""},
		{"no content", `{"path":"file"}`, outcome{Err: `$ is an object without the required member "content"`}, "file", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, call(t, w, c.args)); diff != "" {
				t.Error(diff)
			}
			if got := content(t, filepath.Join(dir, c.path)); got != c.content {
				t.Errorf("%s holds %q", c.path, got)
			}
		})
	}
	if got := names(t, dir); got != "file link new old pipe x" {
		t.Errorf("in the folder: %s", got)
	}
	if info, err := os.Lstat(filepath.Join(dir, "link")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(old); err != nil || info.Mode() != 0o751 {
		t.Errorf("the mode is now %v, %v", info.Mode(), err)
	}
}

func TestWriteHome(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	dir := t.TempDir()
	if got := call(t, toolNamed("write", Options{CWD: dir}), `{"path":"~/f","content":"x"}`); got.Err != "" {
		t.Error(got.Err)
	}
	if got := content(t, filepath.Join(home, "f")); got != "x" || names(t, dir) != "" {
		t.Errorf("home holds %q, the folder %q", got, names(t, dir))
	}
}

// TestWriteMode checks that a new file gets the mode that the umask leaves, as
// one made by any other program.
func TestWriteMode(t *testing.T) {
	umask := syscall.Umask(0o027)
	defer syscall.Umask(umask)
	dir := t.TempDir()
	if got := call(t, toolNamed("write", Options{CWD: dir}), `{"path":"d/f","content":""}`); got.Err != "" {
		t.Fatal(got.Err)
	}
	for path, want := range map[string]fs.FileMode{"d": fs.ModeDir | 0o750, "d/f": 0o640} {
		if info, err := os.Stat(filepath.Join(dir, path)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

func TestWriteReadOnly(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everything")
	}
	dir := t.TempDir()
	path := put(t, dir, "f", "kept")
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	got := call(t, toolNamed("write", Options{CWD: dir}), `{"path":"f","content":"x"}`)
	if want := (outcome{Err: "write f: open " + path + ": permission denied"}); got != want || content(t, path) != "kept" {
		t.Errorf("got %+v", got)
	}
}
