package export

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/internal/visible"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Document writes a conversation for people, one entry after another. It keeps
// the first failure, after which it does nothing; Err and End return it.
type Document interface {
	// Title begins the document.
	Title(id, name, lane string)
	// Mark stands in front of the entry that it is about: its label, "" for none,
	// and the lanes that stand there.
	Mark(label string, lanes []string)
	// Entry writes an entry, Message a message that is none.
	Entry(e store.Entry)
	Message(m message.Message, timestamp int64)
	// Branch begins a branch beside the path, of so many entries; BranchEnd ends
	// it. They nest.
	Branch(entries int)
	BranchEnd()
	Err() error
	// End finishes the document.
	End() error
}

// Document writes what goes out as a document: the path of the lane alone, or
// the whole tree, in which every branch beside the path comes before the path
// goes on.
func (s *Source) Document(ctx context.Context, d Document) error {
	s.err = nil
	d.Title(s.header.ID, s.name, s.o.Lane)
	if s.o.AllBranches {
		s.mark(d, none)
		s.walk(ctx, d)
	} else {
		for i, e := range s.entries(ctx, func(int32) bool { return true }) {
			s.mark(d, i)
			if d.Entry(*e); d.Err() != nil {
				break
			}
		}
	}
	if s.err != nil {
		return s.err
	}
	return d.End()
}

// mark tells what stands at an entry. Lanes say something only beside others.
func (s *Source) mark(d Document, i int32) {
	label, lanes := s.labels[i], s.lanes[i]
	if !s.o.AllBranches {
		lanes = nil
	}
	if label != "" || len(lanes) > 0 {
		slices.Sort(lanes)
		d.Mark(label, lanes)
	}
}

// readAhead is how many entries are read at a time where they do not lie in a
// row.
const readAhead = 16

// walk writes the whole tree.
func (s *Source) walk(ctx context.Context, d Document) {
	var ahead []step
	flush := func() bool {
		if s.err = context.Cause(ctx); s.err == nil {
			s.err = s.write(ctx, d, ahead)
		}
		ahead = ahead[:0]
		return s.err == nil && d.Err() == nil
	}
	for st := range s.steps() {
		if ahead = append(ahead, st); len(ahead) == readAhead && !flush() {
			return
		}
	}
	flush()
}

func (s *Source) write(ctx context.Context, d Document, steps []step) error {
	var wanted []string
	for _, st := range steps {
		if st.kind == stepEntry {
			wanted = append(wanted, s.ids.id(st.entry))
		}
	}
	found, err := s.reader.Entries(ctx, wanted)
	if err != nil {
		return fmt.Errorf("read session: %w", err)
	}
	for _, st := range steps {
		switch st.kind {
		case stepBranch:
			d.Branch(int(s.below[st.entry]))
		case stepEnd:
			d.BranchEnd()
		default:
			e, ok := found[s.ids.id(st.entry)]
			if !ok {
				return store.MissingEntry(s.ids.id(st.entry), "the session")
			}
			e.Payload = s.o.Redact.Entry(e.Payload).JSON
			s.mark(d, st.entry)
			d.Entry(e)
		}
	}
	return nil
}

// page is where a document is written to. Its first failure sticks.
type page struct {
	w   io.Writer
	err error
}

func (p *page) print(parts ...string) {
	for _, s := range parts {
		if p.err == nil {
			_, p.err = io.WriteString(p.w, s)
		}
	}
}

// Err is the first failure.
func (p *page) Err() error { return p.err }

// speaker names whoever a message is from, as a heading.
func speaker(m message.Message) string {
	switch m.Role() {
	case message.RoleUser:
		return "User"
	case message.RoleAssistant:
		return "Assistant" + modelOf(m)
	case message.RoleSystem:
		return "System"
	case message.RoleBashExecution:
		return "User ran a command"
	case message.RoleCustom:
		kind, _ := rawjson.GetString(m, "customType")
		return "Custom " + visible.Line(kind)
	case message.RoleBranchSummary:
		return "Summary of another branch"
	case message.RoleCompactionSummary:
		return "Earlier messages in summary"
	case "":
		return "Message of unknown role"
	}
	return visible.Line(string(m.Role()))
}

func modelOf(m message.Message) string {
	provider, _ := rawjson.GetString(m, "provider")
	model, _ := rawjson.GetString(m, "model")
	if provider == "" && model == "" {
		return ""
	}
	return " (" + visible.Line(provider+"/"+model) + ")"
}

// toolResult says what a tool result is called and whether it is an error.
func toolResult(m message.Message) (name string, failed bool) {
	name, _ = rawjson.GetString(m, "toolName")
	failed, _ = rawjson.GetBool(m, "isError")
	return visible.Line(name), failed
}

func instant(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

// entries is a number of them in words.
func entries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}
