package message

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/rawjson"
)

// FuzzMessageViews asks every view of anything.
func FuzzMessageViews(f *testing.F) {
	f.Add([]byte(odd))
	f.Add([]byte(`{"role":"assistant","content":[{"type":"toolCall","id":"","arguments":"x"}],"diagnostics":[{"type":"provider_error","status":1e9}]}`))
	f.Add([]byte(`{"role":"user","content":"\ud83d\\","timestamp":1e400}`))
	f.Add([]byte(`{"role":"system","sections":{"a":"\u0000"}}`))
	f.Add([]byte(`{"role":"bashExecution","command":5,"exitCode":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := Message(data)
		m.Timestamp()
		m.StopReason()
		m.ErrorMessage()
		m.Usage()
		m.Text()
		m.ToolCalls()
		blocks, err := m.Blocks()
		_, _ = ParseAssistant(m)
		if got := EstimateTokens(m); got < 0 || got > int64(len(data))+1200*int64(len(blocks)) {
			t.Errorf("estimate %d", got)
		}
		ProviderError(m)
		IsOverflow(m, 10, 10)
		IsRetryable(m)
		valid := Validate(m) == nil
		if valid && (err != nil || rawjson.Valid(data) != nil) {
			t.Errorf("valid, but Blocks says %v", err)
		}
		for _, p := range ToProvider([]Message{m, m}) {
			if rawjson.Valid(p) != nil {
				t.Errorf("projected to %s", p)
			}
		}
		n, err := Normalize(data, 7)
		if (err == nil) != (valid && utf8.Valid(data)) {
			t.Errorf("valid is %v, Normalize says %v", valid, err)
		}
		if err == nil && Validate(n) != nil {
			t.Errorf("normalized to %s", n)
		}
	})
}

// FuzzReducer folds whatever frames the bytes hold, one a line.
func FuzzReducer(f *testing.F) {
	start := string(frames()[0])
	f.Add([]byte(start + "\n" + `{"type":"text_start","contentIndex":0,"block":{"type":"text","text":"","x":1}}` + "\n" +
		`{"type":"text_delta","contentIndex":0,"delta":"\ud83d"}` + "\n" + `{"type":"text_end","contentIndex":0,"content":"a"}`))
	f.Add([]byte(start + "\n" + `{"type":"toolcall_start","contentIndex":0,"block":{"type":"toolCall","arguments":[]}}` + "\n" +
		`{"type":"toolcall_delta","contentIndex":0,"delta":"{\"a\":tr"}` + "\n" + `{"type":"toolcall_end","contentIndex":0,"arguments":7}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var r Reducer
		for i, line := range splitLines(data) {
			before, _ := r.Message()
			err := r.Add(int64(i), Frame(line))
			after, ok := r.Message()
			if err != nil && string(before) != string(after) {
				t.Errorf("a refused frame changed %s to %s", before, after)
			}
			if ok && rawjson.Valid(after) != nil {
				t.Errorf("reduced to %s", after)
			}
		}
	})
}

func splitLines(data []byte) (lines [][]byte) {
	start := 0
	for i, c := range data {
		if c == '\n' {
			lines = append(lines, data[start:i])
			start = i + 1
		}
	}
	return append(lines, data[start:])
}

// FuzzStream streams a message in random pieces, cut between any two UTF-16
// units and with its blocks interleaved; the frames add up to the message at
// the end, and to a valid one at every moment before.
func FuzzStream(f *testing.F) {
	f.Add("Hello 🙂 \x00 wörld", "hm 🙂🙂", `{"path":"🙂","n":[1.0,{"x":null}]}`, uint64(1))
	f.Add("\xed\xa0\xbd\xed\xb9\x82", "\xed\xb9\x82", `{}`, uint64(2))
	f.Add("0", "0", "{} ", uint64(129))
	f.Fuzz(func(t *testing.T, text, thinking, arguments string, seed uint64) {
		// Pass the text through JSON once: what is no WTF-8 has no frame of its own.
		text, thinking = wtf8(text), wtf8(thinking)
		if rawjson.KindOf([]byte(arguments)) != rawjson.Object || rawjson.Valid([]byte(arguments)) != nil || !utf8.ValidString(arguments) {
			arguments = `{"a":"🙂"}`
		}
		// White space around a value is no part of it: a frame does not keep it.
		arguments = strings.Trim(arguments, " \t\r\n")
		want := []Block{
			{Type: BlockText, Text: text, TextSignature: "s"},
			{Type: BlockThinking, Thinking: thinking, ThinkingSignature: "s2", Redacted: seed%2 == 0},
			{Type: BlockToolCall, ID: "1", Name: "n", Arguments: json.RawMessage(arguments), Namespace: "x"},
		}
		rng := rand.New(rand.NewPCG(seed, 0))
		for _, ends := range []bool{true, false} {
			checkStream(t, want, rng, ends)
		}
	})
}

func checkStream(t *testing.T, want []Block, rng *rand.Rand, ends bool) {
	t.Helper()
	var live, stored Reducer
	for i, ev := range streamOf(want, rng, ends) {
		frame, ok := FrameOf(ev)
		if !ok || rawjson.Valid(frame) != nil {
			t.Fatalf("frame %s", frame)
		}
		if err := stored.Add(int64(i), frame); err != nil {
			t.Fatal(err)
		}
		if err := live.AddEvent(ev); err != nil {
			t.Fatal(err)
		}
		m, _ := stored.Message()
		l, _ := live.Message()
		if rawjson.Valid(m) != nil || string(m) != string(l) {
			t.Fatalf("stored %s\nlive %s", m, l)
		}
	}
	m, _ := stored.Message()
	got, err := m.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i].Raw = nil
		if !ends { // signatures come with the ends
			want[i] = Block{Type: want[i].Type, Text: want[i].Text, Thinking: want[i].Thinking, ID: want[i].ID, Name: want[i].Name, Arguments: want[i].Arguments}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func wtf8(s string) string {
	out, _ := rawjson.Unquote(rawjson.Quote(s))
	return out
}

// streamOf spells blocks as the events of a stream; with ends, the deltas are
// corrected by them.
func streamOf(blocks []Block, rng *rand.Rand, ends bool) []StreamEvent {
	types := map[BlockType][3]EventType{
		BlockText:     {EventTextStart, EventTextDelta, EventTextEnd},
		BlockThinking: {EventThinkingStart, EventThinkingDelta, EventThinkingEnd},
		BlockToolCall: {EventToolCallStart, EventToolCallDelta, EventToolCallEnd},
	}
	events := []StreamEvent{startEvent()}
	queues := make([][]StreamEvent, len(blocks))
	for i, b := range blocks {
		opened := Block{Type: b.Type, ID: b.ID, Name: b.Name}
		events = append(events, StreamEvent{Type: types[b.Type][0], ContentIndex: i, Block: opened})
		for _, piece := range cut(b.Text+b.Thinking+string(b.Arguments), rng) {
			queues[i] = append(queues[i], StreamEvent{Type: types[b.Type][1], ContentIndex: i, Delta: piece})
		}
		if ends {
			queues[i] = append(queues[i], StreamEvent{Type: types[b.Type][2], ContentIndex: i, Block: b})
		}
	}
	for {
		i, left := rng.IntN(len(queues)), 0
		for _, q := range queues {
			left += len(q)
		}
		if left == 0 {
			return events
		}
		if len(queues[i]) > 0 {
			events, queues[i] = append(events, queues[i][0]), queues[i][1:]
		}
	}
}

// cut splits WTF-8 text at random places, also between the two halves of a
// character beyond the basic plane.
func cut(s string, rng *rand.Rand) (pieces []string) {
	piece := ""
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1: // the first byte of a lone half
			n = 3
			piece += s[i : i+n]
		case r > 0xFFFF && rng.IntN(2) == 0:
			high, low := 0xD800+(r-0x10000)>>10, 0xDC00+(r-0x10000)&0x3FF
			pieces = append(pieces, piece+half(high))
			piece = half(low)
		default:
			piece += s[i : i+n]
		}
		i += n
		if rng.IntN(3) == 0 {
			pieces = append(pieces, piece)
			piece = ""
		}
	}
	return append(pieces, piece)
}

func half(r rune) string {
	return string([]byte{0xE0 | byte(r>>12), 0x80 | byte(r>>6)&0x3F, 0x80 | byte(r)&0x3F})
}
