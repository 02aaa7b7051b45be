package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every key of the configuration is explained, and stands in the README's table
// with the default that the code has.
func TestReadmeNamesEveryKey(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	table := strings.Builder{}
	for line := range strings.Lines(string(readme)) {
		if strings.HasPrefix(line, "| `") {
			table.WriteString(line)
		}
	}
	for _, r := range keyRows() {
		if r.what == "" {
			t.Errorf("%s is not explained", r.key)
		}
		if !strings.Contains(table.String(), "`"+r.key+"`") {
			t.Errorf("the README's table does not name %s", r.key)
		}
		if !strings.Contains(table.String(), r.fallback) {
			t.Errorf("the README's table does not tell the default of %s, %s", r.key, r.fallback)
		}
	}
	for _, topic := range topics() {
		if !strings.Contains(string(readme), "help "+topic.name) {
			t.Errorf("the README does not name the topic %s", topic.name)
		}
	}
}

// Only what is nearly a variable of drover, and is set, is told.
func TestUnknownVariables(t *testing.T) {
	env := []string{
		"DROVER_REPOS=x", "DROVER_BACKEND=jsonl", "DROVER_SKILLS=a:b", "DROVER_SESSION=s", "DROVER_CONFIG=c",
		"DROVER_SCRIPT_STATE=d", "DROVER_EMPTY=", "DROVER_BACKND=sqlite", "DROVER_BINARY=1", "DROVER_REPOS=y", "drover_repo=x", "HOME=/", "DROVERS_X=1",
	}
	if diff := cmp.Diff([]string{"DROVER_BACKND", "DROVER_REPOS"}, unknownVariables(env)); diff != "" {
		t.Error(diff)
	}
}

// The text of a failed call is told by its first line that says something.
func TestFirstLine(t *testing.T) {
	cases := []struct{ text, want string }{
		{"", ""},
		{"\n \n", ""},
		{"\n\n  ls: no such file \nexit 2\n", "ls: no such file"},
		{"one", "one"},
	}
	for _, c := range cases {
		if got := firstLine(c.text); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}
