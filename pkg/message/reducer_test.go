package message

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const startMessage = `{"role":"assistant","content":[],"api":"a","provider":"p","model":"m","usage":{"input":3},"stopReason":"pending","x":1.0,"timestamp":5}`

func startEvent() StreamEvent { return StreamEvent{Type: EventStart, Message: Message(startMessage)} }

// frames spells frames in a test: the start frame, then the given ones.
func frames(more ...string) []Frame {
	f, _ := FrameOf(startEvent())
	out := []Frame{f}
	for _, s := range more {
		out = append(out, Frame(s))
	}
	return out
}

// withContent is what reducing to the given blocks must give.
func withContent(t *testing.T, blocks string) string {
	t.Helper()
	m, err := Message(startMessage).With("content", json.RawMessage("["+blocks+"]"))
	if err != nil {
		t.Fatal(err)
	}
	return string(m)
}

func TestFrameOf(t *testing.T) {
	call := Block{Type: BlockToolCall, ID: "1", Name: "n", Arguments: json.RawMessage(`{"a":1.0}`)}
	signed := call
	signed.ThoughtSignature, signed.Namespace = "s", "ns"
	tests := []struct {
		ev   StreamEvent
		want string
	}{
		{startEvent(), `{"type":"start","message":` + startMessage + `}`},
		{StreamEvent{Type: EventTextStart, Block: TextBlock("")}, `{"type":"text_start","contentIndex":0,"block":{"type":"text","text":""}}`},
		{StreamEvent{Type: EventTextDelta, ContentIndex: 2, Delta: "a\n<\xed\xa0\xbd"}, `{"type":"text_delta","contentIndex":2,"delta":"a\n<\ud83d"}`},
		{StreamEvent{Type: EventTextDelta}, `{"type":"text_delta","contentIndex":0,"delta":""}`},
		{StreamEvent{Type: EventTextEnd, Block: Block{Type: BlockText, Text: "a", TextSignature: "s"}}, `{"type":"text_end","contentIndex":0,"content":"a","textSignature":"s"}`},
		{StreamEvent{Type: EventTextEnd, Block: TextBlock("a")}, `{"type":"text_end","contentIndex":0,"content":"a"}`},
		{StreamEvent{Type: EventThinkingStart, Block: Block{Type: BlockThinking}}, `{"type":"thinking_start","contentIndex":0,"block":{"type":"thinking","thinking":""}}`},
		{StreamEvent{Type: EventThinkingDelta, Delta: "a"}, `{"type":"thinking_delta","contentIndex":0,"delta":"a"}`},
		{StreamEvent{Type: EventThinkingEnd, Block: Block{Type: BlockThinking, Thinking: "a", ThinkingSignature: "s", Redacted: true}},
			`{"type":"thinking_end","contentIndex":0,"content":"a","thinkingSignature":"s","redacted":true}`},
		{StreamEvent{Type: EventToolCallStart, ContentIndex: 1, Block: Block{Type: BlockToolCall, ID: "1", Name: "n"}},
			`{"type":"toolcall_start","contentIndex":1,"block":{"type":"toolCall","id":"1","name":"n","arguments":{}}}`},
		{StreamEvent{Type: EventToolCallDelta, ContentIndex: 1, Delta: `{"a":`}, `{"type":"toolcall_delta","contentIndex":1,"delta":"{\"a\":"}`},
		{StreamEvent{Type: EventToolCallEnd, ContentIndex: 1, Block: call}, `{"type":"toolcall_end","contentIndex":1,"id":"1","name":"n","arguments":{"a":1.0}}`},
		{StreamEvent{Type: EventToolCallEnd, ContentIndex: 1, Block: signed},
			`{"type":"toolcall_end","contentIndex":1,"id":"1","name":"n","arguments":{"a":1.0},"thoughtSignature":"s","namespace":"ns"}`},
	}
	for _, tt := range tests {
		got, ok := FrameOf(tt.ev)
		if !ok || string(got) != tt.want {
			t.Errorf("FrameOf = %s, %v; want %s", got, ok, tt.want)
		}
	}
	for _, typ := range []EventType{EventDone, EventError, "ping"} {
		if got, ok := FrameOf(StreamEvent{Type: typ, Message: Message(startMessage)}); ok {
			t.Errorf("FrameOf(%s) = %s", typ, got)
		}
	}
}

func TestReduce(t *testing.T) {
	const (
		textStart = `{"type":"text_start","contentIndex":0,"block":{"type":"text","text":""}}`
		callStart = `{"type":"toolcall_start","contentIndex":0,"block":{"type":"toolCall","id":"1","name":"n","arguments":{}}}`
	)
	tests := map[string]struct {
		frames []string
		want   string
	}{
		"a start alone":          {nil, ``},
		"a block without deltas": {[]string{textStart}, `{"type":"text","text":""}`},
		"deltas append": {[]string{textStart, `{"type":"text_delta","contentIndex":0,"delta":"a"}`, `{"type":"text_delta","contentIndex":0,"delta":"\u00e9"}`},
			`{"type":"text","text":"aé"}`},
		"deltas append to what the start had": {[]string{
			`{"type":"text_start","contentIndex":0,"block":{"type":"text","text":"a","textSignature":"s"}}`, `{"type":"text_delta","contentIndex":0,"delta":"b"}`},
			`{"type":"text","text":"ab","textSignature":"s"}`},
		"surrogate halves join": {[]string{textStart, `{"type":"text_delta","contentIndex":0,"delta":"a\ud83d"}`, `{"type":"text_delta","contentIndex":0,"delta":"\ude42b"}`},
			`{"type":"text","text":"a🙂b"}`},
		"a half without its other stays": {[]string{textStart, `{"type":"text_delta","contentIndex":0,"delta":"\ud83d"}`, `{"type":"text_delta","contentIndex":0,"delta":"\ud83d"}`},
			`{"type":"text","text":"\ud83d\ud83d"}`},
		"characters that look like halves": {[]string{textStart, `{"type":"text_delta","contentIndex":0,"delta":"힣"}`, `{"type":"text_delta","contentIndex":0,"delta":"한"}`},
			`{"type":"text","text":"힣한"}`},
		"an end replaces": {[]string{textStart, `{"type":"text_delta","contentIndex":0,"delta":"a"}`, `{"type":"text_end","contentIndex":0,"content":"other","textSignature":"s"}`},
			`{"type":"text","text":"other","textSignature":"s"}`},
		"an end without a signature has none": {[]string{
			`{"type":"thinking_start","contentIndex":0,"block":{"type":"thinking","thinking":"a","thinkingSignature":"s","redacted":true}}`,
			`{"type":"thinking_end","contentIndex":0,"content":"b"}`},
			`{"type":"thinking","thinking":"b"}`},
		"blocks interleave": {[]string{textStart, `{"type":"thinking_start","contentIndex":1,"block":{"type":"thinking","thinking":""}}`,
			`{"type":"text_delta","contentIndex":0,"delta":"a"}`, `{"type":"thinking_delta","contentIndex":1,"delta":"b"}`,
			`{"type":"text_end","contentIndex":0,"content":"a"}`, `{"type":"thinking_end","contentIndex":1,"content":"b","redacted":true}`},
			`{"type":"text","text":"a"},{"type":"thinking","thinking":"b","redacted":true}`},
		"unfinished arguments are completed": {[]string{callStart, `{"type":"toolcall_delta","contentIndex":0,"delta":"{\"a\":[1,"}`, `{"type":"toolcall_delta","contentIndex":0,"delta":"\"x"}`},
			`{"type":"toolCall","id":"1","name":"n","arguments":{"a":[1,"x"]}}`},
		"arguments that say nothing yet": {[]string{callStart, `{"type":"toolcall_delta","contentIndex":0,"delta":" "}`},
			`{"type":"toolCall","id":"1","name":"n","arguments":{}}`},
		"arguments that are no object": {[]string{callStart, `{"type":"toolcall_delta","contentIndex":0,"delta":"[1"}`},
			`{"type":"toolCall","id":"1","name":"n","arguments":{}}`},
		"arguments of the start, no delta": {[]string{`{"type":"toolcall_start","contentIndex":0,"block":{"type":"toolCall","id":"1","name":"n","arguments":{"a":1}}}`},
			`{"type":"toolCall","id":"1","name":"n","arguments":{"a":1}}`},
		"a call's end": {[]string{callStart, `{"type":"toolcall_delta","contentIndex":0,"delta":"{\"a\":1"}`,
			`{"type":"toolcall_end","contentIndex":0,"id":"2","name":"m","arguments":{"a":1.0,"a":2},"thoughtSignature":"s","namespace":"ns"}`},
			`{"type":"toolCall","id":"2","name":"m","arguments":{"a":1.0,"a":2},"thoughtSignature":"s","namespace":"ns"}`},
		"unknown block members stay": {[]string{`{"type":"text_start","contentIndex":0,"block":{"z":1.0,"type":"text","text":"","thinking":true}}`,
			`{"type":"text_delta","contentIndex":0,"delta":"a"}`},
			`{"type":"text","text":"a","z":1.0,"thinking":true}`},
		"odd spellings": {[]string{`{"contentIndex":0,"block":{"type":"text"},"typ\u0065":"text\u005fstart","more":[]}`,
			` { "delta" : "a" , "type" : "text_delta" , "contentIndex" : 0e0 } `},
			`{"type":"text","text":"a"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok, err := Reduce(frames(tt.frames...))
			if want := withContent(t, tt.want); err != nil || !ok || string(got) != want {
				t.Errorf("Reduce = %s, %v, %v\nwant %s", got, ok, err, want)
			}
		})
	}
	if got, ok, err := Reduce(frames(`{}`)); got != nil || ok || !cmp.Equal(err, error(&FrameError{Seq: 1, Msg: `unknown type ""`})) {
		t.Errorf("a broken frame: %s, %v, %v", got, ok, err)
	}
	if got, ok, err := Reduce(nil); got != nil || ok || err != nil {
		t.Errorf("no frames: %s, %v, %v", got, ok, err)
	}
}

func TestReduceRefuses(t *testing.T) {
	const (
		textStart = `{"type":"text_start","contentIndex":0,"block":{"type":"text","text":""}}`
		textEnd   = `{"type":"text_end","contentIndex":0,"content":"a"}`
		callStart = `{"type":"toolcall_start","contentIndex":0,"block":{"type":"toolCall","id":"1","name":"n","arguments":{}}}`
	)
	start := string(frames()[0])
	tests := []struct {
		frames []string // the last one is refused
		want   string
	}{
		{[]string{textStart}, "a block before the start"},
		{[]string{`{"type":"text_delta","contentIndex":0,"delta":"a"}`}, "block 0 has not started"},
		{[]string{start, start}, "a second start"},
		{[]string{start, `{"type":"text_delta","contentIndex":0,"delta":"a"}`}, "block 0 has not started"},
		{[]string{start, textStart, `{"type":"text_delta","delta":"a"}`}, "block -1 has not started"},
		{[]string{start, textStart, textStart}, "block 0 has started before"},
		{[]string{start, `{"type":"text_start","contentIndex":1,"block":{"type":"text","text":""}}`}, "block 1 starts before block 0"},
		{[]string{start, `{"type":"text_start","contentIndex":0,"block":{"type":"thinking","thinking":""}}`}, `start of a text block with a block of type "thinking"`},
		{[]string{start, `{"type":"text_start","contentIndex":0}`}, "its block is not an object"},
		{[]string{start, textStart, `{"type":"thinking_delta","contentIndex":0,"delta":"a"}`}, "block 0 is a text block, not thinking"},
		{[]string{start, textStart, `{"type":"toolcall_end","contentIndex":0,"id":"1","name":"n","arguments":{}}`}, "block 0 is a text block, not toolCall"},
		{[]string{start, textStart, `{"type":"text_delta","contentIndex":0}`}, "its delta is not a string"},
		{[]string{start, textStart, `{"type":"text_delta","contentIndex":0,"delta":{}}`}, "its delta is not a string"},
		{[]string{start, textStart, `{"type":"text_end","contentIndex":0}`}, "its content is not a string"},
		{[]string{start, textStart, textEnd, `{"type":"text_delta","contentIndex":0,"delta":"a"}`}, "block 0 has ended before"},
		{[]string{start, textStart, textEnd, textEnd}, "block 0 has ended before"},
		{[]string{start, callStart, `{"type":"text_end","contentIndex":0,"content":"a"}`}, "block 0 is a toolCall block, not text"},
		{[]string{start, `{"type":"done"}`}, `unknown type "done"`},
		{[]string{start, `{"type":"ping"}`}, `unknown type "ping"`},
		{[]string{start, `{}`}, `unknown type ""`},
		{[]string{start, `[]`}, "it is not an object: expected an object"},
		{[]string{`{"type":"start"}`}, "start without an assistant message: message field role is not assistant"},
		{[]string{`{"type":"start","message":{"role":"user"}}`}, "start without an assistant message: message field role is not assistant"},
	}
	for _, tt := range tests {
		var r Reducer
		last := len(tt.frames) - 1
		for i, f := range tt.frames[:last] {
			if err := r.Add(int64(i), Frame(f)); err != nil {
				t.Fatalf("%v: %v", tt.frames, err)
			}
		}
		before, _ := r.Message()
		err := r.Add(41, Frame(tt.frames[last]))
		if diff := cmp.Diff(&FrameError{Seq: 41, Msg: tt.want}, err); diff != "" {
			t.Errorf("%s: %s", tt.frames[last], diff)
		}
		if got, want := err.Error(), "reduce frame 41: "+tt.want; got != want {
			t.Errorf("error %q, want %q", got, want)
		}
		if after, _ := r.Message(); string(after) != string(before) {
			t.Errorf("%s: the refused frame changed %s to %s", tt.frames[last], before, after)
		}
	}
}

func TestReducerKeepsNothingOfFrames(t *testing.T) {
	all := frames(`{"type":"toolcall_start","contentIndex":0,"block":{"type":"toolCall","id":"1","name":"n","arguments":{"a":1},"z":2}}`,
		`{"type":"text_start","contentIndex":1,"block":{"type":"text","text":""}}`,
		`{"type":"text_delta","contentIndex":1,"delta":"abc"}`,
		`{"type":"toolcall_end","contentIndex":0,"id":"1","name":"n","arguments":{"b":1}}`)
	want, _, err := Reduce(all)
	if err != nil {
		t.Fatal(err)
	}
	var r Reducer
	for i, f := range all {
		buf := append(Frame(nil), f...)
		if err := r.Add(int64(i), buf); err != nil {
			t.Fatal(err)
		}
		clear(buf)
	}
	if got, _ := r.Message(); string(got) != string(want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestReducerEvents(t *testing.T) {
	events := []StreamEvent{
		startEvent(),
		{Type: EventTextStart, Block: TextBlock("")},
		{Type: EventTextDelta, Delta: "a\xed\xa0\xbd"},
		{Type: EventTextDelta, Delta: "\xed\xb9\x82b"},
		{Type: EventToolCallStart, ContentIndex: 1, Block: Block{Type: BlockToolCall, ID: "1", Name: "n"}},
		{Type: EventToolCallDelta, ContentIndex: 1, Delta: `{"a":"b`},
		{Type: EventTextEnd, Block: Block{Type: BlockText, Text: "c", TextSignature: "s"}},
		{Type: EventToolCallEnd, ContentIndex: 1, Block: Block{Type: BlockToolCall, ID: "1", Name: "n", Arguments: json.RawMessage(`{"a":"bc"}`)}},
		{Type: EventDone, Reason: StopToolUse, Message: Message(`{}`)},
	}
	var live, stored Reducer
	if _, ok := live.Partial(); ok {
		t.Error("a partial before the start")
	}
	for i, ev := range events {
		if err := live.AddEvent(ev); err != nil {
			t.Fatal(err)
		}
		if f, ok := FrameOf(ev); ok {
			if err := stored.Add(int64(i), f); err != nil {
				t.Fatal(err)
			}
		}
		fromEvents, ok := live.Message()
		fromFrames, _ := stored.Message()
		if !ok || string(fromEvents) != string(fromFrames) {
			t.Errorf("event %d: live %s, stored %s", i, fromEvents, fromFrames)
		}
	}
	got, _ := live.Partial()
	want, err := ParseAssistant(Message(startMessage))
	if err != nil {
		t.Fatal(err)
	}
	want.Content = []Block{events[6].Block, events[7].Block}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReducerEventsRefused(t *testing.T) {
	tests := []struct {
		ev   StreamEvent
		want string
	}{
		{startEvent(), "a second start"},
		{StreamEvent{Type: "ping"}, `unknown type "ping"`},
		{StreamEvent{Type: EventTextDelta, ContentIndex: -1}, "block -1 has not started"},
		{StreamEvent{Type: EventTextStart, ContentIndex: 0}, `start of a text block with a block of type ""`},
		{StreamEvent{Type: EventTextEnd, ContentIndex: 0, Block: Block{Type: BlockThinking}}, `text_end with a block of type "thinking"`},
	}
	for _, tt := range tests {
		var r Reducer
		if err := r.AddEvent(startEvent()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&FrameError{Seq: 2, Msg: tt.want}, r.AddEvent(tt.ev)); diff != "" {
			t.Error(diff)
		}
	}
	// An answer that fails before it starts is no contradiction.
	var r Reducer
	if err := r.AddEvent(StreamEvent{Type: EventError, Reason: StopError}); err != nil {
		t.Error(err)
	}
}

// A reader's time must not grow with the square of the answer: the buffer of a
// block is moved a logarithmic number of times.
func TestReducerIsLinear(t *testing.T) {
	var r Reducer
	for i, f := range frames(`{"type":"text_start","contentIndex":0,"block":{"type":"text","text":""}}`) {
		if err := r.Add(int64(i), f); err != nil {
			t.Fatal(err)
		}
	}
	// Every boundary cuts a character, the worst case for joining.
	delta := Frame(`{"type":"text_delta","contentIndex":0,"delta":"\ude42 some more words \ud83d"}`)
	moves, capacity := 0, 0
	for i := range 20_000 {
		if err := r.Add(int64(i), delta); err != nil {
			t.Fatal(err)
		}
		if c := cap(r.blocks[0].text.last); c != capacity {
			moves, capacity = moves+1, c
		}
	}
	if moves > 60 {
		t.Errorf("the text moved %d times", moves)
	}
	a, _ := r.Partial()
	if want := 20_000*(len("🙂 some more words ")) + 2; len(a.Content[0].Text) != want {
		t.Errorf("text of %d bytes, want %d", len(a.Content[0].Text), want)
	}
}

func ExampleReduce() {
	m, _, err := Reduce([]Frame{
		Frame(`{"type":"start","message":{"role":"assistant","content":[],"stopReason":"pending"}}`),
		Frame(`{"type":"text_start","contentIndex":0,"block":{"type":"text","text":""}}`),
		Frame(`{"type":"text_delta","contentIndex":0,"delta":"Hel"}`),
		Frame(`{"type":"text_delta","contentIndex":0,"delta":"lo"}`),
	})
	fmt.Println(string(m), err)
	// Output: {"role":"assistant","content":[{"type":"text","text":"Hello"}],"stopReason":"pending"} <nil>
}
