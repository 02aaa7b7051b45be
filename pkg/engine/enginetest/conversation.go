package enginetest

import (
	"context"
	"slices"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Said is one message of a conversation without what differs between two runs of
// it: ids and times.
type Said struct {
	Role  message.Role
	Stop  message.StopReason
	Text  string
	Error string
}

// Conversation is what was said on main, oldest first.
func Conversation(ctx context.Context, q store.Queries) ([]Said, error) {
	leaf, _, err := store.Get(ctx, q, store.LaneLeaf(store.MainLane))
	if err != nil || leaf.Value == "" {
		return nil, err
	}
	branch, err := q.ScanBranch(ctx, store.BranchQuery{Start: string(leaf.Value), OldestFirst: true})
	if err != nil {
		return nil, err
	}
	said := make([]Said, len(branch))
	for i, e := range branch {
		m := e.Message()
		said[i] = Said{m.Role(), m.StopReason(), m.Text(), m.ErrorMessage()}
	}
	return said, nil
}

// Essence leaves out what went wrong on the way; failures counts it.
func Essence(said []Said) (essence []Said, failures int) {
	essence = slices.DeleteFunc(slices.Clone(said), func(s Said) bool { return s.Stop == message.StopError })
	return essence, len(said) - len(essence)
}

// End is how the last run of main ended, apart from ids.
type End struct {
	Outcome    op.Outcome
	Completion op.RunCompletion
	Code       string // of its error
}

// LastEnd reads how the last run of main ended.
func LastEnd(ctx context.Context, q store.Queries) (End, error) {
	last, _, err := store.Get(ctx, q, op.LastResult(store.MainLane))
	e := End{Outcome: last.Value.Outcome, Completion: last.Value.RunCompletion}
	if last.Value.Error != nil {
		e.Code = last.Value.Error.Code
	}
	return e, err
}
