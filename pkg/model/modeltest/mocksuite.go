package modeltest

import (
	"context"
	_ "embed"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model/transport"
)

//go:embed mockanswers.json
var mockAnswers []byte

// RunMock asks the mock server what a provider must make an answer of, whoever
// wrote the server. It is skipped where there is none.
func RunMock(t *testing.T, k Kit) {
	m := StartMock(t, mockAnswers)
	for _, tt := range []struct {
		name string
		test func(*testing.T, *mockWorld)
	}{
		{"Text", testMockText},
		{"Thinking", testMockThinking},
		{"Calls", testMockCalls},
		{"Refusals", testMockRefusals},
		{"Cut", testMockCut},
		{"Aborted", testMockAborted},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.test(t, newMockWorld(t, k, m)) })
	}
}

// mockWorld is a provider that talks to the mock server.
type mockWorld struct {
	world
	mock *Mock
}

func newMockWorld(t *testing.T, k Kit, m *Mock) *mockWorld {
	t.Helper()
	w := &mockWorld{world{t: t, kit: k}, m}
	client, err := transport.New(transport.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	w.model = w.resolve(k.New(endpointAt(m.URL, client, map[string]string{"X-Test-Id": t.Name()})))
	return w
}

func says(text string) message.Message { return message.NewUser(text, nil, now) }

func testMockText(t *testing.T, w *mockWorld) {
	m := w.ask(t.Context(), request(says("greet")))
	a := parse(t, m)
	if got := m.Text(); got != "Grüße, 会話 🙂🙃 – done" || a.StopReason != message.StopStop {
		t.Errorf("the answer is %s", m)
	}
	if a.Usage.Input != 11 || a.Usage.Output != 7 || a.Usage.Cost.Total == 0 {
		t.Errorf("usage %+v", a.Usage)
	}
	if a.ResponseModel != "test-model-2026" || a.ResponseID == "" {
		t.Errorf("the answer does not say who gave it: %s", m)
	}
}

// testMockThinking: thinking goes back with its signature, without which the server
// takes no result of a call.
func testMockThinking(t *testing.T, w *mockWorld) {
	w.kit.need(t, Thinking)
	m := w.ask(t.Context(), thinkingRequest(says("think")))
	want := []message.Block{
		{Type: message.BlockThinking, Thinking: "Let me 🙂 think."}, message.TextBlock("I will look."),
		{Type: message.BlockToolCall, ID: "call_a", Name: "ls", Arguments: []byte(`{"path":"/tmp"}`)},
	}
	if diff := cmp.Diff(want, blocks(t, w.kit, m)); diff != "" {
		t.Fatal(diff)
	}
	done := w.ask(t.Context(), thinkingRequest(says("think"), m, result(m.ToolCalls()[0].ID, "one", false)))
	if done.Text() != "So it is." {
		t.Errorf("the answer to the result is %s", done)
	}
	w.mock.Requests(t, t.Name())
}

func testMockCalls(t *testing.T, w *mockWorld) {
	m := w.ask(t.Context(), request(says("look")))
	want := []message.Block{
		message.TextBlock("I will look."),
		{Type: message.BlockToolCall, ID: "call_a", Name: "ls", Arguments: []byte(`{"path":"/tmp","of":"🙂"}`)},
		{Type: message.BlockToolCall, ID: "call_b", Name: "cat", Arguments: []byte(`{"n":1.5,"deep":{"list":[1,null,"x"]}}`)},
	}
	got := slices.DeleteFunc(blocks(t, w.kit, m), func(b message.Block) bool {
		return b.Type == message.BlockThinking // which the server adds as it likes
	})
	if diff := cmp.Diff(want, got); diff != "" || m.StopReason() != message.StopToolUse {
		t.Errorf("%s: %s", m.StopReason(), diff)
	}
	calls := m.ToolCalls()
	if len(calls) != 2 {
		t.FailNow()
	}
	done := w.ask(t.Context(), request(says("look"), m, result(calls[0].ID, "one", false), result(calls[1].ID, "it broke", true)))
	if done.Text() != "I have seen it." {
		t.Errorf("the answer to the results is %s", done)
	}
	results := 0
	for _, r := range w.mock.Requests(t, t.Name()) {
		for _, said := range r.Messages {
			if said.Role == "tool" {
				results++
			}
		}
	}
	if results != 2 {
		t.Errorf("the server saw %d results", results)
	}
}

func testMockRefusals(t *testing.T, w *mockWorld) {
	for _, tt := range []struct {
		asked, says, class string
		status             int
		after              int64
	}{
		{"no key", "this key is unknown", message.ClassAuth, 401, 0},
		{"much", "slow down", message.ClassRateLimit, 429, 7000},
		{"busy", "overloaded", message.ClassOverloaded, 529, 0},
		{"long", "prompt is too long", message.ClassOverflow, 400, 0},
	} {
		m := w.ask(t.Context(), request(says(tt.asked)))
		checkFailure(t, m, tt.status, tt.class)
		if got := message.ProviderError(m).RetryAfterMs; got != tt.after || !strings.Contains(m.ErrorMessage(), tt.says) {
			t.Errorf("%s: after %d ms, want %d: %s", tt.asked, got, tt.after, m.ErrorMessage())
		}
	}
	if n := len(w.mock.Requests(t, t.Name())); n != 4 {
		t.Errorf("%d requests, want 4: attempts are the engine's to make", n)
	}
}

func testMockCut(t *testing.T, w *mockWorld) {
	m := w.ask(t.Context(), request(says("cut")))
	checkFailure(t, m, 0, message.ClassNetwork)
	if !strings.HasPrefix(m.Text(), "Once upon") {
		t.Errorf("what came before the cut is %q", m.Text())
	}
}

func testMockAborted(t *testing.T, w *mockWorld) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last message.StreamEvent
	for ev := range w.model.Stream(ctx, request(says("hang"))) {
		if last = ev; ev.Type == message.EventTextDelta {
			cancel()
		}
	}
	if last.Reason != message.StopAborted || !strings.HasPrefix(last.Final().Text(), "Once") {
		t.Errorf("an abort ends with %s %s", last.Type, last.Final())
	}
}
