package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What CheckProgram says and what happens to a command agree.
func TestCheckProgram(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file("found", "#!/bin/sh -e\n", 0o755)
	script := "P cannot be executed: its first line names the interpreter "
	text := "P cannot be executed: it is a text whose first line does not name an interpreter, such as #!/bin/sh"
	for _, tt := range []struct{ name, program, path, want string }{
		{"in the PATH", "sh", "", ""},
		{"in another PATH", "found", dir, ""},
		{"not in that", "sh", dir, "P is not in the PATH: install it, or give its path"},
		{"itself", os.Args[0], "", ""},
		{"gone", dir + "/gone", "", "P is not there: install it, or correct the path"},
		{"a folder", dir, "", "P is no file, and so no program"},
		{"not executable", file("plain", "#!/bin/sh\n", 0o644), "", "P may not be executed: chmod +x lets it"},
		{"a script", file("script", "#! /bin/sh\nexit\n", 0o755), "", ""},
		{"with an argument", file("argument", "#!/bin/sh\t-e\nexit\n", 0o755), "", ""},
		{"empty", file("empty", "", 0o755), "", text},
		{"a text", file("text", "exit 0\n", 0o755), "", text},
		{"no interpreter", file("none", "#! \n", 0o755), "", script + `"", which cannot be`},
		{"a missing one", file("missing", "#!/no/such\n", 0o755), "", script + `"/no/such", which cannot be`},
		{"a line of another system", file("cr", "#!/bin/sh\r\n", 0o755), "", script + `"/bin/sh\r", which cannot be`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var env []string
			if tt.path != "" {
				env = []string{"PATH=" + tt.path}
			}
			got := ""
			if err := CheckProgram(tt.program, env); err != nil {
				got = err.Error()
			}
			if want := strings.Replace(tt.want, "P ", tt.program+" ", 1); got != want {
				t.Errorf("got %q\nwant %q", got, want)
			}
			c := Command{Argv: []string{tt.program, "-test.run=^$"}, Env: append(os.Environ(), env...), Dir: dir, Stdout: &strings.Builder{}}
			if e := c.Run(t.Context(), 0); (e.Err != nil) != (tt.want != "") {
				t.Errorf("it ended with %+v, and %q was said", e, got)
			}
		})
	}
}
