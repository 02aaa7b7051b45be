package message

import "encoding/json"

// DeferredHandle identifies an answer that a provider will have later (spec
// §3.2). It is kept as the raw object the provider gave.
type DeferredHandle struct {
	Raw json.RawMessage
}

// ParseDeferredHandle accepts a JSON object; raw is kept, not copied.
func ParseDeferredHandle(raw json.RawMessage) (DeferredHandle, error) {
	return DeferredHandle{Raw: raw}, nil
}

// Provider returns the provider's name.
func (h DeferredHandle) Provider() string { return "" }

// ModelID returns the model's id.
func (h DeferredHandle) ModelID() string { return "" }

// API returns the name of the provider interface.
func (h DeferredHandle) API() string { return "" }

// ID returns the provider's id of the job.
func (h DeferredHandle) ID() string { return "" }

// PollAfterMs returns how long the provider asks to wait between polls, in ms.
func (h DeferredHandle) PollAfterMs() (int64, bool) { return 0, false }

// ExpiresAt returns when the job is given up, in Unix ms.
func (h DeferredHandle) ExpiresAt() (int64, bool) { return 0, false }

// Equal reports whether both handles are the same JSON text, white space aside.
func (h DeferredHandle) Equal(other DeferredHandle) bool { return false }

// Valid reports whether the handle has an id and belongs to the model and
// interface of the request (spec §3.2).
func (h DeferredHandle) Valid(ref ModelRef, api string) bool { return false }

// AppendJSON appends the handle verbatim.
func (h DeferredHandle) AppendJSON(dst []byte) ([]byte, error) { return append(dst, h.Raw...), nil }

// MarshalJSON returns the handle verbatim.
func (h DeferredHandle) MarshalJSON() ([]byte, error) { return h.Raw, nil }

// UnmarshalJSON keeps a copy of data verbatim.
func (h *DeferredHandle) UnmarshalJSON(data []byte) error {
	h.Raw = append(json.RawMessage(nil), data...)
	return nil
}
