package modeltest

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/message"
)

// checkAnswer checks all that a message says of a script.
func checkAnswer(t *testing.T, k Kit, s Script, m message.Message) {
	t.Helper()
	a, err := message.ParseAssistant(m)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(neutral(t, s.Blocks()), blocks(t, k, m)); diff != "" {
		t.Error(diff)
	}
	u := s.Usage
	if u.TotalTokens == 0 {
		u.TotalTokens = u.Input + u.Output + u.CacheRead + u.CacheWrite
	}
	if a.Usage.Reasoning != nil && s.Usage.Reasoning == nil && *a.Usage.Reasoning == 0 {
		a.Usage.Reasoning = nil // said to be 0
	}
	if a.Usage.CacheWrite1h != nil && *a.Usage.CacheWrite1h == 0 {
		a.Usage.CacheWrite1h = nil
	}
	u.Cost = prices.Cost(u)
	want := message.Assistant{
		Provider: providerName, API: a.API, Model: modelID, ResponseModel: s.Model, ResponseID: s.ID,
		Usage: u, StopReason: s.Stop, RawStopReason: a.RawStopReason, Timestamp: now,
	}
	a.Content = nil
	if diff := cmp.Diff(want, a); diff != "" {
		t.Error(diff)
	}
}

func testText(t *testing.T, k Kit) {
	w := newWorld(t, k)
	m := w.say(plain())
	checkAnswer(t, k, plain(), m)
	info := w.model.Info()
	if api := info.API; api == "" || api != parse(t, m).API {
		t.Errorf("the model's interface is %q, the answer's %q", api, parse(t, m).API)
	}
	if want := (message.ModelRef{Provider: providerName, ModelID: modelID}); info.Ref != want ||
		info.ContextWindow != 200_000 || info.MaxTokens != 32_000 || len(info.Thinking) == 0 {
		t.Errorf("info %+v", info)
	}
}

func parse(t *testing.T, m message.Message) message.Assistant {
	t.Helper()
	a, err := message.ParseAssistant(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func testFull(t *testing.T, k Kit) {
	s := full(k)
	checkAnswer(t, k, s, newWorld(t, k).sayTo(s, thinkingRequest()))
}

func testRedacted(t *testing.T, k Kit) {
	k.need(t, Redacted)
	s := script(message.StopStop).redacted("b3BhcXVl").text("so").s
	checkAnswer(t, k, s, newWorld(t, k).sayTo(s, thinkingRequest()))
}

// testInterleavedCalls: parallel calls may grow side by side.
func testInterleavedCalls(t *testing.T, k Kit) {
	w := script(message.StopToolUse)
	a := w.open(callStep("call_a", "ls"), "")
	b := w.open(callStep("call_b", "ls"), "")
	w.step(Delta, a, `{"p":`).step(Delta, b, `{"q"`).step(Delta, a, `"1"}`).step(Delta, b, `: [2]}`)
	w.step(Close, a, "").step(Close, b, "")
	checkAnswer(t, k, w.s, newWorld(t, k).say(w.s))
}

func testInterleavedBlocks(t *testing.T, k Kit) {
	k.need(t, SeveralBlocks)
	w := script(message.StopToolUse)
	a := w.open(textStep, "")
	b := w.open(textStep, "")
	c := w.open(callStep("call_c", "ls"), "")
	w.step(Delta, b, "second").step(Delta, a, "first").step(Delta, c, "{").step(Delta, b, "!").step(Delta, c, "}").step(Delta, a, "?")
	w.step(Close, b, "").step(Close, c, "").step(Close, a, "")
	// A block opens when it has content: the order is that of the first words.
	got := newWorld(t, k).say(w.s)
	want := map[string]bool{"first?": true, "second!": true}
	for _, block := range blocks(t, k, got) {
		if block.Type == message.BlockText && !want[block.Text] {
			t.Errorf("text %q", block.Text)
		}
		delete(want, block.Text)
	}
	if len(want) > 0 || len(got.ToolCalls()) != 1 {
		t.Errorf("content %s", content(got))
	}
}

func testEmptyDeltas(t *testing.T, k Kit) {
	s := script(message.StopToolUse).text("", "a", "", "b", "").call("c1", "ls", "", "{}", "").s
	checkAnswer(t, k, s, newWorld(t, k).say(s))
	s = script(message.StopToolUse).call("c1", "ls").s
	checkAnswer(t, k, s, newWorld(t, k).say(s))
	s = script(message.StopStop).s
	m := newWorld(t, k).say(s)
	if content(m) != "[]" || m.StopReason() != message.StopStop {
		t.Errorf("an answer without a word is %s", m)
	}
}

// testBrokenArguments: what can be read of arguments that are no JSON counts.
func testBrokenArguments(t *testing.T, k Kit) {
	for text, want := range map[string]string{
		`{"path":"/tm`: `{"path":"/tm"}`, `null`: `{}`, `nonsense`: `{}`, `{"a":1}}`: `{"a":1}`,
		` {"k" : "\ud83d", "k": 1e2} `: `{"k":"\ud83d","k":1e2}`,
	} {
		calls := newWorld(t, k).say(script(message.StopToolUse).call("c1", "ls", text).s).ToolCalls()
		if len(calls) != 1 || string(compact(t, calls[0].Arguments)) != want {
			t.Errorf("arguments %s are %+v, want %s", text, calls, want)
		}
	}
}

func testUsage(t *testing.T, k Kit) {
	reasoning := int64(40)
	for name, u := range map[string]message.Usage{
		"caches":    {Input: 100, Output: 50, CacheRead: 2000, CacheWrite: 300},
		"reasoning": {Input: 100, Output: 50, Reasoning: &reasoning},
		"much":      {Input: 199_999, Output: 32_000, CacheRead: 1},
	} {
		if !k.has(CacheReads) {
			u.CacheRead = 0
		}
		if !k.has(CacheWrites) {
			u.CacheWrite = 0
		}
		if !k.has(Reasoning) {
			u.Reasoning = nil
		}
		t.Run(name, func(t *testing.T) {
			s := plain()
			s.Usage = u
			checkAnswer(t, k, s, newWorld(t, k).say(s))
		})
	}
}

func testStops(t *testing.T, k Kit) {
	for _, stop := range []message.StopReason{message.StopStop, message.StopLength} {
		s := script(stop).text("so").s
		checkAnswer(t, k, s, newWorld(t, k).say(s))
	}
	cut := script(message.StopLength).call("c1", "ls", `{"path":"/t`).s
	if m := newWorld(t, k).say(cut); m.StopReason() != message.StopLength || len(m.ToolCalls()) != 1 {
		t.Errorf("a call that the limit cut is %s", m)
	}
	for _, stop := range k.Stops {
		t.Run(stop.Raw, func(t *testing.T) {
			s := script(message.StopStop).text("so").s
			s.RawStop = stop.Raw
			m := newWorld(t, k).say(s)
			if m.StopReason() != stop.Want || parse(t, m).RawStopReason != stop.Raw {
				t.Errorf("%s became %s, want %s", stop.Raw, m, stop.Want)
			}
			if stop.Want == message.StopError && (message.IsRetryable(m) || m.ErrorMessage() == "" || !message.ProviderError(m).Known) {
				t.Errorf("error %s", m)
			}
		})
	}
}

// testSplitCharacters: a character cut in two is whole again in the answer, and
// half a one is kept.
func testSplitCharacters(t *testing.T, k Kit) {
	const high, low = "\xed\xa0\xbd", "\xed\xb9\x82" // of 🙂
	s := script(message.StopToolUse).text("a"+high, low+"b", "é"+high, "!").call("c1", "ls", `{"p":"`+high, low+`"}`).s
	m := newWorld(t, k).say(s)
	want := []message.Block{
		{Type: message.BlockText, Text: "a🙂bé" + high + "!"},
		{Type: message.BlockToolCall, ID: "c1", Name: "ls", Arguments: []byte(`{"p":"🙂"}`)},
	}
	if diff := cmp.Diff(want, blocks(t, k, m)); diff != "" {
		t.Error(diff)
	}
}

// testParallel: lanes ask one model at the same time.
func testParallel(t *testing.T, k Kit) {
	w := newWorld(t, k)
	w.will(sends(k.Render(plain())...))
	var wg sync.WaitGroup
	texts := make([]string, 8)
	for i := range texts {
		wg.Go(func() {
			for ev := range w.model.Stream(t.Context(), request()) {
				texts[i] = ev.Final().Text()
			}
		})
	}
	wg.Wait()
	for i, text := range texts {
		if text != "Hello there" {
			t.Errorf("answer %d is %q", i, text)
		}
	}
}

// testHuge: a long answer takes a number of copies of it, and no work that grows
// with what came before: of 1,000 deltas that would be hundreds of copies (D41).
func testHuge(t *testing.T, k Kit) {
	size := 50 << 20
	if k.Brief {
		size = 4 << 20
	}
	const copies = 40
	w, s := newWorld(t, k), script(message.StopStop)
	deltas := make([]string, size>>12)
	for i := range deltas {
		deltas[i] = strings.Repeat("0123456789abcde\n", 1<<8)
	}
	events := k.Render(s.text(deltas...).s)
	w.will(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		for _, ev := range events {
			_, _ = io.WriteString(rw, ev) // what a client that is gone does not get is lost
		}
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var m message.Message
	for ev := range w.model.Stream(t.Context(), request()) {
		m = ev.Final()
	}
	runtime.ReadMemStats(&after)
	if got := len(m.Text()); got != size || m.StopReason() != message.StopStop {
		t.Fatalf("%d bytes became %d, %s", size, got, m.StopReason())
	}
	took := float64(after.TotalAlloc-before.TotalAlloc) / float64(size)
	t.Logf("%d bytes take %.1f copies", size, took)
	if took > copies {
		t.Errorf("more than %d", copies)
	}
}
