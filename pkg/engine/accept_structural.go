package engine

import (
	"context"
	"slices"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// CompactRequest asks for a manual compaction (spec §5.1).
type CompactRequest struct {
	OperationID        string
	CustomInstructions string
	Configure          Configure
}

// AcceptCompaction creates a compaction durably and starts nothing. A lane with
// nothing to compact is *NothingToCompact (spec §3.6).
func (l *Lane) AcceptCompaction(ctx context.Context, r CompactRequest) (Admission, error) {
	prepare := func(ctx context.Context, q store.Queries, t op.Turn, cfg store.LaneConfiguration) (*op.Prepared, error) {
		model, err := l.resolveModel(cfg.Model)
		if err != nil {
			return nil, err
		}
		prepared, err := l.prepareCompaction(ctx, q, t.Leaf, l.h.runSettings().Compaction.Capped(model.Info().ContextWindow))
		if err == nil && prepared == nil {
			err = &NothingToCompact{Lane: l.name}
		}
		return prepared, err
	}
	return l.accept(ctx, acceptance{
		id: r.OperationID, kind: op.KindCompaction, configure: r.Configure,
		check: func(ctx context.Context, q store.Queries, t op.Turn, cfg store.LaneConfiguration) error {
			_, err := prepare(ctx, q, t, cfg)
			return err
		},
		plan: func(ctx context.Context, q store.Queries, t op.Turn, id string) (op.Plan, error) {
			cfg, err := l.Configuration(ctx)
			if err != nil {
				return op.Plan{}, err
			}
			prepared, err := prepare(ctx, q, t, cfg)
			if err != nil {
				return op.Plan{}, err
			}
			return op.AcceptCompaction(t, op.CompactionRequest{OperationID: id, CustomInstructions: r.CustomInstructions, Preparation: *prepared})
		},
	})
}

// NavigateRequest asks to move the lane to an entry, or to the root when Target
// is "" (spec §5.1).
type NavigateRequest struct {
	OperationID        string
	Target             store.LeafID
	Summarize          bool
	Label              string
	CustomInstructions string
	Configure          Configure
}

// AcceptNavigation creates a navigation durably and starts nothing. It refuses
// with *InvalidNavigation or *store.UnknownTarget (spec §3.6).
func (l *Lane) AcceptNavigation(ctx context.Context, r NavigateRequest) (Admission, error) {
	return l.accept(ctx, acceptance{
		id: r.OperationID, kind: op.KindNavigation, configure: r.Configure,
		check: func(ctx context.Context, q store.Queries, t op.Turn, cfg store.LaneConfiguration) error {
			_, err := l.navigation(ctx, q, t, cfg, r)
			return err
		},
		plan: func(ctx context.Context, q store.Queries, t op.Turn, id string) (op.Plan, error) {
			cfg, err := l.Configuration(ctx)
			if err != nil {
				return op.Plan{}, err
			}
			prepared, err := l.navigation(ctx, q, t, cfg, r)
			if err != nil {
				return op.Plan{}, err
			}
			return op.AcceptNavigation(t, op.NavigationRequest{
				OperationID: id, TargetID: r.Target, Label: r.Label, CustomInstructions: r.CustomInstructions, Preparation: prepared,
			})
		},
	})
}

// navigation validates a navigation against the lane and prepares its summary.
func (l *Lane) navigation(ctx context.Context, q store.Queries, t op.Turn, cfg store.LaneConfiguration, r NavigateRequest) (*op.Prepared, error) {
	switch {
	case r.Target == t.Leaf:
		return nil, &InvalidNavigation{Lane: l.name, Reason: "the target is the lane's leaf already"}
	case r.Target == "" && r.Label != "":
		return nil, &InvalidNavigation{Lane: l.name, Reason: "the root cannot be labelled"}
	case r.Target == "" && r.Summarize:
		return nil, &InvalidNavigation{Lane: l.name, Reason: "a move to the root cannot be summarized"}
	case t.Leaf == "" && r.Summarize:
		return nil, &InvalidNavigation{Lane: l.name, Reason: "there is nothing to summarize before the root"}
	}
	if r.Target != "" {
		entries, err := q.Entries(ctx, []string{string(r.Target)})
		if err != nil {
			return nil, err
		}
		if len(entries) == 0 {
			return nil, &store.UnknownTarget{ID: string(r.Target)}
		}
	}
	if !r.Summarize {
		return nil, nil
	}
	return l.prepareBranchSummary(ctx, q, t.Leaf, r.Target, cfg)
}

// prepareBranchSummary reads what the lane leaves behind: from its leaf back to
// the common ancestor with the target.
func (l *Lane) prepareBranchSummary(ctx context.Context, q store.Queries, leaf, target store.LeafID, cfg store.LaneConfiguration) (*op.Prepared, error) {
	model, err := l.resolveModel(cfg.Model)
	if err != nil {
		return nil, err
	}
	kept, err := q.ScanBranchStructure(ctx, store.BranchQuery{Start: string(target)})
	if err != nil {
		return nil, err
	}
	onTarget := make(map[string]bool, len(kept))
	for _, s := range kept {
		onTarget[s.ID] = true
	}
	branch, err := q.ScanBranchStructure(ctx, store.BranchQuery{Start: string(leaf)})
	if err != nil {
		return nil, err
	}
	abandoned := 0
	for abandoned < len(branch) && !onTarget[branch[abandoned].ID] {
		abandoned++
	}
	if abandoned == 0 {
		return nil, &InvalidNavigation{Lane: l.name, Reason: "nothing_to_summarize: the target lies ahead of the leaf"}
	}
	entries, err := q.ScanBranch(ctx, store.BranchQuery{Start: string(leaf), Limit: abandoned})
	if err != nil {
		return nil, err
	}
	slices.Reverse(entries)
	p, ok, err := op.PrepareBranchSummary(entries, model.Info().ContextWindow, op.Projection{Projectors: l.h.opts.Projectors})
	if err != nil {
		return nil, l.trusted(err)
	}
	if !ok {
		return nil, &InvalidNavigation{Lane: l.name, Reason: "nothing_to_summarize: no message lies between the leaf and the target"}
	}
	return l.prepared(p)
}
