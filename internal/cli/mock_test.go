package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/model/modeltest"
)

// mockWorld is a session whose model is the mock server that others wrote.
type mockWorld struct {
	*vendorWorld
	mock *modeltest.Mock
}

// TestMock drives the whole command line against that server, once for each interface:
// what the vendors' SDKs send is judged by somebody else's reading of their manuals.
func TestMock(t *testing.T) {
	answers, err := os.ReadFile(filepath.Join("testdata", "mock.json"))
	if err != nil {
		t.Fatal(err)
	}
	mock := modeltest.StartMock(t, answers)
	for i, api := range vendorInterfaces() {
		for _, tt := range []struct {
			name string
			test func(*testing.T, mockWorld)
		}{
			{"tools", mockTools}, {"kill", mockKill}, {"abort", mockAbort},
			{"overloaded", mockOverloaded}, {"overflow", mockOverflow},
		} {
			t.Run(api.name+"/"+tt.name, func(t *testing.T) {
				w := mockWorld{newVendorWorld(t, api, []string{"sqlite", "jsonl"}[i%2], mock.URL), mock}
				tt.test(t, w)
				w.must(t, exitOK, "verify", w.session)
			})
		}
	}
}

// answered are the statuses of the requests so far. Each had its calls and results
// together.
func (w mockWorld) answered(t *testing.T, want ...int) []modeltest.MockRequest {
	t.Helper()
	var got []int
	requests := w.mock.Requests(t, t.Name())
	for _, r := range requests {
		got = append(got, r.Status)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the requests were answered with %v, want %v", got, want)
	}
	return requests
}

func (w mockWorld) conversation(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, w.said(t)); diff != "" {
		t.Errorf("the conversation differs:\n%s", diff)
	}
}

func mockTools(t *testing.T, w mockWorld) {
	result := w.must(t, exitOK, "prompt", w.session, "look around", "--thinking", "high", "--json")
	assertField(t, result, "text", "It is 42. 🙂")
	assertField(t, result, "usage.input", "230")
	assertField(t, result, "usage.output", "25")
	w.conversation(t, "user look around", "toolUse Looking.", "toolResult seen 42", "stop It is 42. 🙂")
	w.answered(t, 200, 200)
}

// mockKill: killed in the middle of a stream, after a tool has run, a prompt is driven
// on to its end, and the tool does not run again.
func mockKill(t *testing.T, w mockWorld) {
	w.speaking(t, "Once upon", "prompt", w.session, "tell me").kill(t)
	if text := w.must(t, exitOK, "drive", w.session, "--wait-retry"); !strings.HasSuffix(text, "And here is the whole story.") {
		t.Errorf("driven on, it says %q", text)
	}
	// What was seen need not have been durable yet.
	said := w.said(t)
	if len(said) != 5 {
		t.Fatalf("the conversation is %q", said)
	}
	kept, failed := strings.CutPrefix(said[3], "error")
	if whole := " Once upon a time there was a process"; !failed || !strings.HasPrefix(whole, kept) && !strings.HasPrefix(kept, whole) {
		t.Errorf("the conversation is %q", said)
	}
	if ran, err := os.ReadFile(filepath.Join(w.repo, "ran")); string(ran) != "ran\n" {
		t.Errorf("the tool left %q: %v", ran, err)
	}
	requests := w.answered(t, 200, 200, 200)
	if diff := cmp.Diff(requests[1], requests[2]); diff != "" {
		t.Errorf("what was asked again differs:\n%s", diff)
	}
}

func mockAbort(t *testing.T, w mockWorld) {
	p := w.speaking(t, "Once upon", "prompt", w.session, "take your time")
	w.must(t, exitOK, "abort", w.session)
	if got := p.code(t); exitCode(got) != exitAborted {
		t.Errorf("the aborted prompt ends with %d\n%s", got, p.stderr.String())
	}
	if text := w.must(t, exitOK, "prompt", w.session, "something else"); text != "Gladly." {
		t.Errorf("the next answer is %q", text)
	}
	if said := w.said(t); len(said) != 4 || !strings.HasPrefix(said[1], "aborted Once upon") {
		t.Errorf("the conversation is %q", said)
	}
	w.answered(t, 200, 200)
}

func mockOverloaded(t *testing.T, w mockWorld) {
	if text := w.must(t, exitOK, "prompt", w.session, "are you there"); text != "Now I am." {
		t.Errorf("the answer is %q", text)
	}
	w.conversation(t, "user are you there", "error", "stop Now I am.")
	assertField(t, w.must(t, exitOK, "show", w.session, "--json"), "entries.1.message.diagnostics.0.status", "529")
	w.answered(t, 529, 200)
}

func mockOverflow(t *testing.T, w mockWorld) {
	w.must(t, exitOK, "prompt", w.session, "a long story")
	if text := w.must(t, exitOK, "prompt", w.session, "and its end"); text != "It fits." {
		t.Errorf("the answer is %q", text)
	}
	w.conversation(t, "user a long story", "stop So much was said.", "user and its end", "error", "compaction The notes say all of it.", "stop It fits.")
	requests := w.answered(t, 200, 400, 200, 200)
	last := ""
	for _, m := range requests[3].Messages {
		last += string(m.Content)
	}
	if !strings.Contains(last, "The notes say") || !strings.Contains(last, "and its end") || strings.Contains(last, "So much") {
		t.Errorf("after the compaction the request says %s", last)
	}
}
