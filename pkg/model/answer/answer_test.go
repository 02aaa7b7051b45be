package answer_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
	"github.com/drover-run/drover/pkg/model/answer"
)

func TestEvents(t *testing.T) {
	tests := []struct {
		name string
		run  func(b *answer.Builder)
		want []string
	}{
		{"text", func(b *answer.Builder) {
			b.Start("r1", "m1-2026")
			k := b.Text()
			k.Add("Hi")
			k.Add("")
			k.Add(" there")
			b.Done(message.StopStop, "end_turn")
		}, []string{
			`start pending []`, `text_start 0 {"type":"text","text":""}`, `text_delta 0 "Hi"`, `text_delta 0 " there"`,
			`text_end 0 {"type":"text","text":"Hi there"}`,
			`done stop [{"type":"text","text":"Hi there"}] raw=end_turn`,
		}},
		{"blocks that stay empty", func(b *answer.Builder) {
			b.Text().Add("")
			k := b.Thinking()
			k.Add("")
			k.End()
			b.Done(message.StopStop, "")
		}, []string{`start pending []`, `done stop []`}},
		{"signed thinking without words, redacted thinking", func(b *answer.Builder) {
			b.Thinking().Sign("sig")
			b.Redacted("opaque")
			b.Done(message.StopStop, "")
		}, []string{
			`start pending []`, `thinking_start 0 {"type":"thinking","thinking":""}`,
			`thinking_start 1 {"type":"thinking","thinking":"","thinkingSignature":"opaque","redacted":true}`,
			`thinking_end 1 {"type":"thinking","thinking":"","thinkingSignature":"opaque","redacted":true}`,
			`thinking_end 0 {"type":"thinking","thinking":"","thinkingSignature":"sig"}`,
			`done stop [{"type":"thinking","thinking":"","thinkingSignature":"sig"},` +
				`{"type":"thinking","thinking":"","thinkingSignature":"opaque","redacted":true}]`,
		}},
		{"interleaved calls", func(b *answer.Builder) {
			x, y := b.ToolCall("c1", "ls"), b.ToolCall("", "")
			y.Add(`{"a"`)
			x.Add(`{ }`)
			y.Name("c2", "cat")
			y.Add(`:1.0}`)
			x.Sign("s")
			b.Done(message.StopStop, "tool_calls")
		}, []string{
			`start pending []`,
			`toolcall_start 0 {"type":"toolCall","id":"c1","name":"ls","arguments":{}}`,
			`toolcall_start 1 {"type":"toolCall","id":"call_abcdef012345_2","name":"","arguments":{}}`,
			`toolcall_delta 1 "{\"a\""`, `toolcall_delta 0 "{ }"`, `toolcall_delta 1 ":1.0}"`,
			`toolcall_end 0 {"type":"toolCall","id":"c1","name":"ls","arguments":{ },"thoughtSignature":"s"}`,
			`toolcall_end 1 {"type":"toolCall","id":"c2","name":"cat","arguments":{"a":1.0}}`,
			`done toolUse [{"type":"toolCall","id":"c1","name":"ls","arguments":{ },"thoughtSignature":"s"},` +
				`{"type":"toolCall","id":"c2","name":"cat","arguments":{"a":1.0}}] raw=tool_calls`,
		}},
		{"the end corrects the deltas", func(b *answer.Builder) {
			k := b.Text()
			k.Add("helo")
			k.EndWith("hello")
			k.Add("late")
			b.Text().EndWith("all at once")
			b.Done(message.StopToolUse, "")
		}, []string{
			`start pending []`, `text_start 0 {"type":"text","text":""}`, `text_delta 0 "helo"`, `text_end 0 {"type":"text","text":"hello"}`,
			`text_start 1 {"type":"text","text":""}`, `text_delta 1 "all at once"`, `text_end 1 {"type":"text","text":"all at once"}`,
			`done stop [{"type":"text","text":"hello"},{"type":"text","text":"all at once"}]`,
		}},
		{"characters split over deltas", func(b *answer.Builder) {
			k := b.Text()
			k.AddRaw([]byte(`"a\ud83d"`))
			k.AddRaw([]byte(`"\ude42b"`))
			k.Add("\xe2\x82")
			k.Add("\xac")
			k.AddRaw([]byte(`"\ud83d"`))
			k.AddRaw([]byte(`17`))
			b.Done(message.StopStop, "")
		}, []string{
			`start pending []`, `text_start 0 {"type":"text","text":""}`, `text_delta 0 "a"`, `text_delta 0 "🙂b"`, `text_delta 0 "€"`,
			`text_delta 0 "\xed\xa0\xbd"`, `text_end 0 {"type":"text","text":"a🙂b€\ud83d"}`,
			`done stop [{"type":"text","text":"a🙂b€\ud83d"}]`,
		}},
		{"deferred", func(b *answer.Builder) {
			b.Deferred(message.DeferredHandle{Raw: []byte(`{"id" : "j"}`)})
		}, []string{`done deferred [] {"id" : "j"}`}},
		{"cut", func(b *answer.Builder) {
			b.Thinking().Add("hm")
			k := b.ToolCall("c", "ls")
			k.Add(`{"path":"/t`)
			k.Name("", "late")
		}, []string{
			`start pending []`, `thinking_start 0 {"type":"thinking","thinking":""}`, `thinking_delta 0 "hm"`,
			`toolcall_start 1 {"type":"toolCall","id":"c","name":"ls","arguments":{}}`, `toolcall_delta 1 "{\"path\":\"/t"`,
			`error error [{"type":"thinking","thinking":"hm"},{"type":"toolCall","id":"c","name":"ls","arguments":{"path":"/t"}}] ` +
				`"acme/m1 at api.acme.test: the stream ended early" [{"type":"provider_error","class":"network"}]`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ask(t, func(_ context.Context, b *answer.Builder) error { tt.run(b); return nil })
			if diff := cmp.Diff(tt.want, lines(t, got)); diff != "" {
				t.Error(diff)
			}
			checkFrames(t, got)
		})
	}
}

func TestArguments(t *testing.T) {
	for text, want := range map[string]string{
		``:                      `{}`,
		`null`:                  `{}`,
		`[1]`:                   `{}`,
		`"{}"`:                  `{}`,
		` {"a" : 1e3, "a": 2} `: `{"a" : 1e3, "a": 2}`,
		`{"a":"x`:               `{"a":"x"}`,
		`{"a":[1,{"b":tru`:      `{"a":[1,{}]}`,
		`{"a":1}}`:              `{"a":1}`,
		`ls -l`:                 `{}`,
	} {
		var got string
		for _, ev := range ask(t, func(_ context.Context, b *answer.Builder) error {
			b.ToolCall("c", "x").Add(text)
			b.Done(message.StopToolUse, "")
			return nil
		}) {
			if ev.Type == message.EventToolCallEnd {
				got = string(ev.Block.Arguments)
			}
		}
		if got != want {
			t.Errorf("arguments %q = %s, want %s", text, got, want)
		}
	}
}

func TestAnswerIsDescribed(t *testing.T) {
	reasoning := int64(3)
	var meta message.ResponseMetadata
	req := request()
	req.OnResponse = func(m message.ResponseMetadata) { meta = m }
	events := collect(answer.Stream(t.Context(), req, base(), func(_ context.Context, b *answer.Builder) error {
		b.Response(200, http.Header{"X-Id": {"1", "2"}, "Set-Cookie": {"secret"}})
		b.Start("", "m1")
		b.Usage(message.Usage{Input: -4})
		b.Start("resp_1", "m1-2026")
		b.Usage(message.Usage{Input: 1e6, Output: 10, CacheRead: 20, CacheWrite: 30, Reasoning: &reasoning})
		b.Done(message.StopLength, "max_tokens")
		return errors.New("what follows the end does not count")
	}))
	got, err := message.ParseAssistant(events[len(events)-1].Final())
	if err != nil {
		t.Fatal(err)
	}
	want := message.Assistant{
		API: "acme-api", Provider: "acme", Model: "m1", ResponseModel: "m1-2026", ResponseID: "resp_1",
		Usage: message.Usage{
			Input: 1e6, Output: 10, CacheRead: 20, CacheWrite: 30, Reasoning: &reasoning, TotalTokens: 1e6 + 60,
			Cost: message.Cost{Input: 1, Output: 0.0001, CacheRead: 0.000002, CacheWrite: 0.00006, Total: 1.000162},
		},
		StopReason: message.StopLength, RawStopReason: "max_tokens", Timestamp: 1700000000000,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(message.ResponseMetadata{Status: 200, Headers: map[string]string{"x-id": "1, 2"}}, meta); diff != "" {
		t.Error(diff)
	}
}

func TestPayloadHook(t *testing.T) {
	req := request()
	req.Payload = func(_ context.Context, body json.RawMessage) (json.RawMessage, error) {
		if string(body) == "bad" {
			return nil, errors.New("hook says no")
		}
		return append(body, '!'), nil
	}
	var got []byte
	events := collect(answer.Stream(t.Context(), req, base(), func(ctx context.Context, b *answer.Builder) (err error) {
		if got, err = b.Body(ctx, []byte("body")); err != nil {
			return err
		}
		_, err = b.Body(ctx, []byte("bad"))
		return err
	}))
	if string(got) != "body!" {
		t.Errorf("body = %s", got)
	}
	if text := events[0].Final().ErrorMessage(); !strings.Contains(text, "hook says no") {
		t.Errorf("error = %s", text)
	}
}

func TestAborted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	events := collect(answer.Stream(ctx, request(), base(), func(ctx context.Context, b *answer.Builder) error {
		b.Text().Add("so far")
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}))
	want := []string{
		`start pending []`, `text_start 0 {"type":"text","text":""}`, `text_delta 0 "so far"`,
		`error aborted [{"type":"text","text":"so far"}] "the request was aborted"`,
	}
	if diff := cmp.Diff(want, lines(t, events)); diff != "" {
		t.Error(diff)
	}
	events = collect(answer.Stream(ctx, request(), base(), func(context.Context, *answer.Builder) error {
		t.Error("a cancelled request was made")
		return nil
	}))
	if diff := cmp.Diff([]string{`error aborted [] "the request was aborted"`}, lines(t, events)); diff != "" {
		t.Error(diff)
	}
}

// TestConsumerStops: its stop ends run's context, and nothing follows.
func TestConsumerStops(t *testing.T) {
	ended := 0
	events := answer.Stream(t.Context(), request(), base(), func(ctx context.Context, b *answer.Builder) error {
		k := b.Text()
		k.Add("one")
		if ctx.Err() != nil {
			ended++
		}
		k.Add("two")
		b.Done(message.StopStop, "")
		return nil
	})
	for stop := 1; stop <= 3; stop++ {
		seen := 0
		for range events {
			if seen++; seen == stop {
				break
			}
		}
		if seen != stop || ended != stop {
			t.Errorf("%d events, %d runs ended; want %d", seen, ended, stop)
		}
	}
}

func TestKey(t *testing.T) {
	e := model.Endpoint{Key: func(context.Context) (string, error) { return "sk-secret", nil }}
	events := ask(t, func(ctx context.Context, b *answer.Builder) error {
		key, err := b.Key(ctx, e)
		if key != "sk-secret" || err != nil {
			t.Errorf("Key = %q, %v", key, err)
		}
		if key, err := b.Key(ctx, model.Endpoint{}); key != "" || err != nil {
			t.Errorf("no Key = %q, %v", key, err)
		}
		return answer.Refused(401, nil, []byte(`{"error":{"message":"wrong key sk-secret","type":"authentication_error"}}`))
	})
	want := []string{`error error [] "acme/m1 at api.acme.test answered 401: authentication_error: wrong key [redacted]" ` +
		`[{"type":"provider_error","status":401,"class":"auth"}]`}
	if diff := cmp.Diff(want, lines(t, events)); diff != "" {
		t.Error(diff)
	}
	e.Key = func(context.Context) (string, error) { return "", errors.New("the command failed") }
	events = ask(t, func(ctx context.Context, b *answer.Builder) error {
		_, err := b.Key(ctx, e)
		return err
	})
	want = []string{`error error [] "acme/m1 at api.acme.test: the key cannot be read: the command failed" [{"type":"provider_error","class":"auth"}]`}
	if diff := cmp.Diff(want, lines(t, events)); diff != "" {
		t.Error(diff)
	}
}

// TestNoKeyIsCutOff: a server's words may end, for us, in the middle of the key
// that they repeat.
func TestNoKeyIsCutOff(t *testing.T) {
	const key = "sk-secret"
	for at := 1980; at < 2010; at++ {
		for _, word := range []string{key, "plain"} {
			m := ask(t, func(_ context.Context, b *answer.Builder) error {
				b.Secret(key)
				return answer.Refused(401, nil, []byte(`{"message":"`+strings.Repeat("x", at)+word+` was refused"}`))
			})[0].Final()
			if text := m.ErrorMessage(); strings.Contains(text, "sk-s") || word == "plain" && strings.Contains(text, "redacted") {
				t.Errorf("at %d: %s", at, text[len(text)-40:])
			}
		}
	}
}

// TestHugeAnswer: memory follows the answer's length, whatever the number of its
// deltas: its own copy, the one in the end frame, and the encoded message (D41).
func TestHugeAnswer(t *testing.T) {
	const size, delta = 16 << 20, 16
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range answer.Stream(t.Context(), request(), base(), func(_ context.Context, b *answer.Builder) error {
		k, piece := b.Text(), strings.Repeat("x", delta)
		for range size / delta {
			k.Add(piece)
		}
		b.Done(message.StopStop, "")
		return nil
	}) {
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 4*size {
		t.Errorf("an answer of %d bytes took %d", size, got)
	}
}

// TestTheEndIsMadeAgain: the message of an end is the same whenever it is made, also of
// an answer that was cut off in a block.
func TestTheEndIsMadeAgain(t *testing.T) {
	for _, done := range []bool{true, false} {
		var last message.StreamEvent
		for ev := range answer.Stream(t.Context(), effect.Request{}, answer.Base{Provider: "p", Model: "m"}, func(_ context.Context, b *answer.Builder) error {
			b.Thinking().Add("hm")
			b.Text().Add("so far")
			b.ToolCall("c1", "bash").Add(`{"command":"ls`)
			if done {
				b.Done(message.StopToolUse, "")
			}
			return nil
		}) {
			last = ev
		}
		first := last.Final()
		if got := last.Final(); string(got) != string(first) {
			t.Errorf("made again: %s, first: %s", got, first)
		}
		for _, want := range []string{`"thinking":"hm"`, `"text":"so far"`, `"arguments":{"command":"ls"}`} {
			if !strings.Contains(string(first), want) {
				t.Errorf("done %v: %s lacks %s", done, first, want)
			}
		}
	}
}

// TestUsageThatCannotBe: counts that nobody can have used do not come into the ledger,
// where they would spoil every sum.
func TestUsageThatCannotBe(t *testing.T) {
	most, below := int64(math.MaxInt64), int64(-5)
	var last message.StreamEvent
	for ev := range answer.Stream(t.Context(), effect.Request{}, answer.Base{Provider: "p", Model: "m"}, func(_ context.Context, b *answer.Builder) error {
		b.Usage(message.Usage{Input: 7, Output: most, CacheRead: below, Reasoning: &most, TotalTokens: most})
		b.Done(message.StopStop, "")
		return nil
	}) {
		last = ev
	}
	raw, _ := last.Final().Get("usage")
	u, err := message.ParseUsage(raw)
	if err != nil || u.Input != 7 || u.Output != 0 || u.CacheRead != 0 || *u.Reasoning != 0 || u.TotalTokens != 7 {
		t.Errorf("%s, %v", raw, err)
	}
}
