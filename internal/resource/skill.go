package resource

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Skill is a named instruction that a user may call up.
type Skill struct {
	Name        string
	Description string
	// Body is the text behind the front matter.
	Body string
	// Path is the file, Base the folder that its relative references start from.
	Path, Base string
	// Hidden says that a model must not call it up by itself.
	Hidden bool
}

type skillFields struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Hidden      bool   `yaml:"disable-model-invocation"`
}

// Skills finds the skills below the folders, in the order of the folders and of
// the paths in them. A skill is a folder with a SKILL.md, at any depth, or a
// Markdown file with front matter directly in one of the folders. The first of a
// name counts. Ignore files are honoured; links are followed.
func Skills(dirs []string) ([]Skill, []Diagnostic) {
	var c collector
	for _, dir := range dirs {
		w := newWalk(&c)
		w.folder(dir, nil, true)
	}
	return c.skills, c.bad
}

type collector struct {
	skills []Skill
	bad    []Diagnostic
}

func (c *collector) fail(path string, err error) {
	c.bad = append(c.bad, Diagnostic{Path: path, Message: err.Error()})
}

// add reads a skill's file; folder is the name that it must have, "" for any.
func (c *collector) add(path, folder string) {
	s, found, err := readSkill(path, folder)
	if err == nil && found {
		for _, known := range c.skills {
			if known.Name == s.Name {
				err = fmt.Errorf("the name %s is taken by %s", s.Name, known.Path)
			}
		}
	}
	switch {
	case err != nil:
		c.fail(path, err)
	case found:
		c.skills = append(c.skills, s)
	}
}

// readSkill reads one file. A single file without front matter is no skill but
// some other text.
func readSkill(path, folder string) (s Skill, found bool, err error) {
	text, err := readText(path)
	if err != nil {
		return s, true, err
	}
	var fields skillFields
	body, has, err := frontMatter(text, &fields)
	switch {
	case err != nil:
		return s, true, err
	case !has && folder == "":
		return s, false, nil
	case !has:
		return s, true, errors.New("it has no front matter")
	}
	if err := checkName(fields.Name); err != nil {
		return s, true, err
	}
	if folder != "" && fields.Name != folder {
		return s, true, fmt.Errorf("its name is %s, its folder's is %s", fields.Name, folder)
	}
	if strings.TrimSpace(fields.Description) == "" {
		return s, true, errors.New("it has no description")
	}
	return Skill{
		Name: fields.Name, Description: strings.TrimSpace(fields.Description), Body: strings.Trim(body, "\n"),
		Path: path, Base: filepath.Dir(path), Hidden: fields.Hidden,
	}, true, nil
}

const maxName = 64

// checkName holds the rule of the format: lower case letters, digits and single
// hyphens between them.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("it has no name")
	case len(name) > maxName:
		return fmt.Errorf("its name has %d characters, more than %d", len(name), maxName)
	case !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(name):
		return fmt.Errorf("its name %q is not of lower case letters, digits and single hyphens", name)
	}
	return nil
}

// walk goes through one configured folder.
type walk struct {
	c    *collector
	seen map[string]bool // real paths of folders, so that a circle of links ends
}

func newWalk(c *collector) *walk { return &walk{c: c, seen: make(map[string]bool)} }

// folder looks for skills in a folder; above are the rules of the folders above
// it, top says that the configuration names it.
func (w *walk) folder(dir string, above []rules, top bool) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		w.c.fail(dir, reason(err))
		return
	}
	if w.seen[real] {
		return
	}
	w.seen[real] = true
	files, err := os.ReadDir(dir)
	if err != nil {
		w.c.fail(dir, reason(err))
		return
	}
	own, err := readRules(dir)
	if err != nil {
		w.c.fail(dir, err)
	}
	all := append(above[:len(above):len(above)], own...)
	for _, f := range files {
		if f.Name() == "SKILL.md" && !ignored(all, filepath.Join(dir, f.Name()), false) {
			w.c.add(filepath.Join(dir, f.Name()), filepath.Base(dir))
			return // what lies beside it belongs to the skill
		}
	}
	for _, f := range files {
		w.entry(dir, f.Name(), all, top)
	}
}

func (w *walk) entry(dir, name string, all []rules, top bool) {
	path := filepath.Join(dir, name)
	if strings.HasPrefix(name, ".") || name == "node_modules" {
		return
	}
	info, err := os.Stat(path)
	if err != nil {
		w.c.fail(path, reason(err))
		return
	}
	switch {
	case ignored(all, path, info.IsDir()):
	case info.IsDir():
		w.folder(path, all, false)
	case top && info.Mode().IsRegular() && strings.HasSuffix(name, ".md"):
		w.c.add(path, "")
	}
}
