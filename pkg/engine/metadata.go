package engine

import (
	"context"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// SetName names the session, "" takes the name away, and tells the watchers
// (spec §2.4, §5.5).
func (h *Harness) SetName(ctx context.Context, name string) error {
	l, err := h.Lane(store.MainLane)
	if err != nil {
		return err
	}
	return l.metadata(ctx, store.SessionName(), name, op.Event{Property: "session_name"}, nil)
}

// SetLabel labels an entry, "" takes the label away, and tells the watchers. An
// id that names no entry is *store.UnknownTarget (spec §2.4, §5.5).
func (h *Harness) SetLabel(ctx context.Context, entryID, label string) error {
	l, err := h.Lane(store.MainLane)
	if err != nil {
		return err
	}
	return l.metadata(ctx, store.EntryLabel(entryID), label, op.Event{Property: "entry_label", EntryID: entryID}, func(q store.Queries) error {
		entries, err := q.Entries(ctx, []string{entryID})
		if err == nil && len(entries) == 0 {
			err = &store.UnknownTarget{ID: entryID}
		}
		return err
	})
}

// metadata writes one text of the session; it belongs to no lane, so main's line
// orders it.
func (l *Lane) metadata(ctx context.Context, at store.Value[string], text string, e op.Event, check func(store.Queries) error) error {
	e.Type, e.Text = op.EventValueUpdate, text
	write := at.Delete()
	if text != "" {
		write = at.Set(text)
	}
	return l.transition(ctx, func(_ context.Context, q store.Queries, _ op.Turn) (op.Plan, error) {
		if text != "" && check != nil {
			if err := check(q); err != nil {
				return op.Plan{}, err
			}
		}
		return op.Plan{Writes: []store.Write{write}, Events: []op.Event{e}}, nil
	})
}
