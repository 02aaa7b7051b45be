package subsession

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// How a walk came to a session.
const (
	ViaRoot      = "root"
	ViaRef       = "ref"
	ViaPointer   = "pointer"
	ViaBoth      = "ref+pointer"
	ViaTombstone = "tombstone"
)

// Operation is an operation that has not ended.
type Operation struct {
	SessionID   string
	Lane        string
	OperationID string
}

// Node is one session of a plan.
type Node struct {
	Step
	Via     string
	Ref     store.Ref
	Exists  bool  // its file is there
	Damaged error // of a root that cannot be read: it goes, with what names it
	Several error // its other files, as *store.SeveralFiles; nil when it has none
	Lease   *store.Lease
	Open    []Operation
	Bytes   int64
	Usage   message.Usage
	Changed int64 // its last change, Unix ms

	facts
}

// facts are what a session's content tells of its lineage.
type facts struct {
	header   store.Header
	local    []Ref
	remote   []Ref
	floor    int64 // lower bound of the generations of its refs
	messages int64
}

// KeptRemote is a child that lives with another service.
type KeptRemote struct {
	ID     string
	Parent string
	RefKey string // "" when only a tombstone tells of it
}

// Plan is what a deletion would do.
type Plan struct {
	Root       string
	RootExists bool
	Nodes      []*Node // in the order of deletion, sessions that are gone included
	KeptRemote []KeptRemote
	KeptForks  []string   // they point into the tree and stay
	Cycles     [][]string // sessions that name each other in a circle
	Unreadable []string   // they stay: nobody can say whose they are

	lost []string // the unreadable ones that a ref names as children
}

// Existing are the sessions that there are to delete, in order.
func (p *Plan) Existing() []*Node {
	return slices.DeleteFunc(slices.Clone(p.Nodes), func(n *Node) bool { return !n.Exists })
}

// Usage is what the sessions of the plan have cost together.
func (p *Plan) Usage() message.Usage {
	var sum message.Usage
	for _, n := range p.Nodes {
		sum = sum.Add(n.Usage)
	}
	return sum
}

// Root names what is to be deleted: the id, and the file when it is there.
type Root struct {
	ID  string
	Ref store.Ref // without a path when the session is gone
}

// Plan walks from a root, whose file may be gone, and takes no lease and changes
// nothing. A root without file, tombstone and descendants is store.ErrNotFound; a
// ref that cannot be trusted is *BadRef.
func (c *Cascade) Plan(ctx context.Context, root Root) (*Plan, error) {
	m, err := c.newMap(ctx, root)
	if err != nil {
		return nil, err
	}
	w := &walk{cascade: c, m: m, root: root, nodes: make(map[string]*Node)}
	steps, err := DeleteOrder(root.ID, func(id, parent string, depth int) ([]string, bool, error) {
		return w.visit(ctx, id, parent)
	})
	if err != nil {
		return nil, err
	}
	p := &Plan{Root: root.ID, RootExists: w.nodes[root.ID].Exists, Cycles: cycles(steps)}
	for _, s := range steps {
		n := w.nodes[s.ID]
		n.Step = s
		if n.Exists {
			n.Several = store.SoleAmong(m.files[n.ID], n.Ref)
		}
		p.Nodes = append(p.Nodes, n)
	}
	if !p.RootExists && !w.buried && len(p.Nodes) == 1 {
		return nil, fmt.Errorf("delete session %s: %w", root.ID, store.ErrNotFound)
	}
	p.KeptRemote = w.keptRemote()
	p.KeptForks = m.forksOf(w.nodes)
	p.lost = distinct(w.unreadable)
	p.Unreadable = distinct(append(w.unreadable, m.unreadable...))
	p.Unreadable = slices.DeleteFunc(p.Unreadable, func(id string) bool { return w.nodes[id] != nil })
	return p, nil
}

// lineage is the repository as the headers of its sessions show it.
type lineage struct {
	byID       map[string]store.Listed
	files      map[string][]store.Listed // all that hold the id
	spawned    map[string][]string       // by the parent that the header names
	forks      map[string][]string
	unreadable []string
}

func (c *Cascade) newMap(ctx context.Context, root Root) (*lineage, error) {
	listed, err := c.Repo.List(ctx)
	if err != nil {
		return nil, err
	}
	m := &lineage{byID: make(map[string]store.Listed), files: make(map[string][]store.Listed), spawned: make(map[string][]string), forks: make(map[string][]string)}
	for _, l := range listed {
		m.files[l.Ref.ID] = append(m.files[l.Ref.ID], l)
		if l.Ref.ID == root.ID && root.Ref.Path != "" && l.Ref.Path != root.Ref.Path {
			continue // another file of the same id; the root names its own
		}
		if l.Err != nil && l.Ref.Path != root.Ref.Path {
			m.unreadable = append(m.unreadable, l.Ref.ID)
		}
		if _, known := m.byID[l.Ref.ID]; known && l.Err != nil {
			continue
		}
		m.byID[l.Ref.ID] = l
		if s, ok := ParseSpawn(l.Header.Spawn); ok && l.Err == nil && s.Location != Remote {
			m.spawned[s.ParentSessionID] = append(m.spawned[s.ParentSessionID], l.Ref.ID)
		}
		if p := l.Header.ParentSessionID; p != "" {
			m.forks[p] = append(m.forks[p], l.Ref.ID)
		}
	}
	return m, nil
}

func (m *lineage) forksOf(nodes map[string]*Node) []string {
	var kept []string
	for id := range nodes {
		for _, fork := range m.forks[id] {
			if nodes[fork] == nil {
				kept = append(kept, fork)
			}
		}
	}
	return distinct(kept)
}

// walk collects what a plan consists of.
type walk struct {
	cascade    *Cascade
	m          *lineage
	root       Root
	nodes      map[string]*Node
	remote     []KeptRemote
	unreadable []string
	buried     bool // the root has a tombstone
}

// visit looks at one session and returns its children.
func (w *walk) visit(ctx context.Context, id, parent string) ([]string, bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, false, context.Cause(ctx)
	}
	n := &Node{Via: ViaRoot}
	err := w.look(ctx, id, n)
	if unreadable(err) {
		if id != w.root.ID {
			w.unreadable = append(w.unreadable, id)
			return nil, false, nil
		}
		n.Damaged = err
	} else if err != nil {
		return nil, false, err
	}
	grave, err := w.cascade.tombstones().Read(id)
	if err != nil {
		return nil, false, err
	}
	if parent != "" {
		n.Via = w.via(w.nodes[parent], id)
	}
	w.nodes[id] = n
	w.buried = w.buried || id == w.root.ID && grave != nil
	return w.children(id, n, grave), true, nil
}

func (w *walk) via(parent *Node, id string) string {
	named := slices.ContainsFunc(parent.local, func(r Ref) bool { return r.SubSessionID == id })
	pointing := slices.Contains(w.m.spawned[parent.ID], id)
	switch {
	case named && pointing:
		return ViaBoth
	case named:
		return ViaRef
	case pointing:
		return ViaPointer
	}
	return ViaTombstone
}

// children are (local refs ∪ pointers) \ remote refs; the refs of a session that
// is gone are those of its tombstone.
func (w *walk) children(id string, n *Node, grave *Tombstone) []string {
	n.ID = id // via asks for it before the order is known
	below := slices.Clone(w.m.spawned[id])
	excluded := make(map[string]bool)
	for _, r := range n.local {
		below = append(below, r.SubSessionID)
	}
	for _, r := range n.remote {
		excluded[r.SubSessionID] = true
		w.remote = append(w.remote, KeptRemote{ID: r.SubSessionID, Parent: id, RefKey: r.Key})
	}
	if grave != nil {
		if !n.Exists {
			below = append(below, grave.LocalChildren...)
		}
		for _, r := range grave.RemoteChildren {
			if !excluded[r] {
				w.remote = append(w.remote, KeptRemote{ID: r, Parent: id})
			}
			excluded[r] = true
		}
	}
	return slices.DeleteFunc(distinct(below), func(c string) bool { return excluded[c] || store.CheckID(c) != nil })
}

// keptRemote are the remote children that nobody names as local.
func (w *walk) keptRemote() []KeptRemote {
	return slices.DeleteFunc(w.remote, func(r KeptRemote) bool { return w.nodes[r.ID] != nil })
}

// look reads a session, if it is there.
func (w *walk) look(ctx context.Context, id string, n *Node) error {
	l, ok := w.m.byID[id]
	if id == w.root.ID && w.root.Ref.Path != "" {
		l.Ref, ok = w.root.Ref, true
	}
	if !ok {
		return nil
	}
	n.Ref, n.Exists, n.Bytes = l.Ref, true, size(l.Ref.Path)
	if l.Ref.Legacy {
		return &store.Legacy{Path: l.Ref.Path}
	}
	if !l.ModTime.IsZero() {
		n.Changed = l.ModTime.UnixMilli()
	}
	if l.Err != nil {
		return l.Err
	}
	err := w.cascade.read(ctx, n)
	if errors.Is(err, store.ErrNotFound) { // deleted this very moment
		*n = Node{Via: n.Via}
		return nil
	}
	return err
}

// read reads the content of a session and who owns it.
func (c *Cascade) read(ctx context.Context, n *Node) error {
	r, err := c.Repo.View(ctx, n.Ref)
	if err != nil {
		return err
	}
	err = n.fill(ctx, r)
	if closing := r.Close(); err == nil {
		err = closing
	}
	if err == nil {
		n.Lease, err = c.Repo.Lease(ctx, n.Ref)
	}
	return err
}

func (n *Node) fill(ctx context.Context, r store.Reader) error {
	refs, err := ReadRefs(ctx, r)
	if err != nil {
		return err
	}
	n.facts, n.Open = facts{header: r.Header()}, nil
	floor, _, err := store.Get(ctx, r, Floor())
	if err != nil {
		return err
	}
	n.floor = floor.Value
	for _, ref := range refs {
		n.floor = max(n.floor, ref.OutcomeGeneration+1)
		if ref.Location == Remote {
			n.remote = append(n.remote, ref)
		} else {
			n.local = append(n.local, ref)
		}
	}
	states, err := store.Scan(ctx, r, store.NewPrefix[store.LaneState]("pi.lane.state", ""))
	if err != nil {
		return err
	}
	for _, s := range states {
		if s.Value.CurrentOperationID != "" {
			n.Open = append(n.Open, Operation{SessionID: n.Ref.ID, Lane: s.Address.Key, OperationID: string(s.Value.CurrentOperationID)})
		}
	}
	stats, err := r.Stats(ctx)
	n.Usage, n.messages = stats.Usage, stats.MessageCount
	return err
}

// unreadable tells that a session's content says nothing, as opposed to a system
// that failed, a file of a newer binary, or a ref that says the wrong thing.
func unreadable(err error) bool {
	if err == nil {
		return false
	}
	_, corrupt := errors.AsType[*store.Corrupt](err)
	_, value := errors.AsType[*store.BadValue](err)
	return corrupt || value || errors.Is(err, store.ErrExists)
}

func size(path string) int64 {
	var n int64
	for _, name := range []string{path, path + "-wal"} {
		if fi, err := os.Stat(name); err == nil {
			n += fi.Size()
		}
	}
	return n
}
