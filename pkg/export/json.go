package export

import (
	"context"
	"slices"
	"strings"

	"github.com/drover-run/drover/pkg/store"
)

// LeafID is where the lane stands.
func (s *Source) LeafID() store.LeafID {
	if s.leaf == none {
		return ""
	}
	return store.LeafID(s.ids.id(s.leaf))
}

// Standing is a lane and where it stands.
type Standing struct {
	Lane   string
	LeafID store.LeafID
}

// Lanes are all lanes of the session, by name.
func (s *Source) Lanes() []Standing {
	var out []Standing
	for at, lanes := range s.lanes {
		leaf := store.LeafID("")
		if at != none {
			leaf = store.LeafID(s.ids.id(at))
		}
		for _, lane := range lanes {
			out = append(out, Standing{lane, leaf})
		}
	}
	slices.SortFunc(out, func(a, b Standing) int { return strings.Compare(a.Lane, b.Lane) })
	return out
}

// BranchPoints are the entries with more than one child, in sequence order.
func (s *Source) BranchPoints() []string {
	below := make([]int32, s.ids.len())
	for _, p := range s.parents {
		if p != none {
			below[p]++
		}
	}
	var out []string
	for i, n := range below {
		if n > 1 {
			out = append(out, s.ids.id(int32(i)))
		}
	}
	return out
}

// Path are the entries of the lane's path, from its root to its leaf.
func (s *Source) Path() []string {
	var out []string
	for i, m := range s.marks {
		if m&onPath != 0 {
			out = append(out, s.ids.id(int32(i)))
		}
	}
	return out
}

// Each hands on the entries that go out, in sequence order, until use answers
// false.
func (s *Source) Each(ctx context.Context, use func(store.Entry) bool) error {
	s.err = nil
	for _, e := range s.entries(ctx, func(int32) bool { return true }) {
		if !use(*e) {
			break
		}
	}
	return s.err
}
