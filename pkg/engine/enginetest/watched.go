package enginetest

import (
	"context"
	"fmt"
	"slices"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// watched is a backend that looks at every commit: the transaction by itself, and
// the whole session after it (spec §9.1).
type watched struct {
	store.Backend
	complain func(format string, args ...any)
}

func (b watched) Commit(ctx context.Context, tx store.Tx) (store.CommitResult, error) {
	res, err := b.Backend.Commit(ctx, tx)
	if err != nil {
		return res, err
	}
	if wrong := append(complaints(tx), b.problems(ctx)...); len(wrong) > 0 {
		b.complain("after %s: %v", shorten(TxString(tx)), wrong)
	}
	return res, nil
}

func (b watched) problems(ctx context.Context) []string {
	var found []string
	for _, p := range Problems(ctx, b.Backend) {
		found = append(found, fmt.Sprintf("%s at %s: %s", p.Code, p.Where, p.Message))
	}
	return found
}

// complaints are the invariants of §3.7 and §9.1 about one transaction: an answer
// lands with its leaf, its usage row, the end of its frames and the next state;
// an aborted one under a requested cancellation.
func complaints(tx store.Tx) (wrong []string) {
	for i, w := range tx {
		if w.Kind != store.KindEntry || w.Entry.Type != store.TypeMessage {
			continue
		}
		m := store.Entry{Structure: store.Structure{Type: w.Entry.Type}, Payload: w.Entry.Payload}.Message()
		if m.Role() != message.RoleAssistant {
			continue
		}
		id := w.Entry.ID
		rest := tx[i+1:]
		if !slices.ContainsFunc(rest, func(w store.Write) bool { return w.Kind == store.KindUsage && w.Usage.EntryID == id }) {
			wrong = append(wrong, "an answer without its usage row")
		}
		if !slices.ContainsFunc(rest, func(w store.Write) bool {
			return w.Op == store.OpSet && w.Address.Namespace == "pi.lane.leaf" && string(w.Value) == `"`+id+`"`
		}) {
			wrong = append(wrong, "an answer that is not the leaf")
		}
		s, frames := settles(rest)
		if s == nil || !frames {
			wrong = append(wrong, "an answer without the next state and the end of its frames")
		} else if m.StopReason() == message.StopAborted && !s.Cancel().Cancelled() {
			wrong = append(wrong, "an aborted answer under running control")
		}
	}
	return wrong
}

// settles finds the state that a transaction writes and whether it ends a list of
// frames.
func settles(tx store.Tx) (s op.State, frames bool) {
	for _, w := range tx {
		switch {
		case w.Address.Namespace == "pi.op.state" && w.Op == store.OpSet:
			s, _ = op.DecodeState(w.Value)
		case w.Address.Namespace == "pi.pending.assistant_frame" && w.Op == store.OpDelete:
			frames = true
		}
	}
	return s, frames
}
