package op

import (
	"fmt"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Projector gives the context messages of a custom entry, none to leave it out.
// It must be deterministic.
type Projector func(store.Entry) ([]message.Message, error)

// contextEdit is the custom entry of an imported edit of one earlier message.
const contextEdit = "pi.context_edit"

// Project builds the context of a branch, oldest first and beginning with its
// newest compaction: that one's summary and retained tail, then every entry
// after it (spec §2.5).
func Project(branch []store.Entry, projectors map[string]Projector) ([]message.Message, error) {
	p := projection{projectors: projectors, edits: edits(branch)}
	for _, e := range branch {
		if err := p.entry(e); err != nil {
			return nil, fmt.Errorf("entry %s: %w", e.ID, err)
		}
	}
	return p.messages, nil
}

// Projects reports whether an entry would add to a context.
func Projects(e store.Entry, projectors map[string]Projector) bool {
	p := projection{projectors: projectors}
	return p.entry(e) == nil && len(p.messages) > 0
}

type projection struct {
	projectors map[string]Projector
	edits      map[string][]byte // entry id → replacement, the latest wins
	messages   []message.Message
}

func (p *projection) entry(e store.Entry) error {
	switch e.Type {
	case store.TypeMessage:
		m, err := p.edited(e)
		if err != nil {
			return err
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
		return fmt.Errorf("compaction has no summary")
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
			return fmt.Errorf("retained tail: %w", err)
		}
		p.add(message.Message(raw))
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
		return fmt.Errorf("projector of %s: %w", e.CustomType, err)
	}
	for _, m := range messages {
		p.add(m)
	}
	return nil
}

// edited applies the newest edit of a message: null removes it, content replaces
// its content.
func (p *projection) edited(e store.Entry) (message.Message, error) {
	replacement, ok := p.edits[e.ID]
	if !ok {
		return e.Message(), nil
	}
	content, ok := rawjson.Get(replacement, "content")
	if !ok {
		return nil, nil
	}
	return e.Message().With("content", content)
}

func edits(branch []store.Entry) map[string][]byte {
	var found map[string][]byte
	for _, e := range branch {
		if e.Type != store.TypeCustom || e.CustomType != contextEdit {
			continue
		}
		data, _ := rawjson.Get(e.Payload, "data")
		target, ok := rawjson.GetString(data, "targetId")
		if !ok {
			continue
		}
		if found == nil {
			found = make(map[string][]byte)
		}
		replacement, _ := rawjson.Get(data, "replacement")
		found[target] = replacement
	}
	return found
}
