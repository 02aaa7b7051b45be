package message

import (
	"encoding/json"
	"testing"
)

func TestModelRef(t *testing.T) {
	for in, want := range map[string]ModelRef{
		"scripted/echo":        {"scripted", "echo"},
		"scripted//tmp/s.yaml": {"scripted", "/tmp/s.yaml"},
		"router/vendor/model":  {"router", "vendor/model"},
	} {
		got, err := ParseModelRef(in)
		if err != nil || got != want || got.String() != in {
			t.Errorf("ParseModelRef(%q) = %v, %v", in, got, err)
		}
	}
	for _, bad := range []string{"", "echo", "/echo", "scripted/"} {
		if got, err := ParseModelRef(bad); err == nil {
			t.Errorf("ParseModelRef(%q) = %v", bad, got)
		}
	}
	if got, err := json.Marshal(ModelRef{"p", "m"}); err != nil || string(got) != `{"provider":"p","modelId":"m"}` {
		t.Errorf("Marshal = %s, %v", got, err)
	}
}

func TestThinkingLevels(t *testing.T) {
	for _, l := range ThinkingLevels() {
		if got, err := ParseThinkingLevel(string(l)); err != nil || got != l {
			t.Errorf("ParseThinkingLevel(%q) = %q, %v", l, got, err)
		}
	}
	_, err := ParseThinkingLevel("High")
	if want := `parse thinking level "High": want one of off, minimal, low, medium, high, xhigh, max`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestClampThinking(t *testing.T) {
	some := []ThinkingLevel{ThinkingHigh, ThinkingOff, ThinkingLow}
	tests := []struct {
		want      ThinkingLevel
		supported []ThinkingLevel
		clamped   ThinkingLevel
	}{
		{ThinkingHigh, some, ThinkingHigh},
		{ThinkingMax, some, ThinkingHigh},
		{ThinkingMedium, some, ThinkingLow},
		{ThinkingMinimal, some, ThinkingOff},
		{ThinkingMinimal, []ThinkingLevel{ThinkingHigh}, ThinkingOff},
		{ThinkingHigh, nil, ThinkingOff},
		{"unheard of", some, ThinkingOff},
	}
	for _, tt := range tests {
		if got := ClampThinking(tt.want, tt.supported); got != tt.clamped {
			t.Errorf("ClampThinking(%s, %v) = %s, want %s", tt.want, tt.supported, got, tt.clamped)
		}
	}
}

func TestDeferredHandle(t *testing.T) {
	raw := `{"provider":"p","modelId":"m","api":"a","id":"1","pollAfterMs":5e2,"data":{"x":1.0}}`
	h, err := ParseDeferredHandle(json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	if h.Provider() != "p" || h.ModelID() != "m" || h.API() != "a" || h.ID() != "1" {
		t.Errorf("handle %v", h)
	}
	if ms, ok := h.PollAfterMs(); !ok || ms != 500 {
		t.Errorf("PollAfterMs = %d, %v", ms, ok)
	}
	if at, ok := h.ExpiresAt(); ok {
		t.Errorf("ExpiresAt = %d", at)
	}
	if out, err := h.AppendJSON(nil); err != nil || string(out) != raw {
		t.Errorf("AppendJSON = %s, %v", out, err)
	}
	for _, bad := range []string{"", "null", "[]", "{", `"x"`} {
		if h, err := ParseDeferredHandle(json.RawMessage(bad)); err == nil {
			t.Errorf("ParseDeferredHandle(%s) = %s", bad, h.Raw)
		}
	}
	ref := ModelRef{"p", "m"}
	for in, want := range map[string]bool{
		raw: true,
		`{"provider":"p","modelId":"m","api":"a","id":""}`:  false,
		`{"provider":"p","modelId":"m","api":"a"}`:          false,
		`{"provider":"q","modelId":"m","api":"a","id":"1"}`: false,
		`{"provider":"p","modelId":"n","api":"a","id":"1"}`: false,
		`{"provider":"p","modelId":"m","api":"b","id":"1"}`: false,
	} {
		if got := (DeferredHandle{Raw: json.RawMessage(in)}).Valid(ref, "a"); got != want {
			t.Errorf("Valid(%s) = %v", in, got)
		}
	}
	for in, want := range map[string]bool{
		raw: true,
		`{ "provider": "p", "modelId":"m","api":"a","id":"1","pollAfterMs":5e2,"data":{"x":1.0} }`: true,
		`{"provider":"p","modelId":"m","api":"a","id":"1","pollAfterMs":500,"data":{"x":1.0}}`:     false,
		`{"provider":"p","modelId":"m","api":"a","id":"1","data":{"x":1.0},"pollAfterMs":5e2}`:     false,
		``: false,
	} {
		if got := h.Equal(DeferredHandle{Raw: json.RawMessage(in)}); got != want {
			t.Errorf("Equal(%s) = %v", in, got)
		}
	}
	if (DeferredHandle{}).Equal(DeferredHandle{}) {
		t.Error("no handle equals no handle")
	}
}
