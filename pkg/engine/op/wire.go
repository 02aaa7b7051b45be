package op

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/drover-run/drover/internal/rawjson"
)

// marshal encodes without HTML escaping.
func marshal(x any) ([]byte, error) {
	if m, ok := x.(json.Marshaler); ok {
		return m.MarshalJSON()
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(x); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// tagged encodes body with its discriminator first.
func tagged[T ~string](key string, tag T, body any) ([]byte, error) {
	b, err := marshal(body)
	if err != nil {
		return nil, err
	}
	out := append([]byte{'{'}, rawjson.Quote(key)...)
	out = append(append(out, ':'), rawjson.Quote(string(tag))...)
	if len(b) > 2 {
		out = append(append(out, ','), b[1:]...)
		return out, nil
	}
	return append(out, '}'), nil
}

// tagOf reads a discriminator.
func tagOf(raw []byte, key string) (string, error) {
	tag, ok := rawjson.GetString(raw, key)
	if !ok {
		return "", fmt.Errorf("object has no %s", key)
	}
	return tag, nil
}

// as decodes a variant; parts are those that it must have.
func as[U, T any](raw []byte, parts ...string) (U, error) {
	var v T
	err := needs(raw, parts...)
	if err == nil {
		err = json.Unmarshal(raw, &v)
	}
	if err != nil {
		var zero U
		return zero, err
	}
	return any(v).(U), nil
}

// needs refuses an object without one of its parts: their zero values would read
// as another state than the one that was written.
func needs(raw []byte, parts ...string) error {
	for _, part := range parts {
		if v, ok := rawjson.Get(raw, part); !ok || string(v) == "null" {
			return fmt.Errorf("object has no %s", part)
		}
	}
	return nil
}

// DecodeState reads an operation state; an unknown variant is refused (spec
// §3.2).
func DecodeState(raw json.RawMessage) (State, error) {
	kind, err := tagOf(raw, "kind")
	if err != nil {
		return nil, err
	}
	switch Kind(kind) {
	case KindRun:
		return as[State, RunState](raw, "control", "phase", "inbox")
	case KindCompaction:
		return as[State, CompactionState](raw, "control", "structural")
	case KindNavigation:
		return as[State, NavigationState](raw, "control", "phase")
	}
	return nil, fmt.Errorf("unknown operation kind %q", kind)
}

func decodePhase(raw []byte) (Phase, error) {
	kind, err := tagOf(raw, "kind")
	if err != nil {
		return nil, err
	}
	switch kind {
	case "starting":
		return Starting{}, nil
	case "checkpoint":
		return as[Phase, Checkpoint](raw)
	case "assistant":
		return as[Phase, Assistant](raw)
	case "tools":
		return as[Phase, Tools](raw, "batch")
	case "compaction":
		return as[Phase, InRunCompaction](raw, "structural", "resumeAfter")
	case "deferred":
		return as[Phase, DeferredPhase](raw, "deferred")
	case "failure_drain":
		return as[Phase, FailureDrain](raw, "provenance")
	}
	return nil, fmt.Errorf("unknown run phase %q", kind)
}

func decodeGeneration(raw []byte) (Generation, error) {
	status, err := tagOf(raw, "status")
	if err != nil {
		return nil, err
	}
	switch status {
	case "ready":
		return as[Generation, Ready](raw)
	case "effect_pending":
		return as[Generation, EffectPending](raw)
	case "retry_wait":
		return as[Generation, RetryWait](raw)
	}
	return nil, fmt.Errorf("unknown generation status %q", status)
}

func decodeSummary(raw []byte) (SummaryGeneration, error) {
	status, err := tagOf(raw, "status")
	if err != nil {
		return nil, err
	}
	switch status {
	case "ready":
		return as[SummaryGeneration, SummaryReady](raw)
	case "effect_pending":
		return as[SummaryGeneration, SummaryEffectPending](raw)
	case "retry_wait":
		return as[SummaryGeneration, SummaryRetryWait](raw)
	}
	return nil, fmt.Errorf("unknown summary status %q", status)
}

// The plain variants carry their tag only on the wire.

// MarshalJSON writes the phase with its kind.
func (Starting) MarshalJSON() ([]byte, error) { return []byte(`{"kind":"starting"}`), nil }

// UnmarshalJSON refuses what is no checkpoint.
func (c *Checkpoint) UnmarshalJSON(raw []byte) error {
	if kind, err := tagOf(raw, "kind"); err != nil || kind != "checkpoint" {
		return fmt.Errorf("phase %q is no checkpoint", kind)
	}
	if err := needs(raw, "continuation"); err != nil {
		return err
	}
	type body Checkpoint
	return json.Unmarshal(raw, (*body)(c))
}

// UnmarshalJSON reads the generation by its status.
func (a *Assistant) UnmarshalJSON(raw []byte) (err error) {
	g, ok := rawjson.Get(raw, "generation")
	if !ok {
		return fmt.Errorf("assistant phase has no generation")
	}
	a.Generation, err = decodeGeneration(g)
	return err
}

// MarshalJSON writes the phase with its kind.
func (t Tools) MarshalJSON() ([]byte, error) {
	type body Tools
	return tagged("kind", "tools", body(t))
}

// MarshalJSON writes the phase with its kind.
func (c InRunCompaction) MarshalJSON() ([]byte, error) {
	type body InRunCompaction
	return tagged("kind", "compaction", body(c))
}

// MarshalJSON writes the phase with its kind.
func (d DeferredPhase) MarshalJSON() ([]byte, error) {
	type body DeferredPhase
	return tagged("kind", "deferred", body(d))
}

// MarshalJSON writes the phase with its kind.
func (f FailureDrain) MarshalJSON() ([]byte, error) {
	type body FailureDrain
	return tagged("kind", "failure_drain", body(f))
}

// MarshalJSON writes the generation with its status.
func (g SummaryReady) MarshalJSON() ([]byte, error) {
	type body SummaryReady
	return tagged("status", "ready", body(g))
}

// MarshalJSON writes the generation with its status.
func (g SummaryEffectPending) MarshalJSON() ([]byte, error) {
	type body SummaryEffectPending
	return tagged("status", "effect_pending", body(g))
}
