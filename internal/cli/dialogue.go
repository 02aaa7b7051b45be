package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/export"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// dialogue is a transcript for a person at a terminal: one header per turn, the
// text as it is, everything else folded to a line.
type dialogue struct {
	lines
	p         *printer
	deferrals export.Deferrals
}

func newDialogue(w io.Writer, p *printer) *dialogue {
	d := &dialogue{lines: lines{w: w}, p: p}
	d.deferrals.Tell = d.deferred
	return d
}

// foldWidth is how long a folded line gets where there is no terminal.
const foldWidth = 120

func (d *dialogue) Title(id, name, lane string) {
	title := "session " + id
	if name != "" {
		title += fmt.Sprintf(" %q", escapeLine(name))
	}
	d.line("%s", d.p.paint(dim, title+", lane "+escapeLine(lane), d.p.outTTY))
}

func (d *dialogue) End() error {
	d.deferrals.End()
	return d.err
}

func (d *dialogue) header(c ink, who string, timestamp int64) {
	when := ""
	if timestamp > 0 {
		when = d.p.paint(dim, " · "+d.p.when(timestamp), d.p.outTTY)
	}
	d.line("\n%s%s", d.p.paint(c, "── "+who, d.p.outTTY), when)
}

// text prints text as it is, but for what a terminal would act on.
func (d *dialogue) text(s string) {
	if s = strings.TrimRight(s, "\n"); s != "" {
		d.line("%s", escapeText(s))
	}
}

// fold prints one line of something longer.
func (d *dialogue) fold(c ink, mark, s string) {
	s = strings.TrimSpace(s)
	first, _, cut := strings.Cut(s, "\n")
	width := foldWidth
	if d.p.width > 0 {
		width = d.p.width
	}
	more := ""
	if cut {
		more = fmt.Sprintf(" (%d lines)", strings.Count(s, "\n")+1)
	}
	// Every character may take an escape: what cannot fit is cut before.
	line := shorten(escapeLine(first[:min(len(first), 4*width)]), width-len(more)-len(mark)-1)
	d.line("%s", d.p.paint(c, mark+" "+line+more, d.p.outTTY))
}

func (d *dialogue) Entry(e store.Entry) {
	field := func(name string) string {
		s, _ := rawjson.GetString(e.Payload, name)
		return s
	}
	if e.Type == store.TypeMessage {
		d.Message(e.Message(), e.Timestamp)
		return
	}
	d.deferrals.End()
	switch e.Type {
	case store.TypeCompaction:
		d.header(bold, "compaction: earlier messages in summary", e.Timestamp)
		d.text(field("summary"))
	case store.TypeBranchSummary:
		d.header(bold, "summary of another branch", e.Timestamp)
		d.text(field("summary"))
	case store.TypeCustom:
		data, _ := rawjson.Get(e.Payload, "data")
		d.line("")
		d.fold(dim, "·", e.CustomType+" "+string(data))
	}
}

func (d *dialogue) Message(m message.Message, timestamp int64) {
	if d.deferrals.Take(m, timestamp) {
		return
	}
	switch role := m.Role(); role {
	case message.RoleAssistant:
		d.header(bold, "assistant"+modelOf(m), timestamp)
		d.blocks(m)
		d.ending(m)
	case message.RoleToolResult:
		d.toolResult(m)
	case message.RoleBashExecution:
		d.header(cyan, "user ran a command", timestamp)
		d.text("$ " + m.Text())
	case message.RoleUser, message.RoleSystem, message.RoleCustom, message.RoleBranchSummary, message.RoleCompactionSummary:
		d.header(cyan, speaker(m), timestamp)
		d.blocks(m)
	default:
		d.header(cyan, "message of unknown role", timestamp)
		d.fold(dim, "·", string(m))
	}
}

// speaker names whoever a message is from.
func speaker(m message.Message) string {
	switch m.Role() {
	case message.RoleCustom:
		kind, _ := rawjson.GetString(m, "customType")
		return "custom " + escapeLine(kind)
	case message.RoleBranchSummary:
		return "summary of another branch"
	case message.RoleCompactionSummary:
		return "earlier messages in summary"
	case "":
		return "message of unknown role"
	}
	return string(m.Role())
}

func modelOf(m message.Message) string {
	provider, _ := rawjson.GetString(m, "provider")
	model, _ := rawjson.GetString(m, "model")
	if provider == "" && model == "" {
		return ""
	}
	return " (" + escapeLine(provider+"/"+model) + ")"
}

func (d *dialogue) blocks(m message.Message) {
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
			d.thinking(b)
		case message.BlockImage:
			d.fold(dim, "·", fmt.Sprintf("image %s, %d bytes", b.MimeType, len(b.Data)*3/4))
		case message.BlockToolCall:
			d.fold(cyan, "→", b.Name+" "+string(b.Arguments))
		default:
			d.fold(dim, "·", string(b.Raw))
		}
	}
}

func (d *dialogue) thinking(b message.Block) {
	switch {
	case b.Redacted:
		d.fold(dim, "…", "thinking, withheld by the provider")
	case d.p.verbose:
		d.line("%s", d.p.paint(dim, indent(escapeText(strings.TrimSpace(b.Thinking)), "… "), d.p.outTTY))
	case strings.TrimSpace(b.Thinking) != "":
		d.fold(dim, "…", "thinking: "+b.Thinking)
	}
}

// deferred shows that an answer is to come, and why the last poll was not answered.
func (d *dialogue) deferred(run export.Deferral) {
	d.header(bold, "assistant"+modelOf(run.First), run.At)
	d.fold(dim, "·", run.Text(func(ms int64) string {
		if d.p.outTTY {
			return d.p.when(ms)
		}
		return "at " + d.p.when(ms)
	}))
	if run.Failed.Known {
		d.fold(red, "✗", "last poll: "+run.Failed.Reason())
	}
}

// ending marks an answer that did not simply end.
func (d *dialogue) ending(m message.Message) {
	switch reason := m.StopReason(); reason {
	case message.StopError, message.StopAborted:
		text := m.ErrorMessage()
		if text == "" {
			text = string(reason)
		}
		d.fold(red, "✗", string(reason)+": "+text)
	case message.StopLength:
		d.fold(red, "✗", "cut: the answer reached its length limit")
	case message.StopDeferred:
		d.fold(dim, "·", "deferred")
	}
}

func (d *dialogue) toolResult(m message.Message) {
	name, _ := rawjson.GetString(m, "toolName")
	text := m.Text()
	if strings.TrimSpace(text) == "" {
		text = "(nothing)"
	}
	if failed, _ := rawjson.GetBool(m, "isError"); failed {
		d.fold(red, "✗", name+": "+text)
		return
	}
	d.fold(dim, "←", name+": "+text)
}
