package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// contextEdit is the custom entry of an imported edit of one earlier message.
const contextEdit = "pi.context_edit"

// Context returns the messages that a request from a lane's leaf would send,
// before they are made ready for a provider (spec §2.5).
func Context(ctx context.Context, q store.Queries, leaf store.LeafID, projectors map[string]Projector) ([]message.Message, error) {
	return project(ctx, q, leaf, projectors)
}

// project builds the context of a leaf: the newest compaction's summary and
// retained tail, then every entry after it, oldest first (spec §2.5).
func project(ctx context.Context, q store.Queries, leaf store.LeafID, projectors map[string]Projector) ([]message.Message, error) {
	if leaf == "" {
		return nil, nil
	}
	branch, err := q.ScanBranch(ctx, store.BranchQuery{Start: string(leaf), StopAtType: store.TypeCompaction})
	if err != nil {
		return nil, err
	}
	slices.Reverse(branch)
	p := projection{projectors: projectors, edits: edits(branch)}
	if err := p.reachBack(ctx, q, branch); err != nil {
		return nil, err
	}
	for _, e := range branch {
		if err := p.entry(e); err != nil {
			return nil, fmt.Errorf("entry %s: %w", e.ID, err)
		}
	}
	return p.messages, nil
}

type projection struct {
	projectors map[string]Projector
	edits      map[string][]byte // entry id → replacement, the latest wins
	tail       map[string][]byte // the same by message, for those in a retained tail
	messages   []message.Message
}

// reachBack finds what is edited of a compaction's retained tail: its messages
// have no ids, but they are copies of the entries that an edit names.
func (p *projection) reachBack(ctx context.Context, q store.Queries, branch []store.Entry) error {
	targets := maps.Clone(p.edits)
	for _, e := range branch {
		delete(targets, e.ID)
	}
	if len(targets) == 0 {
		return nil
	}
	entries, err := q.Entries(ctx, slices.Collect(maps.Keys(targets)))
	p.tail = make(map[string][]byte, len(entries))
	for id, e := range entries {
		if m := e.Message(); m != nil {
			p.tail[string(m)] = p.edits[id]
		}
	}
	return err
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
		m := message.Message(raw)
		if replacement, ok := p.tail[string(raw)]; ok {
			if m, err = replaced(m, replacement); err != nil {
				return fmt.Errorf("retained tail: %w", err)
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
		return fmt.Errorf("projector of %s: %w", e.CustomType, err)
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
