package enginetest

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Trace is what a world did, in order: commits in the notation of the
// specification, provider requests and their stream, events, hooks, and the
// calls of the test. Ids have short names: e for entries, u for usage rows, o
// for operations, s for steps, numbered as they appear.
type Trace struct {
	mu    sync.Mutex
	lines []string
}

// Add writes a line.
func (t *Trace) Add(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, fmt.Sprintf(format, args...))
}

// Reset forgets what happened so far; names stay as they would have been.
func (t *Trace) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = nil
}

// String is the whole trace.
func (t *Trace) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return shorten(strings.Join(t.lines, "\n")) + "\n"
}

// traced is a backend that writes its commits into a trace.
type traced struct {
	store.Backend
	trace *Trace
}

func (b traced) Commit(ctx context.Context, tx store.Tx) (store.CommitResult, error) {
	res, err := b.Backend.Commit(ctx, tx)
	if err != nil {
		b.trace.Add("%s FAILS: %v", TxString(tx), err)
		return res, err
	}
	b.trace.Add("%s", TxString(tx))
	return res, nil
}

// TxString writes a transaction in the notation of spec §0.7, one write a line.
func TxString(tx store.Tx) string {
	writes := make([]string, len(tx))
	for i, w := range tx {
		writes[i] = writeString(w)
	}
	return "TX[ " + strings.Join(writes, ",\n    ") + " ]"
}

func writeString(w store.Write) string {
	switch {
	case w.Kind == store.KindEntry:
		return "insert " + entryString(w.Entry)
	case w.Kind == store.KindUsage:
		of := ""
		if w.Usage.EntryID != "" {
			of = " of " + entryName(w.Usage.EntryID)
		}
		return fmt.Sprintf("insert usage %s%s = %s", usageName(w.Usage.ID), of, usageString(w.Usage))
	case w.Op == store.OpAppend:
		return "append " + addressString(w.Address) + " += " + frameString(w.Value)
	case w.Op == store.OpDelete && w.Kind == store.KindList:
		return "delete list " + addressString(w.Address)
	case w.Op == store.OpDelete:
		return "delete " + addressString(w.Address)
	}
	return "upsert " + addressString(w.Address) + " = " + valueString(w)
}

// frameString writes what a frame adds.
func frameString(raw []byte) string {
	s, _ := rawjson.GetString(raw, "type")
	for _, field := range []string{"delta", "content"} {
		if text, ok := rawjson.GetString(raw, field); ok {
			s += fmt.Sprintf(" %q", text)
		}
	}
	return s
}

func entryString(e *store.NewEntry) string {
	parent := "the root"
	if e.ParentID != "" {
		parent = entryName(e.ParentID)
	}
	return fmt.Sprintf("entry %s under %s = %s", entryName(e.ID), parent, contentString(*e))
}

func usageString(u *store.NewUsage) string {
	usage := u.Usage
	if u.RawUsage != nil {
		usage, _ = message.ParseUsage(u.RawUsage)
	}
	return fmt.Sprintf("%d in, %d out", usage.Input, usage.Output)
}

func messageString(m message.Message) string {
	s := string(m.Role())
	if reason := m.StopReason(); reason != "" {
		s += " " + string(reason)
	}
	if blocks, err := m.Blocks(); err == nil {
		for _, b := range blocks {
			s += " " + blockString(b)
		}
	}
	if text := m.ErrorMessage(); text != "" {
		s += fmt.Sprintf(" error %q", text)
	}
	return s
}

func blockString(b message.Block) string {
	switch b.Type {
	case message.BlockText:
		return fmt.Sprintf("%q", b.Text)
	case message.BlockThinking:
		return fmt.Sprintf("(thinking %q)", b.Thinking)
	case message.BlockToolCall:
		return fmt.Sprintf("(call %s)", b.Name)
	}
	return "(" + string(b.Type) + ")"
}

func streamText(ev message.StreamEvent) string {
	switch {
	case ev.Delta != "":
		return fmt.Sprintf(" %q", ev.Delta)
	case ev.Type == message.EventDone || ev.Type == message.EventError:
		return " " + messageString(ev.Final())
	}
	return ""
}

func addressString(a store.Address) string {
	switch a.Namespace {
	case "pi.op.meta", "pi.op.state":
		return a.Namespace + "/" + operationName(a.Key)
	case "pi.pending.assistant_frame":
		return a.Namespace + "/" + ownedName(a.Key, entryName)
	case "pi.pending.tool_output", "pi.op.tool_memo":
		return a.Namespace + "/" + ownedName(a.Key, entryName)
	case "pi.op.tool_args":
		return a.Namespace + "/" + ownedName(a.Key, stepName)
	case "pi.op.preparation":
		return a.Namespace + "/" + ownedName(a.Key, taskName)
	case "pi.pending.entry", "pi.entry.label":
		return a.Namespace + "/" + entryName(a.Key)
	}
	return a.String()
}

// ownedName writes the key of a value that an operation owns: the operation's id,
// what it belongs to, and the rest.
func ownedName(key string, name func(string) string) string {
	id, rest, _ := strings.Cut(key, ":")
	owner, rest, more := strings.Cut(rest, ":")
	if more {
		rest = ":" + rest
	}
	return operationName(id) + ":" + name(owner) + rest
}

// eventString writes an event with the fields of its type.
func eventString(e op.Event) string {
	s := "event " + string(e.Type)
	switch e.Type {
	case op.EventMessageStart, op.EventMessageEnd:
		s += " " + messageString(e.Message)
		if e.EntryID != "" {
			s += " as " + entryName(e.EntryID)
		}
	case op.EventMessageUpdate:
		s += " " + string(e.Stream.Type) + ": " + messageString(e.Partial())
	case op.EventEntryAdded:
		s += " " + entryName(e.Entry.ID)
	case op.EventUsage:
		s += fmt.Sprintf(" %s, in all %d in, %d out", usageName(e.Usage.ID), e.Totals.Input, e.Totals.Output)
	case op.EventTurnStart, op.EventTurnEnd:
		s += " " + stepName(e.TurnID)
	case op.EventRetryScheduled:
		s += fmt.Sprintf(" attempt %d of %d in %d ms: %q", e.Attempt, e.MaxAttempts, e.DelayMs, e.ErrorText)
	case op.EventRetryStart:
		s += fmt.Sprintf(" attempt %d", e.Attempt)
	case op.EventRetryEnd:
		s += fmt.Sprintf(" attempt %d, success %t", e.Attempt, e.Success)
	case op.EventRunEnd:
		s += " " + string(e.Outcome) + " at " + entryName(string(e.LeafID))
		if e.Error != nil {
			s += fmt.Sprintf(", %s %q", e.Error.Code, e.Error.Message)
		}
		if e.EntryID != "" {
			s += ", answer " + entryName(e.EntryID)
		}
	case op.EventRunSuspend, op.EventCompactionSuspend, op.EventNavigationSuspend:
		if e.Missing == nil {
			s += " for a deferred answer"
			break
		}
		s += fmt.Sprintf(" missing model %s, tools %v", e.Missing.Model, e.Missing.Tools)
	case op.EventConfigUpdate:
		s += fmt.Sprintf(" %s %s, was %s", e.Property, e.Value, e.Previous)
	case op.EventHandlerError:
		s += fmt.Sprintf(" %s: %s", e.Hook, e.ErrorText)
	}
	if e.Recovery {
		s += " (recovery)"
	}
	return s
}
