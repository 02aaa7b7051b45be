package catalogue

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
)

// The file says of every model what a request and its bill need, and where it has
// that from.
func TestFile(t *testing.T) {
	f, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	day(t, "the file", f.AsOf)
	for name, v := range f.Vendors {
		complete(t, name+", assumed", v.Assumed)
		seen := map[string]bool{}
		for _, m := range v.Models {
			complete(t, m.ID, m)
			for _, id := range append([]string{m.ID}, m.Aliases...) {
				if seen[id] {
					t.Errorf("%s: %s is described twice", name, id)
				}
				seen[id] = true
			}
			if !strings.HasPrefix(m.Source, "https://") || m.Name == "" {
				t.Errorf("%s: source %q, name %q", m.ID, m.Source, m.Name)
			}
			if m.Verified != "" {
				day(t, m.ID, m.Verified)
			} else if m.Note == "" {
				t.Errorf("%s is not verified, and nothing says why", m.ID)
			}
			priced(t, m.ID, m.Prices.resolve())
		}
	}
	for _, name := range []string{Anthropic, OpenAI} {
		if len(f.Vendors[name].Models) == 0 {
			t.Errorf("no model of %s", name)
		}
	}
}

func day(t *testing.T, of, s string) {
	t.Helper()
	if _, err := time.Parse(time.DateOnly, s); err != nil {
		t.Errorf("%s: %v", of, err)
	}
}

func complete(t *testing.T, of string, d described) {
	t.Helper()
	if d.MaxTokens <= 0 || d.MaxTokens > d.ContextWindow {
		t.Errorf("%s: %d tokens of output in a window of %d", of, d.MaxTokens, d.ContextWindow)
	}
	known := message.ThinkingLevels()[1:]
	if !slices.IsSortedFunc(d.Thinking, func(a, b message.ThinkingLevel) int {
		return slices.Index(known, a) - slices.Index(known, b)
	}) || slices.ContainsFunc(d.Thinking, func(l message.ThinkingLevel) bool { return !slices.Contains(known, l) }) {
		t.Errorf("%s: thinking levels %v", of, d.Thinking)
	}
}

// Prices stand in an order that no vendor has broken: what does is a slip.
func priced(t *testing.T, of string, p model.Prices) {
	t.Helper()
	if p.CacheRead <= 0 || p.CacheRead >= p.Input || p.Input > p.CacheWrite || p.CacheWrite > p.CacheWrite1h || p.Input >= p.Output {
		t.Errorf("%s: prices %+v", of, p)
	}
	if p.Long == nil {
		return
	}
	if p.LongAbove <= 0 || p.Long.Input <= p.Input || p.Long.Output <= p.Output || p.Long.CacheRead <= p.CacheRead {
		t.Errorf("%s: prices of long prompts %+v", of, p.Long)
	}
	priced(t, of+", long prompts", *p.Long)
}

func TestEntry(t *testing.T) {
	c := New(Anthropic, nil)
	got := c.Entry("claude-opus-5")
	want := Entry{
		Spec: model.Spec{
			ID: "claude-opus-5", Name: "Claude Opus 5", ContextWindow: 1_000_000, MaxTokens: 128_000,
			Thinking: []message.ThinkingLevel{"low", "medium", "high", "xhigh", "max"}, Images: true,
			Prices: model.Prices{Input: 5, Output: 25, CacheRead: 0.5, CacheWrite: 6.25, CacheWrite1h: 10},
		},
		Source: "https://platform.claude.com/docs/en/models/opus-5/overview", AsOf: "2026-11-29", Verified: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want.Spec, c.Find("claude-opus-5")); diff != "" {
		t.Error(diff)
	}
	if ids := c.IDs(); !slices.IsSorted(ids) || !slices.Contains(ids, "claude-opus-5") {
		t.Errorf("IDs = %v", ids)
	}
}

// A snapshot is the model whose name it has before the date, an alias the model
// that it stands for; both keep the id that was asked for.
func TestOtherNames(t *testing.T) {
	tests := []struct{ vendor, id, name string }{
		{Anthropic, "claude-haiku-4-5-20251001", "Claude Haiku 4.5"},
		{OpenAI, "gpt-5.4-mini-2026-03-17", "GPT-5.4 mini"},
		{OpenAI, "gpt-5.6", "GPT-5.6 Sol"},
	}
	for _, tt := range tests {
		got := New(tt.vendor, nil).Find(tt.id)
		if got.ID != tt.id || got.Name != tt.name || got.Assumed {
			t.Errorf("Find(%s) = %+v", tt.id, got)
		}
	}
	for _, id := range []string{"gpt-5.4-2026-03-1", "gpt-5.4-2026x03-17", "gpt-5.4-preview", "-20251001", "20251001", ""} {
		if got := New(OpenAI, nil).Entry(id); !got.Assumed || got.Source != "" || got.Verified {
			t.Errorf("Entry(%q) = %+v, want assumed", id, got)
		}
	}
}

func TestUnknownVendor(t *testing.T) {
	c := New("ollama", nil)
	want := Entry{Spec: model.Spec{ID: "llama", Name: "llama", ContextWindow: 32768, MaxTokens: 4096, Thinking: []message.ThinkingLevel{}, Assumed: true}}
	if diff := cmp.Diff(want, c.Entry("llama")); diff != "" {
		t.Error(diff)
	}
	if ids := c.IDs(); len(ids) != 0 {
		t.Errorf("IDs = %v", ids)
	}
}

func TestOverrides(t *testing.T) {
	given := func(n int64) *int64 { return &n }
	dollars := func(f float64) *float64 { return &f }
	off := false
	c := New(OpenAI, map[string]Override{
		"gpt-6-luna": {Prices: PriceOverride{Output: dollars(0)}, Images: &off},
		"house":      {Name: "House", ContextWindow: given(8000), MaxTokens: given(9000), Thinking: &[]message.ThinkingLevel{"low"}, Prices: PriceOverride{Input: dollars(1), CacheWrite: dollars(3)}},
		"half":       {ContextWindow: given(500_000)},
	})
	if ids := c.IDs(); !slices.IsSorted(ids) || len(ids) != len(New(OpenAI, nil).IDs())+2 {
		t.Errorf("IDs = %v", ids)
	}

	luna, plain := c.Entry("gpt-6-luna"), New(OpenAI, nil).Entry("gpt-6-luna")
	if luna.Source != Configured || luna.Verified || luna.Images || luna.Prices.Output != 0 || luna.Prices.Long.Output != 0 {
		t.Errorf("gpt-6-luna = %+v", luna)
	}
	if luna.Prices.Input != plain.Prices.Input || luna.Prices.Long.Input != plain.Prices.Long.Input || luna.ContextWindow != plain.ContextWindow {
		t.Errorf("gpt-6-luna = %+v, of which %+v must be left alone", luna, plain)
	}
	if plain.Prices.Long.Output == 0 {
		t.Error("the override changed what others read")
	}

	want := Entry{
		Spec: model.Spec{
			ID: "house", Name: "House", ContextWindow: 8000, MaxTokens: 8000, Thinking: []message.ThinkingLevel{"low"}, Images: true,
			Prices: model.Prices{Input: 1, CacheRead: 1, CacheWrite: 3, CacheWrite1h: 3},
		},
		Source: Configured,
	}
	if diff := cmp.Diff(want, c.Entry("house")); diff != "" {
		t.Error(diff)
	}
	if half := c.Entry("half"); !half.Assumed || half.ContextWindow != 500_000 || half.MaxTokens != 32000 {
		t.Errorf("half = %+v: its output limit is still a guess", half)
	}
}
