package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every command that the help shows has a manual page with its parts, and what
// looks like a macro in a text is none.
func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	streams := newStreams(os.Stdin, os.Stdout, os.Stderr)
	if code := run(newFactory(nil, streams), []string{"man", dir}); code != exitOK {
		t.Fatalf("exit %d", code)
	}
	macros := map[string]bool{"TH": true, "SH": true, "B": true, "BR": true, "TP": true, "nf": true, "fi": true}
	root := newRootCmd(newFactory(nil, streams), nil)
	for _, cmd := range allCommands(root) {
		page, err := os.ReadFile(filepath.Join(dir, manName(cmd)+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, part := range []string{".SH NAME\n" + manName(cmd) + ` \- `, ".SH SYNOPSIS\n", ".SH DESCRIPTION\n"} {
			if !strings.Contains(string(page), part) {
				t.Errorf("%s has no %q", manName(cmd), part)
			}
		}
		for line := range strings.Lines(string(page)) {
			if name, macro := strings.CutPrefix(line, "."); macro && !macros[strings.Fields(name)[0]] {
				t.Errorf("%s has the unknown macro %q", manName(cmd), line)
			}
		}
	}
}

func TestRoffEscape(t *testing.T) {
	got := []string{roffEscape(`a\b --c`), roffEscape(".fi"), roffEscape("'x'")}
	if diff := cmp.Diff([]string{`a\eb \-\-c`, `\&.fi`, `\&'x'`}, got); diff != "" {
		t.Error(diff)
	}
}
