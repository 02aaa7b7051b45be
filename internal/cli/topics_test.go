package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/resource"
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

// Every example of a configuration that a topic shows can be used as it stands.
func TestTopicExamples(t *testing.T) {
	var keys []string
	for _, r := range keyRows() {
		first, _, _ := strings.Cut(r.key, ".")
		keys = append(keys, first)
	}
	shown := map[string]int{}
	for _, topic := range topics() {
		var stdout, stderr strings.Builder
		if code := Main([]string{"help", topic.name}, []string{"HOME=/"}, strings.NewReader(""), &stdout, &stderr); code != 0 {
			t.Fatalf("%s: exit code %d: %s", topic.name, code, stderr.String())
		}
		for part := range strings.SplitSeq(stdout.String(), "\n\n") {
			first, _, isKey := strings.Cut(strings.TrimPrefix(part, "  "), ":")
			if !strings.HasPrefix(part, "  ") || !isKey || !slices.Contains(keys, first) {
				continue
			}
			shown[topic.name]++
			text := strings.ReplaceAll(part, "\n  ", "\n")[2:]
			if _, err := configFrom(t, text+"\n"); err != nil {
				t.Errorf("%s: %v:\n%s", topic.name, err, text)
			}
		}
	}
	for _, name := range []string{"configuration", "hooks", "mcp", "programs", "providers", "skills", "telemetry", "templates"} {
		if shown[name] == 0 {
			t.Errorf("the topic %s shows no example", name)
		}
	}
}

// The files that topics show are a skill and a template.
func TestResourceTopics(t *testing.T) {
	dir := t.TempDir()
	for _, topic := range []resourceTopic{skillsTopic(), templatesTopic()} {
		path := filepath.Join(dir, topic.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(topic.file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	skills, bad := resource.Skills([]string{filepath.Join(dir, "skills")})
	if len(skills) != 1 || bad != nil {
		t.Errorf("skills %v, %v", skills, bad)
	}
	templates, bad := resource.Templates([]string{filepath.Join(dir, "templates")})
	if len(templates) != 1 || bad != nil {
		t.Fatalf("templates %v, %v", templates, bad)
	}
	want := "Review store.go as a colleague would. Look at locking and errors above all."
	if diff := cmp.Diff(want, templates[0].Expand([]string{"store.go", "locking and errors"})); diff != "" {
		t.Error(diff)
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
