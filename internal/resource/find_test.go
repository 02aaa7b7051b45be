package resource

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lay writes files below a folder of the test's own.
func lay(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func skill(name string) string { return "---\nname: " + name + "\ndescription: does it\n---\n\nbody\n" }

// below makes paths of the test's folder readable.
func below(dir string, bad []Diagnostic) []string {
	var lines []string
	for _, d := range bad {
		lines = append(lines, strings.TrimPrefix(d.Path, dir)+": "+strings.ReplaceAll(d.Message, dir, ""))
	}
	return lines
}

func TestSkillsAreFoundWithTheirFields(t *testing.T) {
	dir := lay(t, map[string]string{
		"one/SKILL.md":         "\ufeff---\r\nname: one\r\ndescription: ' the first '\r\ndisable-model-invocation: true\r\nlicense: x\r\n---\r\n\r\n# Body\r\n\r\nof one\r\n",
		"deep/er/two/SKILL.md": skill("two"),
		"single.md":            skill("single"),
	})
	got, bad := Skills([]string{dir})
	want := []Skill{
		{Name: "two", Description: "does it", Body: "body", Path: dir + "/deep/er/two/SKILL.md", Base: dir + "/deep/er/two"},
		{Name: "one", Description: "the first", Body: "# Body\n\nof one", Path: dir + "/one/SKILL.md", Base: dir + "/one", Hidden: true},
		{Name: "single", Description: "does it", Body: "body", Path: dir + "/single.md", Base: dir},
	}
	if diff := cmp.Diff(want, got); diff != "" || bad != nil {
		t.Errorf("%v\n%s", bad, diff)
	}
}

func TestBadSkillsAreNamed(t *testing.T) {
	dir := lay(t, map[string]string{
		"none/SKILL.md":    "text",
		"open/SKILL.md":    "---\nname: open\n",
		"yaml/SKILL.md":    "---\nname: [\n---\n",
		"noname/SKILL.md":  "---\ndescription: x\n---\n",
		"case/SKILL.md":    skill("Case"),
		"hyphens/SKILL.md": skill("a--b"),
		"long/SKILL.md":    skill(strings.Repeat("a", 65)),
		"other/SKILL.md":   skill("another"),
		"silent/SKILL.md":  "---\nname: silent\n---\n",
		"bytes/SKILL.md":   skill("bytes") + "\xff",
		"large/SKILL.md":   skill("large") + strings.Repeat("x", maxFile),
		"good/SKILL.md":    skill("good"),
		"z.md":             skill("good"),
		"README.md":        "no front matter, no skill",
	})
	if err := os.Symlink("nowhere", dir+"/broken"); err != nil {
		t.Fatal(err)
	}
	got, bad := Skills([]string{dir, dir + "/nosuch"})
	if len(got) != 1 || got[0].Name != "good" {
		t.Errorf("found %+v", got)
	}
	want := []string{
		"/broken: no such file or directory",
		"/bytes/SKILL.md: it is not UTF-8",
		`/case/SKILL.md: its name "Case" is not of lower case letters, digits and single hyphens`,
		`/hyphens/SKILL.md: its name "a--b" is not of lower case letters, digits and single hyphens`,
		"/large/SKILL.md: it has more than 1048576 bytes",
		"/long/SKILL.md: its name has 65 characters, more than 64",
		"/noname/SKILL.md: it has no name",
		"/none/SKILL.md: it has no front matter",
		"/open/SKILL.md: its front matter has no end",
		"/other/SKILL.md: its name is another, its folder's is other",
		"/silent/SKILL.md: it has no description",
		"/yaml/SKILL.md: its front matter is no YAML: line 2: did not find expected node content",
		"/z.md: the name good is taken by /good/SKILL.md",
		"/nosuch: no such file or directory",
	}
	if diff := cmp.Diff(want, below(dir, bad)); diff != "" {
		t.Error(diff)
	}
}

func TestSkillsHonourIgnoreFilesAndLinks(t *testing.T) {
	dir := lay(t, map[string]string{
		".gitignore":                "drafts/\n",
		"drafts/x/SKILL.md":         skill("x"),
		"kept/.ignore":              "*\n!y\n",
		"kept/y/SKILL.md":           skill("y"),
		"kept/w/SKILL.md":           skill("w"),
		"node_modules/m/SKILL.md":   skill("m"),
		".hidden/h/SKILL.md":        skill("h"),
		"v/SKILL.md":                skill("v"),
		"v/inner/SKILL.md":          skill("inner"),
		"deep/note.md":              skill("note"),
		"elsewhere/linked/SKILL.md": skill("linked"),
	})
	root := t.TempDir()
	for link, to := range map[string]string{"/link": dir + "/elsewhere", "/circle": root, "/again": dir + "/v"} {
		if err := os.Symlink(to, root+link); err != nil {
			t.Fatal(err)
		}
	}
	names := func(dirs ...string) (names []string) {
		found, _ := Skills(dirs)
		for _, s := range found {
			names = append(names, s.Name)
		}
		return names
	}
	if diff := cmp.Diff([]string{"linked", "v"}, names(dir)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"linked"}, names(root)); diff != "" {
		t.Error(diff)
	}
}

func TestTemplates(t *testing.T) {
	dir := lay(t, map[string]string{
		"a.md":        "---\ndescription: does a\n---\nDo $1.\n",
		"b.md":        "Plain.\n",
		"empty.md":    "---\ndescription: x\n---\n",
		"open.md":     "---\n",
		"c.txt":       "no template",
		"sub/d.md":    "not looked at",
		"e.md/f":      "a folder",
		"g.md":        "ignored",
		".ignore":     "g.md",
		"second/a.md": "taken",
	})
	got, bad := Templates([]string{dir, dir + "/second", dir + "/nosuch"})
	want := []Template{
		{Name: "a", Description: "does a", Body: "Do $1.", Path: dir + "/a.md"},
		{Name: "b", Body: "Plain.", Path: dir + "/b.md"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	wantBad := []string{
		"/empty.md: it is empty",
		"/open.md: its front matter has no end",
		"/second/a.md: the name a is taken by /a.md",
		"/nosuch: no such file or directory",
	}
	if diff := cmp.Diff(wantBad, below(dir, bad)); diff != "" {
		t.Error(diff)
	}
}
