package op_test

import (
	"encoding/json"
	"testing"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// The JSON of every event (§5.5, D41): only the fields of its type, the growing
// message never, payloads byte for byte.
func TestEventJSON(t *testing.T) {
	m := message.Message(`{"role":"user","content":"caf\u00e9 \ud83d","n":1.0}`)
	entry := &store.Entry{
		Structure: store.Structure{ID: "e1", ParentID: "e0", Seq: 7, Timestamp: 9, Type: store.TypeMessage},
		Payload:   json.RawMessage(`{"message":` + string(m) + `}`),
	}
	row := &store.UsageRow{ID: "u1", Seq: 8, EntryID: "r1", Usage: json.RawMessage(`{"input":1}`)}
	stream := func(ev message.StreamEvent) op.Event {
		return op.Event{
			Type: op.EventMessageUpdate, Lane: lane, RunID: "o", Stream: &ev,
			Partial: func() message.Message { t.Error("built the growing message"); return nil },
		}
	}
	head := `,"lane":"main","runId":"o"`
	tests := []struct {
		event op.Event
		want  string
	}{
		{op.Event{Type: op.EventRunStart, Lane: lane, RunID: "o"}, `{"type":"run_start"` + head + `}`},
		{op.Event{Type: op.EventRunResume, Lane: lane, RunID: "o", Recovery: true}, `{"type":"run_resume"` + head + `,"recovery":true}`},
		{
			op.Event{Type: op.EventRunSuspend, Lane: lane, RunID: "o", Missing: &op.Missing{Tools: []string{"read"}, Model: "acme/one"}},
			`{"type":"run_suspend"` + head + `,"reason":"missing_identities","missing":{"tools":["read"],"model":"acme/one"}}`,
		},
		{
			op.Event{Type: op.EventRunEnd, Lane: lane, RunID: "o", Outcome: op.Completed, LeafID: "r1", EntryID: "r1", Message: m},
			`{"type":"run_end"` + head + `,"outcome":"completed","leafId":"r1","finalEntryId":"r1","finalMessage":` + string(m) + `}`,
		},
		{
			op.Event{Type: op.EventRunEnd, Lane: lane, RunID: "o", Outcome: op.Failed, Error: &op.Error{Code: "c", Message: "<m>"}},
			`{"type":"run_end"` + head + `,"outcome":"failed","leafId":null,"error":{"code":"c","message":"<m>"}}`,
		},
		{op.Event{Type: op.EventTurnStart, Lane: lane, RunID: "o", TurnID: "s1"}, `{"type":"turn_start"` + head + `,"turnId":"s1"}`},
		{
			op.Event{Type: op.EventTurnEnd, Lane: lane, RunID: "o", TurnID: "s1", Message: m},
			`{"type":"turn_end"` + head + `,"turnId":"s1","message":` + string(m) + `,"toolResults":[]}`,
		},
		{
			op.Event{Type: op.EventTurnEnd, Lane: lane, RunID: "o", TurnID: "s1", Message: m, Results: []message.Message{m}},
			`{"type":"turn_end"` + head + `,"turnId":"s1","message":` + string(m) + `,"toolResults":[` + string(m) + `]}`,
		},
		{
			op.Event{Type: op.EventRetryScheduled, Lane: lane, RunID: "o", Step: "s1", Attempt: 2, MaxAttempts: 3, DelayMs: 100, ErrorText: "busy"},
			`{"type":"retry_scheduled"` + head + `,"step":"s1","attempt":2,"maxAttempts":3,"delayMs":100,"errorMessage":"busy"}`,
		},
		{op.Event{Type: op.EventRetryStart, Lane: lane, RunID: "o", Step: "s1", Attempt: 2}, `{"type":"retry_start"` + head + `,"step":"s1","attempt":2}`},
		{
			op.Event{Type: op.EventRetryEnd, Lane: lane, RunID: "o", Step: "s1", Attempt: 2, Success: true},
			`{"type":"retry_end"` + head + `,"step":"s1","attempt":2,"success":true}`,
		},
		{
			op.Event{Type: op.EventRetryEnd, Lane: lane, RunID: "o", Step: "s1", Attempt: 3, ErrorText: "busy"},
			`{"type":"retry_end"` + head + `,"step":"s1","attempt":3,"success":false,"finalError":"busy"}`,
		},
		{op.Event{Type: op.EventMessageStart, Lane: lane, RunID: "o", Message: m}, `{"type":"message_start"` + head + `,"message":` + string(m) + `}`},
		{
			op.Event{Type: op.EventMessageEnd, Lane: lane, RunID: "o", Message: m, EntryID: "e1", Recovery: true},
			`{"type":"message_end"` + head + `,"message":` + string(m) + `,"entryId":"e1","recovery":true}`,
		},
		{
			stream(message.StreamEvent{Type: message.EventTextDelta, ContentIndex: 1, Delta: "a\xed\xa0\xbd"}),
			`{"type":"message_update"` + head + `,"event":{"type":"text_delta","contentIndex":1,"delta":"a\ud83d"}}`,
		},
		{
			stream(message.StreamEvent{Type: message.EventTextEnd, Block: message.TextBlock("all")}),
			`{"type":"message_update"` + head + `,"event":{"type":"text_end","contentIndex":0,"content":"all"}}`,
		},
		{
			op.Event{Type: op.EventEntryAdded, Lane: lane, RunID: "o", EntryID: "e1", Entry: entry},
			`{"type":"entry_added"` + head + `,"entry":{"id":"e1","parentId":"e0","seq":7,"timestamp":9,"type":"message","message":` + string(m) + `}}`,
		},
		{
			op.Event{Type: op.EventUsage, Lane: lane, Usage: row, Totals: message.Usage{Input: 3}},
			`{"type":"usage","lane":"main","row":{"id":"u1","seq":8,"entryId":"r1","adjustment":false,"usage":{"input":1}},"totals":` +
				`{"input":3,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}}`,
		},
		{
			op.Event{Type: op.EventConfigUpdate, Lane: lane, Property: "thinkingLevel", Value: []byte(`"low"`), Previous: []byte(`"off"`)},
			`{"type":"config_update","lane":"main","property":"thinkingLevel","value":"low","previous":"off"}`,
		},
		{op.Event{Type: op.EventFault, Code: "fault", ErrorText: "disk"}, `{"type":"fault","code":"fault","message":"disk"}`},
		{
			op.Event{Type: op.EventHandlerError, Lane: lane, RunID: "o", Hook: "before_run", ErrorText: "no"},
			`{"type":"handler_error"` + head + `,"kind":"hook","hook":"before_run","error":"no"}`,
		},
	}
	for _, tt := range tests {
		t.Run(string(tt.event.Type), func(t *testing.T) {
			got, err := tt.event.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, string(got), tt.want)
		})
	}
}
