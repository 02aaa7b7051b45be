package v3import

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Source is one file that was named or found. Err is why it cannot be read, as
// for a folder that may not be listed.
type Source struct {
	Path string
	Err  error
	// Passing is a copy that goes away again, as of what came in a pipe: its path
	// means nothing and is not kept.
	Passing bool
}

// Found is what Collect found.
type Found struct {
	Sources []Source // in path order, each file once
	// Notes say what was passed over in folders, one sentence for each reason.
	Notes []string
}

// Collect finds the session files among paths. A file that is named is taken
// whatever its name, a symbolic link that is named is followed. In a folder only
// regular files called *.jsonl count, with recursive those of its folders too;
// links, FIFOs, devices and folders called like files are passed over with a
// note.
func Collect(paths []string, recursive bool) Found {
	c := collector{recursive: recursive, seen: make(map[string]bool), passed: make(map[string]*passed)}
	for _, p := range paths {
		if stat, err := os.Stat(p); err == nil && stat.IsDir() {
			c.folder(p)
		} else {
			c.add(Source{Path: p})
		}
	}
	slices.SortFunc(c.found, byPath)
	return Found{Sources: c.found, Notes: c.notes()}
}

func byPath(a, b Source) int { return cmp.Compare(a.Path, b.Path) }

type collector struct {
	recursive bool
	found     []Source
	seen      map[string]bool
	passed    map[string]*passed
}

type passed struct {
	count int
	first string
}

func (c *collector) add(s Source) {
	key := filepath.Clean(s.Path)
	if abs, err := filepath.Abs(s.Path); err == nil {
		key = abs
	}
	if !c.seen[key] {
		c.seen[key] = true
		c.found = append(c.found, s)
	}
}

func (c *collector) pass(reason, path string) {
	p := c.passed[reason]
	if p == nil {
		p = &passed{first: path}
		c.passed[reason] = p
	}
	p.count++
}

// folder walks a folder with a list of its own, so that depth costs no stack.
func (c *collector) folder(root string) {
	for todo := []string{root}; len(todo) > 0; {
		dir := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		entries, err := os.ReadDir(dir)
		if err != nil {
			c.add(Source{Path: dir, Err: fmt.Errorf("list folder: %w", err)})
			continue
		}
		for _, e := range entries {
			if path := filepath.Join(dir, e.Name()); c.entry(path, e) {
				todo = append(todo, path)
			}
		}
	}
}

// entry takes one entry of a folder; true asks to look into it.
func (c *collector) entry(path string, e fs.DirEntry) (descend bool) {
	session := strings.HasSuffix(e.Name(), ".jsonl")
	switch mode := e.Type(); {
	case mode&fs.ModeSymlink != 0:
		c.pass("symbolic links", path)
	case mode.IsDir() && session:
		c.pass("folders called like session files", path)
	case mode.IsDir():
		return c.recursive
	case !session:
		c.pass("files not called *.jsonl", path)
	case !mode.IsRegular():
		c.pass("FIFOs, sockets and devices", path)
	default:
		c.add(Source{Path: path})
	}
	return false
}

func (c *collector) notes() []string {
	var out []string
	for reason, p := range c.passed {
		out = append(out, fmt.Sprintf("passed over %s: %d, the first %s", reason, p.count, p.first))
	}
	slices.Sort(out)
	return out
}
