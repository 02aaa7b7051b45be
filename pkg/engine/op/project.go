package op

import (
	"fmt"
	"maps"
	"slices"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Projector gives the context messages of a custom entry, none to leave it out.
// It must be deterministic.
type Projector func(store.Entry) ([]message.Message, error)

// ProjectorError is a projector that failed. It is trusted and deterministic, so
// that the same entry would fail again and again (spec §4.8).
type ProjectorError struct {
	EntryID    string
	CustomType string
	Err        error
}

func (e *ProjectorError) Error() string {
	return fmt.Sprintf("entry %s: projector of %s: %v", e.EntryID, e.CustomType, e.Err)
}

// Unwrap returns what the projector returned.
func (e *ProjectorError) Unwrap() error { return e.Err }

// ContextEdit is the custom type of an edit of one earlier message, as imported
// sessions have them.
const ContextEdit = "pi.context_edit"

// Projection is what a projection needs besides its branch.
type Projection struct {
	Projectors map[string]Projector
	// Originals are the entries of EditedBefore: a retained tail holds copies of
	// their messages, without ids.
	Originals map[string]store.Entry
	// EarlierEdits are the edits from before the branch: a copy may be as one of
	// them had left its message.
	EarlierEdits []store.Entry
}

// EditedBefore names the entries that a branch edits but does not hold: they lie
// before its compaction.
func EditedBefore(branch []store.Entry) []string {
	targets := edits(branch)
	for _, e := range branch {
		delete(targets, e.ID)
	}
	return slices.Sorted(maps.Keys(targets))
}

// Project builds the context of a branch, oldest first and beginning with its
// newest compaction: that one's summary and retained tail, then every entry
// after it (spec §2.5).
func Project(branch []store.Entry, o Projection) ([]message.Message, error) {
	p := projection{projectors: o.Projectors, edits: edits(branch)}
	if err := p.reachBack(o); err != nil {
		return nil, err
	}
	for _, e := range branch {
		if err := p.entry(e); err != nil {
			return nil, err
		}
	}
	return p.messages, nil
}

// Projects reports whether an entry would add to a context.
func Projects(e store.Entry, projectors map[string]Projector) (bool, error) {
	p := projection{projectors: projectors}
	err := p.entry(e)
	return len(p.messages) > 0, err
}

type projection struct {
	projectors map[string]Projector
	edits      map[string][]byte // entry id → replacement, the latest wins
	tail       map[string][]byte // the same by message, for those in a retained tail
	messages   []message.Message
}

// reachBack finds the copies that edits mean: as the message was, or as an
// earlier edit had left it.
func (p *projection) reachBack(o Projection) error {
	p.tail = make(map[string][]byte, len(o.Originals))
	for id, e := range o.Originals {
		if m := e.Message(); m != nil {
			p.tail[string(m)] = p.edits[id]
		}
	}
	for _, e := range o.EarlierEdits {
		target, replacement, ok := editOf(e)
		original := o.Originals[target].Message()
		if !ok || original == nil {
			continue
		}
		m, err := replaced(original, replacement)
		if err != nil {
			return fmt.Errorf("entry %s: %w", e.ID, err)
		}
		if m != nil {
			p.tail[string(m)] = p.edits[target]
		}
	}
	return nil
}

func (p *projection) entry(e store.Entry) error {
	switch e.Type {
	case store.TypeMessage:
		m, err := p.edited(e)
		if err != nil {
			return fmt.Errorf("entry %s: %w", e.ID, err)
		}
		p.add(m)
	case store.TypeCompaction:
		return p.compaction(e)
	case store.TypeBranchSummary:
		p.branchSummary(e)
	case store.TypeCustom:
		return p.custom(e)
	}
	return nil
}

// add keeps a message unless it is an answer that never became part of the
// conversation (rule 3 of §2.5).
func (p *projection) add(m message.Message) {
	if m == nil {
		return
	}
	if m.Role() == message.RoleAssistant {
		switch m.StopReason() {
		case message.StopError, message.StopAborted, message.StopDeferred:
			return
		}
	}
	p.messages = append(p.messages, m)
}

func (p *projection) compaction(e store.Entry) error {
	summary, ok := rawjson.Get(e.Payload, "summary")
	if !ok {
		return fmt.Errorf("entry %s: compaction has no summary", e.ID)
	}
	m := append([]byte(nil), `{"role":"compactionSummary","summary":`...)
	m = append(m, summary...)
	if before, ok := rawjson.Get(e.Payload, "tokensBefore"); ok {
		m = append(append(m, `,"tokensBefore":`...), before...)
	}
	p.messages = append(p.messages, closeMessage(m, e.Timestamp))
	tail, ok := rawjson.Get(e.Payload, "retainedTail")
	if !ok {
		return nil
	}
	for raw, err := range rawjson.Elements(tail) {
		if err != nil {
			return fmt.Errorf("entry %s: retained tail: %w", e.ID, err)
		}
		m := message.Message(raw)
		if replacement, ok := p.tail[string(raw)]; ok {
			if m, err = replaced(m, replacement); err != nil {
				return fmt.Errorf("entry %s: retained tail: %w", e.ID, err)
			}
		}
		p.add(m)
	}
	return nil
}

func (p *projection) branchSummary(e store.Entry) {
	summary, ok := rawjson.Get(e.Payload, "summary")
	if !ok || string(summary) == `""` {
		return
	}
	m := append([]byte(nil), `{"role":"branchSummary","summary":`...)
	m = append(m, summary...)
	if from, ok := rawjson.Get(e.Payload, "fromId"); ok {
		m = append(append(m, `,"fromId":`...), from...)
	}
	p.messages = append(p.messages, closeMessage(m, e.Timestamp))
}

func closeMessage(m []byte, timestamp int64) message.Message {
	m = append(m, `,"timestamp":`...)
	return append(rawjson.AppendInt(m, timestamp), '}')
}

func (p *projection) custom(e store.Entry) error {
	projector := p.projectors[e.CustomType]
	if projector == nil {
		return nil
	}
	messages, err := projector(e)
	if err != nil {
		return &ProjectorError{e.ID, e.CustomType, err}
	}
	for _, m := range messages {
		p.add(m)
	}
	return nil
}

// edited applies the newest edit of a message.
func (p *projection) edited(e store.Entry) (message.Message, error) {
	replacement, ok := p.edits[e.ID]
	if !ok {
		return e.Message(), nil
	}
	return replaced(e.Message(), replacement)
}

// replaced is a message under an edit: null removes it, content replaces its
// content.
func replaced(m message.Message, replacement []byte) (message.Message, error) {
	content, ok := rawjson.Get(replacement, "content")
	if !ok {
		return nil, nil
	}
	return m.With("content", content)
}

// edits are the newest edit of each target.
func edits(branch []store.Entry) map[string][]byte {
	var found map[string][]byte
	for _, e := range branch {
		target, replacement, ok := editOf(e)
		if !ok {
			continue
		}
		if found == nil {
			found = make(map[string][]byte)
		}
		found[target] = replacement
	}
	return found
}

// editOf reads an edit, false for any other entry.
func editOf(e store.Entry) (target string, replacement []byte, ok bool) {
	if e.Type != store.TypeCustom || e.CustomType != ContextEdit {
		return "", nil, false
	}
	data, _ := rawjson.Get(e.Payload, "data")
	target, ok = rawjson.GetString(data, "targetId")
	replacement, _ = rawjson.Get(data, "replacement")
	return target, replacement, ok
}
