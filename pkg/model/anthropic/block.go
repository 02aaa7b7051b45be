package anthropic

import (
	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/model/answer"
)

// block is one content block of the API while it arrives.
type block struct {
	to        *answer.Block // nil for a type that is not known: its content is skipped
	signature string        // so far
	input     []byte        // of a tool call, as the block started
	grown     bool
}

// open starts the block at an index with what it has already.
func (r *reader) open(index int64, content []byte) {
	k := &block{}
	r.blocks[index] = k
	kind, _ := rawjson.GetString(content, "type")
	switch kind {
	case "text":
		k.to = r.b.Text()
		k.add(r, content, "text")
	case "thinking":
		k.to = r.b.Thinking()
		k.add(r, content, "thinking")
		k.sign(content)
	case "redacted_thinking":
		data, _ := rawjson.GetString(content, "data")
		r.b.Redacted(data)
		r.said = true
	case "tool_use":
		id, _ := rawjson.GetString(content, "id")
		name, _ := rawjson.GetString(content, "name")
		k.to = r.b.ToolCall(id, name)
		k.input, _ = rawjson.Get(content, "input")
		k.input = append([]byte(nil), k.input...)
		r.said = true
	}
}

// delta takes what a block has grown by. Deltas of kinds that are not known, such
// as citations, are skipped.
func (r *reader) delta(index int64, delta []byte) error {
	k, ok := r.blocks[index]
	if !ok {
		return answer.Garbled("a delta of a block that has not started", delta)
	}
	if k.to == nil {
		return nil
	}
	kind, _ := rawjson.GetString(delta, "type")
	switch kind {
	case "text_delta":
		k.add(r, delta, "text")
	case "thinking_delta":
		k.add(r, delta, "thinking")
	case "input_json_delta":
		k.add(r, delta, "partial_json")
	case "signature_delta":
		k.sign(delta)
	}
	return nil
}

// add appends the text that a member of the object holds.
func (k *block) add(r *reader, object []byte, member string) {
	if raw, ok := rawjson.Get(object, member); ok && len(raw) > len(`""`) {
		k.to.AddRaw(raw)
		k.grown, r.said = true, true
	}
}

func (k *block) sign(object []byte) {
	part, _ := rawjson.GetString(object, "signature")
	k.signature += part
	k.to.Sign(k.signature)
}

// end ends the block. The input of a tool call comes in deltas or, from some
// servers, all at once with its start.
func (k *block) end() {
	switch {
	case k == nil || k.to == nil:
	case !k.grown && rawjson.KindOf(k.input) == rawjson.Object:
		k.to.EndWith(string(k.input))
	default:
		k.to.End()
	}
}
