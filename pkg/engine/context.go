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

// context is the context of a leaf for this harness's own use.
func (l *Lane) context(ctx context.Context, leaf store.LeafID) ([]message.Message, error) {
	messages, err := Context(ctx, l.h.session, leaf, l.h.opts.Projectors)
	return messages, l.trusted(err)
}

// trusted faults the harness when trusted deterministic code of the application
// failed: it would do so again in every later pass (spec §4.8).
func (l *Lane) trusted(err error) error {
	var failed *op.ProjectorError
	if errors.As(err, &failed) {
		return l.h.session.Fail("build the context", failed)
	}
	return err
}

// contextOf reads what the context of a leaf is made from.
func contextOf(ctx context.Context, q store.Queries, leaf store.LeafID, projectors map[string]Projector) ([]store.Entry, op.Projection, error) {
	o := op.Projection{Projectors: projectors}
	branch, err := contextBranch(ctx, q, leaf)
	if err != nil {
		return nil, o, err
	}
	edited := op.EditedBefore(branch)
	if len(edited) == 0 || branch[0].ParentID == "" {
		return branch, o, nil
	}
	if o.Originals, err = q.Entries(ctx, edited); err != nil {
		return nil, o, err
	}
	o.EarlierEdits, err = q.ScanBranch(ctx, store.BranchQuery{
		Start: branch[0].ParentID, Type: store.TypeCustom, CustomType: op.ContextEdit,
	})
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

// checkLeaf looks at the leaf alone: what an inspection costs must not depend on
// how long the conversation is.
func checkLeaf(ctx context.Context, q store.Queries, leaf store.LeafID) error {
	if leaf == "" {
		return nil
	}
	_, err := q.ScanBranchStructure(ctx, store.BranchQuery{Start: string(leaf), Limit: 1})
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
