package resource

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// rules are the patterns of one ignore file, in their order.
type rules struct {
	dir      string // that holds the file
	patterns []pattern
}

// pattern is one line of an ignore file.
type pattern struct {
	match  *regexp.Regexp // of the path below the file's folder
	keep   bool           // it takes back what an earlier line ignored
	folder bool           // it is about folders only
}

// readRules reads the ignore files of a folder. The later one wins.
func readRules(dir string) ([]rules, error) {
	var all []rules
	for _, name := range []string{".gitignore", ".ignore"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return all, errors.New(name + ": " + reason(err).Error())
		default:
			all = append(all, rules{dir, parseIgnore(string(text))})
		}
	}
	return all, nil
}

// parseIgnore reads the lines of an ignore file as git does. A line that is no
// pattern ignores nothing.
func parseIgnore(text string) []pattern {
	var patterns []pattern
	for line := range strings.Lines(text) {
		line = trimBlanks(strings.TrimRight(line, "\r\n"))
		if line == "" || line[0] == '#' {
			continue
		}
		var p pattern
		if line, p.keep = strings.CutPrefix(line, "!"); line == "" {
			continue
		}
		if line, p.folder = strings.CutSuffix(line, "/"); line == "" {
			continue
		}
		var err error
		if p.match, err = regexp.Compile(expression(line)); err == nil {
			patterns = append(patterns, p)
		}
	}
	return patterns
}

// trimBlanks removes trailing blanks that no backslash protects.
func trimBlanks(s string) string {
	for strings.HasSuffix(s, " ") && !strings.HasSuffix(s, `\ `) {
		s = s[:len(s)-1]
	}
	return s
}

// expression turns a pattern into a regular expression for a whole path. A slash
// before its end ties it to the file's folder, otherwise it matches at any depth.
func expression(glob string) string {
	anchored := strings.Contains(glob, "/")
	glob = strings.TrimPrefix(glob, "/")
	var b strings.Builder
	b.WriteString("^")
	if !anchored {
		b.WriteString("(?:.*/)?")
	}
	for len(glob) > 0 {
		switch {
		case strings.HasPrefix(glob, "**/"):
			b.WriteString("(?:.*/)?")
			glob = glob[3:]
		case glob == "/**":
			b.WriteString("/.*")
			glob = ""
		case strings.HasPrefix(glob, "/**/"):
			b.WriteString("/(?:.*/)?")
			glob = glob[4:]
		case glob[0] == '*':
			b.WriteString("[^/]*")
			glob = strings.TrimLeft(glob, "*")
		case glob[0] == '?':
			b.WriteString("[^/]")
			glob = glob[1:]
		case glob[0] == '[':
			glob = class(&b, glob)
		case glob[0] == '\\' && len(glob) > 1:
			b.WriteString(regexp.QuoteMeta(glob[1:2]))
			glob = glob[2:]
		default:
			b.WriteString(regexp.QuoteMeta(glob[:1]))
			glob = glob[1:]
		}
	}
	b.WriteString("$")
	return b.String()
}

// class writes a bracket expression and returns what follows it. Without an end
// the bracket stands for itself.
func class(b *strings.Builder, glob string) string {
	end := strings.IndexByte(glob[min(2, len(glob)):], ']')
	if end < 0 {
		b.WriteString(`\[`)
		return glob[1:]
	}
	end += 2
	inner := glob[1:end]
	negate := inner[0] == '!' || inner[0] == '^'
	if negate {
		inner = inner[1:]
	}
	inner = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`).Replace(inner)
	if negate {
		b.WriteString("[^/" + inner + "]")
	} else {
		b.WriteString("[" + inner + "]")
	}
	return glob[end+1:]
}

// ignored tells whether the rules, those of outer folders first, leave a path
// out: the last line that matches decides.
func ignored(all []rules, path string, folder bool) bool {
	out := false
	for _, r := range all {
		below, err := filepath.Rel(r.dir, path)
		if err != nil {
			continue
		}
		below = filepath.ToSlash(below)
		for _, p := range r.patterns {
			if (folder || !p.folder) && p.match.MatchString(below) {
				out = !p.keep
			}
		}
	}
	return out
}
