package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every command and topic that the help shows has a manual page with its parts, and what
// looks like a macro in a text is none.
func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	streams := newStreams(os.Stdin, os.Stdout, os.Stderr)
	if code := run(newFactory(nil, streams), []string{"man", dir}); code != exitOK {
		t.Fatalf("exit %d", code)
	}
	pages := map[string][]string{} // and what each must have
	for _, cmd := range allCommands(newRootCmd(newFactory(nil, streams), nil)) {
		name := manName(cmd)
		pages[name+".1"] = []string{".SH NAME\n" + name + ` \- `, ".SH SYNOPSIS\n", ".SH DESCRIPTION\n"}
	}
	for _, topic := range topics() {
		name := "drover-" + topic.name
		pages[name+".7"] = []string{".SH NAME\n" + name + ` \- `, ".SH DESCRIPTION\n", ".SH SEE ALSO\n.BR drover (1)\n"}
	}
	pages["drover.1"] = append(pages["drover.1"], `.BR drover\-create (1),`, `.BR drover\-exit\-codes (7),`)
	pages["drover-exit-codes.7"] = append(pages["drover-exit-codes.7"], "75  later")
	macros := map[string]bool{"TH": true, "SH": true, "B": true, "BR": true, "TP": true, "nf": true, "fi": true}
	for name, parts := range pages {
		page, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, part := range parts {
			if !strings.Contains(string(page), part) {
				t.Errorf("%s has no %q", name, part)
			}
		}
		for line := range strings.Lines(string(page)) {
			if word, macro := strings.CutPrefix(line, "."); macro && !macros[strings.Fields(word)[0]] {
				t.Errorf("%s has the unknown macro %q", name, line)
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
