package message

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each note is found by its type, the newest of several, in whatever order.
func TestNotes(t *testing.T) {
	m := Message(`{"role":"assistant","content":[],"diagnostics":[{"type":"thinking_clamped","requested":"max","used":"off"},7]}`)
	m, err := NoteImages(m, 3)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = NoteThinking(m, ThinkingHigh, ThinkingLow); err != nil {
		t.Fatal(err)
	}
	want := `[{"type":"thinking_clamped","requested":"max","used":"off"},7,{"type":"images_omitted","count":3},` +
		`{"type":"thinking_clamped","requested":"high","used":"low"}]`
	got, _ := m.Get("diagnostics")
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	wanted, used, ok := ClampedThinking(m)
	if wanted != ThinkingHigh || used != ThinkingLow || !ok {
		t.Errorf("ClampedThinking: %q, %q, %v", wanted, used, ok)
	}
	if n := OmittedImages(m); n != 3 {
		t.Errorf("OmittedImages: %d", n)
	}
	if e := ProviderError(m); e.Known {
		t.Errorf("ProviderError: %+v", e)
	}
	bare := Message(`{"role":"assistant","content":[],"diagnostics":"none"}`)
	if _, _, ok := ClampedThinking(bare); ok || OmittedImages(bare) != 0 {
		t.Error("there is a note in no diagnostics")
	}
}

func TestProviderErrorText(t *testing.T) {
	want := ErrorInfo{Status: 503, Class: ClassServer, Text: "it said \"no\"", Known: true}
	m := Message(`{"role":"assistant","diagnostics":` + string(AppendProviderError(nil, want)) + `}`)
	if diff := cmp.Diff(want, ProviderError(m)); diff != "" {
		t.Error(diff)
	}
}

func TestCountImages(t *testing.T) {
	msgs := []Message{
		Message(`{"role":"user","content":"image"}`),
		Message(`{"role":"user","content":[{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"text","text":"x"}]}`),
		Message(`{"role":"toolResult","content":[{"type":"image","data":"AA==","mimeType":"image/png"}]}`),
		Message(`{"role":"assistant"}`),
	}
	if n := CountImages(msgs); n != 2 {
		t.Errorf("%d images, want 2", n)
	}
}
