package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What tools cannot work in is told with its reason (B36).
func TestUnusableFolder(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.Mkdir(at("good"), 0o700), os.WriteFile(at("file"), nil, 0o600), os.Mkdir(at("locked"), 0),
		os.Symlink("good", at("link")), os.Symlink("nowhere", at("dangling")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cases := []struct{ path, want string }{
		{at("good"), ""},
		{at("link"), ""},
		{at("gone"), "gone does not exist"},
		{at("file"), "file is no folder"},
		{at("file/below"), "cannot be used: not a directory"},
		{at("dangling"), "dangling is a symbolic link to nothing"},
		{"", "has no working folder"},
	}
	if os.Geteuid() != 0 { // who may enter every folder
		cases = append(cases, struct{ path, want string }{at("locked"), "locked cannot be used: permission denied"})
	}
	for _, c := range cases {
		if got := unusableFolder(c.path); (got == "") != (c.want == "") || !strings.HasSuffix(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.path, got, c.want)
		}
	}
}
