package message

import (
	"strings"
	"testing"
)

var benchMessage = Assistant{
	Content: []Block{
		{Type: BlockThinking, Thinking: strings.Repeat("Let me see. ", 20), ThinkingSignature: strings.Repeat("c2ln", 20)},
		TextBlock(strings.Repeat("Some words of an answer, é 会話.\n", 10)),
		{Type: BlockToolCall, ID: "call_1", Name: "read", Arguments: []byte(`{"path":"a/b/c.go","offset":10}`)},
	},
	API: "messages", Provider: "anthropic", Model: "m", StopReason: StopToolUse,
	Usage: Usage{Input: 1000, Output: 100, TotalTokens: 1100}, Timestamp: 1733234567890,
}.Message()

func BenchmarkFrameOf(b *testing.B) {
	ev := StreamEvent{Type: EventTextDelta, ContentIndex: 1, Delta: strings.Repeat("some words ", 6)[:60]}
	b.ReportAllocs()
	for b.Loop() {
		FrameOf(ev)
	}
}

func BenchmarkReducerAdd(b *testing.B) {
	f, _ := FrameOf(StreamEvent{Type: EventTextDelta, Delta: strings.Repeat("some words ", 6)[:60]})
	var r Reducer
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		if i%10_000 == 0 {
			r = Reducer{}
			for _, f := range frames(`{"type":"text_start","contentIndex":0,"block":{"type":"text","text":""}}`) {
				_ = r.Add(0, f)
			}
		}
		if err := r.Add(i, f); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMessage(b *testing.B) {
	views := map[string]func(m Message){
		"Role":           func(m Message) { m.Role() },
		"Timestamp":      func(m Message) { m.Timestamp() },
		"StopReason":     func(m Message) { m.StopReason() },
		"Usage":          func(m Message) { m.Usage() },
		"Text":           func(m Message) { m.Text() },
		"Blocks":         func(m Message) { _, _ = m.Blocks() },
		"EstimateTokens": func(m Message) { EstimateTokens(m) },
		"Validate":       func(m Message) { _ = Validate(m) },
		"ParseAssistant": func(m Message) { _, _ = ParseAssistant(m) },
	}
	for name, view := range views {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(benchMessage)))
			b.ReportAllocs()
			for b.Loop() {
				view(benchMessage)
			}
		})
	}
}

func BenchmarkToProvider(b *testing.B) {
	var msgs []Message
	for range 100 {
		msgs = append(msgs, NewUser("hi", nil, 1), benchMessage, answers("call_1", "result"))
	}
	b.ReportAllocs()
	for b.Loop() {
		ToProvider(msgs)
	}
}

// The path of a streamed delta must stay cheap: one allocation to frame it,
// none to fold it in but for the buffer's growth.
func TestAllocations(t *testing.T) {
	ev := StreamEvent{Type: EventTextDelta, ContentIndex: 1, Delta: strings.Repeat("some \"words\"\n", 5)}
	if n := testing.AllocsPerRun(100, func() { FrameOf(ev) }); n != 1 {
		t.Errorf("FrameOf allocates %v times", n)
	}
	var r Reducer
	for _, f := range frames(`{"type":"text_start","contentIndex":0,"block":{"type":"text","text":""}}`) {
		if err := r.Add(0, f); err != nil {
			t.Fatal(err)
		}
	}
	r.blocks[0].text.last = make([]byte, 0, 1<<20)
	delta := Frame(`{"type":"text_delta","contentIndex":0,"delta":"some \"words\"\n"}`)
	if n := testing.AllocsPerRun(100, func() { _ = r.Add(0, delta) }); n != 0 {
		t.Errorf("Reducer.Add allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { benchMessage.Role(); benchMessage.Timestamp(); benchMessage.StopReason() }); n != 0 {
		t.Errorf("Role, Timestamp and StopReason allocate %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { EstimateTokens(benchMessage) }); n != 0 {
		t.Errorf("EstimateTokens allocates %v times", n)
	}
}
