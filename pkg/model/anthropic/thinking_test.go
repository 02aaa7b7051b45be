package anthropic

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
)

func TestFamilies(t *testing.T) {
	for id, want := range map[string]family{
		"claude-3-7-sonnet-20250219":       {sampling: true},
		"claude-sonnet-4-5-20250929":       {sampling: true, interleaves: true},
		"claude-opus-4-1":                  {sampling: true, interleaves: true},
		"claude-opus-4-20250514":           {sampling: true, interleaves: true},
		"claude-haiku-4-5":                 {sampling: true, interleaves: true},
		"us.anthropic.claude-opus-4-6-v1":  {sampling: true, adaptive: true},
		"claude-opus-4.7":                  {adaptive: true},
		"claude-opus-4-8-20260528":         {adaptive: true},
		"claude-sonnet-5":                  {adaptive: true, thinks: true},
		"claude-opus-5-20260724":           {adaptive: true, thinks: true},
		"claude-fable-5":                   {adaptive: true, thinks: true, always: true},
		"claude-fable-5-1":                 {adaptive: true, thinks: true, always: true, bound: true},
		"claude-mythos-5-1":                {adaptive: true, thinks: true, always: true},
		"claude-mythos-preview":            {adaptive: true, thinks: true, always: true},
		"claude-opus-5-5":                  {adaptive: true, thinks: true, always: true, bound: true},
		"claude-haiku-5-5":                 {adaptive: true, thinks: true, bound: true},
		"anthropic/Claude-Sonnet-6@latest": {adaptive: true, thinks: true, bound: true},
		"claude-next":                      {adaptive: true},
		"glm-4.6":                          {sampling: true},
	} {
		if diff := cmp.Diff(want, familyOf(id), cmp.AllowUnexported(family{})); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
}

// TestThinking: a level in the words of each family.
func TestThinking(t *testing.T) {
	const (
		binding  = `"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}}`
		adaptive = `"thinking":{"type":"adaptive","display":"summarized"}`
	)
	budget := func(n string) string { return `{"thinking":{"type":"enabled","budget_tokens":` + n + `}}` }
	for _, tt := range []struct {
		name, id string
		level    message.ThinkingLevel
		output   int64
		want     string
		betas    []string
	}{
		{"a budget", "claude-sonnet-4-5", message.ThinkingHigh, 64_000, budget("16384"), nil},
		{"the least", "claude-sonnet-4-5", message.ThinkingMinimal, 64_000, budget("1024"), nil},
		{"the most", "claude-sonnet-4-5", message.ThinkingMax, 128_000, budget("61440"), nil},
		{"room for an answer is left", "claude-sonnet-4-5", message.ThinkingMax, 8000, budget("6976"), nil},
		{"no room to think", "claude-sonnet-4-5", message.ThinkingMax, 2047, `{}`, nil},
		{"another make", "glm-4.6", message.ThinkingLow, 64_000, budget("2048"), nil},
		{"off", "claude-sonnet-4-5", message.ThinkingOff, 64_000, `{}`, nil},
		{"an effort", "claude-opus-4-8", message.ThinkingXHigh, 64_000, `{` + adaptive + `,"output_config":{"effort":"xhigh"}}`, nil},
		{"the least effort", "claude-opus-4-8", message.ThinkingMinimal, 64_000, `{` + adaptive + `,"output_config":{"effort":"low"}}`, nil},
		{"off by itself", "claude-opus-4-8", message.ThinkingOff, 64_000, `{}`, nil},
		{"off by demand", "claude-sonnet-5-5", "", 64_000, `{"thinking":{"type":"disabled"}}`, nil},
		{"never off", "claude-fable-5-1", message.ThinkingOff, 64_000, `{` + binding + `,"output_config":{"effort":"low"}}`, []string{bindingBeta}},
		{"bound", "claude-sonnet-5-5", message.ThinkingMedium, 64_000, `{` + binding + `,"output_config":{"effort":"medium"}}`, []string{bindingBeta}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := model.Spec{ID: tt.id}
			req := effect.Request{Thinking: tt.level, MaxOutput: tt.output, Messages: []message.Message{user("a")}}
			if got := sent(t, s, req, "model", "max_tokens", "messages"); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			if diff := cmp.Diff(tt.betas, newRequest("acme", s, req, true).betas); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// others is an answer of another model.
func others(blocks ...message.Block) message.Message {
	a, _ := message.ParseAssistant(said(blocks...))
	a.Model = "other"
	return a.Message()
}

// A budget is refused in the middle of a turn that did not begin with thinking.
func TestThinkingInTheMiddle(t *testing.T) {
	thought := message.Block{Type: message.BlockThinking, Thinking: "hm", ThinkingSignature: "sig"}
	unsigned := message.Block{Type: message.BlockThinking, Thinking: "hm"}
	for name, tt := range map[string]struct {
		messages []message.Message
		on       bool
	}{
		"began with thinking":         {[]message.Message{user("a"), said(thought, call("c1")), done("c1", "1")}, true},
		"began without":               {[]message.Message{user("a"), said(call("c1")), done("c1", "1")}, false},
		"began with unsigned":         {[]message.Message{user("a"), said(unsigned, call("c1")), done("c1", "1")}, false},
		"began with another's":        {[]message.Message{user("a"), others(thought, call("c1")), done("c1", "1")}, false},
		"the turn is over":            {[]message.Message{user("a"), said(call("c1")), done("c1", "1"), user("b")}, true},
		"the answer called for none":  {[]message.Message{user("a"), said(message.TextBlock("b")), user("c")}, true},
		"nobody has answered a thing": {[]message.Message{user("a")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			req := effect.Request{Thinking: message.ThinkingLow, MaxOutput: 9000, Messages: tt.messages}
			ref := message.ModelRef{Provider: "acme", ModelID: spec.ID}
			if got := thinkingFor(ref, spec, req); got.on != tt.on {
				t.Errorf("thinking %+v", got)
			}
		})
	}
}

// A model that must not think is not sent what it thought, where it would check
// that.
func TestThoughtsOfASilencedModel(t *testing.T) {
	thought := message.Block{Type: message.BlockThinking, Thinking: "hm", ThinkingSignature: "sig"}
	m := message.Assistant{Provider: "acme", API: API, Model: "claude-sonnet-5-5", Content: []message.Block{thought, message.TextBlock("b")}, StopReason: message.StopStop}.Message()
	got := sent(t, model.Spec{ID: "claude-sonnet-5-5"}, effect.Request{Messages: []message.Message{user("a"), m, user("c")}}, "model", "max_tokens")
	want := `{"thinking":{"type":"disabled"},"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"text","text":"b"}]},` +
		`{"role":"user","content":[{"type":"text","text":"c",` + mark + `}]}]}`
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A temperature goes to models that take one, while they do not think, by the
// API's version that knows it.
func TestTemperature(t *testing.T) {
	temperature := 0.5
	for _, tt := range []struct {
		id    string
		level message.ThinkingLevel
		want  bool
	}{
		{"claude-sonnet-4-5", message.ThinkingOff, true},
		{"claude-sonnet-4-5", message.ThinkingLow, false},
		{"claude-opus-4-8", message.ThinkingOff, false},
		{"glm-4.6", message.ThinkingOff, true},
	} {
		r := newRequest("acme", model.Spec{ID: tt.id}, effect.Request{Thinking: tt.level, MaxOutput: 9000, Options: message.StreamOptions{Temperature: &temperature}}, true)
		sent, _ := rawjson.Get(r.body, "temperature")
		if got := string(sent) == "0.5"; got != tt.want || r.older != tt.want {
			t.Errorf("%s at %s: %+v %s", tt.id, tt.level, r, r.body)
		}
	}
}
