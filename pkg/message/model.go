package message

import (
	"fmt"
	"slices"
	"strings"
)

// ModelRef is the durable identity of a model; the registry resolves it when a
// request is made (spec §0.7).
type ModelRef struct {
	Provider string `json:"provider"`
	ModelID  string `json:"modelId"`
}

// String returns the form people type, provider/id.
func (r ModelRef) String() string { return r.Provider + "/" + r.ModelID }

// ParseModelRef splits provider/id at the first slash; model ids may hold more
// slashes. Both parts must be there.
func ParseModelRef(s string) (ModelRef, error) {
	provider, id, ok := strings.Cut(s, "/")
	if !ok || provider == "" || id == "" {
		return ModelRef{}, fmt.Errorf("parse model %q: want PROVIDER/ID", s)
	}
	return ModelRef{Provider: provider, ModelID: id}, nil
}

// ThinkingLevel says how much a model is asked to reason (spec §0.7).
type ThinkingLevel string

// The thinking levels, lowest first.
const (
	ThinkingOff     ThinkingLevel = "off"
	ThinkingMinimal ThinkingLevel = "minimal"
	ThinkingLow     ThinkingLevel = "low"
	ThinkingMedium  ThinkingLevel = "medium"
	ThinkingHigh    ThinkingLevel = "high"
	ThinkingXHigh   ThinkingLevel = "xhigh"
	ThinkingMax     ThinkingLevel = "max"
)

// ThinkingLevels returns every level, lowest first.
func ThinkingLevels() []ThinkingLevel {
	return []ThinkingLevel{
		ThinkingOff, ThinkingMinimal, ThinkingLow, ThinkingMedium,
		ThinkingHigh, ThinkingXHigh, ThinkingMax,
	}
}

// ParseThinkingLevel accepts exactly the names of ThinkingLevels.
func ParseThinkingLevel(s string) (ThinkingLevel, error) {
	levels := ThinkingLevels()
	if slices.Contains(levels, ThinkingLevel(s)) {
		return ThinkingLevel(s), nil
	}
	names := make([]string, len(levels))
	for i, l := range levels {
		names[i] = string(l)
	}
	return "", fmt.Errorf("parse thinking level %q: want one of %s", s, strings.Join(names, ", "))
}

// ClampThinking returns want when the model supports it, else the nearest
// lower level it supports, else off.
func ClampThinking(want ThinkingLevel, supported []ThinkingLevel) ThinkingLevel {
	levels := ThinkingLevels()
	for i := slices.Index(levels, want); i > 0; i-- {
		if slices.Contains(supported, levels[i]) {
			return levels[i]
		}
	}
	return ThinkingOff
}
