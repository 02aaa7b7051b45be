package owner

import (
	"context"
	"encoding/json"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Placement says what became of an entry (spec §3.11).
type Placement struct {
	EntryID string
	Queued  bool // it waits for its place in the tree
	Already bool // an earlier request, or the same one before, did it
}

func (c *Client) placement(f fields, err error) (Placement, error) {
	if err != nil {
		return Placement{}, err
	}
	id, err := f.text("entryId")
	return Placement{EntryID: id, Queued: f.bool("queued"), Already: f.bool("already")}, err
}

// Steer queues a message for the next checkpoint of the open run (spec §3.11).
// Without an EntryID the client mints one; who wants to repeat the request gives
// its own. It refuses with *engine.NoActiveRun or *engine.InvalidMessage.
func (c *Client) Steer(ctx context.Context, lane string, q engine.Queued) (Placement, error) {
	return c.enqueue(ctx, opSteer, lane, q)
}

// FollowUp queues a message for when the open run would end, as Steer does.
func (c *Client) FollowUp(ctx context.Context, lane string, q engine.Queued) (Placement, error) {
	return c.enqueue(ctx, opFollowUp, lane, q)
}

// NextRun queues a message for the lane's next run, as Steer does.
func (c *Client) NextRun(ctx context.Context, lane string, q engine.Queued) (Placement, error) {
	return c.enqueue(ctx, opNextRun, lane, q)
}

func (c *Client) enqueue(ctx context.Context, op, lane string, q engine.Queued) (Placement, error) {
	return c.placement(c.call(ctx, op, func(o *object) error {
		o.optional("lane", lane)
		o.str("entryId", c.minted(q.EntryID))
		o.optional("text", q.Text)
		if len(q.Images) > 0 {
			images, err := appendBlocks(q.Images)
			if err != nil {
				return err
			}
			o.raw("images", images)
		}
		m, err := compact(json.RawMessage(q.Message))
		if err != nil {
			return &engine.InvalidMessage{Lane: lane, Reason: err.Error()}
		}
		o.raw("message", m)
		return nil
	}, nil))
}

func (c *Client) minted(id string) string {
	if id == "" {
		return c.ids.NewID()
	}
	return id
}

func appendBlocks(blocks []message.Block) (dst []byte, err error) {
	dst = append(dst, '[')
	for i, b := range blocks {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = b.AppendJSON(dst); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

// CancelQueued withdraws a queued item (spec §3.11).
func (c *Client) CancelQueued(ctx context.Context, lane, entryID string) (engine.CancelResult, error) {
	f, err := c.call(ctx, opCancelQueued, func(o *object) error {
		o.optional("lane", lane)
		o.str("entryId", entryID)
		return nil
	}, nil)
	if err != nil {
		return "", err
	}
	kind, err := f.text("kind")
	return engine.CancelResult(kind), err
}

// Append writes content to the lane's tree, at once or at the next checkpoint; a
// structural operation is waited for (spec §3.11). Without an entry id the client
// mints one. It refuses with *engine.InvalidMessage or *engine.LaneBusy.
func (c *Client) Append(ctx context.Context, lane, entryID string, content store.PendingEntry) (Placement, error) {
	return c.placement(c.call(ctx, opAppend, func(o *object) error {
		o.optional("lane", lane)
		o.str("entryId", c.minted(entryID))
		o.str("type", string(content.Type))
		o.optional("customType", content.CustomType)
		payload, err := compact(content.Payload)
		if err != nil {
			return &engine.InvalidMessage{Lane: lane, Reason: err.Error()}
		}
		o.raw("payload", payload)
		return nil
	}, nil))
}

// SetName names the session; "" takes the name away (spec §2.4).
func (c *Client) SetName(ctx context.Context, name string) error {
	_, err := c.call(ctx, opName, func(o *object) error {
		o.str("name", name)
		return nil
	}, nil)
	return err
}

// SetLabel labels an entry; "" takes the label away. An id that names no entry is
// *store.UnknownTarget (spec §2.4).
func (c *Client) SetLabel(ctx context.Context, entryID, label string) error {
	_, err := c.call(ctx, opLabel, func(o *object) error {
		o.str("entryId", entryID)
		o.str("label", label)
		return nil
	}, nil)
	return err
}

// SetValue replaces an application value.
func (c *Client) SetValue(ctx context.Context, at store.Address, value json.RawMessage) error {
	_, err := c.changeValue(ctx, valueSet, at, value, "")
	return err
}

// DeleteValue removes an application value; removing an absent one is legal.
func (c *Client) DeleteValue(ctx context.Context, at store.Address) error {
	_, err := c.changeValue(ctx, valueDelete, at, nil, "")
	return err
}

// AppendList adds an element to an application list. Elements have no ids: a
// repeat with the same request id, a UUIDv7, is recognized by the owner that took
// the first one, and by no other.
func (c *Client) AppendList(ctx context.Context, at store.Address, requestID string, element json.RawMessage) (already bool, err error) {
	return c.changeValue(ctx, listAppend, at, element, c.minted(requestID))
}

// ClearList removes a whole application list; removing an absent one is legal.
func (c *Client) ClearList(ctx context.Context, at store.Address) error {
	_, err := c.changeValue(ctx, listClear, at, nil, "")
	return err
}

func (c *Client) changeValue(ctx context.Context, action string, at store.Address, value json.RawMessage, requestID string) (already bool, err error) {
	f, err := c.call(ctx, opValue, func(o *object) error {
		o.str("action", action)
		o.str("namespace", at.Namespace)
		o.str("key", at.Key)
		o.optional("requestId", requestID)
		v, err := compact(value)
		o.raw("value", v)
		return err
	}, nil)
	return f.bool("already"), err
}

// Configure changes parts of a lane's configuration and returns the whole (spec
// §5.1).
func (c *Client) Configure(ctx context.Context, lane string, change engine.Configure) (cfg store.LaneConfiguration, err error) {
	f, err := c.call(ctx, opLaneSet, func(o *object) error {
		o.optional("lane", lane)
		if m := change.Model; m != nil {
			model := newObject()
			model.str("provider", m.Provider)
			model.str("modelId", m.ModelID)
			o.raw("model", model.end())
		}
		if change.ThinkingLevel != nil {
			o.str("thinkingLevel", string(*change.ThinkingLevel))
		}
		if change.ActiveToolNames != nil {
			o.texts("activeToolNames", *change.ActiveToolNames)
		}
		return nil
	}, nil)
	if err != nil {
		return cfg, err
	}
	if cfg.Model, err = parseModel(f["model"]); err != nil {
		return cfg, err
	}
	level, err := f.text("thinkingLevel")
	if err != nil {
		return cfg, err
	}
	cfg.ThinkingLevel = message.ThinkingLevel(level)
	cfg.ActiveToolNames, err = f.texts("activeToolNames")
	return cfg, err
}

// UsageReceipt says under which id a usage row stands.
type UsageReceipt struct {
	UsageID string
	Already bool
}

// RecordUsage adds an adjustment to the ledger (spec §1.6). Without an id the
// client mints one.
func (c *Client) RecordUsage(ctx context.Context, lane string, u store.NewUsage) (UsageReceipt, error) {
	f, err := c.call(ctx, opUsageRecord, func(o *object) error {
		o.optional("lane", lane)
		o.str("usageId", c.minted(u.ID))
		o.optional("entryId", u.EntryID)
		raw, err := compact(u.RawUsage)
		if err == nil && raw == nil {
			raw, err = u.Usage.AppendJSON(nil)
		}
		if err != nil {
			return err
		}
		o.raw("usage", raw)
		details, err := compact(u.Details)
		o.raw("details", details)
		return err
	}, nil)
	if err != nil {
		return UsageReceipt{}, err
	}
	id, err := f.text("usageId")
	return UsageReceipt{UsageID: id, Already: f.bool("already")}, err
}

// LaneStatus is a lane as the owner reports it: as JSON, and the parts that a
// client decides by.
type LaneStatus struct {
	Lane string
	// OperationID and Status are of the open operation, "" when the lane is idle.
	OperationID string
	Status      engine.Status
	LastResult  json.RawMessage // nil before the first operation has ended
	Raw         json.RawMessage // LaneExecutionInfo, or inspect's report of the lane
}

func laneStatuses(f fields, err error) ([]LaneStatus, error) {
	if err != nil {
		return nil, err
	}
	var all []LaneStatus
	for raw, err := range rawjson.Elements(f["lanes"]) {
		if err != nil {
			return nil, err
		}
		one, err := laneStatus(raw)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func laneStatus(raw json.RawMessage) (s LaneStatus, err error) {
	f, err := parseFields(raw)
	if err != nil {
		return s, err
	}
	s.Raw, s.LastResult = raw, f.raw("lastResult")
	if s.Lane, err = f.text("lane"); err != nil || f.raw("current") == nil {
		return s, err
	}
	current, err := parseFields(f["current"])
	if err != nil {
		return s, err
	}
	if s.OperationID, err = current.text("id"); err != nil {
		return s, err
	}
	status, err := current.text("status")
	s.Status = engine.Status(status)
	return s, err
}
