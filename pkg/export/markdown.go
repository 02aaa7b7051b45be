package export

import (
	"fmt"
	"io"
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/internal/visible"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// markdown is a transcript as a Markdown document: a heading per turn, the text
// as it is, everything else in fences.
type markdown struct {
	page
	deferrals Deferrals
}

// Markdown writes a Markdown document to w.
func Markdown(w io.Writer) Document {
	d := &markdown{page: page{w: w}}
	d.deferrals.Tell = d.deferred
	return d
}

func (d *markdown) line(format string, args ...any) {
	d.print(fmt.Sprintf(format, args...), "\n")
}

func (d *markdown) Title(id, name, _ string) {
	if name == "" {
		name = "Session " + id
	}
	d.line("# %s", visible.Line(name))
}

func (d *markdown) End() error {
	d.deferrals.End()
	return d.err
}

func (d *markdown) Mark(label string, lanes []string) {
	d.deferrals.End()
	if label != "" {
		d.line("\n**Label:** %s", visible.Line(label))
	}
	if len(lanes) > 0 {
		d.line("\n**Lane:** %s", visible.Line(strings.Join(lanes, ", ")))
	}
}

func (d *markdown) Branch(n int) {
	d.deferrals.End()
	d.line("\n---\n\n*Another branch, %s, not on the path:*", entries(n))
}

func (d *markdown) BranchEnd() {
	d.deferrals.End()
	d.line("\n*End of the other branch.*\n\n---")
}

func (d *markdown) heading(who string, timestamp int64) {
	if timestamp > 0 {
		who += " · " + instant(timestamp)
	}
	d.line("\n## %s", who)
}

func (d *markdown) text(s string) {
	if s = strings.TrimRight(s, "\n"); s != "" {
		d.line("\n%s", visible.Text(s))
	}
}

// fence puts text behind a label into a code block longer than any run of
// backticks in it.
func (d *markdown) fence(label, language, s string) {
	ticks := "```"
	for strings.Contains(s, ticks) {
		ticks += "`"
	}
	d.line("\n%s\n\n%s%s\n%s\n%s", label, ticks, language, visible.Text(strings.TrimRight(s, "\n")), ticks)
}

func (d *markdown) Entry(e store.Entry) {
	if e.Type == store.TypeMessage {
		d.Message(e.Message(), e.Timestamp)
		return
	}
	d.deferrals.End()
	summary, _ := rawjson.GetString(e.Payload, "summary")
	switch e.Type {
	case store.TypeCompaction:
		d.heading("Compaction", e.Timestamp)
		d.text(summary)
	case store.TypeBranchSummary:
		d.heading("Summary of another branch", e.Timestamp)
		d.text(summary)
	case store.TypeCustom:
		data, _ := rawjson.Get(e.Payload, "data")
		d.heading("Custom entry "+visible.Line(e.CustomType), e.Timestamp)
		if data != nil {
			d.fence("Data:", "json", string(data))
		}
	}
}

func (d *markdown) Message(m message.Message, timestamp int64) {
	if d.deferrals.Take(m, timestamp) {
		return
	}
	switch m.Role() {
	case message.RoleToolResult:
		name, failed := toolResult(m)
		label := "Result of `" + name + "`:"
		if failed {
			label = "Error of `" + name + "`:"
		}
		d.fence(label, "", m.Text())
		return
	case message.RoleBashExecution:
		d.heading(speaker(m), timestamp)
		d.fence("Command and output:", "", m.Text())
		return
	}
	d.heading(speaker(m), timestamp)
	d.blocks(m)
	if text := m.ErrorMessage(); text != "" {
		d.line("\n**%s:** %s", visible.Line(string(m.StopReason())), visible.Line(text))
	}
}

// deferred is no turn: nobody has said anything yet.
func (d *markdown) deferred(run Deferral) {
	d.line("\n*%s*", visible.Line(deferredLine(run)))
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
			quoted := "> " + strings.ReplaceAll(visible.Text(strings.TrimSpace(b.Thinking)), "\n", "\n> ")
			d.line("\n%s", quoted)
		case message.BlockImage:
			d.line("\n*%s*", imageText(b))
		case message.BlockToolCall:
			d.fence("Call of `"+visible.Line(b.Name)+"`:", "json", string(b.Arguments))
		default:
			d.fence("Content of an unknown type:", "json", string(b.Raw))
		}
	}
}

// imageText stands for an image.
func imageText(b message.Block) string {
	return fmt.Sprintf("image %s, %d bytes", visible.Line(b.MimeType), len(b.Data)*3/4)
}
