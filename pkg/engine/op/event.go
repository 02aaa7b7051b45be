package op

import (
	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// EventType names an event of §5.5.
type EventType string

// The events that runs produce.
const (
	EventRunStart       EventType = "run_start"
	EventRunResume      EventType = "run_resume"
	EventRunSuspend     EventType = "run_suspend"
	EventRunEnd         EventType = "run_end"
	EventTurnStart      EventType = "turn_start"
	EventTurnEnd        EventType = "turn_end"
	EventRetryScheduled EventType = "retry_scheduled"
	EventRetryStart     EventType = "retry_start"
	EventRetryEnd       EventType = "retry_end"
	EventMessageStart   EventType = "message_start"
	EventMessageUpdate  EventType = "message_update"
	EventMessageEnd     EventType = "message_end"
	EventEntryAdded     EventType = "entry_added"
	EventUsage          EventType = "usage"
	EventConfigUpdate   EventType = "config_update"
	EventHandlerError   EventType = "handler_error"
	EventFault          EventType = "fault"
)

// Event is one observation (spec §5.5). Only the fields of its type are set. An
// entry_added or usage event names its id; the engine completes it with the
// committed row.
type Event struct {
	Type     EventType
	Lane     string // "" for an event of the whole harness
	RunID    string
	TurnID   string
	Recovery bool

	Message message.Message
	EntryID string
	Stream  *message.StreamEvent // message_update
	// Partial is the growing message of a message_update, built on demand and
	// only while the event is being delivered (D41).
	Partial func() message.Message
	Entry   *store.Entry

	Usage  *store.UsageRow
	Totals message.Usage

	Step        string // retry_*
	Attempt     int64
	MaxAttempts int64
	DelayMs     int64
	ErrorText   string // retry_scheduled, retry_end, handler_error, fault
	Success     bool

	Outcome Outcome // run_end
	LeafID  store.LeafID
	Error   *Error
	Missing *Missing // run_suspend
	Results []message.Message

	Property string // config_update
	Value    []byte
	Previous []byte
	Code     string // fault
	Hook     string // handler_error
}

// Missing names identities that are not registered (spec §4.4).
type Missing struct {
	Tools []string `json:"tools"`
	Model string   `json:"model,omitempty"`
}

type object struct{ dst []byte }

func (o *object) raw(key string, value []byte) {
	o.dst = append(rawjson.AppendQuote(append(o.dst, ','), key), ':')
	o.dst = append(o.dst, value...)
}

func (o *object) text(key, s string) {
	o.dst = append(rawjson.AppendQuote(append(o.dst, ','), key), ':')
	o.dst = rawjson.AppendQuote(o.dst, s)
}

func (o *object) optional(key, s string) {
	if s != "" {
		o.text(key, s)
	}
}

func (o *object) int(key string, n int64) {
	o.raw(key, rawjson.AppendInt(nil, n))
}

func (o *object) json(key string, x any) {
	if b, err := marshal(x); err == nil {
		o.raw(key, b)
	}
}

// AppendJSON writes the event as ndjson and the owner socket carry it: a
// message_update has its delta or final block, never the growing message (D41).
func (e Event) AppendJSON(dst []byte) ([]byte, error) {
	o := object{rawjson.AppendQuote(append(dst, `{"type":`...), string(e.Type))}
	o.optional("lane", e.Lane)
	o.optional("runId", e.RunID)
	o.optional("turnId", e.TurnID)
	e.appendBody(&o)
	if e.Recovery {
		o.raw("recovery", []byte("true"))
	}
	return append(o.dst, '}'), nil
}

// MarshalJSON is AppendJSON.
func (e Event) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil) }

func (e Event) appendBody(o *object) {
	switch e.Type {
	case EventMessageUpdate:
		e.appendStream(o)
	case EventMessageStart, EventMessageEnd:
		o.raw("message", e.Message)
		o.optional("entryId", e.EntryID)
	case EventEntryAdded:
		if e.Entry != nil {
			b, _ := e.Entry.AppendJSON(nil)
			o.raw("entry", b)
		}
	case EventUsage:
		e.appendUsage(o)
	case EventRetryScheduled, EventRetryStart, EventRetryEnd:
		e.appendRetry(o)
	case EventRunEnd:
		e.appendEnd(o)
	case EventTurnEnd:
		o.raw("message", e.Message)
		o.json("toolResults", nonNilMessages(e.Results))
	case EventRunSuspend:
		o.text("reason", "missing_identities")
		o.json("missing", e.Missing)
	case EventConfigUpdate:
		o.text("property", e.Property)
		o.raw("value", e.Value)
		o.raw("previous", e.Previous)
	case EventFault:
		o.text("code", e.Code)
		o.text("message", e.ErrorText)
	case EventHandlerError:
		o.text("kind", "hook")
		o.text("hook", e.Hook)
		o.text("error", e.ErrorText)
	case EventRunStart, EventRunResume, EventTurnStart:
	}
}

func nonNilMessages(ms []message.Message) []message.Message {
	if ms == nil {
		return []message.Message{}
	}
	return ms
}

func (e Event) appendStream(o *object) {
	if e.Stream == nil {
		return
	}
	if frame, ok := message.FrameOf(*e.Stream); ok {
		o.raw("event", frame)
	}
}

func (e Event) appendUsage(o *object) {
	if e.Usage == nil {
		return
	}
	b, _ := e.Usage.AppendJSON(nil)
	o.raw("row", b)
	totals, _ := e.Totals.AppendJSON(nil)
	o.raw("totals", totals)
}

func (e Event) appendRetry(o *object) {
	o.text("step", e.Step)
	o.int("attempt", e.Attempt)
	switch e.Type {
	case EventRetryScheduled:
		o.int("maxAttempts", e.MaxAttempts)
		o.int("delayMs", e.DelayMs)
		o.text("errorMessage", e.ErrorText)
	case EventRetryEnd:
		o.json("success", e.Success)
		o.optional("finalError", e.ErrorText)
	}
}

func (e Event) appendEnd(o *object) {
	o.text("outcome", string(e.Outcome))
	leaf, _ := e.LeafID.AppendJSON(nil)
	o.raw("leafId", leaf)
	if e.Error != nil {
		o.json("error", e.Error)
	}
	if e.EntryID != "" {
		o.text("finalEntryId", e.EntryID)
		o.raw("finalMessage", e.Message)
	}
}
