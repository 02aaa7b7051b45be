package message

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/drover-run/drover/internal/rawjson"
)

// DeferredHandle identifies an answer that a provider will have later (spec
// §3.2). It is kept as the raw object the provider gave.
type DeferredHandle struct {
	Raw json.RawMessage
}

// ParseDeferredHandle accepts a JSON object; raw is kept, not copied.
func ParseDeferredHandle(raw json.RawMessage) (DeferredHandle, error) {
	if rawjson.KindOf(raw) != rawjson.Object {
		return DeferredHandle{}, fmt.Errorf("decode deferred handle: not an object")
	}
	if err := rawjson.Valid(raw); err != nil {
		return DeferredHandle{}, fmt.Errorf("decode deferred handle: %w", err)
	}
	return DeferredHandle{Raw: raw}, nil
}

// Provider returns the provider's name.
func (h DeferredHandle) Provider() string { return h.str("provider") }

// ModelID returns the model's id.
func (h DeferredHandle) ModelID() string { return h.str("modelId") }

// API returns the name of the provider interface.
func (h DeferredHandle) API() string { return h.str("api") }

// ID returns the provider's id of the job.
func (h DeferredHandle) ID() string { return h.str("id") }

// PollAfterMs returns how long the provider asks to wait between polls, in ms.
func (h DeferredHandle) PollAfterMs() (int64, bool) { return h.int("pollAfterMs") }

// ExpiresAt returns when the job is given up, in Unix ms.
func (h DeferredHandle) ExpiresAt() (int64, bool) { return h.int("expiresAt") }

// Equal reports whether both handles are the same JSON text, white space
// aside. Handles that are no JSON equal nothing.
func (h DeferredHandle) Equal(other DeferredHandle) bool {
	a, err := rawjson.Compact(nil, h.Raw)
	if err != nil {
		return false
	}
	b, err := rawjson.Compact(nil, other.Raw)
	return err == nil && bytes.Equal(a, b)
}

// Valid reports whether the handle has an id and belongs to the model and
// interface of the request (spec §3.2).
func (h DeferredHandle) Valid(ref ModelRef, api string) bool {
	return h.ID() != "" && h.Provider() == ref.Provider && h.ModelID() == ref.ModelID && h.API() == api
}

// AppendJSON appends the handle verbatim, null when there is none.
func (h DeferredHandle) AppendJSON(dst []byte) ([]byte, error) { return appendRaw(dst, "", h.Raw), nil }

// MarshalJSON is AppendJSON for encoding/json.
func (h DeferredHandle) MarshalJSON() ([]byte, error) { return h.AppendJSON(nil) }

// UnmarshalJSON keeps a copy of data verbatim.
func (h *DeferredHandle) UnmarshalJSON(data []byte) error {
	h.Raw = append(json.RawMessage(nil), data...)
	return nil
}

func (h DeferredHandle) str(field string) string {
	s, _ := rawjson.GetString(h.Raw, field)
	return s
}

func (h DeferredHandle) int(field string) (int64, bool) {
	v, _ := rawjson.Get(h.Raw, field)
	return integer(v)
}
