package engine

import (
	"context"
	"slices"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Projector gives the context messages of a custom entry (spec §2.5).
type Projector = op.Projector

// Context returns the messages that a request from a leaf would send, before
// they are made ready for a provider (spec §2.5).
func Context(ctx context.Context, q store.Queries, leaf store.LeafID, projectors map[string]Projector) ([]message.Message, error) {
	branch, o, err := contextOf(ctx, q, leaf, projectors)
	if err != nil {
		return nil, err
	}
	return op.Project(branch, o)
}

// contextOf reads what the context of a leaf is made from.
func contextOf(ctx context.Context, q store.Queries, leaf store.LeafID, projectors map[string]Projector) ([]store.Entry, op.Projection, error) {
	o := op.Projection{Projectors: projectors}
	branch, err := contextBranch(ctx, q, leaf)
	if err != nil {
		return nil, o, err
	}
	if edited := op.EditedBefore(branch); len(edited) > 0 {
		o.Originals, err = q.Entries(ctx, edited)
	}
	return branch, o, err
}

// contextBranch reads the entries of a leaf's context, oldest first, beginning
// with its newest compaction.
func contextBranch(ctx context.Context, q store.Queries, leaf store.LeafID) ([]store.Entry, error) {
	if leaf == "" {
		return nil, nil
	}
	branch, err := q.ScanBranch(ctx, store.BranchQuery{Start: string(leaf), StopAtType: store.TypeCompaction})
	slices.Reverse(branch)
	return branch, err
}
