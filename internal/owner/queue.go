package owner

import (
	"context"
	"errors"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// enqueue queues a message under the client's entry id (spec §3.11).
func (s *Server) enqueue(ctx context.Context, r request) ([]byte, error) {
	lane, err := s.lane(r)
	if err != nil {
		return nil, err
	}
	q, err := r.queued()
	if err != nil {
		return nil, onLane(err, lane.Name())
	}
	known, err := s.known(ctx, q.EntryID)
	if err != nil {
		return nil, err
	}
	queue := lane.Steer
	switch r.op {
	case opFollowUp:
		queue = lane.FollowUp
	case opNextRun:
		queue = lane.NextRun
	}
	if _, err := queue(ctx, q); err != nil {
		return nil, err
	}
	return known.receipt(q.EntryID, true), nil
}

// onLane names the lane in a refusal that was made without knowing it (spec §5.1).
func onLane(err error, lane string) error {
	var invalid *engine.InvalidMessage
	if errors.As(err, &invalid) && invalid.Lane == "" {
		invalid.Lane = lane
	}
	return err
}

func (r request) queued() (q engine.Queued, err error) {
	if q.EntryID, err = r.mintedID("entryId"); err != nil {
		return q, err
	}
	if q.Text, err = r.text("text"); err != nil {
		return q, err
	}
	if raw := r.raw("images"); raw != nil {
		for block, err := range rawjson.Elements(raw) {
			if err != nil {
				return q, malformed("images is no list")
			}
			b, err := message.ParseBlock(block)
			if err != nil {
				return q, &engine.InvalidMessage{Reason: err.Error()}
			}
			q.Images = append(q.Images, b)
		}
	}
	if m := r.raw("message"); m != nil {
		q.Message = message.Message(m)
	}
	return q, nil
}

// place says what an entry id names already.
type place int

const (
	unknown place = iota
	pending
	placed
)

func (s *Server) known(ctx context.Context, id string) (place, error) {
	session := s.o.Harness.Session()
	if _, ok, err := store.Get(ctx, session, store.Pending(id)); err != nil || ok {
		return pending, err
	}
	entries, err := session.Entries(ctx, []string{id})
	if len(entries) > 0 {
		return placed, err
	}
	return unknown, err
}

// receipt answers a request that places an entry, now or later; what was known
// before it is the work of the same request, made earlier.
func (p place) receipt(id string, queued bool) []byte {
	if p != unknown {
		queued = p == pending
	}
	o := newObject()
	o.str("entryId", id)
	o.bool("queued", queued)
	o.bool("already", p != unknown)
	return o.end()
}

func (s *Server) cancelQueued(ctx context.Context, r request) ([]byte, error) {
	lane, err := s.lane(r)
	if err != nil {
		return nil, err
	}
	id, err := r.text("entryId")
	if err != nil {
		return nil, err
	}
	kind, err := lane.CancelQueued(ctx, id)
	if err != nil {
		return nil, err
	}
	o := newObject()
	o.str("entryId", id)
	o.str("kind", string(kind))
	return o.end(), nil
}

// append writes to the tree, now or at the next checkpoint (spec §3.11).
func (s *Server) append(ctx context.Context, r request) ([]byte, error) {
	lane, err := s.lane(r)
	if err != nil {
		return nil, err
	}
	id, err := r.mintedID("entryId")
	if err != nil {
		return nil, err
	}
	content, err := r.content()
	if err != nil {
		return nil, onLane(err, lane.Name())
	}
	known, err := s.known(ctx, id)
	if err != nil {
		return nil, err
	}
	_, queued, err := lane.Append(ctx, id, content)
	if err != nil {
		return nil, err
	}
	return known.receipt(id, queued), nil
}

func (r request) content() (c store.PendingEntry, err error) {
	kind, err := r.text("type")
	if err != nil {
		return c, err
	}
	c.Type = store.EntryType(kind)
	if c.CustomType, err = r.text("customType"); err != nil {
		return c, err
	}
	c.Payload = r.fields["payload"]
	switch {
	case c.Type == store.TypeMessage && c.Payload != nil && c.CustomType == "":
	case c.Type == store.TypeCustom && c.CustomType != "":
	default:
		return c, &engine.InvalidMessage{Reason: "only a message, or a custom entry with its type, can be appended"}
	}
	return c, nil
}
