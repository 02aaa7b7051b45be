package message

import (
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
)

// ToProvider projects the messages of a context to those a provider is sent:
// user, assistant, toolResult and system messages, healed (spec §2.5).
// Messages of other roles become user messages in words of ours or, when they
// are kept from the context or of an unknown role, nothing; so do user and
// assistant messages without content, which providers refuse. The inputs are
// not changed; the result may share their bytes.
func ToProvider(msgs []Message) []Message {
	out := make([]Message, 0, len(msgs))
	for _, m := range msgs {
		if p := project(m); p != nil {
			out = append(out, p)
		}
	}
	return Heal(out)
}

// project returns what a provider is sent for a message, nil for nothing.
func project(m Message) Message {
	switch m.Role() {
	case RoleSystem, RoleToolResult:
		return m
	case RoleAssistant:
		if !m.outline().blocks {
			return nil
		}
		return m
	case RoleUser:
		if !m.outline().says {
			return nil
		}
		return m
	case RoleCustom:
		if !m.outline().says {
			return nil
		}
		content, _ := m.Get("content")
		return userMessage(content, m.Timestamp())
	case RoleBashExecution:
		if excluded, _ := rawjson.GetBool(m, "excludeFromContext"); excluded {
			return nil
		}
		return userText(bashText(m), m.Timestamp())
	case RoleBranchSummary:
		return userText("The conversation went down another branch for a while and then left it. "+
			"What happened on the abandoned branch, in summary:\n\n<summary>\n"+m.str("summary")+"\n</summary>", m.Timestamp())
	case RoleCompactionSummary:
		return userText("The conversation up to this point was compacted. "+
			"This summary stands for the earlier messages:\n\n<summary>\n"+m.str("summary")+"\n</summary>", m.Timestamp())
	}
	return nil
}

// outline is what a provider's refusal of empty content depends on.
type outline struct {
	blocks bool // there is a block, or a string
	says   bool // there is more than white space
}

// outline looks at the content without decoding images; content that is no
// content has nothing.
func (m Message) outline() outline {
	content, _ := rawjson.Get(m, "content")
	if rawjson.KindOf(content) == rawjson.String {
		return outline{blocks: true, says: strings.TrimSpace(text(content)) != ""}
	}
	var o outline
	broken := false
	err := rawjson.ElementsFunc(content, func(start, end int) bool {
		raw := content[start:end]
		broken = rawjson.KindOf(raw) != rawjson.Object
		o.blocks = true
		if !o.says {
			s, _ := rawjson.GetString(raw, "text")
			o.says = !isBlock(raw, BlockText) || strings.TrimSpace(s) != ""
		}
		return !broken
	})
	if err != nil || broken {
		return outline{}
	}
	return o
}

func userText(text string, timestamp int64) Message { return NewUser(text, nil, timestamp) }

// bashText tells a model about a command the user ran.
func bashText(m Message) string {
	command, output := m.str("command"), strings.TrimRight(m.str("output"), "\n")
	var b strings.Builder
	b.WriteString("I ran a shell command:\n\n" + fenced(command) + "\n\n")
	if output == "" {
		b.WriteString("It printed nothing.")
	} else {
		b.WriteString("It printed:\n\n" + fenced(output))
	}
	if cancelled, _ := rawjson.GetBool(m, "cancelled"); cancelled {
		b.WriteString("\n\nIt was cancelled before it ended.")
	} else if code, ok := exitCode(m); ok {
		b.WriteString("\n\nExit code: " + code)
	}
	if truncated, _ := rawjson.GetBool(m, "truncated"); truncated {
		b.WriteString("\n\nThe output above is truncated.")
		if path := m.str("fullOutputPath"); path != "" {
			b.WriteString(" All of it is in " + path)
		}
	}
	return b.String()
}

func exitCode(m Message) (string, bool) {
	raw, ok := present(m, "exitCode")
	return string(raw), ok
}

// fenced puts text into a code fence longer than any run of backticks in it.
func fenced(text string) string {
	longest, run := 2, 0
	for i := range len(text) {
		if text[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	return fence + "\n" + text + "\n" + fence
}
