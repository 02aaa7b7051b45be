package cli

import (
	"fmt"
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// markdown is a transcript as a Markdown document: a heading per turn, the text
// as it is, everything else in fences.
type markdown struct{ lines }

func (d *markdown) title(id, name, _ string) {
	if name == "" {
		name = "Session " + id
	}
	d.line("# %s", escapeLine(name))
}

func (d *markdown) end() error { return d.err }

func (d *markdown) heading(who string, timestamp int64) {
	if timestamp > 0 {
		who += " · " + instant(timestamp)
	}
	d.line("\n## %s", who)
}

func (d *markdown) text(s string) {
	if s = strings.TrimRight(s, "\n"); s != "" {
		d.line("\n%s", escapeText(s))
	}
}

// fence puts text behind a label into a code block longer than any run of
// backticks in it.
func (d *markdown) fence(label, language, s string) {
	ticks := "```"
	for strings.Contains(s, ticks) {
		ticks += "`"
	}
	d.line("\n%s\n\n%s%s\n%s\n%s", label, ticks, language, escapeText(strings.TrimRight(s, "\n")), ticks)
}

func (d *markdown) entry(e store.Entry) {
	summary, _ := rawjson.GetString(e.Payload, "summary")
	switch e.Type {
	case store.TypeMessage:
		d.message(e.Message(), e.Timestamp)
	case store.TypeCompaction:
		d.heading("Compaction", e.Timestamp)
		d.text(summary)
	case store.TypeBranchSummary:
		d.heading("Summary of another branch", e.Timestamp)
		d.text(summary)
	case store.TypeCustom:
		data, _ := rawjson.Get(e.Payload, "data")
		d.heading("Custom entry "+escapeLine(e.CustomType), e.Timestamp)
		if data != nil {
			d.fence("Data:", "json", string(data))
		}
	}
}

func (d *markdown) message(m message.Message, timestamp int64) {
	switch m.Role() {
	case message.RoleToolResult:
		name, _ := rawjson.GetString(m, "toolName")
		label := "Result of `" + escapeLine(name) + "`:"
		if failed, _ := rawjson.GetBool(m, "isError"); failed {
			label = "Error of `" + escapeLine(name) + "`:"
		}
		d.fence(label, "", m.Text())
		return
	case message.RoleAssistant:
		d.heading("Assistant"+modelOf(m), timestamp)
	case message.RoleBashExecution:
		d.heading("User ran a command", timestamp)
		d.fence("Command and output:", "", m.Text())
		return
	default:
		who := speaker(m)
		d.heading(strings.ToUpper(who[:1])+who[1:], timestamp)
	}
	d.blocks(m)
	if text := m.ErrorMessage(); text != "" {
		d.line("\n**%s:** %s", m.StopReason(), escapeLine(text))
	}
}

func (d *markdown) blocks(m message.Message) {
	blocks, err := m.Blocks()
	if err != nil || blocks == nil {
		d.text(m.Text())
		return
	}
	for _, b := range blocks {
		switch b.Type {
		case message.BlockText:
			d.text(b.Text)
		case message.BlockThinking:
			d.line("\n%s", indent(escapeText(strings.TrimSpace(b.Thinking)), "> "))
		case message.BlockImage:
			d.line("\n*%s*", fmt.Sprintf("image %s, %d bytes", escapeLine(b.MimeType), len(b.Data)*3/4))
		case message.BlockToolCall:
			d.fence("Call of `"+escapeLine(b.Name)+"`:", "json", string(b.Arguments))
		default:
			d.fence("Content of an unknown type:", "json", string(b.Raw))
		}
	}
}
