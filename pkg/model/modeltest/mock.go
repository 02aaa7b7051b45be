package modeltest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// MockVariable names the variable with the path of the mock server's program. What
// needs that server is skipped without it; `make test-mock` installs it and sets
// the variable.
const MockVariable = "DROVER_TEST_MOCK"

// Mock is a running server of @copilotkit/aimock, which speaks the vendors'
// interfaces as others have understood them.
type Mock struct {
	URL string // without a path
}

// StartMock starts the mock server on a port of its own, with answers in its own
// format, and ends it with the test. It refuses what no answer is for. Answers that follow one another are counted
// for each test id, which requests carry in the header X-Test-Id.
func StartMock(t *testing.T, answers []byte) *Mock {
	t.Helper()
	program := os.Getenv(MockVariable)
	if program == "" {
		t.Skip("make test-mock runs it")
	}
	path := filepath.Join(t.TempDir(), "answers.json")
	if err := os.WriteFile(path, answers, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", program, "--port", "0", "--host", "127.0.0.1", "--fixtures", path, "--validate-on-load", "--strict")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var said strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fmt.Fprintln(&said, lines.Text())
		if _, address, ok := strings.Cut(lines.Text(), "listening on "); ok {
			go func() { _, _ = io.Copy(io.Discard, out) }() // it goes on talking
			return &Mock{URL: strings.TrimSpace(address)}
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // then stderr is complete
	t.Fatalf("the mock server did not start\n%s%s", said.String(), stderr.String())
	return nil
}

// MockRequest is a request as the mock server understood it, which brings all
// interfaces into the form of Chat Completions.
type MockRequest struct {
	Status   int // what it was answered with
	Messages []ChatMessage
}

// ChatMessage is what calls and results are found by in a message of Chat
// Completions.
type ChatMessage struct {
	Role       string
	Content    json.RawMessage
	ToolCalls  []ChatCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
}

// ChatCall is a call in a ChatMessage.
type ChatCall struct {
	ID       string
	Function struct{ Name string }
}

// Requests are those with that test id, the first one first. A test fails whose
// requests have calls without results or results without calls.
func (m *Mock) Requests(t *testing.T, testID string) []MockRequest {
	t.Helper()
	res, err := http.Get(m.URL + "/__aimock/journal?testId=" + url.QueryEscape(testID))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var entries []struct {
		Body     struct{ Messages []ChatMessage }
		Response struct{ Status int }
	}
	if err := json.NewDecoder(res.Body).Decode(&entries); err != nil {
		t.Fatal(err)
	}
	var all []MockRequest
	for i, e := range entries {
		all = append(all, MockRequest{e.Response.Status, e.Body.Messages})
		if why := Unpaired(e.Body.Messages); why != "" {
			t.Errorf("request %d: %s", i, why)
		}
	}
	return all
}

// Unpaired says which call has no result directly after its message, or which
// result no call, "" when all have. Of calls that were made side by side some
// interfaces send one after the other.
func Unpaired(messages []ChatMessage) string {
	var open []string
	for i, m := range messages {
		switch {
		case m.Role == "tool":
			at := slices.Index(open, m.ToolCallID)
			if at < 0 {
				return fmt.Sprintf("message %d is the result of %q, which nobody called for", i, m.ToolCallID)
			}
			open = slices.Delete(open, at, at+1)
		case len(m.ToolCalls) == 0 && len(open) > 0:
			return fmt.Sprintf("message %d comes before the results of %q", i, open)
		}
		for _, c := range m.ToolCalls {
			if c.ID == "" || c.Function.Name == "" {
				return fmt.Sprintf("message %d has a call without id or name", i)
			}
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("the calls %q have no result", open)
	}
	return ""
}
