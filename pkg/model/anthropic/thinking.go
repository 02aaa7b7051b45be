package anthropic

import (
	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
)

const (
	// bindingBeta lets a request choose what becomes of thinking whose conversation
	// changed since.
	bindingBeta = "thinking-binding-controls-2026-08-01"
	// interleavedBeta lets older models think between tool calls.
	interleavedBeta = "interleaved-thinking-2025-05-14"
)

// minBudget is the smallest thinking budget that the API takes, and what is left
// of the output limit for the answer itself, in tokens.
const minBudget = 1024

// thinking is how a request asks the model to think.
type thinking struct {
	on      bool
	history bool // earlier thinking goes along
	body    []byte
	betas   []string
}

// thinkingFor says a thinking level in the words of the model's family. A model
// that always thinks is asked for little when the level is off.
func thinkingFor(ref message.ModelRef, spec model.Spec, req effect.Request) thinking {
	f := familyOf(spec.ID)
	off := req.Thinking == "" || req.Thinking == message.ThinkingOff
	switch {
	case f.adaptive && (!off || f.always):
		return adaptive(f, req.Thinking)
	case f.thinks:
		// A request that forbids thinking cannot ask for stale thinking to be dropped.
		return thinking{body: []byte(`,"thinking":{"type":"disabled"}`), history: !f.bound}
	case off || startsUnthinking(ref, req.Messages):
		return thinking{history: true}
	}
	budget := min(budgetOf(req.Thinking), outputLimit(spec, req)-minBudget)
	if budget < minBudget {
		return thinking{history: true}
	}
	t := thinking{on: true, history: true}
	t.body = rawjson.AppendInt([]byte(`,"thinking":{"type":"enabled","budget_tokens":`), budget)
	t.body = append(t.body, '}')
	if f.interleaves && len(req.Tools) > 0 {
		t.betas = []string{interleavedBeta}
	}
	return t
}

// adaptive asks for thinking of an effort, and to be shown a summary: newer models
// keep the text to themselves otherwise. A conversation changes under its thinking
// whenever it is compacted or navigated, or its tools change: what does not fit any
// more is to be left out, not to be refused.
func adaptive(f family, level message.ThinkingLevel) thinking {
	t := thinking{on: true, history: true}
	t.body = append(t.body, `,"thinking":{"type":"adaptive","display":"summarized"`...)
	if f.bound {
		t.body = append(t.body, `,"block_binding":{"prefix_mismatch_behavior":"drop_block"}`...)
		t.betas = []string{bindingBeta}
	}
	t.body = append(t.body, `},"output_config":{"effort":`...)
	t.body = append(rawjson.AppendQuote(t.body, effortOf(level)), '}')
	return t
}

func effortOf(level message.ThinkingLevel) string {
	switch level {
	case message.ThinkingMedium, message.ThinkingHigh, message.ThinkingXHigh, message.ThinkingMax:
		return string(level)
	}
	return string(message.ThinkingLow)
}

// budgetOf is how many tokens a level may think.
func budgetOf(level message.ThinkingLevel) int64 {
	switch level {
	case message.ThinkingMinimal:
		return minBudget
	case message.ThinkingLow:
		return 2 << 10
	case message.ThinkingMedium:
		return 8 << 10
	case message.ThinkingHigh:
		return 16 << 10
	case message.ThinkingXHigh:
		return 32 << 10
	}
	return 60 << 10
}

// startsUnthinking reports whether the conversation is in the middle of a turn of
// tool calls whose last answer does not begin with thinking that can go back: a
// request with a thinking budget is refused there.
func startsUnthinking(ref message.ModelRef, messages []message.Message) bool {
	last := len(messages) - 1
	for last >= 0 && messages[last].Role() == message.RoleToolResult {
		last--
	}
	if last < 0 || messages[last].Role() != message.RoleAssistant {
		return false
	}
	blocks := blocksOf(messages[last])
	return len(blocks) == 0 || blocks[0].Type != message.BlockThinking || blocks[0].ThinkingSignature == "" ||
		!isOwn(ref, messages[last])
}
