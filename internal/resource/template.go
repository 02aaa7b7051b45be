package resource

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Template is a prompt with places for arguments.
type Template struct {
	Name        string // the file's, without .md
	Description string
	Body        string
	Path        string
}

// Templates finds the prompt templates of the folders: their Markdown files, in
// the order of the folders and of the names. The first of a name counts. Ignore
// files are honoured.
func Templates(dirs []string) (found []Template, bad []Diagnostic) {
	fail := func(path string, err error) {
		bad = append(bad, Diagnostic{Path: path, Message: reason(err).Error()})
	}
	for _, dir := range dirs {
		files, err := os.ReadDir(dir)
		if err != nil {
			fail(dir, err)
			continue
		}
		own, err := readRules(dir)
		if err != nil {
			fail(dir, err)
		}
		for _, f := range files {
			path := filepath.Join(dir, f.Name())
			if !isTemplate(f, path) || ignored(own, path, false) {
				continue
			}
			t, err := readTemplate(path)
			if i := slices.IndexFunc(found, func(k Template) bool { return k.Name == t.Name }); err == nil && i >= 0 {
				err = fmt.Errorf("the name %s is taken by %s", t.Name, found[i].Path)
			}
			if err != nil {
				fail(path, err)
				continue
			}
			found = append(found, t)
		}
	}
	return found, bad
}

// isTemplate tells whether a file could be a template; a link that leads nowhere
// could, so that it is reported.
func isTemplate(f fs.DirEntry, path string) bool {
	if !strings.HasSuffix(f.Name(), ".md") || strings.HasPrefix(f.Name(), ".") {
		return false
	}
	info, err := os.Stat(path)
	return err != nil || info.Mode().IsRegular()
}

func readTemplate(path string) (Template, error) {
	t := Template{Name: strings.TrimSuffix(filepath.Base(path), ".md"), Path: path}
	text, err := readText(path)
	if err != nil {
		return t, err
	}
	var fields struct {
		Description string `yaml:"description"`
	}
	body, _, err := frontMatter(text, &fields)
	if err != nil {
		return t, err
	}
	t.Body = strings.Trim(body, "\n")
	t.Description = strings.TrimSpace(fields.Description)
	if strings.TrimSpace(t.Body) == "" {
		return t, errors.New("it is empty")
	}
	return t, nil
}

// Expand puts arguments into the places of the template: $1 to $9, $@ and
// $ARGUMENTS for all joined by blanks, ${@:N} for those from the N-th, ${@:N:L}
// for L of them. A place without its argument is empty. What an argument holds is
// not expanded again.
func (t Template) Expand(args []string) string {
	place := regexp.MustCompile(`\$(?:ARGUMENTS\b|@|[1-9]|\{@:\d+(?::\d+)?\})`)
	return place.ReplaceAllStringFunc(t.Body, func(s string) string {
		switch {
		case s == "$@" || s == "$ARGUMENTS":
			return strings.Join(args, " ")
		case s[1] == '{':
			return strings.Join(slice(args, s[4:len(s)-1]), " ")
		}
		if n := int(s[1] - '0'); n <= len(args) {
			return args[n-1]
		}
		return ""
	})
}

// slice is the part of the arguments that N or N:L names; N counts from 1.
func slice(args []string, bounds string) []string {
	first, length, limited := strings.Cut(bounds, ":")
	start, err := strconv.Atoi(first)
	if err != nil {
		return nil // more digits than arguments can be
	}
	from := min(max(start-1, 0), len(args))
	end := len(args)
	if n, err := strconv.Atoi(length); limited && err == nil {
		end = min(from+min(n, len(args)), len(args))
	}
	return args[from:end]
}
