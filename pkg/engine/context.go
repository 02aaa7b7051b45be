package engine

import (
	"context"
	"errors"
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
	branch, err := q.ScanBranch(ctx, contextQuery(leaf))
	slices.Reverse(branch)
	return branch, leafOr(err, leaf)
}

// checkContext reads the same path without its payloads: what is missing on it
// is damage, and better told before anything builds on it.
func checkContext(ctx context.Context, q store.Queries, leaf store.LeafID) error {
	if leaf == "" {
		return nil
	}
	_, err := q.ScanBranchStructure(ctx, contextQuery(leaf))
	return leafOr(err, leaf)
}

func contextQuery(leaf store.LeafID) store.BranchQuery {
	return store.BranchQuery{Start: string(leaf), StopAtType: store.TypeCompaction}
}

// leafOr says what it means that a leaf is unknown: the session itself names it.
func leafOr(err error, leaf store.LeafID) error {
	if errors.Is(err, store.ErrNotFound) {
		return store.MissingEntry(string(leaf), "the lane's leaf")
	}
	return err
}
