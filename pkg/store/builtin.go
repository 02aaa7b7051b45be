package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
)

// MainLane is the lane that every session has (spec §2.3).
const MainLane = "main"

// LeafID is the id of a lane's newest entry; "" is JSON null, before the first
// entry.
type LeafID string

// AppendJSON writes the id, or null.
func (l LeafID) AppendJSON(dst []byte) ([]byte, error) {
	if l == "" {
		return append(dst, "null"...), nil
	}
	return rawjson.AppendQuote(dst, string(l)), nil
}

// MarshalJSON writes the id, or null.
func (l LeafID) MarshalJSON() ([]byte, error) { return l.AppendJSON(nil) }

// UnmarshalJSON reads an id or null.
func (l *LeafID) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*l = ""
		return nil
	}
	s, err := rawjson.Unquote(b)
	*l = LeafID(s)
	return err
}

// LaneConfiguration is a lane's total configuration: a setter replaces the whole
// value (spec §2.3).
type LaneConfiguration struct {
	Model           message.ModelRef      `json:"model"`
	ThinkingLevel   message.ThinkingLevel `json:"thinkingLevel"`
	ActiveToolNames []string              `json:"activeToolNames"`
}

// AppendJSON writes the configuration; no tools are [], never null.
func (c LaneConfiguration) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"model":{"provider":`...)
	dst = rawjson.AppendQuote(dst, c.Model.Provider)
	dst = append(dst, `,"modelId":`...)
	dst = rawjson.AppendQuote(dst, c.Model.ModelID)
	dst = append(dst, `},"thinkingLevel":`...)
	dst = rawjson.AppendQuote(dst, string(c.ThinkingLevel))
	dst = append(dst, `,"activeToolNames":`...)
	return append(AppendTexts(dst, c.ActiveToolNames), '}'), nil
}

// MarshalJSON is AppendJSON.
func (c LaneConfiguration) MarshalJSON() ([]byte, error) { return c.AppendJSON(nil) }

// AppendTexts writes an array of texts; none are [], never null.
func AppendTexts(dst []byte, texts []string) []byte {
	dst = append(dst, '[')
	for i, s := range texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = rawjson.AppendQuote(dst, s)
	}
	return append(dst, ']')
}

// LaneState says which operation owns the lane and what waits for its next run
// (spec §3.3).
type LaneState struct {
	CurrentOperationID LeafID   `json:"currentOperationId"` // "" is null: idle
	PendingNextRun     []string `json:"pendingNextRun"`
}

// AppendJSON writes the state; nothing pending is [], never null.
func (s LaneState) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"currentOperationId":`...)
	dst, _ = s.CurrentOperationID.AppendJSON(dst)
	dst = append(dst, `,"pendingNextRun":`...)
	return append(AppendTexts(dst, s.PendingNextRun), '}'), nil
}

// MarshalJSON is AppendJSON.
func (s LaneState) MarshalJSON() ([]byte, error) { return s.AppendJSON(nil) }

// PendingEntry is complete content that waits for its placement (spec §1.3,
// §2.2).
type PendingEntry struct {
	Type       EntryType // message or custom
	CustomType string    // custom only
	Payload    json.RawMessage
}

// AppendJSON writes the wire shape; the payload is spliced as it is.
func (p PendingEntry) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"type":`...)
	dst = rawjson.AppendQuote(dst, string(p.Type))
	if p.Type == TypeCustom {
		dst = append(dst, `,"customType":`...)
		dst = rawjson.AppendQuote(dst, p.CustomType)
	}
	if p.Payload != nil {
		dst = append(dst, `,"payload":`...)
		dst = append(dst, p.Payload...)
	}
	return append(dst, '}'), nil
}

// Entry is the entry that places the content under its reserved id.
func (p PendingEntry) Entry(id, parentID string) NewEntry {
	if p.Type == TypeMessage {
		return MessageEntry(id, parentID, message.Message(p.Payload))
	}
	return CustomEntry(id, parentID, p.CustomType, p.Payload)
}

func decodePending(raw json.RawMessage) (PendingEntry, error) {
	var p PendingEntry
	t, ok := rawjson.GetString(raw, "type")
	if !ok {
		return p, fmt.Errorf("pending entry has no type")
	}
	p.Type = EntryType(t)
	p.CustomType, _ = rawjson.GetString(raw, "customType")
	if payload, ok := rawjson.Get(raw, "payload"); ok {
		p.Payload = payload
	}
	return p, nil
}

// MessageEntry is the entry that holds a message.
func MessageEntry(id, parentID string, m message.Message) NewEntry {
	payload := make([]byte, 0, len(m)+len(`{"message":}`))
	payload = append(append(append(payload, `{"message":`...), m...), '}')
	return NewEntry{ID: id, ParentID: parentID, Type: TypeMessage, Payload: payload}
}

// CustomEntry is the entry that holds an application's data; nil data is none.
func CustomEntry(id, parentID, customType string, data json.RawMessage) NewEntry {
	e := NewEntry{ID: id, ParentID: parentID, Type: TypeCustom, CustomType: customType}
	if data != nil {
		e.Payload = append(append(append(json.RawMessage(nil), `{"data":`...), data...), '}')
	}
	return e
}

// Message returns the message of a message entry, nil for any other.
func (e Entry) Message() message.Message {
	if e.Type != TypeMessage {
		return nil
	}
	m, _ := rawjson.Get(e.Payload, "message")
	return message.Message(m)
}

// AppendJSON writes the entry as commands and events show it: structural fields
// first, then the payload's own members byte for byte (spec §2.1).
func (e Entry) AppendJSON(dst []byte) ([]byte, error) {
	dst = e.Structure.appendFields(append(dst, '{'))
	if len(e.Payload) > 2 {
		dst = append(append(dst, ','), e.Payload[1:len(e.Payload)-1]...)
	}
	return append(dst, '}'), nil
}

// MarshalJSON is AppendJSON.
func (e Entry) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil) }

func (s Structure) appendFields(dst []byte) []byte {
	dst = append(dst, `"id":`...)
	dst = rawjson.AppendQuote(dst, s.ID)
	dst = append(dst, `,"parentId":`...)
	dst, _ = LeafID(s.ParentID).AppendJSON(dst)
	dst = append(dst, `,"seq":`...)
	dst = rawjson.AppendInt(dst, s.Seq)
	dst = append(dst, `,"timestamp":`...)
	dst = rawjson.AppendInt(dst, s.Timestamp)
	dst = append(dst, `,"type":`...)
	dst = rawjson.AppendQuote(dst, string(s.Type))
	if s.Type == TypeCustom {
		dst = append(dst, `,"customType":`...)
		dst = rawjson.AppendQuote(dst, s.CustomType)
	}
	return dst
}

// AppendJSON writes the row as events and commands show it (spec §1.6).
func (u UsageRow) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"id":`...)
	dst = rawjson.AppendQuote(dst, u.ID)
	dst = append(dst, `,"seq":`...)
	dst = rawjson.AppendInt(dst, u.Seq)
	if u.EntryID != "" {
		dst = append(dst, `,"entryId":`...)
		dst = rawjson.AppendQuote(dst, u.EntryID)
	}
	dst = append(dst, `,"adjustment":`...)
	if u.Adjustment {
		dst = append(dst, "true"...)
	} else {
		dst = append(dst, "false"...)
	}
	dst = append(append(dst, `,"usage":`...), u.Usage...)
	if u.Details != nil {
		dst = append(append(dst, `,"details":`...), u.Details...)
	}
	return append(dst, '}'), nil
}

// MarshalJSON is AppendJSON.
func (u UsageRow) MarshalJSON() ([]byte, error) { return u.AppendJSON(nil) }

// LaneLeaf is where a lane appends next (spec §1.3).
func LaneLeaf(lane string) Value[LeafID] { return NewValue[LeafID]("pi.lane.leaf", lane) }

// LaneLeaves scans the leaves of all lanes: the lane inventory (spec §4.4).
func LaneLeaves() Prefix[LeafID] { return NewPrefix[LeafID]("pi.lane.leaf", "") }

// LaneConfig is a lane's total configuration.
func LaneConfig(lane string) Value[LaneConfiguration] {
	return NewValue[LaneConfiguration]("pi.lane.config", lane)
}

// LaneStateOf is which operation a lane runs.
func LaneStateOf(lane string) Value[LaneState] { return NewValue[LaneState]("pi.lane.state", lane) }

// SessionName is the session's name, latest wins (spec §2.4).
func SessionName() Value[string] { return NewValue[string]("pi.session.name", "") }

// SessionCWD is the folder that has taken the place of the header's, which never
// changes.
func SessionCWD() Value[string] { return NewValue[string]("drover.session.cwd", "") }

// WorkingFolder is the folder that a session's tools work in: the one that was
// given last, "" when none ever was.
func WorkingFolder(ctx context.Context, q interface {
	Getter
	Header() Header
}) (string, error) {
	given, ok, err := Get(ctx, q, SessionCWD())
	if err != nil || ok {
		return given.Value, err
	}
	return q.Header().CWD, nil
}

// EntryLabel is an entry's label, latest wins (spec §2.4).
func EntryLabel(entryID string) Value[string] { return NewValue[string]("pi.entry.label", entryID) }

// EntryLabels scans all labels.
func EntryLabels() Prefix[string] { return NewPrefix[string]("pi.entry.label", "") }

// PendingEntries scans all content that waits for its placement.
func PendingEntries() Prefix[PendingEntry] { return NewPrefix[PendingEntry]("pi.pending.entry", "") }

// Pending is content that waits under its reserved entry id (spec §2.2).
func Pending(entryID string) Value[PendingEntry] {
	return NewValue[PendingEntry]("pi.pending.entry", entryID).DecodedBy(decodePending)
}
