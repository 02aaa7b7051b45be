package modeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
)

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="

func image() message.Block {
	return message.Block{Type: message.BlockImage, Data: pixel, MimeType: "image/png"}
}

// thinkingRequest asks for thinking.
func thinkingRequest(msgs ...message.Message) effect.Request {
	req := request(msgs...)
	req.Thinking, req.Wanted = message.ThinkingHigh, message.ThinkingHigh
	return req
}

// item is one block of a request.
type item struct {
	Role    message.Role
	CallID  string
	IsError bool
	Block   message.Block
}

// items flattens what was said; thinking keeps its signature.
func items(t *testing.T, k Kit, a Asked) []item {
	t.Helper()
	var all []item
	for _, s := range a.Said {
		for _, b := range s.Blocks {
			if b.Raw = nil; b.Type == message.BlockToolCall {
				b.Arguments = compact(t, b.Arguments)
			}
			all = append(all, item{s.Role, s.CallID, s.IsError && k.has(ErrorResults), b})
		}
	}
	return all
}

func user(text string) item { return item{Role: message.RoleUser, Block: message.TextBlock(text)} }

func result(id, text string, isError bool) message.Message {
	return message.NewToolResult(id, "ls", message.ToolResult{
		Content: []message.Block{message.TextBlock(text)}, IsError: isError, Details: []byte(`{"hidden":"detail"}`),
	}, now)
}

// assistant is an answer of the model under test, as it would be stored.
func (w *world) assistant(blocks ...message.Block) message.Message {
	return message.Assistant{
		Content: blocks, Provider: providerName, API: w.model.Info().API, Model: modelID,
		StopReason: message.StopStop, Timestamp: now,
	}.Message()
}

func call(id string) message.Block {
	return message.Block{Type: message.BlockToolCall, ID: id, Name: "ls", Arguments: []byte(`{"b":1.0,"a":"<&>"}`)}
}

// testRequest: everything that a request says is on the wire.
func testRequest(t *testing.T, k Kit) {
	w := newWorld(t, k)
	tools := []message.ToolSpec{
		{Name: "ls", Description: "List files.", Parameters: []byte(`{"type":"object","properties":{"b":{"type":"number","minimum":1e0},"a":{"type":"string"}},"required":["a"]}`)},
		{Name: "now", Description: "Tell the time.", Parameters: []byte(`{"type":"object","properties":{}}`)},
	}
	req := request(
		message.NewUser("first", nil, now),
		w.assistant(message.TextBlock("I look."), call("call_1"), call("call_2")),
		result("call_1", "one", false), result("call_2", "two", true),
		message.NewUser("second", nil, now),
	)
	req.Tools = tools
	if k.has(Temperature) {
		temperature := 0.25
		req.Options.Temperature = &temperature
	}
	w.sayTo(plain(), req)
	got := w.asked()
	want := Asked{Model: modelID, System: "Be brief.", Tools: tools, MaxTokens: 4321, Temperature: req.Options.Temperature, Stream: true}
	wantItems := []item{
		user("first"),
		{Role: message.RoleAssistant, Block: message.TextBlock("I look.")},
		{Role: message.RoleAssistant, Block: call("call_1")},
		{Role: message.RoleAssistant, Block: call("call_2")},
		{Role: message.RoleToolResult, CallID: "call_1", Block: message.TextBlock("one")},
		{Role: message.RoleToolResult, CallID: "call_2", IsError: k.has(ErrorResults), Block: message.TextBlock("two")},
		user("second"),
	}
	if diff := cmp.Diff(wantItems, items(t, k, got)); diff != "" {
		t.Error(diff)
	}
	got.Said = nil
	for i := range got.Tools {
		got.Tools[i].Parameters = compact(t, got.Tools[i].Parameters)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{key, "hidden", "timestamp"} {
		if bytes.Contains(w.body(), []byte(text)) {
			t.Errorf("%s is in the request: %s", text, w.body())
		}
	}
	bare := request()
	bare.SystemPrompt = ""
	w.sayTo(plain(), bare)
	if got := w.asked(); got.System != "" || len(got.Tools) != 0 || got.Temperature != nil {
		t.Errorf("a request without system prompt and tools has %+v", got)
	}
}

func testLevels(t *testing.T, k Kit) {
	k.need(t, Levels)
	w, words := newWorld(t, k), map[string]bool{}
	for _, level := range message.ThinkingLevels() {
		req := request()
		req.Thinking, req.Wanted = level, level
		w.sayTo(plain(), req)
		word := w.asked().Thinking
		if (word == "") != (level == message.ThinkingOff) {
			t.Errorf("level %s asks for thinking %q", level, word)
		}
		words[word] = true
	}
	if len(words) < 4 {
		t.Errorf("all levels together are %v", words)
	}
}

// testSignaturesGoBack: thinking that was signed is sent back as it came.
func testSignaturesGoBack(t *testing.T, k Kit) {
	k.need(t, Signatures)
	w := newWorld(t, k)
	s := script(message.StopToolUse).thinking("c2ln/+<&>==", "Let me", " think 🙂.")
	if k.has(Redacted) {
		s.redacted("b3BhcXVl")
	}
	s.text("I look.").call("call_1", "ls", "{}")
	first := w.sayTo(s.s, thinkingRequest())
	w.sayTo(plain(), thinkingRequest(message.NewUser("look", nil, now), first, result(first.ToolCalls()[0].ID, "one", false)))
	want := []item{user("look")}
	for _, b := range s.s.Blocks() {
		want = append(want, item{Role: message.RoleAssistant, Block: b})
	}
	want = append(want, item{Role: message.RoleToolResult, CallID: "call_1", Block: message.TextBlock("one")})
	if diff := cmp.Diff(want, items(t, k, w.asked())); diff != "" {
		t.Error(diff)
	}
}

// testForeignAnswers: signatures, made-up fields and odd ids of other providers
// and models do not reach this one.
func testForeignAnswers(t *testing.T, k Kit) {
	w := newWorld(t, k)
	const long = "call_|fc_0123456789/0123456789/0123456789/0123456789/0123456789/0123456789"
	for name, change := range map[string]func(a *message.Assistant){
		"provider": func(a *message.Assistant) { a.Provider, a.API = "other", "other-api" },
		"model":    func(a *message.Assistant) { a.Model = "other-model" },
	} {
		a := parse(t, w.assistant(
			message.Block{Type: message.BlockThinking, Thinking: "hidden thoughts", ThinkingSignature: "foreign-sig"},
			message.Block{Type: message.BlockThinking, Redacted: true, ThinkingSignature: "foreign-sig-2"},
			message.Block{Type: message.BlockText, Text: "I look.", TextSignature: "foreign-sig-3"},
			message.Block{Type: message.BlockText, Raw: []byte(`{"type":"text","text":"Again.","vendorField":1}`)},
			message.Block{Type: message.BlockToolCall, ID: long, Name: "ls", Arguments: []byte("{}"), ThoughtSignature: "foreign-sig-4"},
		))
		change(&a)
		m := a.Message()
		w.sayTo(plain(), thinkingRequest(message.NewUser("look", nil, now), m, result(long, "one", false)))
		for _, text := range []string{"foreign-sig", "vendorField"} {
			if bytes.Contains(w.body(), []byte(text)) {
				t.Errorf("another %s: the request holds %s: %s", name, text, w.body())
			}
		}
		checkPairs(t, w.asked())
		for _, text := range []string{"I look.", "Again.", `"one"`} {
			if !bytes.Contains(w.body(), []byte(text)) {
				t.Errorf("another %s: the request lost %s: %s", name, text, w.body())
			}
		}
	}
}

// checkPairs is the strict double of a server: every call has one result, right
// behind the assistant's turn, and no result lacks its call.
func checkPairs(t *testing.T, a Asked) {
	t.Helper()
	var open []string
	seen := map[string]bool{}
	for _, s := range a.Said {
		switch {
		case s.Role == message.RoleToolResult:
			at := slices.Index(open, s.CallID)
			if at < 0 {
				t.Errorf("result %q without its call", s.CallID)
				continue
			}
			open = slices.Delete(open, at, at+1)
		case len(open) > 0 && s.Role == message.RoleUser:
			t.Errorf("calls %v without a result before %+v", open, s.Blocks)
			open = nil
		}
		for _, b := range s.Blocks {
			if b.Type != message.BlockToolCall {
				continue
			}
			if seen[b.ID] || b.ID == "" {
				t.Errorf("call id %q is not unique", b.ID)
			}
			seen[b.ID] = true
			open = append(open, b.ID)
		}
	}
	if len(open) > 0 {
		t.Errorf("calls %v without a result", open)
	}
}

// testHealing: history that lost calls or results is sent in pairs.
func testHealing(t *testing.T, k Kit) {
	w := newWorld(t, k)
	for name, msgs := range map[string][]message.Message{
		"no result":        {message.NewUser("a", nil, now), w.assistant(call("x"), call("y")), result("x", "1", false), message.NewUser("b", nil, now)},
		"no call":          {message.NewUser("a", nil, now), result("z", "1", false), w.assistant(message.TextBlock("t")), result("z", "2", false), message.NewUser("b", nil, now)},
		"user between":     {message.NewUser("a", nil, now), w.assistant(call("x")), message.NewUser("b", nil, now), result("x", "1", false)},
		"the same id":      {message.NewUser("a", nil, now), w.assistant(call("x")), result("x", "1", false), w.assistant(call("x")), result("x", "2", false)},
		"aborted in calls": {message.NewUser("a", nil, now), w.assistant(call("x"))},
	} {
		w.sayTo(plain(), request(msgs...))
		t.Log(name)
		checkPairs(t, w.asked())
	}
}

// testImages: images of users and of tools reach the model.
func testImages(t *testing.T, k Kit) {
	w := newWorld(t, k)
	w.sayTo(plain(), request(
		message.NewUser("what is this", []message.Block{image()}, now),
		w.assistant(call("call_1"), call("call_2")),
		message.NewToolResult("call_1", "ls", message.ToolResult{Content: []message.Block{message.TextBlock("see"), image()}}, now),
		message.NewToolResult("call_2", "ls", message.ToolResult{Content: []message.Block{image()}}, now),
		message.NewUser("and now", nil, now),
	))
	checkPairs(t, w.asked())
	var seen []string
	for _, it := range items(t, k, w.asked()) {
		if it.Block.Type == message.BlockImage {
			if diff := cmp.Diff(image(), it.Block); diff != "" {
				t.Error(diff)
			}
			seen = append(seen, strings.TrimSpace(fmt.Sprintf("%s %s", it.Role, it.CallID)))
		}
	}
	want := []string{"user", "toolResult call_1", "toolResult call_2"}
	if !k.has(ToolResultImages) {
		want = []string{"user", "user", "user"}
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
}

// testOldContent: what old sessions hold reaches the server as it can take it.
func testOldContent(t *testing.T, k Kit) {
	w := newWorld(t, k)
	w.sayTo(plain(), request(
		message.Message(`{"role":"user","content":"as a string","timestamp":1}`),
		w.assistant(message.TextBlock(""), message.Block{Type: message.BlockThinking, Thinking: ""}, message.TextBlock("half \xed\xa0\xbd")),
		message.Message(`{"role":"user","content":[{"type":"text","text":""},{"type":"future","x":1},{"type":"text","text":"more"}],"timestamp":1}`),
		w.assistant(message.Block{Type: message.BlockThinking, Thinking: "only thoughts, unsigned"}),
		message.NewUser("end", nil, now),
	))
	var texts []string
	for _, it := range items(t, k, w.asked()) {
		if it.Block.Type == message.BlockText && it.Block.Text == "" {
			t.Errorf("an empty text is sent by %s", it.Role)
		}
		if it.Role == message.RoleUser {
			texts = append(texts, it.Block.Text)
		}
	}
	if diff := cmp.Diff([]string{"as a string", "more", "end"}, texts); diff != "" {
		t.Error(diff)
	}
	for _, s := range w.asked().Said {
		if len(s.Blocks) == 0 {
			t.Errorf("a message of %s says nothing", s.Role)
		}
	}
}

func testHooks(t *testing.T, k Kit) {
	w := newWorld(t, k)
	var meta message.ResponseMetadata
	req := request()
	req.OnResponse = func(m message.ResponseMetadata) { meta = m }
	req.Payload = func(_ context.Context, body json.RawMessage) (json.RawMessage, error) {
		return bytes.Replace(body, []byte("say something"), []byte("say nothing"), 1), nil
	}
	w.sayTo(plain(), req)
	if got := items(t, k, w.asked()); !cmp.Equal([]item{user("say nothing")}, got) {
		t.Errorf("the hook's body is not what was sent: %+v", got)
	}
	if meta.Status != 200 || meta.Headers["request-id"] != "req_1" {
		t.Errorf("metadata %+v", meta)
	}
	before := w.requests()
	req.Payload = func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return nil, errors.New("the hook failed")
	}
	m := w.ask(t.Context(), req)
	if m.StopReason() != message.StopError || !strings.Contains(m.ErrorMessage(), "the hook failed") || w.requests() != before {
		t.Errorf("a failing hook gives %s after %d requests", m, w.requests()-before)
	}
	w.will(refuses(503, nil, k.Refuse(503, "later")))
	req.Payload = nil
	w.ask(t.Context(), req)
	if meta.Status != 503 {
		t.Errorf("metadata of a refusal %+v", meta)
	}
}

func testHeaders(t *testing.T, k Kit) {
	w := newWorld(t, k)
	w.say(plain())
	r := w.heads[0]
	if r.Method != http.MethodPost || r.URL.Path != k.Path || r.Header.Get("X-Team") != "drovers" ||
		!strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		t.Errorf("%s %s %v", r.Method, r.URL.Path, r.Header)
	}
	if got := k.Key(r.Header); got != key {
		t.Errorf("key %q", got)
	}
	if strings.Contains(r.URL.String(), key) {
		t.Errorf("the key is in the address %s", r.URL)
	}
}

// testKeys: the key is asked for when a request is made, and its failure is told.
func testKeys(t *testing.T, k Kit) {
	w, asked := newWorld(t, k), 0
	e := w.endpoint(w.server.Client())
	e.Key = func(context.Context) (string, error) {
		if asked++; asked == 2 {
			return "", errors.New("the vault is closed")
		}
		return fmt.Sprintf("sk-%d", asked), nil
	}
	m := w.resolve(k.New(e))
	w.will(sends(k.Render(plain())...))
	if asked != 0 {
		t.Errorf("the key was read before a request")
	}
	end(t, m.Stream(t.Context(), request()))
	failed := end(t, m.Stream(t.Context(), request()))
	end(t, m.Stream(t.Context(), request()))
	if got := []string{k.Key(w.heads[0].Header), k.Key(w.heads[1].Header)}; !cmp.Equal([]string{"sk-1", "sk-3"}, got) || len(w.heads) != 2 {
		t.Errorf("keys %v in %d requests", got, len(w.heads))
	}
	if failed.StopReason() != message.StopError || message.IsRetryable(failed) || !strings.Contains(failed.ErrorMessage(), "the vault is closed") {
		t.Errorf("without its key a request ends as %s", failed)
	}
}

func testUnusable(t *testing.T, k Kit) {
	p := k.New(model.Endpoint{Provider: providerName, Unusable: "ACME_API_KEY is not set", Models: catalogue{}})
	_, err := p.Resolve(modelID)
	unknown, ok := errors.AsType[*effect.UnknownModel](err)
	if !ok || unknown.Reason != "ACME_API_KEY is not set" {
		t.Errorf("Resolve = %v", err)
	}
	if diff := cmp.Diff([]string{modelID}, p.Models()); diff != "" {
		t.Error(diff)
	}
}
