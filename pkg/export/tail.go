package export

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// tails finds retained tails again on their branches. It knows the messages that
// were written by their hashes, and reads again only those that differ.
type tails struct {
	source *Source
	seed   maphash.Seed
	upTo   int32    // the newest compaction
	hashes []uint64 // by entry, of a message that is all of its payload
	fresh  map[int32][]copied
	edits  map[int32]edit
}

// copied is a message of a tail that became an entry of its own.
type copied struct {
	hash uint64
	code uint32
}

// edit is a change of an earlier message; no content removes it.
type edit struct {
	target  int32
	content json.RawMessage // nil when it says nothing about the content
	removes bool
}

func newTails(s *Source, upTo int32) tails {
	return tails{
		source: s, seed: maphash.MakeSeed(), upTo: upTo, hashes: make([]uint64, upTo+1),
		fresh: map[int32][]copied{}, edits: map[int32]edit{},
	}
}

// note remembers an entry that is written.
func (t *tails) note(i int32, e *store.Entry) {
	switch {
	case i >= t.upTo:
	case e.Type == store.TypeMessage && bytes.HasPrefix(e.Payload, wrapped):
		t.hashes[i] = maphash.Bytes(t.seed, e.Payload[len(wrapped):len(e.Payload)-1])
	case e.Type == store.TypeCustom && e.CustomType == contextEdit:
		t.noteEdit(i, e)
	}
}

func (t *tails) noteEdit(i int32, e *store.Entry) {
	data, _ := rawjson.Get(e.Payload, "data")
	id, _ := rawjson.GetString(data, "targetId")
	target, ok := t.source.ids.find(id)
	if !ok {
		return
	}
	replacement, ok := rawjson.Get(data, "replacement")
	content, _ := rawjson.Get(replacement, "content")
	t.edits[i] = edit{target: target, content: content, removes: !ok || rawjson.KindOf(replacement) == rawjson.Null}
}

func (t *tails) hash(m message.Message) uint64 { return maphash.Bytes(t.seed, m) }

// kept is where a range begins: at an entry, or at a message that was written in
// front of a compaction.
type kept struct {
	entry int32
	fresh int // index among the messages of the compaction; -1: the entry itself
}

// search is one walk up a branch, against the order of a tail.
type search struct {
	*tails
	ctx     context.Context
	tail    []message.Message // what is not found yet
	start   kept
	changed map[int32]edit
}

// find looks for a retained tail as the end of the branch that a compaction
// hangs on.
func (t *tails) find(ctx context.Context, above int32, tail []message.Message) (kept, bool, error) {
	s := search{tails: t, ctx: ctx, tail: tail, start: kept{none, -1}, changed: map[int32]edit{}}
	for at := above; len(s.tail) > 0; at = t.source.parents[at] {
		if at == none {
			return s.start, false, nil
		}
		if ok, err := s.step(at); !ok || err != nil {
			return s.start, false, err
		}
	}
	return s.start, true, nil
}

// step looks at one entry; false is one that the tail should hold and does not.
func (s *search) step(at int32) (bool, error) {
	switch s.source.kinds[at] {
	case kindMessage:
		_, edited := s.changed[at]
		if !edited && s.hashes[at] == s.hash(s.last()) {
			return s.take(kept{at, -1}), nil
		}
		return s.compare(at)
	case kindSummary:
		return s.compare(at)
	case kindCompaction:
		for j, c := range slices.Backward(s.fresh[at]) {
			if len(s.tail) == 0 {
				break
			}
			if c.hash != s.hash(s.last()) {
				return false, nil
			}
			s.take(kept{at, j})
		}
	case kindCustom:
		if e, ok := s.edits[at]; ok {
			if _, newer := s.changed[e.target]; !newer {
				s.changed[e.target] = e
			}
		}
	}
	return true, nil
}

func (s *search) last() message.Message { return s.tail[len(s.tail)-1] }

// take goes on with the message in front.
func (s *search) take(from kept) bool {
	s.tail, s.start = s.tail[:len(s.tail)-1], from
	return true
}

// compare reads an entry again, whose message is not plainly that of the tail.
func (s *search) compare(at int32) (bool, error) {
	id := s.source.ids.id(at)
	found, err := s.source.reader.Entries(s.ctx, []string{id})
	if err != nil {
		return false, fmt.Errorf("read session: %w", err)
	}
	e := found[id]
	e.Payload = s.source.o.Redact.Entry(e.Payload).JSON
	if e.Type == store.TypeBranchSummary {
		summary, _ := rawjson.Get(e.Payload, "summary")
		other, _ := s.last().Get("summary")
		if s.last().Role() == message.RoleBranchSummary && bytes.Equal(summary, other) {
			return s.take(kept{at, -1}), nil
		}
		return len(summary) <= len(`""`), nil // without text it says nothing
	}
	m := e.Message()
	if change, ok := s.changed[at]; ok {
		if m, err = change.apply(m); err != nil || m == nil {
			return err == nil, err
		}
	}
	if bytes.Equal(m, s.last()) {
		return s.take(kept{at, -1}), nil
	}
	return leftOut(m), nil
}

// leftOut tells whether a context leaves the message out, so that it may stand in
// a range without being in the tail.
func leftOut(m message.Message) bool {
	switch m.Role() {
	case message.RoleSystem:
		return true
	case message.RoleAssistant:
		switch m.StopReason() {
		case message.StopError, message.StopAborted, message.StopDeferred:
			return true
		}
	}
	return false
}

// apply is the message as the edit leaves it, nil when it is gone.
func (e edit) apply(m message.Message) (message.Message, error) {
	content := e.content
	switch {
	case e.removes:
		return nil, nil
	case content == nil:
		return m, nil
	}
	switch m.Role() {
	case message.RoleAssistant, message.RoleToolResult:
		if rawjson.KindOf(content) == rawjson.String {
			content = slices.Concat([]byte(`[{"type":"text","text":`), content, []byte("}]"))
		}
	case message.RoleUser, message.RoleCustom:
	default:
		return m, nil
	}
	return m.With("content", content)
}
