package v3import

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// candidate is one file of a batch, as far as a look at it tells.
type candidate struct {
	Source
	abs    string
	id     string // of the legacy header
	parent string // the path it names as its parent
	cwd    string
	stated int64 // header time, noTime for none
	line   int64 // of the header
	off    int64
	digest string
	size   int64
	mtime  time.Time
	err    error // why it is no session file
	// remembered is a file that the manifest knows as ended: it was not read, and
	// what its header says beside the id is not known.
	remembered bool

	up     *candidate // the parent, when it is in the batch
	upHere string     // the parent's session, when the target has it already
	byName bool       // found by its file name only
	self   bool       // names itself
	ring   bool       // is its own ancestor by way of others
	unit   *unit
	item   Item // once its unit is done
}

// unit is the files of one legacy id in path order; they are handled one after
// the other.
type unit struct {
	files []*candidate
	done  chan struct{}
	place int // in the order of work, from 1; 0 before it is known
	open  bool
}

// scan looks at the header and the digest of every file.
func (b *batch) scan(ctx context.Context, sources []Source) []*candidate {
	out := make([]*candidate, len(sources))
	looked := 0
	each(b.o.Jobs, len(sources), func(i int) {
		out[i] = b.look(ctx, sources[i])
		if b.o.Looked == nil {
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		looked++
		b.o.Looked(looked, len(sources))
	})
	return out
}

// work is how much of a file there is to do, in bytes: nothing of one that is
// remembered, so that rate and rest of a resumed batch are those of its work.
func (c *candidate) work() int64 {
	if c.remembered {
		return 0
	}
	return c.size
}

// each runs fn for 0 to n-1, in this order, on a number of goroutines and waits
// for them.
func each(jobs, n int, fn func(i int)) {
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	var wg sync.WaitGroup
	for range min(max(jobs, 1), max(n, 1)) {
		wg.Go(func() {
			for i := range next {
				fn(i)
			}
		})
	}
	wg.Wait()
}

// look reads the header of a file and its digest.
func look(ctx context.Context, s Source) *candidate {
	c := &candidate{Source: s, abs: s.Path, err: s.Err}
	if abs, err := filepath.Abs(s.Path); err == nil {
		c.abs = abs
	}
	if c.err != nil {
		return c
	}
	f, err := openRegular(s.Path)
	if err != nil {
		c.err = err
		return c
	}
	defer func() { _ = f.Close() }()
	stat, err := f.Stat()
	if err != nil {
		c.err = err
		return c
	}
	c.size, c.mtime = stat.Size(), stat.ModTime()
	x := newIndex(f, c.size, Options{Path: s.Path})
	x.headOnly = true
	if err := x.scan(ctx); !x.head.found {
		c.err = err
		return c
	}
	h := &x.head
	c.id, c.parent, c.cwd, c.stated, c.line, c.off = h.id, h.parent, h.cwd, h.stated, h.line, h.off
	c.digest, c.err = digest(f, c.size)
	return c
}

// plan groups the files by their id and puts parents in front of children.
func plan(files []*candidate, known *catalog) []*unit {
	byID := make(map[string]*unit)
	var units []*unit
	for _, c := range files {
		u := byID[c.id]
		if u == nil || c.err != nil {
			u = &unit{done: make(chan struct{})}
			units = append(units, u)
			if c.err == nil {
				byID[c.id] = u
			}
		}
		u.files, c.unit = append(u.files, c), u
	}
	link(files, known)
	return parentsFirst(units)
}

// link finds the parent that each file names: by path, in the batch and in the
// target, then by file name.
func link(files []*candidate, known *catalog) {
	byPath := make(map[string]*candidate)
	byName := make(map[string][]*candidate)
	for _, c := range files {
		if c.err == nil {
			byPath[c.abs] = c
			byName[filepath.Base(c.abs)] = append(byName[filepath.Base(c.abs)], c)
		}
	}
	for _, c := range files {
		if c.err == nil && c.parent != "" {
			c.link(byPath, byName, known)
		}
	}
	markRings(files)
}

func (c *candidate) link(byPath map[string]*candidate, byName map[string][]*candidate, known *catalog) {
	var paths []string
	if filepath.IsAbs(c.parent) {
		paths = []string{filepath.Clean(c.parent)}
	} else {
		paths = []string{filepath.Join(filepath.Dir(c.abs), c.parent)}
		if c.cwd != "" {
			paths = append(paths, filepath.Join(c.cwd, c.parent))
		}
	}
	for _, p := range paths {
		if c.up = byPath[p]; c.up != nil {
			break
		}
		if o, exact := known.byPath(p); exact {
			c.upHere = o.session
			break
		}
	}
	if c.up == nil && c.upHere == "" {
		c.byName = true
		same := byName[baseName(c.parent)]
		if len(same) > 0 && !slices.ContainsFunc(same, func(o *candidate) bool { return o.id != same[0].id }) {
			c.up = same[0]
		} else if o, _ := known.byPath(c.parent); len(same) == 0 {
			c.upHere = o.session
		}
	}
	if c.up == c {
		c.up, c.self = nil, true
	}
}

// markRings finds the files that are their own ancestors by way of others.
func markRings(files []*candidate) {
	state := make(map[*candidate]int)
	for n, c := range files {
		var path []*candidate
		for c != nil && state[c] == 0 {
			state[c] = n + 1
			path = append(path, c)
			c = c.up
		}
		if c != nil && state[c] == n+1 {
			for _, r := range path[slices.Index(path, c):] {
				r.ring = true
			}
		}
	}
}

// parentsFirst orders units so that the parents of a unit's files come before
// it, as far as no ring stands against it.
func parentsFirst(units []*unit) []*unit {
	out := make([]*unit, 0, len(units))
	type frame struct {
		u *unit
		i int
	}
	for _, u := range units {
		if u.open {
			continue
		}
		u.open = true
		for stack := []frame{{u, 0}}; len(stack) > 0; {
			top := &stack[len(stack)-1]
			if top.i == len(top.u.files) {
				out = append(out, top.u)
				top.u.place = len(out)
				stack = stack[:len(stack)-1]
				continue
			}
			up := top.u.files[top.i].up
			top.i++
			if up != nil && !up.unit.open {
				up.unit.open = true
				stack = append(stack, frame{up.unit, 0})
			}
		}
	}
	return out
}
