package message

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"
)

func TestEstimateTokens(t *testing.T) {
	tests := []struct {
		in   string
		want int64
	}{
		{`{"role":"user","content":""}`, 0},
		{`{"role":"user","content":"a"}`, 1},
		{`{"role":"user","content":"abcd"}`, 1},
		{`{"role":"user","content":"abcde"}`, 2},
		{`{"role":"user","content":"\u0061\n\"\ud83d\ude42"}`, 2}, // a, newline, quote, two halves
		{`{"role":"user","content":"🙂🙂é"}`, 2},
		{`{"role":"user","content":[{"type":"text","text":"abc"},{"type":"text","text":"de"}]}`, 2},
		{`{"role":"user","content":[{"type":"image","data":"QQ==","mimeType":"image/png"}]}`, 1200},
		{`{"role":"assistant","content":[{"type":"thinking","thinking":"abcd","thinkingSignature":"long long long"},{"type":"text","text":"abcd"}]}`, 2},
		{`{"role":"assistant","content":[{"type":"toolCall","id":"ignored","name":"read","arguments":{"a":"b"}}]}`, 4}, // read{"a":"b"}
		{`{"role":"assistant","content":null}`, 0},
		{`{"role":"toolResult","content":[{"type":"text","text":"abcd"}],"details":{"not":"counted"}}`, 1},
		{`{"role":"custom","content":"abcd"}`, 1},
		{`{"role":"system","content":"abcd","sections":{"x":"abcd","y":null}}`, 2},
		{`{"role":"bashExecution","command":"abcd","output":"abcd"}`, 2},
		{`{"role":"branchSummary","summary":"abcd"}`, 1},
		{`{"role":"compactionSummary","summary":"abcde"}`, 2},
		{`{`, 0},
	}
	for _, tt := range tests {
		if got := EstimateTokens(Message(tt.in)); got != tt.want {
			t.Errorf("EstimateTokens(%s) = %d, want %d", tt.in, got, tt.want)
		}
	}
}

func TestEstimateCountsUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		units := len(utf16.Encode([]rune(s)))
		want := int64(units+3) / 4
		if got := EstimateTokens(NewUser(s, nil, 0)); got != want {
			t.Fatalf("%q: %d, want %d", s, got, want)
		}
	})
}

func TestContextTokens(t *testing.T) {
	user := `{"role":"user","content":"` + strings.Repeat("a", 40) + `","timestamp":1}` // 10 tokens
	answer := func(stop string, usage string, timestamp int) string {
		return fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"%s"}],"usage":%s,"stopReason":"%s","timestamp":%d}`,
			strings.Repeat("a", 20), usage, stop, timestamp) // 5 tokens
	}
	const total = `{"input":1,"output":2,"totalTokens":100}`
	tests := map[string]struct {
		msgs []string
		want int64
	}{
		"nothing":                  {nil, 0},
		"estimates alone":          {[]string{user, user}, 20},
		"the figure and the rest":  {[]string{user, answer("stop", total, 2), user}, 110},
		"the newest figure":        {[]string{answer("stop", total, 2), answer("toolUse", `{"totalTokens":200}`, 3)}, 200},
		"the sum without a total":  {[]string{answer("length", `{"input":1,"output":2,"cacheRead":3,"cacheWrite":4}`, 2)}, 10},
		"not of errors":            {[]string{answer("stop", total, 2), answer("error", `{"totalTokens":900}`, 3), user}, 115},
		"not of aborted answers":   {[]string{answer("aborted", `{"totalTokens":900}`, 3), user}, 15},
		"not of a figure of zero":  {[]string{answer("stop", total, 2), answer("deferred", `{"input":0}`, 3), user}, 115},
		"not without usage":        {[]string{answer("stop", `null`, 3), user}, 15},
		"not older than a summary": {[]string{`{"role":"compactionSummary","summary":"abcd","timestamp":10}`, user, answer("stop", total, 9), user}, 26},
		"newer than a summary":     {[]string{`{"role":"compactionSummary","summary":"abcd","timestamp":10}`, user, answer("stop", total, 10), user}, 110},
	}
	for name, tt := range tests {
		var msgs []Message
		for _, m := range tt.msgs {
			msgs = append(msgs, Message(m))
		}
		if got := ContextTokens(msgs); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
