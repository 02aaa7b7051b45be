package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/drover-run/drover/pkg/message"
)

// Tree is a session seen from one lane (spec §5.3). Reads are the session's;
// every write is one job with one commit on the lane's mutation line. All
// methods are safe for concurrent use, but none may be called from inside a
// mutation.
type Tree struct {
	Queries
	session *Session
	lane    string
}

// View returns the session seen from a lane. The lane need not exist: what
// needs it fails with *UnknownLane.
func (s *Session) View(lane string) *Tree {
	return &Tree{Queries: s.Queries, session: s, lane: lane}
}

// Lane names the lane of the view.
func (t *Tree) Lane() string { return t.lane }

// LeafID returns where the lane appends next; "" before its first entry.
func (t *Tree) LeafID(ctx context.Context) (LeafID, error) { return leafOf(ctx, t, t.lane) }

func leafOf(ctx context.Context, r Getter, lane string) (LeafID, error) {
	leaf, ok, err := Get(ctx, r, LaneLeaf(lane))
	if err != nil {
		return "", err
	}
	if !ok {
		return "", &UnknownLane{Lane: lane}
	}
	return leaf.Value, nil
}

// Entry returns one committed entry, false when the id names none.
func (t *Tree) Entry(ctx context.Context, id string) (Entry, bool, error) {
	found, err := t.Entries(ctx, []string{id})
	e, ok := found[id]
	return e, ok, err
}

// Name returns the session's name, false when it has none (spec §2.4).
func (t *Tree) Name(ctx context.Context) (string, bool, error) {
	return text(ctx, t, SessionName())
}

// SetName names the session; "" takes the name away (spec §2.4).
func (t *Tree) SetName(ctx context.Context, name string) error {
	return t.write(ctx, textWrite(SessionName(), name))
}

// Label returns an entry's label, false when it has none (spec §2.4).
func (t *Tree) Label(ctx context.Context, entryID string) (string, bool, error) {
	return text(ctx, t, EntryLabel(entryID))
}

// SetLabel labels an entry; "" takes the label away. Labelling an id that names
// no entry is *UnknownTarget (spec §2.4).
func (t *Tree) SetLabel(ctx context.Context, entryID, label string) error {
	return t.session.Mutate(ctx, t.lane, func(m *Mutator) error {
		if label != "" {
			if err := checkTarget(ctx, m, entryID); err != nil {
				return err
			}
		}
		_, err := m.Commit(Tx{textWrite(EntryLabel(entryID), label)})
		return err
	})
}

func text(ctx context.Context, r Getter, v Value[string]) (string, bool, error) {
	s, ok, err := Get(ctx, r, v)
	return s.Value, ok, err
}

func textWrite(v Value[string], s string) Write {
	if s == "" {
		return v.Delete()
	}
	return v.Set(s)
}

func checkTarget(ctx context.Context, q Queries, entryID string) error {
	found, err := q.Entries(ctx, []string{entryID})
	if err != nil {
		return err
	}
	if _, ok := found[entryID]; !ok {
		return &UnknownTarget{ID: entryID}
	}
	return nil
}

func (t *Tree) write(ctx context.Context, w Write) error {
	return t.session.Mutate(ctx, t.lane, func(m *Mutator) error {
		_, err := m.Commit(Tx{w})
		return err
	})
}

// SetValue replaces the value at an address.
func SetValue[T any](ctx context.Context, t *Tree, v Value[T], next T) error {
	return t.write(ctx, v.Set(next))
}

// DeleteValue removes the value at an address; removing an absent one is legal.
func DeleteValue[T any](ctx context.Context, t *Tree, v Value[T]) error {
	return t.write(ctx, v.Delete())
}

// AppendList adds one element to a list.
func AppendList[T any](ctx context.Context, t *Tree, l List[T], element T) error {
	return t.write(ctx, l.Append(element))
}

// DeleteList removes a whole list; removing an absent one is legal.
func DeleteList[T any](ctx context.Context, t *Tree, l List[T]) error {
	return t.write(ctx, l.Delete())
}

// AppendMessage places a message under the lane's leaf and returns its entry's
// id (spec §2.2). The message's shape is not judged, except that an assistant
// message may not be pending. While an operation is open on the lane it fails
// with *LaneBusy: then the write has to wait for the operation (spec §3.11).
func (t *Tree) AppendMessage(ctx context.Context, m message.Message) (string, error) {
	return t.place(ctx, func(id, parent string) NewEntry { return MessageEntry(id, parent, m) })
}

// AppendCustomEntry places an application's entry under the lane's leaf, like
// AppendMessage. Nil data is none.
func (t *Tree) AppendCustomEntry(ctx context.Context, customType string, data json.RawMessage) (string, error) {
	return t.place(ctx, func(id, parent string) NewEntry { return CustomEntry(id, parent, customType, data) })
}

// place inserts an entry and moves the leaf to it, in one transaction.
func (t *Tree) place(ctx context.Context, entry func(id, parent string) NewEntry) (string, error) {
	var placed string
	err := t.session.Mutate(ctx, t.lane, func(m *Mutator) error {
		leaf, err := idleLeaf(ctx, m, t.lane)
		if err != nil {
			return err
		}
		id := t.session.ids.NewID()
		if _, err := m.Commit(Tx{InsertEntry(entry(id, string(leaf))), LaneLeaf(t.lane).Set(LeafID(id))}); err != nil {
			return err
		}
		placed = id
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("append to lane %s: %w", t.lane, err)
	}
	return placed, nil
}

func idleLeaf(ctx context.Context, r Getter, lane string) (LeafID, error) {
	state, ok, err := Get(ctx, r, LaneStateOf(lane))
	switch {
	case err != nil:
		return "", err
	case !ok:
		return "", &UnknownLane{Lane: lane}
	case state.Value.CurrentOperationID != "":
		return "", &LaneBusy{Lane: lane, OperationID: string(state.Value.CurrentOperationID)}
	}
	return leafOf(ctx, r, lane)
}
