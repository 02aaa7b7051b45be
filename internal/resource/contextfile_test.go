package resource

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// texts are the found files as PATH=TEXT, the test's folder left out.
func texts(dir string, found []ContextFile) []string {
	var lines []string
	for _, f := range found {
		lines = append(lines, strings.TrimPrefix(f.Path, dir)+"="+f.Text)
	}
	return lines
}

// realDir is a folder of the test's own, without links in its name.
func realDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(lay(t, files))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestContextFiles(t *testing.T) {
	dir := realDir(t, map[string]string{
		"AGENTS.md":              "outer",
		"home/AGENTS.md":         "\ufeffof the home\r\n",
		"home/a/AGENTS.md":       "a",
		"home/a/b/CLAUDE.md":     "b",
		"home/repo/.git":         "gitdir: x",
		"home/repo/AGENTS.md":    "repo",
		"home/repo/in/AGENTS.md": " \n",
		"home/repo/in/er/x":      "",
		"else/AGENTS.md":         "else",
		"else/where/AGENTS.md":   "where",
	})
	both := []string{"AGENTS.md", "CLAUDE.md"}
	for _, tt := range []struct {
		name, folder string
		names        []string
		want         []string
	}{
		{"up to the home", "/home/a/b", both, []string{"/home/AGENTS.md=of the home", "/home/a/AGENTS.md=a", "/home/a/b/CLAUDE.md=b"}},
		{"one name", "/home/a/b", both[:1], []string{"/home/AGENTS.md=of the home", "/home/a/AGENTS.md=a"}},
		{"up to the repository, without empty ones", "/home/repo/in/er", both, []string{"/home/repo/AGENTS.md=repo"}},
		{"the home itself", "/home", both, []string{"/home/AGENTS.md=of the home"}},
		{"elsewhere only the folder", "/else/where", both, []string{"/else/where/AGENTS.md=where"}},
		{"no folder", "/gone", both, nil},
	} {
		found, bad := ContextFiles(dir+tt.folder, dir+"/home", tt.names)
		if diff := cmp.Diff(tt.want, texts(dir, found)); diff != "" || bad != nil {
			t.Errorf("%s: %v\n%s", tt.name, bad, diff)
		}
	}
}

// What leads out of the reach, waits, or is no text is told and never read.
func TestBadContextFiles(t *testing.T) {
	dir := realDir(t, map[string]string{
		"secret":            "secret",
		"repo/.git/HEAD":    "",
		"repo/docs/real.md": "inside",
		"repo/a/b/c/d/x":    "",
		"repo/a/AGENTS.md":  strings.Repeat("x", maxContextFile+1),
		"repo/a/b/c/BIN.md": "\xff",
	})
	for link, to := range map[string]string{
		"repo/AGENTS.md": "docs/real.md", "repo/OUT.md": "../secret", "repo/a/ABS.md": dir + "/secret", "repo/a/b/DIR.md": "c",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(dir+"/repo/a/b/PIPE.md", 0o600); err != nil {
		t.Fatal(err)
	}
	found, bad := ContextFiles(dir+"/repo/a/b/c/d", "", []string{"AGENTS.md", "OUT.md", "ABS.md", "DIR.md", "PIPE.md", "BIN.md"})
	if diff := cmp.Diff([]string{"/repo/AGENTS.md=inside"}, texts(dir, found)); diff != "" {
		t.Error(diff)
	}
	want := []string{
		"/repo/OUT.md: path escapes from parent",
		"/repo/a/AGENTS.md: it has more than 65536 bytes",
		"/repo/a/ABS.md: path escapes from parent",
		"/repo/a/b/DIR.md: it is not a regular file",
		"/repo/a/b/PIPE.md: it is not a regular file",
		"/repo/a/b/c/BIN.md: it is not UTF-8",
	}
	if diff := cmp.Diff(want, below(dir, bad)); diff != "" {
		t.Error(diff)
	}
}
