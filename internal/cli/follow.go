package cli

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
)

// follower shows a run while it is driven: the answer's text on stdout and
// retries on stderr, or every event in ndjson. It also adds up what the run
// used.
type follower struct {
	out   *printer
	lane  string
	usage message.Usage
	notes answerTeller

	tail    []byte // the last character when it is still in two halves
	printed bool   // the current answer printed something
	any     bool   // some answer did
	atStart bool   // of a line
}

func newFollower(out *printer, lane string) *follower {
	return &follower{out: out, lane: lane, notes: answerTeller{out: out}, atStart: true}
}

// watch follows the harness until the result is called. Events come one at a
// time, and the run waits for each.
func (f *follower) watch(h *engine.Harness) (off func()) {
	return h.On(f.take)
}

func (f *follower) take(e engine.Event) {
	if e.Lane != "" && e.Lane != f.lane {
		return
	}
	if e.Type == op.EventUsage && e.Usage != nil {
		if u, err := message.ParseUsage(e.Usage.Usage); err == nil {
			f.usage = f.usage.Add(u)
		}
	}
	// A reader that went away does not stop the run: its result is durable, and
	// the last flush reports what could not be written.
	switch f.out.format {
	case formatNDJSON:
		_ = f.out.stream(func(o *object) {
			o.str("type", "event")
			o.value("event", e)
		})
	case formatText:
		f.show(e)
		f.explain(e)
		f.notes.tell(e, "note: ")
	case formatJSON:
	}
}

func (f *follower) show(e engine.Event) {
	switch e.Type {
	case op.EventMessageStart:
		f.printed = false
	case op.EventMessageUpdate:
		if e.Stream != nil {
			f.delta(*e.Stream)
		}
	case op.EventMessageEnd:
		// An answer that came in one piece had no deltas. What recovery saved of
		// one that was cut off is part of the conversation, but no answer.
		if !f.printed && !e.Recovery && e.Message.Role() == message.RoleAssistant {
			f.print(e.Message.Text())
		}
		f.endLine()
	}
}

func (f *follower) delta(e message.StreamEvent) {
	switch e.Type {
	case message.EventTextStart:
		f.endLine()
	case message.EventTextDelta:
		f.print(e.Delta)
	}
}

// print writes a piece of an answer. A character that the stream cut into two
// surrogates is held back until it is whole.
func (f *follower) print(s string) {
	text := rawjson.AppendJoin(f.tail, s)
	f.tail = nil
	if n := len(text); n >= 3 && text[n-3] == 0xED && text[n-2] >= 0xA0 && text[n-2] < 0xB0 {
		f.tail = append(f.tail, text[n-3:]...)
		text = text[:n-3]
	}
	f.put(string(text))
}

func (f *follower) put(s string) {
	if s == "" {
		return
	}
	f.printed, f.any, f.atStart = true, true, s[len(s)-1] == '\n'
	if f.out.outTTY {
		s = escapeText(s)
	} else {
		s = plainText(s)
	}
	_ = f.out.write(s)
}

// endLine closes the line that an answer left open.
func (f *follower) endLine() {
	if len(f.tail) > 0 {
		f.tail = nil
		f.put(string(utf8.RuneError))
	}
	if !f.atStart {
		f.put("\n")
	}
}

// explain tells a person what the answer does not show.
func (f *follower) explain(e engine.Event) {
	switch e.Type {
	case op.EventRetryScheduled:
		f.out.note("attempt %d of %d in %s: %s", e.Attempt, e.MaxAttempts,
			time.Duration(e.DelayMs)*time.Millisecond, escapeLine(e.ErrorText))
	case op.EventToolStart:
		f.endLine()
		f.out.note("→ %s %s", escapeLine(e.Tool.Name), shorten(escapeLine(string(e.Tool.Args[:min(len(e.Tool.Args), 4*foldWidth)])), foldWidth))
	case op.EventToolEnd:
		f.out.note("%s", toolEnd(e.Tool))
	case op.EventHandlerError:
		f.endLine()
		f.out.note("%s", toldHook(e))
	case op.EventMessageUpdate, op.EventToolUpdate:
	default:
		f.out.debug("%s", describeEvent(e))
	}
}

// toolEnd is a call that ended: its tool, and of a failed one how its result
// begins.
func toolEnd(t *op.ToolEvent) string {
	name := escapeLine(t.Name)
	if !t.IsError {
		return "← " + name
	}
	reason := firstLine(message.Message(t.Result).Text())
	if reason == "" {
		return "✗ " + name
	}
	return "✗ " + name + ": " + shorten(escapeLine(reason), foldWidth)
}

// firstLine is the first line that says something.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

func describeEvent(e engine.Event) string {
	s := string(e.Type)
	if e.Lane != "" {
		s += " lane=" + escapeLine(e.Lane)
	}
	if e.Recovery {
		s += " recovery"
	}
	if e.EntryID != "" {
		s += " entry=" + e.EntryID
	}
	if e.Outcome != "" {
		s += fmt.Sprintf(" outcome=%s", e.Outcome)
	}
	return s
}
