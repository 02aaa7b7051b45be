package op

import (
	"encoding/json"

	"github.com/drover-run/drover/internal/rawjson"
)

// providerText is text that a provider wrote: encoding/json would replace the
// lone surrogates that it may hold, so that a state would not say what the
// answer says (D5).
type providerText string

// MarshalJSON keeps lone surrogates.
func (s providerText) MarshalJSON() ([]byte, error) { return rawjson.Quote(string(s)), nil }

// UnmarshalJSON keeps lone surrogates.
func (s *providerText) UnmarshalJSON(raw []byte) error {
	text, err := rawjson.Unquote(raw)
	*s = providerText(text)
	return err
}

type errorWire struct {
	Code    string          `json:"code"`
	Message providerText    `json:"message"`
	Details json.RawMessage `json:"details,omitempty"`
}

// MarshalJSON writes the error of §3.2.
func (e Error) MarshalJSON() ([]byte, error) {
	return marshal(errorWire{e.Code, providerText(e.Message), e.Details})
}

// UnmarshalJSON reads the error of §3.2.
func (e *Error) UnmarshalJSON(raw []byte) error {
	var w errorWire
	err := json.Unmarshal(raw, &w)
	*e = Error{w.Code, string(w.Message), w.Details}
	return err
}

type waitWire[C any] struct {
	Context      C            `json:"context"`
	NextAttempt  int64        `json:"nextAttempt"`
	NotBefore    int64        `json:"notBefore"`
	ErrorMessage providerText `json:"errorMessage"`
}

// MarshalJSON writes the generation with its status.
func (g RetryWait) MarshalJSON() ([]byte, error) {
	return tagged("status", "retry_wait", waitWire[GenerationContext]{g.Context, g.NextAttempt, g.NotBefore, providerText(g.ErrorMessage)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (g *RetryWait) UnmarshalJSON(raw []byte) error {
	var w waitWire[GenerationContext]
	err := json.Unmarshal(raw, &w)
	*g = RetryWait{w.Context, w.NextAttempt, w.NotBefore, string(w.ErrorMessage)}
	return err
}

// MarshalJSON writes the generation with its status.
func (g SummaryRetryWait) MarshalJSON() ([]byte, error) {
	return tagged("status", "retry_wait", waitWire[SummaryContext]{g.Context, g.NextAttempt, g.NotBefore, providerText(g.ErrorMessage)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (g *SummaryRetryWait) UnmarshalJSON(raw []byte) error {
	var w waitWire[SummaryContext]
	err := json.Unmarshal(raw, &w)
	*g = SummaryRetryWait{w.Context, w.NextAttempt, w.NotBefore, string(w.ErrorMessage)}
	return err
}
