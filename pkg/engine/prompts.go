package engine

import (
	"fmt"
	"strings"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
)

// summaryPrompt is one request of a summary: what to do, on which transcript, in
// at most how many tokens.
type summaryPrompt struct {
	task      string
	text      string
	maxTokens int64
}

const summarySystem = "You write handover notes for a coding agent whose conversation no longer fits its memory. " +
	"You never continue the conversation and never answer what it asks; you only record it."

const historyTask = "Record the conversation below so that the agent can go on without it. Use these headings: " +
	"Goal; Constraints and wishes; Done so far; In progress; Decisions and their reasons; Next steps; Facts to keep. " +
	"Under the last one keep exact paths, names, commands, numbers and error texts. Leave out what no longer matters."

const updateTask = "Below are the notes made so far and the conversation since then. Write the notes anew: keep what still " +
	"holds, correct what has changed, add what is new, drop what is done with. Keep the same headings."

const prefixTask = "Below is the beginning of one long turn whose end the agent still has in full. Record what the user asked " +
	"for in this turn, what was done and found in this part of it, and what its end needs to be understood."

const branchTask = "Below is a branch of the conversation that the user is leaving. Record what was tried there, what came of " +
	"it, and what would matter to somebody who goes on from an earlier point: goal, findings, decisions, open points, exact " +
	"paths and error texts."

// branchSummaryTokens bounds the summary of an abandoned branch.
const branchSummaryTokens = 2_048

// summaryPrompts are the one or two requests that a summary takes.
func summaryPrompts(p op.Preparation, instructions string) []summaryPrompt {
	if p.Kind == op.SummaryBranch {
		return []summaryPrompt{{task: withInstructions(branchTask, instructions), text: transcript(p.Messages), maxTokens: branchSummaryTokens}}
	}
	var prompts []summaryPrompt
	if len(p.Summarize) > 0 {
		task, text := historyTask, transcript(p.Summarize)
		if p.PreviousSummary != nil {
			task = updateTask
			text = "<notes>\n" + *p.PreviousSummary + "\n</notes>\n\n" + text
		}
		prompts = append(prompts, summaryPrompt{withInstructions(task, instructions), text, p.Settings.ReserveTokens * 8 / 10})
	}
	if len(p.TurnPrefix) > 0 {
		prompts = append(prompts, summaryPrompt{withInstructions(prefixTask, instructions), transcript(p.TurnPrefix), p.Settings.ReserveTokens / 2})
	}
	return prompts
}

func withInstructions(task, instructions string) string {
	if instructions == "" {
		return task
	}
	return task + "\n\nThe user adds: " + instructions
}

func (s summaryPrompt) request(info effect.ModelInfo, options message.StreamOptions, level message.ThinkingLevel, now int64) effect.Request {
	limit := max(1, s.maxTokens)
	if info.MaxTokens > 0 {
		limit = min(limit, info.MaxTokens)
	}
	options.MaxTokens = &limit
	return effect.Request{
		SystemPrompt: summarySystem,
		Messages:     []message.Message{message.NewUser(s.task+"\n\n<conversation>\n"+s.text+"\n</conversation>", nil, now)},
		Thinking:     message.ClampThinking(level, info.Thinking),
		Options:      options,
		MaxOutput:    limit,
		Now:          now,
	}
}

// toolResultLimit is how much of a tool result a summary sees, in characters.
const toolResultLimit = 2_000

// transcript is a conversation as plain text with role tags.
func transcript(messages []message.Message) string {
	var b strings.Builder
	for _, m := range messages {
		blocks, err := m.Blocks()
		if err != nil || len(blocks) == 0 {
			section(&b, string(m.Role()), m.Text())
			continue
		}
		for _, block := range blocks {
			switch block.Type {
			case message.BlockText:
				text := block.Text
				if m.Role() == message.RoleToolResult {
					text = cut(text, toolResultLimit)
				}
				section(&b, string(m.Role()), text)
			case message.BlockThinking:
				section(&b, "assistant thinking", block.Thinking)
			case message.BlockToolCall:
				section(&b, "assistant calls "+block.Name, string(block.Arguments))
			case message.BlockImage:
				section(&b, string(m.Role()), "(an image)")
			}
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

func section(b *strings.Builder, who, text string) {
	if text != "" {
		fmt.Fprintf(b, "[%s]\n%s\n\n", who, text)
	}
}

func cut(text string, limit int) string {
	runes := 0
	for i := range text {
		if runes == limit {
			return fmt.Sprintf("%s\n(%d more bytes left out)", text[:i], len(text)-i)
		}
		runes++
	}
	return text
}

// joinSummary is the text of a finished summary: history, the beginning of a
// split turn under its own heading, the files.
func joinSummary(p op.Preparation, texts, read, modified []string) string {
	var b strings.Builder
	rest := texts
	if p.Kind == op.SummaryCompaction && len(p.Summarize) == 0 {
		if p.PreviousSummary != nil {
			b.WriteString(*p.PreviousSummary)
		}
	} else if len(rest) > 0 {
		b.WriteString(rest[0])
		rest = rest[1:]
	}
	if len(rest) > 0 {
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString("## The current turn so far\n\n" + rest[0])
	}
	list(&b, "Files read", read)
	list(&b, "Files modified", modified)
	return b.String()
}

func list(b *strings.Builder, heading string, paths []string) {
	if len(paths) == 0 {
		return
	}
	fmt.Fprintf(b, "\n\n## %s\n", heading)
	for _, path := range paths {
		b.WriteString("\n- " + path)
	}
}
