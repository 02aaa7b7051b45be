package tool

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/drover-run/drover/pkg/engine/effect"
)

// validName is what every provider accepts as a tool's name (D47).
const validName = `^[A-Za-z0-9_-]{1,64}$`

// Registry finds tools by name. It does not change once it is built, so it may
// be shared.
type Registry struct {
	byName  map[string]effect.Tool
	names   []string
	sources []Source
}

// Source finds tools that nobody can list beforehand, such as those of a server. It
// may have a method Prefix: how the names of all its tools begin, with __ at the end.
type Source interface {
	Lookup(name string) (effect.Tool, bool)
	// Close ends what the source has started.
	Close() error
}

// New builds a registry. A name that providers would refuse, and one that is
// taken, are errors that quote it.
func New(tools ...effect.Tool) (*Registry, error) {
	valid := regexp.MustCompile(validName)
	r := &Registry{byName: make(map[string]effect.Tool, len(tools))}
	for _, t := range tools {
		name := t.Spec().Name
		if !valid.MatchString(name) {
			return nil, fmt.Errorf("register tool %q: a name is 1 to 64 letters, digits, underscores and hyphens", name)
		}
		if _, taken := r.byName[name]; taken {
			return nil, fmt.Errorf("register tool %q: the name is taken", name)
		}
		r.byName[name] = t
		r.names = append(r.names, name)
	}
	slices.Sort(r.names)
	return r, nil
}

// WithSources returns a registry that asks the sources for what this one does not
// have.
func (r *Registry) WithSources(sources ...Source) *Registry {
	more := *r
	more.sources = append(slices.Clip(r.sources), sources...)
	return &more
}

// Lookup returns the tool of that exact name.
func (r *Registry) Lookup(name string) (effect.Tool, bool) {
	if t, ok := r.byName[name]; ok {
		return t, true
	}
	for _, s := range r.sources {
		if t, ok := s.Lookup(name); ok {
			return t, true
		}
	}
	return nil, false
}

// Close closes the sources, all of them, and returns what failed.
func (r *Registry) Close() error {
	failures := make([]error, len(r.sources))
	var all sync.WaitGroup
	for i, s := range r.sources {
		all.Go(func() { failures[i] = s.Close() })
	}
	all.Wait()
	return errors.Join(failures...)
}

// Names returns the names of all tools that are listed, sorted.
func (r *Registry) Names() []string { return slices.Clone(r.names) }

// Nearest returns up to three names that a misspelt one may stand for, the
// likeliest first, none when nothing is close.
func (r *Registry) Nearest(name string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var near []candidate
	folded := strings.ToLower(name)
	for _, n := range append(r.Names(), r.sourced(name)...) {
		d := distance(folded, strings.ToLower(n))
		if d <= max(2, len(n)/3) && d < len(n) {
			near = append(near, candidate{n, d})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return a.distance - b.distance })
	var names []string
	for _, c := range near[:min(len(near), 3)] {
		names = append(names, c.name)
	}
	return names
}

// sourced are the names that the sources would find in the place of a name whose
// beginning is not quite theirs.
func (r *Registry) sourced(name string) []string {
	const separator = "__"
	start, rest, ok := strings.Cut(name, separator)
	if !ok {
		return nil
	}
	var names []string
	for _, s := range r.sources {
		s, ok := s.(interface{ Prefix() string })
		if ok && distance(start+separator, s.Prefix()) <= max(1, len(start)/3) {
			names = append(names, s.Prefix()+rest)
		}
	}
	return names
}

// distance is the number of bytes to insert, delete or change between a and b.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a) // no name is that long
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
