package openai

import (
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/model/answer"
)

// responsesAnswer turns a response's events, or the response itself, into an
// answer. It works on raw JSON: what the SDK decodes loses halves of characters
// and unknown fields.
type responsesAnswer struct {
	b       *answer.Builder
	items   map[int64]*outputItem // by output index
	release func()                // gives up the memory of the event that was read
}

// outputItem is one item of the output while it grows.
type outputItem struct {
	raw       []byte // a reasoning item as it was announced
	reasoning *answer.Block
	call      *answer.Block
	parts     map[int64]*answer.Block // of a message, by content index
	done      bool
}

func newResponsesAnswer(b *answer.Builder) *responsesAnswer {
	return &responsesAnswer{b: b, items: map[int64]*outputItem{}, release: func() {}}
}

// stream reads the events up to the answer's end.
func (a *responsesAnswer) stream(r io.Reader) error {
	events := newEventReader(r)
	a.release = events.release
	for !a.b.Ended() {
		data, err := events.next()
		if err == io.EOF {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		if string(data) == "[DONE]" {
			continue
		}
		e, ok := parseResponseEvent(data)
		if !ok {
			return answer.Garbled("an event that is not JSON", data)
		}
		if err := a.event(e, data); err != nil {
			return err
		}
	}
	a.release()
	return nil
}

// whole reads a response that came in one piece.
func (a *responsesAnswer) whole(data []byte) error {
	if rawjson.KindOf(data) != rawjson.Object || rawjson.Valid(data) != nil {
		return answer.Garbled("a response that is not JSON", data)
	}
	return a.response(data)
}

// responseEvent is a stream event taken apart; its raw fields alias the data.
type responseEvent struct {
	typ                   string
	output, part          int64 // indexes
	delta, item, response []byte
}

func parseResponseEvent(data []byte) (responseEvent, bool) {
	if rawjson.KindOf(data) != rawjson.Object {
		return responseEvent{}, false
	}
	v, err := pick(data, "type", "output_index", "content_index", "summary_index", "delta", "item", "response")
	e := responseEvent{typ: text(v[0]), delta: v[4], item: v[5], response: v[6]}
	e.output, _ = rawjson.ParseInt(v[1])
	if e.part, _ = rawjson.ParseInt(v[2]); v[2] == nil {
		e.part, _ = rawjson.ParseInt(v[3])
	}
	return e, err == nil
}

// event takes one event in; unknown ones say nothing.
func (a *responsesAnswer) event(e responseEvent, data []byte) error {
	switch e.typ {
	case "response.created", "response.queued", "response.in_progress":
		a.start(e.response)
	case "response.output_item.added":
		a.announce(e.output, e.item)
	case "response.output_item.done":
		a.complete(e.output, e.item)
	case "response.output_text.delta", "response.refusal.delta":
		a.text(e.output, e.part).AddRaw(e.delta)
	case "response.reasoning_summary_part.added":
		if k := a.thinking(e.output); e.part > 0 && k.Len() > 0 {
			k.Add(paragraph)
		}
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		a.thinking(e.output).AddRaw(e.delta)
	case "response.function_call_arguments.delta":
		if k := a.item(e.output).call; k != nil {
			k.AddRaw(e.delta)
		}
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return a.response(e.response)
	case "error":
		return answer.Reported(data)
	}
	return nil
}

func (a *responsesAnswer) start(response []byte) {
	v := fields(response, "id", "model")
	a.b.Start(text(v[0]), text(v[1]))
}

func (a *responsesAnswer) item(output int64) *outputItem {
	it := a.items[output]
	if it == nil {
		it = &outputItem{parts: map[int64]*answer.Block{}}
		a.items[output] = it
	}
	return it
}

// announce begins an item.
func (a *responsesAnswer) announce(output int64, item []byte) {
	switch typ, _ := rawjson.GetString(item, "type"); typ {
	case "reasoning":
		a.thinking(output)
		a.item(output).raw = append([]byte(nil), item...)
	case "function_call":
		a.function(output, item)
	}
}

func (a *responsesAnswer) thinking(output int64) *answer.Block {
	it := a.item(output)
	if it.reasoning == nil {
		a.settleOrder(output)
		it.reasoning = a.b.Thinking()
	}
	return it.reasoning
}

func (a *responsesAnswer) text(output, part int64) *answer.Block {
	it := a.item(output)
	if it.parts[part] == nil {
		a.settleOrder(output)
		it.parts[part] = a.b.Text()
	}
	return it.parts[part]
}

// function returns the call of an item, with the ids and the name as they are now.
func (a *responsesAnswer) function(output int64, item []byte) *answer.Block {
	v := fields(item, "call_id", "id", "name")
	id, name := "", text(v[2])
	if callID := text(v[0]); callID != "" {
		id = joinCallID(callID, text(v[1]))
	}
	it := a.item(output)
	if it.call == nil {
		a.settleOrder(output)
		it.call = a.b.ToolCall(id, name)
	}
	it.call.Name(id, name)
	return it.call
}

// settleOrder opens the reasoning before an item that has not said anything yet:
// the items go back in the order of their blocks.
func (a *responsesAnswer) settleOrder(output int64) {
	for _, i := range slices.Sorted(maps.Keys(a.items)) {
		if it := a.items[i]; i < output && it.reasoning != nil && !it.done {
			it.reasoning.Sign(string(it.raw))
		}
	}
}

// complete ends an item with what it is for good.
func (a *responsesAnswer) complete(output int64, item []byte) {
	if a.item(output).done {
		return
	}
	switch typ, _ := rawjson.GetString(item, "type"); typ {
	case "reasoning":
		a.reasoned(output, item)
	case "message":
		a.said(output, item)
	case "function_call":
		k, args := a.function(output, item), fields(item, "arguments")[0]
		k.EndWith(finalText(k, args))
	}
	a.item(output).done = true
}

// paragraph is between the parts of a summary.
const paragraph = "\n\n"

// reasoned ends a reasoning item: its words are for people, all of it is the
// signature that goes back.
func (a *responsesAnswer) reasoned(output int64, item []byte) {
	k := a.thinking(output)
	words := partsText(item, "summary")
	if words == "" {
		words = partsText(item, "content")
	}
	if signature := string(item); words != "" || isReasoning(signature) {
		k.Sign(signature)
	}
	k.EndWith(words)
}

// partsText joins the texts of a list of parts.
func partsText(item []byte, field string) string {
	list, _ := rawjson.Get(item, field)
	var texts []string
	// What is no list has no parts.
	_ = rawjson.ElementsFunc(list, func(start, end int) bool {
		if s, _ := rawjson.GetString(list[start:end], "text"); s != "" {
			texts = append(texts, s)
		}
		return true
	})
	return strings.Join(texts, paragraph)
}

// said ends a message item. Its parts are read before any of them ends: while the
// consumer looks at a long one, the event that held it can go (D41).
func (a *responsesAnswer) said(output int64, item []byte) {
	for _, end := range a.readParts(output, item) {
		end.block.Sign(end.signature)
		end.block.EndWith(end.text)
	}
}

// partEnd is how a part of a message ends.
type partEnd struct {
	block           *answer.Block
	signature, text string
}

func (a *responsesAnswer) readParts(output int64, item []byte) []partEnd {
	v := fields(item, "id", "phase", "content")
	id, phase, content := text(v[0]), text(v[1]), v[2]
	var ends []partEnd
	part := int64(0)
	// What is no list has no parts.
	_ = rawjson.ElementsFunc(content, func(start, end int) bool {
		v := fields(content[start:end], "text", "refusal")
		sig, said := textSignature{ID: id, Phase: phase}, v[0]
		if len(v[0]) <= len(`""`) && len(v[1]) > len(`""`) {
			sig.Refusal, said = true, v[1]
		}
		if len(said) > len(`""`) && said[0] == '"' {
			k := a.text(output, part)
			ends = append(ends, partEnd{k, sig.String(), finalText(k, said)})
		}
		part++
		return true
	})
	a.release()
	return ends
}

// longText is the size in bytes from which a text is not worth two more copies.
const longText = 1 << 20

// finalText is what a block ends with, "" where the deltas have said all of it: a
// long text of their length is theirs.
func finalText(k *answer.Block, raw []byte) string {
	if len(raw) > longText && textLen(raw) == k.Len() {
		return ""
	}
	return text(raw)
}
