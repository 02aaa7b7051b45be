package rewrite

import (
	"context"
	"errors"

	"github.com/expr-lang/expr/vm"

	"github.com/drover-run/drover/pkg/store"
)

// Derived says what becomes of content that was made from what is dropped.
type Derived string

// The ways: the plan refuses, the derived entries are dropped too, or their
// content goes and they stay.
const (
	DerivedFail   Derived = "fail"
	DerivedDrop   Derived = "drop"
	DerivedRedact Derived = "redact"
)

// Selection names what shall go. The zero value is nothing.
type Selection struct {
	DropEntries    []string // one entry each
	DropBranches   []string // an entry and all below it
	DropWhere      *Where
	KeepWhere      *Where
	PruneAbandoned bool // all that no lane's leaf reaches
	// Lenient passes over ids that are not there, as in a fork.
	Lenient bool

	Derived   Derived // "" is DerivedFail
	DropUsage bool    // the ledger rows of dropped entries go too
	Rules     *Rules
	// RemintIDs gives every entry a new id, which IDs mints with the entry's time.
	RemintIDs bool
	IDs       store.IDSource
}

// cuts reports whether entries may go.
func (s *Selection) cuts() bool {
	return len(s.DropEntries)+len(s.DropBranches) > 0 || s.DropWhere != nil || s.KeepWhere != nil || s.PruneAbandoned
}

// choose decides about every entry of a snapshot; nil is that all stay as they
// are. It fails with *store.UnknownTarget or *BadWhere.
func choose(ctx context.Context, snap *store.Snapshot, s *Selection) (*cut, error) {
	if !s.cuts() && !s.RemintIDs {
		return nil, nil
	}
	t, err := grow(ctx, snap)
	if err != nil {
		return nil, err
	}
	c := &cut{tree: t, drop: make([]bool, len(t.nodes)), derived: make([]bool, len(t.nodes)), with: make(map[int32]int32)}
	if s.cuts() {
		if s.Derived == DerivedRedact {
			t.hashes = make([]uint64, len(t.nodes))
		}
		if err := c.name(s); err != nil {
			return nil, err
		}
		if err := c.ask(ctx, snap, s); err != nil {
			return nil, err
		}
		c.settle(s.Derived)
	}
	c.standing()
	if s.RemintIDs {
		c.remint(s.IDs)
	}
	return c, nil
}

// name drops what is named by id or by its place.
func (c *cut) name(s *Selection) error {
	for _, id := range s.DropEntries {
		i, ok := c.index[id]
		if ok {
			c.drop[i] = true
		} else if !s.Lenient {
			return &store.UnknownTarget{ID: id}
		}
	}
	branch := make([]bool, len(c.nodes))
	for _, id := range s.DropBranches {
		i, ok := c.index[id]
		if ok {
			branch[i] = true
		} else if !s.Lenient {
			return &store.UnknownTarget{ID: id}
		}
	}
	var on []bool
	if s.PruneAbandoned {
		on = c.reached()
	}
	for i, n := range c.nodes {
		branch[i] = branch[i] || n.parent != none && branch[n.parent]
		c.drop[i] = c.drop[i] || branch[i] || on != nil && !on[i]
	}
	return nil
}

// ask reads every payload once, and asks the expressions.
func (c *cut) ask(ctx context.Context, snap *store.Snapshot, s *Selection) error {
	machine, on, lanes := new(vm.VM), c.reached(), c.lanesAt()
	env := &environment{Session: SessionFields{
		ID: snap.Header.ID, CWD: snap.Header.CWD, CreatedAt: snap.Header.CreatedAt,
		ParentSessionID: snap.Header.ParentSessionID, Generation: snap.Header.Generation, Entries: len(c.nodes),
	}}
	i := none
	for r, err := range snap.Records {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if r.Entry == nil {
			continue
		}
		i++
		c.read(i, r.Entry)
		if s.DropWhere == nil && s.KeepWhere == nil {
			continue
		}
		env.E = c.describe(i, r.Entry, lanes[i], on[i])
		goes, err := s.asked(machine, env)
		if err != nil {
			return err
		}
		c.drop[i] = c.drop[i] || goes
	}
	return nil
}

// asked reports whether the expressions let an entry go.
func (s *Selection) asked(m *vm.VM, env *environment) (bool, error) {
	if s.DropWhere != nil {
		if yes, err := s.DropWhere.holds(m, env); yes || err != nil {
			return yes, at(err, env.E.ID, false)
		}
	}
	if s.KeepWhere == nil {
		return false, nil
	}
	yes, err := s.KeepWhere.holds(m, env)
	return !yes, at(err, env.E.ID, true)
}

// at adds to the failure of an expression where it came about.
func at(err error, entry string, keep bool) error {
	if bad, ok := errors.AsType[*BadWhere](err); ok {
		bad.Entry, bad.Keep = entry, keep
	}
	return err
}
