package op

import (
	"encoding/json"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// EventType names an event of §5.5.
type EventType string

// The event catalogue (spec §5.5).
const (
	EventRunStart          EventType = "run_start"
	EventRunResume         EventType = "run_resume"
	EventRunSuspend        EventType = "run_suspend"
	EventCompactionSuspend EventType = "compaction_suspend"
	EventNavigationSuspend EventType = "navigation_suspend"
	EventRunEnd            EventType = "run_end"
	EventTurnStart         EventType = "turn_start"
	EventTurnEnd           EventType = "turn_end"
	EventRetryScheduled    EventType = "retry_scheduled"
	EventRetryStart        EventType = "retry_start"
	EventRetryEnd          EventType = "retry_end"
	EventMessageStart      EventType = "message_start"
	EventMessageUpdate     EventType = "message_update"
	EventMessageEnd        EventType = "message_end"
	EventEntryAdded        EventType = "entry_added"
	EventUsage             EventType = "usage"
	EventConfigUpdate      EventType = "config_update"
	EventRunAbort          EventType = "run_abort"
	EventToolStart         EventType = "tool_start"
	EventToolUpdate        EventType = "tool_update"
	EventToolEnd           EventType = "tool_end"
	EventWritePending      EventType = "write_pending"
	EventQueueUpdate       EventType = "queue_update"
	EventValueUpdate       EventType = "value_update"
	EventCompactionStart   EventType = "compaction_start"
	EventCompactionEnd     EventType = "compaction_end"
	EventNavigationStart   EventType = "navigation_start"
	EventNavigationEnd     EventType = "navigation_end"
	EventLaneCreated       EventType = "lane_created"
	EventHandlerError      EventType = "handler_error"
	EventFault             EventType = "fault"
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

	Outcome   Outcome // run_end
	LeafID    store.LeafID
	Error     *Error
	Missing   *Missing         // *_suspend
	Deferred  json.RawMessage  // run_suspend: the handle
	OldLeafID store.LeafID     // navigation_end
	TargetID  store.LeafID     // navigation_start, lane_created
	Reason    CompactionReason // compaction_*
	FromHook  bool             // compaction_end
	EntryType store.EntryType  // write_pending
	Text      string           // value_update; "" clears
	Tool      *ToolEvent       // tool_*
	Body      json.RawMessage  // queue_update, run_abort: the members after the common ones
	Results   []message.Message

	Property string // config_update
	Value    []byte
	Previous []byte
	Code     string // fault
	Hook     string // handler_error
}

// ToolEvent is what a tool event says of its call.
type ToolEvent struct {
	CallID    string
	Name      string
	Args      json.RawMessage // tool_start
	Result    json.RawMessage // tool_update, tool_end
	IsError   bool            // tool_end
	Terminate bool            // tool_end
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
	case EventRunSuspend, EventCompactionSuspend, EventNavigationSuspend:
		e.appendSuspend(o)
	case EventToolStart, EventToolUpdate, EventToolEnd:
		e.appendTool(o)
	case EventWritePending:
		o.text("entryId", e.EntryID)
		o.text("entryType", string(e.EntryType))
	case EventValueUpdate:
		e.appendValue(o)
	case EventCompactionStart, EventCompactionEnd, EventNavigationStart, EventNavigationEnd:
		e.appendStructural(o)
	case EventLaneCreated:
		at, _ := e.TargetID.AppendJSON(nil)
		o.raw("at", at)
	case EventQueueUpdate, EventRunAbort:
		o.dst = append(o.dst, e.Body...)
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

func (e Event) appendSuspend(o *object) {
	if e.Deferred != nil {
		o.text("reason", "deferred")
		o.raw("deferred", e.Deferred)
		return
	}
	o.text("reason", "missing_identities")
	o.json("missing", e.Missing)
}

func (e Event) appendTool(o *object) {
	o.text("toolCallId", e.Tool.CallID)
	o.text("toolName", e.Tool.Name)
	switch e.Type {
	case EventToolStart:
		o.raw("args", e.Tool.Args)
	case EventToolUpdate:
		o.raw("partialResult", e.Tool.Result)
	case EventToolEnd:
		o.raw("result", e.Tool.Result)
		o.json("isError", e.Tool.IsError)
		o.json("terminate", e.Tool.Terminate)
	}
}

func (e Event) appendValue(o *object) {
	o.text("value", e.Property)
	key := "name"
	if e.Property == "entry_label" {
		o.text("targetId", e.EntryID)
		key = "label"
	}
	o.optional(key, e.Text)
}

func (e Event) appendStructural(o *object) {
	switch e.Type {
	case EventCompactionStart, EventCompactionEnd:
		o.text("reason", string(e.Reason))
	case EventNavigationStart:
		target, _ := e.TargetID.AppendJSON(nil)
		o.raw("targetId", target)
	case EventNavigationEnd:
		old, _ := e.OldLeafID.AppendJSON(nil)
		leaf, _ := e.LeafID.AppendJSON(nil)
		o.raw("oldLeafId", old)
		o.raw("newLeafId", leaf)
	}
	if e.Outcome == "" {
		return
	}
	o.text("outcome", string(e.Outcome))
	if e.Error != nil {
		o.json("error", e.Error)
	}
	if e.Entry != nil {
		key := "entry"
		if e.Type == EventNavigationEnd {
			key = "summaryEntry"
		}
		b, _ := e.Entry.AppendJSON(nil)
		o.raw(key, b)
	}
	if e.Type == EventCompactionEnd && e.Outcome == Completed {
		o.json("fromHook", e.FromHook)
	}
}
