package export

import (
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/internal/visible"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// htmlPage is a transcript as one page that needs nothing else. A transcript is
// hostile: everything is escaped, nothing of it becomes a link, and the policy of
// the page lets it load nothing (D59).
type htmlPage struct {
	page
	begun     bool
	nested    int // branches that are open
	deferrals Deferrals
}

// HTML writes one self-contained page to w.
func HTML(w io.Writer) Document {
	d := &htmlPage{page: page{w: w}}
	d.deferrals.Tell = d.deferred
	return d
}

// maxNested is how deep branches are drawn inside each other; deeper ones are
// marked only.
const maxNested = 20

func esc(s string) string { return html.EscapeString(visible.Text(s)) }

func escLine(s string) string { return html.EscapeString(visible.Line(s)) }

func (d *htmlPage) Title(id, name, lane string) {
	title := name
	if title == "" {
		title = "Session " + id
	}
	d.head(title)
	d.print("<header><h1>", escLine(title), "</h1><p>Session <code>", escLine(id), "</code>, lane ", escLine(lane), "</p></header>\n")
}

func (d *htmlPage) head(title string) {
	d.begun = true
	d.print(htmlHead, "<title>", escLine(title), "</title>\n<style>", htmlStyle, "</style>\n</head>\n<body>\n<main>\n")
}

// ready ends what was gathered, and begins the page where nobody gave it a title.
func (d *htmlPage) ready() {
	if !d.begun {
		d.head("Conversation")
	}
	d.deferrals.End()
}

func (d *htmlPage) End() error {
	d.ready()
	for ; d.nested > 0; d.nested-- {
		d.closeBranch()
	}
	d.print("</main>\n</body>\n</html>\n")
	return d.err
}

func (d *htmlPage) Mark(label string, lanes []string) {
	d.ready()
	d.print(`<p class="mark">`)
	if label != "" {
		d.print("<b>", escLine(label), "</b> ")
	}
	for _, lane := range lanes {
		d.print("<i>lane ", escLine(lane), "</i> ")
	}
	d.print("</p>\n")
}

func (d *htmlPage) Branch(n int) {
	d.ready()
	if d.nested++; d.nested <= maxNested {
		d.print(`<details class="branch"><summary>Another branch, `, entries(n), ", not on the path</summary>\n")
		return
	}
	d.print(`<p class="mark">Another branch begins, `, entries(n), "</p>\n")
}

func (d *htmlPage) BranchEnd() {
	d.deferrals.End()
	d.closeBranch()
	d.nested--
}

func (d *htmlPage) closeBranch() {
	if d.nested <= maxNested {
		d.print("</details>\n")
		return
	}
	d.print(`<p class="mark">The branch ends</p>` + "\n")
}

// turn begins an article.
func (d *htmlPage) turn(class, who string, timestamp int64) {
	d.print(`<article class="`, class, `"><h2>`, html.EscapeString(who))
	if timestamp > 0 {
		d.print(" <time>", instant(timestamp), "</time>")
	}
	d.print("</h2>\n")
}

func (d *htmlPage) Entry(e store.Entry) {
	summary, _ := rawjson.GetString(e.Payload, "summary")
	switch e.Type {
	case store.TypeMessage:
		d.Message(e.Message(), e.Timestamp)
		return
	case store.TypeCompaction:
		d.ready()
		d.turn("summary", "Compaction: earlier messages in summary", e.Timestamp)
		d.text(summary)
	case store.TypeBranchSummary:
		d.ready()
		d.turn("summary", "Summary of another branch", e.Timestamp)
		d.text(summary)
	default:
		d.ready()
		d.turn("custom", "Custom entry", e.Timestamp)
		data, _ := rawjson.Get(e.Payload, "data")
		d.fold("custom", e.CustomType, string(data))
	}
	d.print("</article>\n")
}

func (d *htmlPage) Message(m message.Message, timestamp int64) {
	if d.deferrals.Take(m, timestamp) {
		return
	}
	d.ready()
	class := "other"
	switch m.Role() {
	case message.RoleToolResult:
		name, failed := toolResult(m)
		if class = "result"; failed {
			class = "result failed"
			name += " failed"
		}
		d.print(`<article class="tool">`)
		d.fold(class, "← "+name, m.Text())
		d.images(m)
		d.print("</article>\n")
		return
	case message.RoleUser:
		class = "user"
	case message.RoleAssistant:
		class = "assistant"
	}
	d.turn(class, speaker(m), timestamp)
	if m.Role() == message.RoleBashExecution {
		d.print("<pre>", esc(m.Text()), "</pre>\n")
	} else {
		d.blocks(m)
	}
	if text := m.ErrorMessage(); text != "" {
		d.print(`<p class="failed">`, escLine(string(m.StopReason())), ": ", esc(text), "</p>\n")
	}
	d.print("</article>\n")
}

// deferred is no turn: nobody has said anything yet.
func (d *htmlPage) deferred(run Deferral) {
	d.ready()
	d.print(`<p class="mark">`, escLine(deferredLine(run)), "</p>\n")
}

func (d *htmlPage) text(s string) {
	if s = strings.TrimRight(s, "\n"); s != "" {
		d.print(`<div class="text" dir="auto">`, esc(s), "</div>\n")
	}
}

// fold writes text that a click shows, with its beginning in view.
func (d *htmlPage) fold(class, title, s string) {
	const preview = 120
	first, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	first = visible.Line(first[:min(len(first), 4*preview)])
	if runes := []rune(first); len(runes) > preview {
		first = string(runes[:preview]) + "…"
	}
	d.print(`<details class="`, class, `"><summary>`, escLine(title), " <code>", html.EscapeString(first), "</code></summary><pre>", esc(s), "</pre></details>\n")
}

func (d *htmlPage) blocks(m message.Message) {
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
			d.fold("thinking", "thinking", b.Thinking)
		case message.BlockImage:
			d.image(b)
		case message.BlockToolCall:
			d.fold("call", "→ "+b.Name, string(b.Arguments))
		default:
			d.fold("custom", fmt.Sprintf("content of type %q", b.Type), string(b.Raw))
		}
	}
}

// images shows the images among the content of a tool result.
func (d *htmlPage) images(m message.Message) {
	blocks, _ := m.Blocks() // what is no content shows nothing
	for _, b := range blocks {
		if b.Type == message.BlockImage {
			d.image(b)
		}
	}
}

func (d *htmlPage) image(b message.Block) {
	mime := imageType(b.Data)
	if mime == "" {
		d.print(`<p class="mark">`, html.EscapeString(imageText(b)), "</p>\n")
		return
	}
	d.print(`<img alt="image" src="data:`, mime, ";base64,", b.Data, "\">\n")
}
