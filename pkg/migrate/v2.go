package migrate

import (
	"fmt"

	"github.com/drover-run/drover/internal/rawjson"
)

// Version 2 captures the stream options of a run at its acceptance (D34) and counts
// the starts of a tool call (D31). Nothing else changed: meta, arguments, memos,
// preparations, frames, pending content, checkpoints and the values of lanes and
// sessions are those of version 1.

// stateTo2 converts an operation state. A compaction and a navigation have neither
// a run's settings nor calls.
func stateTo2(stored []byte) ([]byte, error) {
	kind, err := text(stored, "kind")
	if err != nil {
		return nil, err
	}
	switch kind {
	case "run":
		return runTo2(stored)
	case "compaction", "navigation":
		return stored, nil
	}
	return nil, fmt.Errorf("operation kind %q is none of version 1", kind)
}

func runTo2(stored []byte) ([]byte, error) {
	phase, err := object(stored, "phase")
	if err != nil {
		return nil, err
	}
	kind, err := text(phase, "kind")
	if err != nil {
		return nil, err
	}
	options, err := optionsOf1(kind, phase)
	if err != nil {
		return nil, fmt.Errorf("phase %s: %w", kind, err)
	}
	settings, err := object(stored, "settings")
	if err != nil {
		return nil, err
	}
	if _, converted := rawjson.Get(settings, "streamOptions"); !converted {
		if settings, err = rawjson.Set(settings, "streamOptions", options); err != nil {
			return nil, err
		}
		if stored, err = rawjson.Set(stored, "settings", settings); err != nil {
			return nil, err
		}
	}
	if kind != "tools" {
		return stored, nil
	}
	if phase, err = toolsTo2(phase); err != nil {
		return nil, fmt.Errorf("phase tools: %w", err)
	}
	return rawjson.Set(stored, "phase", phase)
}

// optionsOf1 are the stream options that a run is known to use: those that its open
// step captured. Between two steps version 1 knew none, and took what the driving
// process said; a run that goes on there is answered at once, with the provider's
// own limits.
func optionsOf1(kind string, phase []byte) ([]byte, error) {
	switch kind {
	case "starting", "checkpoint", "tools", "failure_drain":
		return []byte("{}"), nil
	case "assistant":
		return capturedIn1(phase, "generation", "context")
	case "deferred":
		return capturedIn1(phase, "deferred")
	case "compaction":
		structural, err := object(phase, "structural")
		if err != nil {
			return nil, err
		}
		if status, err := text(structural, "status"); err != nil || status == "deciding" {
			return []byte("{}"), err
		}
		options, err := capturedIn1(structural, "generation", "context")
		if err != nil {
			return nil, err
		}
		// A summary never waits: this says nothing about the run.
		return rawjson.Delete(options, "deferred")
	}
	return nil, fmt.Errorf("is none of version 1")
}

// capturedIn1 reads the stream options at the end of a path of objects.
func capturedIn1(from []byte, path ...string) (_ []byte, err error) {
	for _, key := range append(path, "streamOptions") {
		if from, err = object(from, key); err != nil {
			return nil, err
		}
	}
	return from, nil
}

// toolsTo2 gives every call that may be running its count. Version 1 kept none, so
// that only the latest start is known.
func toolsTo2(phase []byte) ([]byte, error) {
	batch, err := object(phase, "batch")
	if err != nil {
		return nil, err
	}
	calls, ok := rawjson.Get(batch, "calls")
	if !ok || rawjson.KindOf(calls) != rawjson.Array {
		return nil, fmt.Errorf("has no calls")
	}
	next := []byte{'['}
	for call, err := range rawjson.Elements(calls) {
		if err == nil {
			call, err = callTo2(call)
		}
		if err != nil {
			return nil, err
		}
		if len(next) > 1 {
			next = append(next, ',')
		}
		next = append(next, call...)
	}
	if batch, err = rawjson.Set(batch, "calls", append(next, ']')); err != nil {
		return nil, err
	}
	return rawjson.Set(phase, "batch", batch)
}

func callTo2(call []byte) ([]byte, error) {
	status, err := text(call, "status")
	if err != nil {
		return nil, err
	}
	switch status {
	case "planned", "outcome_ready", "completed":
		return call, nil
	case "effect_pending":
		if _, converted := rawjson.Get(call, "executions"); converted {
			return call, nil
		}
		return rawjson.Set(call, "executions", []byte("1"))
	}
	return nil, fmt.Errorf("call status %q is none of version 1", status)
}

func text(from []byte, key string) (string, error) {
	s, ok := rawjson.GetString(from, key)
	if !ok {
		return "", fmt.Errorf("has no %s", key)
	}
	return s, nil
}

func object(from []byte, key string) ([]byte, error) {
	value, ok := rawjson.Get(from, key)
	if !ok || rawjson.KindOf(value) != rawjson.Object {
		return nil, fmt.Errorf("has no %s", key)
	}
	return value, nil
}
