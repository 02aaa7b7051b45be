package message

import "encoding/json"

// ErrorInfo is what a provider's client knew of a failed request, beyond its
// text (D35). Known is false when the message carries no such note.
type ErrorInfo struct {
	Status       int    // HTTP status, 0 when there was none
	Class        string // one of the Class constants, or empty
	RetryAfterMs int64
	Known        bool
}

// The error classes.
const (
	ClassOverflow       = "overflow"
	ClassRetryable      = "retryable"
	ClassRateLimit      = "rate_limit"
	ClassOverloaded     = "overloaded"
	ClassServer         = "server"
	ClassTimeout        = "timeout"
	ClassNetwork        = "network"
	ClassAuth           = "auth"
	ClassBilling        = "billing"
	ClassQuota          = "quota"
	ClassPermission     = "permission"
	ClassInvalidRequest = "invalid_request"
)

// AppendProviderError returns diagnostics (a JSON array, or nil) with a
// provider_error note added (D35).
func AppendProviderError(diagnostics json.RawMessage, e ErrorInfo) json.RawMessage {
	return diagnostics
}

// ProviderError reads the newest provider_error note of an assistant message.
func ProviderError(m Message) ErrorInfo { return ErrorInfo{} }

// IsOverflowMessage reports whether an error text says that the request was too
// long for the model. It is a heuristic (spec §3.7).
func IsOverflowMessage(text string) bool { return false }

// IsRetryableMessage reports whether an error text names a cause that may pass.
// It is a heuristic.
func IsRetryableMessage(text string) bool { return false }

// IsOverflow reports whether the answer failed because the context does not fit
// the model, said by its class, its text, or its token counts (D36). Limits
// that are not known are 0.
func IsOverflow(m Message, contextWindow, intendedOutputLimit int64) bool { return false }

// IsRetryable reports whether an error answer is worth another attempt. A typed
// class or status counts before the text.
func IsRetryable(m Message) bool { return false }
