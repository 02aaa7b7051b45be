package resource

import "testing"

func TestIgnored(t *testing.T) {
	cases := []struct {
		name, file, path string
		folder           bool
		want             bool
	}{
		{"a name at any depth", "draft", "/r/a/draft", false, true},
		{"a name is the whole name", "draft", "/r/a/drafts", false, false},
		{"a comment", "#draft", "/r/#draft", false, false},
		{"a protected hash", `\#draft`, "/r/#draft", false, true},
		{"blank lines", "\n\n  \n", "/r/a", false, false},
		{"a trailing blank does not count", "draft ", "/r/draft", false, true},
		{"a protected one does", `draft\ `, "/r/draft ", false, true},
		{"a leading slash ties to the folder", "/draft", "/r/a/draft", false, false},
		{"and matches there", "/draft", "/r/draft", false, true},
		{"so does a slash inside", "a/draft", "/r/b/a/draft", false, false},
		{"a slash inside matches there", "a/draft", "/r/a/draft", false, true},
		{"folders only", "draft/", "/r/draft", false, false},
		{"a folder", "draft/", "/r/a/draft", true, true},
		{"a star stays in its folder", "a/*", "/r/a/b/c", false, false},
		{"a star", "*.md", "/r/a/x.md", false, true},
		{"two stars in front", "**/draft", "/r/a/b/draft", false, true},
		{"two stars in front match nothing too", "**/draft", "/r/draft", false, true},
		{"two stars inside", "a/**/draft", "/r/a/b/c/draft", false, true},
		{"two stars inside match nothing too", "a/**/draft", "/r/a/draft", false, true},
		{"two stars at the end", "a/**", "/r/a/b/c", false, true},
		{"two stars at the end are below", "a/**", "/r/a", true, false},
		{"a question mark", "?.md", "/r/é.md", false, true},
		{"a question mark is no slash", "a?b", "/r/a/b", false, false},
		{"a class", "[a-c].md", "/r/b.md", false, true},
		{"a negated class", "[!a-c].md", "/r/b.md", false, false},
		{"a class without an end", "[a.md", "/r/[a.md", false, true},
		{"dots are dots", "a.md", "/r/axmd", false, false},
		{"the last line decides", "*.md\n!keep.md", "/r/keep.md", false, false},
		{"also the other way", "!keep.md\n*.md", "/r/keep.md", false, true},
		{"carriage returns", "draft\r\n", "/r/draft", false, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := ignored([]rules{{"/r", parseIgnore(c.file)}}, c.path, c.folder)
			if got != c.want {
				t.Errorf("ignored(%q, %q) = %v, want %v", c.file, c.path, got, c.want)
			}
		})
	}
}

func TestIgnoredInnerFolderWins(t *testing.T) {
	all := []rules{{"/r", parseIgnore("*.md")}, {"/r/a", parseIgnore("!x.md")}}
	if ignored(all, "/r/a/x.md", false) || !ignored(all, "/r/a/y.md", false) {
		t.Error("the rules of the inner folder do not come last")
	}
}
