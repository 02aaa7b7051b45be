package subsession

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

const (
	window    = 64 // leases that are held at a time, beside the root's (D60)
	maxRounds = 16 // walks until a tree that keeps growing is given up
)

// Stage is a step of the removal of one session, in this order.
type Stage string

// The stages of a removal.
const (
	Exported  Stage = "exported"  // its ledger is in the export
	Entombed  Stage = "entombed"  // its tombstone survives power loss
	Removed   Stage = "removed"   // its files are gone
	Released  Stage = "released"  // its lease is given up
	Forgotten Stage = "forgotten" // the search index does not know it
)

// Cascade deletes sessions with all of their local descendants. Whatever ends it
// early leaves every session that is left reachable: run it again and it finishes.
type Cascade struct {
	Repo  *store.Repo
	FS    fsx.FS // of the tombstones; nil means the real one
	Now   func() int64
	NewID func() string
	// Force deletes sessions with open operations.
	Force bool
	// Partial deletes what hangs on no session that somebody owns.
	Partial bool
	// Export saves the ledger of a session before it goes, page by page, the last
	// one perhaps empty; nil saves none. An error keeps the session.
	Export func(ctx context.Context, id string, ledger []store.UsageRow) error
	// Forget removes a session from the search index; nil when there is none.
	Forget func(ctx context.Context, id string) error
	// Passed, if set, is told each stage that is behind a session.
	Passed func(stage Stage, id string)
}

func (c *Cascade) tombstones() Tombstones { return Tombstones{Dir: c.Repo.Dir(), FS: c.FS} }

func (c *Cascade) passed(stage Stage, id string) {
	if c.Passed != nil {
		c.Passed(stage, id)
	}
}

// Failed is a session that stays, and why.
type Failed struct {
	ID  string
	Err error
}

// Deletion is what a cascade did.
type Deletion struct {
	CascadeID     string
	Root          string
	RootExisted   bool
	Deleted       []string // in the order in which they went
	AlreadyGone   []string
	Failed        []Failed
	KeptRemote    []string
	KeptForks     []string
	Unreadable    []string
	Usage         message.Usage // of those that were deleted
	SearchRemoved bool
	Warnings      []string
}

// Leased refuses a tree in which other processes own sessions.
type Leased struct{ Held []*store.Held }

func (e *Leased) Error() string {
	return fmt.Sprintf("%d session(s) of the tree are owned by other processes, the first: %v", len(e.Held), e.Held[0])
}

// OpenOperation refuses a tree in which operations have not ended.
type OpenOperation struct{ Operations []Operation }

func (e *OpenOperation) Error() string {
	first := e.Operations[0]
	return fmt.Sprintf("%d operation(s) of the tree have not ended, the first: %s on lane %s of session %s",
		len(e.Operations), first.OperationID, first.Lane, first.SessionID)
}

// Tag is the refusal's name for scripts.
func (e *OpenOperation) Tag() string { return "OpenOperation" }

// TreeUnstable refuses a tree that grows faster than it can be owned.
type TreeUnstable struct{ Root string }

func (e *TreeUnstable) Error() string {
	return fmt.Sprintf("the tree of session %s keeps growing", e.Root)
}

// Tag is the refusal's name for scripts.
func (e *TreeUnstable) Tag() string { return "TreeUnstable" }

// ErrChildKept is why a session stays whose descendant had to stay.
var ErrChildKept = errors.New("a descendant was kept")

// Refusal is why Delete would refuse a plan as things stand, nil when it would not: a
// *store.SeveralFiles, *Leased or *OpenOperation. No lease is taken to find out.
func (c *Cascade) Refusal(p *Plan) error {
	if err := p.several(); err != nil {
		return err
	}
	var open []Operation
	var held []*store.Held
	for _, n := range p.Existing() {
		if n.Lease != nil && n.Lease.Live {
			held = append(held, &store.Held{Path: n.Ref.Path, Lease: *n.Lease})
			continue // its owner may end what is open
		}
		open = append(open, n.Open...)
	}
	switch {
	case len(held) > 0 && !c.Partial:
		return &Leased{Held: held}
	case len(open) > 0 && !c.Force:
		return &OpenOperation{Operations: open}
	}
	return nil
}

// several is the first session of the plan that has another file: that one would bring
// the session back.
func (p *Plan) several() error {
	for _, n := range p.Nodes {
		if n.Several != nil {
			return n.Several
		}
	}
	return nil
}

// Delete deletes what a plan of the same root found, and what came into being
// since. It fails, with nothing deleted, with *store.SeveralFiles, *Leased,
// *OpenOperation, *TreeUnstable, store.ErrOpen or *BadRef; what fails later is in the
// answer.
func (c *Cascade) Delete(ctx context.Context, root Root) (*Deletion, error) {
	plan, err := c.Plan(ctx, root)
	if err != nil {
		return nil, err
	}
	d := &deleting{
		Cascade: c, root: root, claims: make(map[string]*store.Claimed),
		blocked: make(map[string]bool), done: make(map[string]bool),
	}
	d.out = &Deletion{CascadeID: c.NewID(), Root: root.ID, RootExisted: plan.RootExists, SearchRemoved: true}
	d.take(plan)
	defer d.releaseAll()
	if err := d.admit(ctx); err != nil {
		return nil, err
	}
	for round := 0; ; round++ {
		again, err := d.round(ctx)
		if err != nil {
			if d.begun() {
				return d.finish(), err
			}
			return nil, err
		}
		if !again {
			return d.finish(), nil
		}
		if round == maxRounds {
			err := &TreeUnstable{Root: root.ID}
			if d.begun() {
				return d.finish(), err
			}
			return nil, err
		}
	}
}

// deleting is one run of a cascade.
type deleting struct {
	*Cascade
	root    Root
	plan    *Plan
	out     *Deletion
	rooted  *store.Claimed            // the root's lease
	claims  map[string]*store.Claimed // of the window
	blocked map[string]bool           // sessions that stay
	done    map[string]bool           // deleted or found gone
	known   map[string]bool           // all that the plan deletes
	parents map[string][]string       // of shallower depth
}

func (d *deleting) begun() bool { return len(d.out.Deleted) > 0 }

// take makes a plan the one that is carried out.
func (d *deleting) take(p *Plan) {
	d.plan = p
	depth := make(map[string]int, len(p.Nodes))
	for _, n := range p.Nodes {
		depth[n.ID] = n.Depth
	}
	d.parents, d.known = make(map[string][]string), make(map[string]bool)
	for _, n := range p.Nodes {
		d.known[n.ID] = true
		for _, c := range n.Children {
			if at, known := depth[c]; known && at > n.Depth {
				d.parents[c] = append(d.parents[c], n.ID)
			}
		}
	}
}

// admit refuses what keeps the whole tree before anything is touched.
func (d *deleting) admit(ctx context.Context) error {
	if err := d.plan.several(); err != nil {
		return err
	}
	var open []Operation
	var held []*store.Held
	for _, n := range d.plan.Existing() {
		if n.Lease != nil && n.Lease.Live {
			// It is waited for as long as the repository's options say.
			claim, err := d.Repo.Claim(ctx, n.Ref)
			if h, busy := errors.AsType[*store.Held](err); busy {
				held = append(held, h)
				d.keep(n.ID, err)
				continue
			}
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			n.Open = nil // its owner may have ended them before it left
			if claim != nil {
				if n.Damaged == nil {
					err = d.read(ctx, n)
				}
				if err = errors.Join(err, claim.Close()); err != nil {
					return err
				}
			}
		}
		open = append(open, n.Open...)
	}
	if len(held) > 0 && !d.Partial {
		return &Leased{Held: held}
	}
	if len(open) > 0 && !d.Force {
		return &OpenOperation{Operations: open}
	}
	root := d.plan.Nodes[len(d.plan.Nodes)-1]
	if !root.Exists || d.blocked[root.ID] {
		return nil
	}
	// Nobody claims a new child through a root that is owned.
	claim, err := d.Repo.Claim(ctx, root.Ref)
	if h, busy := errors.AsType[*store.Held](err); busy {
		return &Leased{Held: []*store.Held{h}}
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	d.rooted = claim
	return err
}

// keep lets a session and its ancestors stay.
func (d *deleting) keep(id string, why error) {
	if d.blocked[id] {
		return
	}
	d.blocked[id] = true
	d.out.Failed = append(d.out.Failed, Failed{ID: id, Err: why})
	for _, p := range d.parents[id] {
		d.keep(p, ErrChildKept)
	}
}

// round deletes until the plan is done, or has to be made again because the tree
// has grown.
func (d *deleting) round(ctx context.Context) (again bool, err error) {
	var pending []*Node
	for _, n := range d.plan.Nodes {
		if !d.blocked[n.ID] && !d.done[n.ID] {
			pending = append(pending, n)
		}
	}
	for len(pending) > 0 {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		now := pending[:min(window, len(pending))]
		pending = pending[len(now):]
		grown, err := d.own(ctx, now)
		if err == nil && !grown && len(pending) == 0 {
			grown, err = d.rewalk(ctx)
		}
		if err == nil && !grown {
			err = d.remove(ctx, now)
		}
		d.release()
		if err != nil || grown {
			if err == nil {
				err = d.replan(ctx)
			}
			return err == nil, err
		}
	}
	return false, nil
}

func (d *deleting) replan(ctx context.Context) error {
	plan, err := d.Plan(ctx, d.root)
	if err != nil {
		return err
	}
	d.take(plan)
	for _, f := range slices.Clone(d.out.Failed) {
		for _, p := range d.parents[f.ID] {
			d.keep(p, ErrChildKept)
		}
	}
	return nil
}

// rewalk reports whether the tree, whose last leases were taken, has sessions
// that are not in the plan: pointers are in files that nobody owned.
func (d *deleting) rewalk(ctx context.Context) (grown bool, err error) {
	plan, err := d.Plan(ctx, d.root)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, n := range plan.Existing() {
		if !d.knows(n.ID) {
			return true, nil
		}
	}
	return false, nil
}

// knows reports a session that the plan accounts for.
func (d *deleting) knows(id string) bool {
	return d.known[id] || d.done[id] || slices.Contains(d.plan.Unreadable, id)
}

// finish completes the answer.
func (d *deleting) finish() *Deletion {
	for _, r := range d.plan.KeptRemote {
		d.out.KeptRemote = append(d.out.KeptRemote, r.ID)
	}
	d.out.KeptRemote = distinct(d.out.KeptRemote)
	d.Repo.ForgetGone()
	d.tombstones().sweep(d.done)
	d.out.KeptForks, d.out.Unreadable = d.plan.KeptForks, d.plan.Unreadable
	for _, id := range d.plan.lost {
		d.out.Warnings = append(d.out.Warnings, fmt.Sprintf("session %s, a child, cannot be read and was kept: delete it by its name", id))
	}
	return d.out
}
