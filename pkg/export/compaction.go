package export

import (
	"fmt"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// compaction writes a compaction with the range that it keeps. The agent knows
// only ranges of its own branch: a tail that is none is written again in front.
func (p *piWriter) compaction(i int32, e *store.Entry) error {
	system, tail, err := tailOf(e)
	if err != nil {
		return err
	}
	code, parent := p.codes.of[i], p.parent(i)
	first := code // keeps nothing
	if len(tail) > 0 {
		start, found, err := p.tails.find(p.ctx, p.parents[i], tail)
		switch {
		case err != nil:
			return err
		case !found:
			parent, first = p.copyTail(i, e, tail)
		case start.fresh >= 0:
			first = p.tails.fresh[start.entry][start.fresh].code
		default:
			first = p.codes.of[start.entry]
		}
	}
	p.begin("compaction", code, parent, e.Timestamp)
	p.member("firstKeptEntryId", quoteCode(first))
	if system != nil {
		p.member("systemMessage", string(system))
	}
	p.without(e.Payload, "retainedTail", "firstKeptEntryId", "systemMessage")
	return nil
}

// tailOf splits a retained tail into its system message, which the agent keeps
// apart, and the others.
func tailOf(e *store.Entry) (system message.Message, tail []message.Message, err error) {
	raw, ok := rawjson.Get(e.Payload, "retainedTail")
	if !ok {
		return nil, nil, nil
	}
	for m, err := range rawjson.Elements(raw) {
		if err != nil {
			return nil, nil, fmt.Errorf("entry %s: retained tail: %w", e.ID, err)
		}
		tail = append(tail, message.Message(m))
	}
	if len(tail) > 0 && tail[0].Role() == message.RoleSystem {
		return tail[0], tail[1:], nil
	}
	return nil, tail, nil
}

// copyTail writes the messages of a tail as a chain in front of its compaction
// and returns the last of them, as JSON, and the first.
func (p *piWriter) copyTail(i int32, e *store.Entry, tail []message.Message) (parent string, first uint32) {
	parent = p.parent(i)
	for j, m := range tail {
		code := p.codes.fresh(e.ID, "tail", j)
		if isCustomMessage(m) {
			p.customMessage(code, parent, e.Timestamp, m)
		} else {
			p.begin("message", code, parent, e.Timestamp)
			p.member("message", string(m))
			p.buf = append(p.buf, "}\n"...)
		}
		p.tails.fresh[i] = append(p.tails.fresh[i], copied{p.tails.hash(m), code})
		parent = quoteCode(code)
	}
	p.report.Tails = append(p.report.Tails, Tail{EntryID: e.ID, Messages: len(tail)})
	return parent, p.tails.fresh[i][0].code
}
