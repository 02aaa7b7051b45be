package message

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIsOverflowMessage(t *testing.T) {
	for _, text := range []string{
		"prompt is too long: 213462 tokens > 200000 maximum",
		`413 {"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`,
		"Input is too long for requested model.",
		"Your input exceeds the context window of this model. Please adjust your input and try again.",
		"Requested token count exceeds the model's maximum context length of 131072 tokens.",
		"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
		"This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
		"Please reduce the length of the messages or completion.",
		"This endpoint's maximum context length is 200000 tokens. However, you requested more.",
		"The prompt (9000 tokens) is longer than the model's context length (8192 tokens).",
		"The prompt is longer than the model’s context length",
		"prompt token count of 140000 exceeds the limit of 128000",
		"the request exceeds the available context size, try increasing it",
		"tokens to keep from the initial prompt is greater than the context length",
		"invalid params, context window exceeds limit",
		"Your request exceeded model token limit: 262144",
		"error code: context_length_exceeded",
		"Context length exceeded",
		"stop reason model_context_window_exceeded",
		"too many tokens in the prompt",
		"Token limit exceeded",
		"400 status code (no body)",
		"413 (no body)",
		"413",
	} {
		for _, spelled := range []string{text, strings.ToUpper(text)} {
			if !IsOverflowMessage(spelled) {
				t.Errorf("not an overflow: %s", spelled)
			}
		}
	}
	for _, text := range []string{
		"", "400 bad request", "4001 (no body)", "429 status code (no body)",
		"ThrottlingException: Too many tokens, please wait before trying again.",
		"Rate limit reached: maximum context length is 5 tokens", "503 service unavailable: prompt is too long", "Too Many Requests: token limit exceeded",
		"maximum prompt length is unknown", "maximum context length is 5 words", "the maximum context length exceeds expectations",
		"exceeds the limit of patience",
	} {
		if IsOverflowMessage(text) {
			t.Errorf("an overflow: %s", text)
		}
	}
}

func TestIsRetryableMessage(t *testing.T) {
	for _, text := range []string{
		"Overloaded", `{"type":"overloaded_error"}`, "rate limit reached", "rate_limit_error", "Too many requests",
		"429 too many", "HTTP 500", "error 502: upstream", "503", "(504)", "524 a timeout occurred", "Service Unavailable",
		"Internal error encountered", "internal server error", "server_error", "Provider returned error",
		"connect: connection refused", "read: connection reset by peer", "connection lost", "read ECONNRESET",
		"lookup api.example.com: no such host", "getaddrinfo EAI_AGAIN", "DNS lookup failed",
		"request timed out", "i/o timeout", "context deadline exceeded", "stream ended before the answer was complete", "unexpected EOF",
		"HTTP/2 stream got no response", "You can retry your request", "ResourceExhausted", "RESOURCE_EXHAUSTED",
	} {
		if !IsRetryableMessage(text) {
			t.Errorf("not retryable: %s", text)
		}
	}
	for _, text := range []string{
		"", "something else", "max_tokens must be below 15003", "1429 things",
		"429 You exceeded your current quota", "429 insufficient_quota", "billing hard limit reached: 429", "usage limit reached, rate limit",
		"usage-limit: 429", "authentication_error: timeout", "permission denied: server error", "invalid request: timeout must be positive",
		"invalid_request_error: 500", "your credit balance is too low (429)",
	} {
		if IsRetryableMessage(text) {
			t.Errorf("retryable: %s", text)
		}
	}
}

func errorMessage(text string, e *ErrorInfo) Message {
	a := Assistant{StopReason: StopError, ErrorMessage: text}
	if e != nil {
		a.Diagnostics = AppendProviderError(nil, *e)
	}
	return a.Message()
}

func TestProviderError(t *testing.T) {
	if got := ProviderError(errorMessage("x", nil)); got != (ErrorInfo{}) {
		t.Errorf("no note: %v", got)
	}
	first := ErrorInfo{Status: 429, Class: ClassRateLimit, RetryAfterMs: 1500}
	diagnostics := AppendProviderError(json.RawMessage(` [ {"type":"clamped","x":1.0} ] `), first)
	want := `[{"type":"clamped","x":1.0},{"type":"provider_error","status":429,"class":"rate_limit","retryAfterMs":1500}]`
	if string(diagnostics) != want {
		t.Errorf("AppendProviderError = %s, want %s", diagnostics, want)
	}
	a := Assistant{StopReason: StopError, Diagnostics: diagnostics}
	first.Known = true
	if diff := cmp.Diff(first, ProviderError(a.Message())); diff != "" {
		t.Error(diff)
	}
	a.Diagnostics = AppendProviderError(diagnostics, ErrorInfo{})
	if diff := cmp.Diff(ErrorInfo{Known: true}, ProviderError(a.Message())); diff != "" {
		t.Errorf("the newest note: %s", diff)
	}
	for _, bad := range []string{``, `{}`, `[1`, `null`} {
		if got := AppendProviderError(json.RawMessage(bad), ErrorInfo{}); string(got) != `[{"type":"provider_error"}]` {
			t.Errorf("AppendProviderError(%s) = %s", bad, got)
		}
	}
}

// What a poll failed of passes by the same rule, with the words of the note.
func TestPasses(t *testing.T) {
	for _, tt := range []struct {
		info ErrorInfo
		want bool
	}{
		{ErrorInfo{Status: 429, Class: ClassRateLimit}, true},
		{ErrorInfo{Status: 503, Class: ClassServer}, true},
		{ErrorInfo{Class: ClassNetwork, Text: "no such host"}, true},
		{ErrorInfo{Class: ClassTimeout}, true},
		{ErrorInfo{Status: 401, Class: ClassAuth, Text: "overloaded"}, false},
		{ErrorInfo{Status: 403, Class: ClassPermission}, false},
		{ErrorInfo{Status: 429, Class: ClassQuota}, false},
		{ErrorInfo{Class: ClassInvalidRequest, Text: "certificate"}, false},
		{ErrorInfo{Status: 429, Text: "slow down"}, true},
		{ErrorInfo{Text: "connection refused"}, true},
		{ErrorInfo{}, false},
	} {
		if got := tt.info.Passes(); got != tt.want {
			t.Errorf("%+v: %v", tt.info, got)
		}
	}
}

func TestIsRetryable(t *testing.T) {
	tests := []struct {
		text string
		info *ErrorInfo
		want bool
	}{
		{"overloaded", nil, true},
		{"no idea", nil, false},
		{"invalid request", &ErrorInfo{Class: ClassRetryable}, true},
		{"", &ErrorInfo{Class: ClassRateLimit}, true},
		{"", &ErrorInfo{Class: ClassOverloaded}, true},
		{"", &ErrorInfo{Class: ClassServer}, true},
		{"", &ErrorInfo{Class: ClassTimeout}, true},
		{"", &ErrorInfo{Class: ClassNetwork}, true},
		{"overloaded", &ErrorInfo{Class: ClassAuth}, false},
		{"overloaded", &ErrorInfo{Class: ClassBilling}, false},
		{"overloaded", &ErrorInfo{Class: ClassQuota, Status: 429}, false},
		{"overloaded", &ErrorInfo{Class: ClassPermission}, false},
		{"overloaded", &ErrorInfo{Class: ClassInvalidRequest, Status: 500}, false},
		{"overloaded", &ErrorInfo{Class: ClassOverflow}, false},
		{"overloaded", &ErrorInfo{Class: "new class", Status: 400}, false},
		{"overloaded", &ErrorInfo{Status: 400}, false},
		{"overloaded", &ErrorInfo{Status: 401}, false},
		{"invalid request", &ErrorInfo{Status: 503}, true},
		{"", &ErrorInfo{Status: 500}, true},
		{"", &ErrorInfo{Status: 529}, true},
		{"", &ErrorInfo{Status: 408}, true},
		{"", &ErrorInfo{Status: 425}, true},
		{"", &ErrorInfo{Status: 429}, true},
		{"insufficient_quota", &ErrorInfo{Status: 429}, false},
		{"", &ErrorInfo{Status: 409}, false},
		{"server error", &ErrorInfo{Status: 409}, true},
		{"server error", &ErrorInfo{Status: 200}, true},
		{"connection reset", &ErrorInfo{}, true},
	}
	for _, tt := range tests {
		if got := IsRetryable(errorMessage(tt.text, tt.info)); got != tt.want {
			t.Errorf("IsRetryable(%q, %+v) = %v", tt.text, tt.info, got)
		}
	}
	if IsRetryable(Assistant{StopReason: StopAborted, ErrorMessage: "overloaded"}.Message()) {
		t.Error("an aborted answer is retryable")
	}
}

func TestIsOverflow(t *testing.T) {
	const window, limit = 1000, 100
	ended := func(stop StopReason, u Usage) Message { return Assistant{StopReason: stop, Usage: u}.Message() }
	tests := map[string]struct {
		m    Message
		want bool
	}{
		"text":                               {errorMessage("prompt is too long", nil), true},
		"other text":                         {errorMessage("overloaded", nil), false},
		"class":                              {errorMessage("anything", &ErrorInfo{Class: ClassOverflow}), true},
		"another class wins over the text":   {errorMessage("prompt is too long", &ErrorInfo{Class: ClassRateLimit}), false},
		"invalid request leaves it open":     {errorMessage("prompt is too long", &ErrorInfo{Class: ClassInvalidRequest, Status: 400}), true},
		"invalid request, other text":        {errorMessage("bad schema", &ErrorInfo{Class: ClassInvalidRequest, Status: 400}), false},
		"status 413":                         {errorMessage("any", &ErrorInfo{Status: 413}), true},
		"status 400 without text":            {errorMessage("", &ErrorInfo{Status: 400}), true},
		"status 400 with text":               {errorMessage("bad schema", &ErrorInfo{Status: 400}), false},
		"no text, no status":                 {errorMessage("", nil), false},
		"stop beyond the window":             {ended(StopStop, Usage{Input: 900, CacheRead: 101}), true},
		"stop at the window":                 {ended(StopStop, Usage{Input: 900, CacheRead: 100}), false},
		"aborted beyond the window":          {ended(StopAborted, Usage{Input: 2000}), false},
		"length without output":              {ended(StopLength, Usage{Input: 10}), true},
		"length at the end of the window":    {ended(StopLength, Usage{Input: 500, CacheRead: 441, Output: 49}), true},
		"length before the window's end":     {ended(StopLength, Usage{Input: 500, CacheRead: 440, Output: 49}), false},
		"length with the output asked for":   {ended(StopLength, Usage{Input: 950, Output: 100}), false},
		"length of which nothing is counted": {Message(`{"role":"assistant","stopReason":"length"}`), false},
	}
	for name, tt := range tests {
		if got := IsOverflow(tt.m, window, limit); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if IsOverflow(ended(StopStop, Usage{Input: 5}), 0, 0) || IsOverflow(ended(StopLength, Usage{Output: 1}), 0, 10) || IsOverflow(ended(StopLength, Usage{}), 0, 0) {
		t.Error("an overflow of limits that are not known")
	}
}
