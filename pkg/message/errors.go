package message

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/drover-run/drover/internal/rawjson"
)

// ErrorInfo is what a provider's client knew of a failed request, beyond its
// text (D35). Known is false when the message carries no such note.
type ErrorInfo struct {
	Status       int    // HTTP status, 0 when there was none
	Class        string // one of the Class constants, or empty
	RetryAfterMs int64
	// Text is what went wrong, in words, where the message itself does not say it:
	// in one that leaves a deferred job pending (D33).
	Text string
	// Unsent tells that the request surely never reached a server.
	Unsent bool
	Known  bool
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

// AppendProviderError returns diagnostics (a JSON array, or nothing) with a
// provider_error note added at its end (D35). What is no array is replaced.
func AppendProviderError(diagnostics json.RawMessage, e ErrorInfo) json.RawMessage {
	out := append(notes(diagnostics), `{"type":"provider_error"`...)
	if e.Status != 0 {
		out = appendInt(out, `,"status":`, int64(e.Status))
	}
	out = appendOptional(out, `,"class":`, e.Class)
	if e.RetryAfterMs != 0 {
		out = appendInt(out, `,"retryAfterMs":`, e.RetryAfterMs)
	}
	out = appendOptional(out, `,"message":`, e.Text)
	if e.Unsent {
		out = append(out, `,"unsent":true`...)
	}
	return append(out, "}]"...)
}

// ProviderError reads the newest provider_error note of an assistant message.
func ProviderError(m Message) ErrorInfo {
	note := newestNote(m, "provider_error")
	if note == nil {
		return ErrorInfo{}
	}
	e := ErrorInfo{Known: true}
	status, _ := rawjson.GetInt(note, "status")
	e.Status = int(status)
	e.Class, _ = rawjson.GetString(note, "class")
	e.RetryAfterMs, _ = rawjson.GetInt(note, "retryAfterMs")
	e.Text, _ = rawjson.GetString(note, "message")
	e.Unsent, _ = rawjson.GetBool(note, "unsent")
	return e
}

// Reason says what went wrong, as well as the note knows it.
func (e ErrorInfo) Reason() string {
	why := e.Text
	switch {
	case why != "":
	case e.Status != 0:
		why = fmt.Sprintf("the server answered %d", e.Status)
	default:
		why = e.Class
	}
	if e.RetryAfterMs > 0 {
		why += fmt.Sprintf("; it asks for a wait of %s", time.Duration(e.RetryAfterMs)*time.Millisecond)
	}
	return why
}

// IsOverflow reports whether the answer failed because the context does not fit
// the model: said by its class, its status, its text, or its token counts (D36).
// Limits that are not known are 0.
func IsOverflow(m Message, contextWindow, intendedOutputLimit int64) bool {
	switch m.StopReason() {
	case StopError:
		return overflowError(m)
	case StopStop:
		u, _ := m.Usage()
		return contextWindow > 0 && u.Input+u.CacheRead > contextWindow
	case StopLength:
		u, ok := m.Usage()
		if !ok || u.Output >= intendedOutputLimit {
			return false
		}
		used := u.Input + u.CacheRead + u.Output
		return u.Output == 0 || contextWindow > 0 && 100*used >= 99*contextWindow
	}
	return false
}

// overflowError decides for an error answer. The class invalid_request leaves
// the question open: providers send an oversized request back as one.
func overflowError(m Message) bool {
	e, text := ProviderError(m), m.ErrorMessage()
	switch e.Class {
	case ClassOverflow:
		return true
	case "", ClassInvalidRequest:
	default:
		return false
	}
	if e.Status == 413 || e.Status == 400 && text == "" {
		return true
	}
	return IsOverflowMessage(text)
}

// IsRetryable reports whether an error answer is worth another attempt.
func IsRetryable(m Message) bool {
	return m.StopReason() == StopError && ProviderError(m).passes(m.ErrorMessage())
}

// Passes reports whether what a poll failed of may be over later, though nobody does
// anything about it.
func (e ErrorInfo) Passes() bool { return e.passes(e.Text) }

// passes decides by the class or the status before the text.
func (e ErrorInfo) passes(text string) bool {
	switch e.Class {
	case ClassRetryable, ClassRateLimit, ClassOverloaded, ClassServer, ClassTimeout, ClassNetwork:
		return true
	case ClassOverflow, ClassAuth, ClassBilling, ClassQuota, ClassPermission, ClassInvalidRequest:
		return false
	}
	switch {
	case e.Status == 429:
		// Spent quotas come with this status too, and do not pass.
		return !isPermanentMessage(text)
	case e.Status == 408, e.Status == 425, e.Status >= 500:
		return true
	case e.Status >= 400 && e.Status != 409:
		return false
	}
	return IsRetryableMessage(text)
}
