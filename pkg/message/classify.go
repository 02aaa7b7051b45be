package message

import "strings"

// Providers say in prose what a status cannot. The tables hold how they word
// it, in lower case; as a heuristic they stand in this file only (spec §3.7).
//
// A pattern's parts, separated by `…`, must occur in this order; a part that
// ends in `#` must be followed by a digit, one that starts with `=` must not be
// part of a longer number.

var overflowPatterns = []string{
	"prompt is too long",
	"request_too_large",
	"input is too long for requested model",
	"exceeds the context window",
	"exceeds…maximum context length",
	"input token count…exceeds the maximum",
	"maximum prompt length is #",
	"reduce the length of the messages",
	"maximum context length is #… tokens",
	"longer than the model's context length",
	"exceeds the limit of #",
	"exceeds the available context size",
	"greater than the context length",
	"context window exceeds limit",
	"exceeded model token limit",
	"context_length_exceeded",
	"context length exceeded",
	"model_context_window_exceeded",
	"too many tokens",
	"token limit exceeded",
}

// notOverflowPatterns are about load, whatever else the text says.
var notOverflowPatterns = []string{
	"rate limit", "rate_limit", "ratelimit", "too many requests",
	"throttling", "throttled", "service unavailable",
}

var retryablePatterns = []string{
	"overloaded", "rate limit", "rate_limit", "ratelimit", "too many requests",
	"throttling", "throttled",
	"=429", "=500", "=502", "=503", "=504", "=524", "=529",
	"service unavailable", "service_unavailable", "serviceunavailable",
	"internal error", "internal_error", "internal server", "internal_server",
	"server error", "server_error", "bad gateway", "gateway timeout",
	"provider returned error",
	"connection refused", "connection reset", "connection lost", "connection error", "connection closed",
	"connection was lost", "connection aborted", "broken pipe", "econnrefused", "econnreset", "epipe",
	"socket hang up", "network error", "network is unreachable", "fetch failed",
	"no such host", "enotfound", "eai_again", "getaddrinfo", "name resolution", "dns",
	"timeout", "timed out", "time out", "etimedout", "deadline exceeded",
	"stream ended", "ended early", "ended without", "unexpected eof", "unexpected end of", "premature",
	"http/2…no response", "http2…no response", "http/2…did not get a response", "http2…did not get a response",
	"retry your request",
	"resourceexhausted", "resource_exhausted", "resource exhausted",
}

// permanentPatterns win over the retryable ones: the next attempt fails alike.
var permanentPatterns = []string{
	"quota", "billing", "usage limit", "usage_limit", "usage-limit", "usagelimit", "insufficient_",
	"credit balance", "authentication", "unauthorized", "invalid api key", "invalid_api_key",
	"permission", "invalid request", "invalid_request",
}

// IsOverflowMessage reports whether an error text says that the request was too
// long for the model. It is a heuristic (spec §3.7).
func IsOverflowMessage(text string) bool {
	text = foldText(text)
	if matchesAny(text, notOverflowPatterns) {
		return false
	}
	return matchesAny(text, overflowPatterns) || isBareRefusal(text)
}

// IsRetryableMessage reports whether an error text names a cause that may pass.
// It is a heuristic.
func IsRetryableMessage(text string) bool {
	text = foldText(text)
	return !matchesAny(text, permanentPatterns) && matchesAny(text, retryablePatterns)
}

func isPermanentMessage(text string) bool { return matchesAny(foldText(text), permanentPatterns) }

func foldText(text string) string {
	return strings.ReplaceAll(strings.ToLower(text), "’", "'")
}

// isBareRefusal recognizes a status 400 or 413 that came without a body, as
// clients word it: `413 status code (no body)`.
func isBareRefusal(text string) bool {
	text = strings.TrimSpace(text)
	rest, ok := strings.CutPrefix(text, "400")
	if !ok {
		rest, ok = strings.CutPrefix(text, "413")
	}
	rest = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(rest), "status code"))
	return ok && (rest == "" || strings.HasPrefix(rest, "(no body)"))
}

func matchesAny(text string, patterns []string) bool {
	for _, p := range patterns {
		if matches(text, p) {
			return true
		}
	}
	return false
}

// matches reports whether all parts of the pattern occur in order.
func matches(text, pattern string) bool {
	for part := range strings.SplitSeq(pattern, "…") {
		end := findPart(text, part)
		if end < 0 {
			return false
		}
		text = text[end:]
	}
	return true
}

// findPart returns the end of the first occurrence of part, -1 without one.
func findPart(text, part string) int {
	part, number := strings.CutPrefix(part, "=")
	part, digitNext := strings.CutSuffix(part, "#")
	for at := 0; ; {
		i := strings.Index(text[at:], part)
		if i < 0 {
			return -1
		}
		start, end := at+i, at+i+len(part)
		switch {
		case digitNext && !digitAt(text, end):
		case number && (digitAt(text, start-1) || digitAt(text, end)):
		default:
			return end
		}
		at = start + 1
	}
}

func digitAt(text string, i int) bool {
	return i >= 0 && i < len(text) && '0' <= text[i] && text[i] <= '9'
}
