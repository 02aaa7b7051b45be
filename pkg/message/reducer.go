package message

import (
	"bytes"
	"fmt"
)

// FrameError reports a frame that contradicts the ones before it, or that is
// no frame at all.
type FrameError struct {
	Seq int64 // of the frame; for AddEvent the number of the event, from 1
	Msg string
}

func (e *FrameError) Error() string { return fmt.Sprintf("reduce frame %d: %s", e.Seq, e.Msg) }

// Reducer folds a prefix of a response's frames, or its live events, into the
// partial message they add up to (spec §3.7). The zero value is ready. After an
// error it holds what it held before the frame that caused it.
type Reducer struct {
	start  Message
	base   Assistant // the start message, decoded
	blocks []growing
	events int64
}

// Reduce folds frames, numbered from 0, into a partial message; false when
// there is no start.
func Reduce(frames []Frame) (Message, bool, error) {
	var r Reducer
	for i, f := range frames {
		if err := r.Add(int64(i), f); err != nil {
			return nil, false, err
		}
	}
	m, ok := r.Message()
	return m, ok, nil
}

// Add folds in the frame with the given seq. The error is a *FrameError.
// Nothing of f is kept.
func (r *Reducer) Add(seq int64, f Frame) error {
	p, msg := parseFrame(f)
	if msg == "" {
		msg = r.addFrame(p)
	}
	if msg != "" {
		return &FrameError{Seq: seq, Msg: msg}
	}
	return nil
}

// addFrame folds in a parsed frame. Like all steps below it returns what is
// wrong with it, and then has changed nothing.
func (r *Reducer) addFrame(p frameParts) string {
	blockType, step := p.typ.split()
	switch step {
	case stepMessage:
		return r.begin(bytes.Clone(p.message))
	case stepStart:
		b, err := ParseBlock(bytes.Clone(p.block))
		if err != nil {
			return "its block is not an object"
		}
		return r.open(p.index, blockType, b)
	case stepDelta:
		g, msg := r.at(p.index, blockType)
		if msg == "" {
			msg = g.appendQuoted(p.delta)
		}
		return msg
	case stepEnd:
		b, msg := p.endBlock(blockType)
		if msg != "" {
			return msg
		}
		return r.end(p.index, b)
	}
	return fmt.Sprintf("unknown type %q", p.typ)
}

// AddEvent folds in a live event, without a detour over JSON; done and error
// change nothing. The error is a *FrameError. What ev refers to is kept.
func (r *Reducer) AddEvent(ev StreamEvent) error {
	r.events++
	if msg := r.addEvent(ev); msg != "" {
		return &FrameError{Seq: r.events, Msg: msg}
	}
	return nil
}

func (r *Reducer) addEvent(ev StreamEvent) string {
	blockType, step := ev.Type.split()
	switch step {
	case stepMessage:
		return r.begin(ev.Message)
	case stepStart:
		return r.open(int64(ev.ContentIndex), blockType, ev.Block)
	case stepDelta:
		g, msg := r.at(int64(ev.ContentIndex), blockType)
		if msg == "" {
			g.text.add(ev.Delta)
			g.grown = true
		}
		return msg
	case stepEnd:
		if ev.Block.Type != blockType {
			return fmt.Sprintf("%s with a block of type %q", ev.Type, ev.Block.Type)
		}
		return r.end(int64(ev.ContentIndex), ev.Block)
	case stepDone:
		return ""
	}
	return fmt.Sprintf("unknown type %q", ev.Type)
}

// begin takes the start message.
func (r *Reducer) begin(m Message) string {
	if r.start != nil {
		return "a second start"
	}
	base, err := ParseAssistant(m)
	if err != nil {
		return "start without an assistant message: " + err.Error()
	}
	r.start, r.base = m, base
	return ""
}

// open starts the block at index.
func (r *Reducer) open(index int64, want BlockType, b Block) string {
	switch {
	case r.start == nil:
		return "a block before the start"
	case b.Type != want:
		return fmt.Sprintf("start of a %s block with a block of type %q", want, b.Type)
	case index < int64(len(r.blocks)):
		return fmt.Sprintf("block %d has started before", index)
	case index > int64(len(r.blocks)):
		return fmt.Sprintf("block %d starts before block %d", index, len(r.blocks))
	}
	r.blocks = append(r.blocks, newGrowing(b))
	return ""
}

// at returns the unfinished block at index.
func (r *Reducer) at(index int64, want BlockType) (*growing, string) {
	if index < 0 || index >= int64(len(r.blocks)) {
		return nil, fmt.Sprintf("block %d has not started", index)
	}
	switch g := &r.blocks[index]; {
	case g.block.Type != want:
		return nil, fmt.Sprintf("block %d is a %s block, not %s", index, g.block.Type, want)
	case g.done:
		return nil, fmt.Sprintf("block %d has ended before", index)
	default:
		return g, ""
	}
}

// end replaces what grew by the block as it is for good.
func (r *Reducer) end(index int64, b Block) string {
	g, msg := r.at(index, b.Type)
	if msg == "" {
		b.Raw = nil
		g.block, g.text, g.done = b, pages{}, true
	}
	return msg
}

// Partial returns the message so far; false before the start. It copies the
// text of unfinished blocks.
func (r *Reducer) Partial() (Assistant, bool) {
	if r.start == nil {
		return Assistant{}, false
	}
	a := r.base
	a.Content = make([]Block, len(r.blocks))
	for i := range r.blocks {
		a.Content[i] = r.blocks[i].value()
	}
	return a, true
}

// Message is Partial as a message that keeps the start message's unknown fields.
func (r *Reducer) Message() (Message, bool) {
	a, ok := r.Partial()
	if !ok {
		return nil, false
	}
	m, err := r.start.With("content", appendBlocks(nil, a.Content))
	return m, err == nil
}
