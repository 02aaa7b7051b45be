package answer

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
)

// Block is one block of an answer. Blocks may grow side by side. A text or
// thinking block opens when it gets content, or a signature: one that stays
// empty is never seen.
type Block struct {
	b     *Builder
	typ   message.BlockType
	first message.Block // as it started
	last  message.Block // as it ends: all but its text
	text  text
	carry []byte // the beginning of a character whose rest is to come
	index int
	open  bool
	ended bool
}

// Text adds a text block.
func (b *Builder) Text() *Block { return b.block(message.BlockText) }

// Thinking adds a thinking block.
func (b *Builder) Thinking() *Block { return b.block(message.BlockThinking) }

// Redacted adds a thinking block whose content is for the provider only.
func (b *Builder) Redacted(data string) {
	k := b.block(message.BlockThinking)
	k.last.Redacted, k.last.ThinkingSignature = true, sound(data)
	k.begin()
	k.End()
}

// ToolCall adds a tool call and opens it. A call without an id gets one.
func (b *Builder) ToolCall(id, name string) *Block {
	k := b.block(message.BlockToolCall)
	if b.calls++; id == "" {
		id = "call_" + tail(b.req.ResponseEntryID) + strconv.Itoa(b.calls)
	}
	k.Name(id, name)
	k.first = k.last
	k.first.Arguments = []byte("{}")
	k.begin()
	return k
}

// tail is what tells one answer's made-up ids from another's.
func tail(id string) string {
	if id == "" {
		return ""
	}
	return id[max(0, len(id)-12):] + "_"
}

func (b *Builder) block(typ message.BlockType) *Block {
	return &Block{b: b, typ: typ, first: message.Block{Type: typ}, last: message.Block{Type: typ}}
}

// Name corrects a call's id and name before its end, where they come late; ""
// corrects nothing.
func (k *Block) Name(id, name string) {
	if k.ended {
		return
	}
	if id != "" {
		k.last.ID = sound(id)
	}
	if name != "" {
		k.last.Name = sound(name)
	}
}

// Add appends to the text, or to a call's arguments, which are JSON text. A
// character that is cut off at the end of delta waits for its rest.
func (k *Block) Add(delta string) {
	if k.ended || delta == "" {
		return
	}
	if len(k.carry) > 0 {
		delta = string(rawjson.AppendJoin(k.carry, delta))
		k.carry = nil
	}
	whole := wholeLen(delta)
	if whole < len(delta) {
		k.carry = []byte(delta[whole:])
	}
	k.grow(delta[:whole])
}

// AddRaw is Add for the text of a raw JSON string, which keeps the half of a
// surrogate pair; what is no string adds nothing.
func (k *Block) AddRaw(raw []byte) {
	if s, err := rawjson.Unquote(raw); err == nil {
		k.Add(s)
	}
}

// EndWith ends the block with content as what it is for good, whatever the
// deltas said; "" corrects nothing.
func (k *Block) EndWith(content string) {
	switch {
	case k.ended:
		return
	case content == "":
	case k.Len() == 0:
		k.Add(content)
	default:
		k.carry, k.text = nil, text{}
		k.text.add(sound(content))
	}
	k.End()
}

// Len returns how many bytes the content has.
func (k *Block) Len() int { return k.text.size() + len(k.carry) }

// Sign sets the block's signature, which goes back to the provider unchanged.
func (k *Block) Sign(signature string) {
	if k.ended || signature == "" {
		return
	}
	k.begin()
	signature = sound(signature)
	switch k.typ {
	case message.BlockText:
		k.last.TextSignature = signature
	case message.BlockThinking:
		k.last.ThinkingSignature = signature
	case message.BlockToolCall:
		k.last.ThoughtSignature = signature
	}
}

// End ends the block; again it does nothing. Of a call whose arguments are no
// object, what can be read of them is kept, and that they must not be used.
func (k *Block) End() {
	if k.ended {
		return
	}
	k.flush()
	k.ended = true
	if !k.open {
		return
	}
	switch k.typ {
	case message.BlockText:
		k.last.Text = k.text.take()
	case message.BlockThinking:
		k.last.Thinking = k.text.take()
	case message.BlockToolCall:
		k.last.Arguments, k.last.ArgumentsError = arguments([]byte(k.text.take()))
	}
	k.b.emit(message.StreamEvent{Type: events[k.typ].end, ContentIndex: k.index, Block: k.last})
}

// arguments returns raw where it is an object, else the best reading of it and what
// is wrong. A call without any arguments has none to be wrong.
func arguments(raw []byte) ([]byte, string) {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0, rawjson.KindOf(raw) == rawjson.Null:
		return []byte("{}"), ""
	case rawjson.KindOf(raw) != rawjson.Object:
		return object(raw), "they are no JSON object: " + start(raw)
	}
	if err := rawjson.Valid(raw); err != nil {
		return object(raw), "they are no JSON: " + err.Error()
	}
	return raw, ""
}

// start is the beginning of a text, for people.
func start(raw []byte) string {
	const most = 40
	if len(raw) > most {
		return strings.ToValidUTF8(string(raw[:most]), "") + "..."
	}
	return strings.ToValidUTF8(string(raw), "")
}

// object is the best reading of the beginning of an object.
func object(prefix []byte) []byte {
	if v := rawjson.Complete(prefix); rawjson.KindOf(v) == rawjson.Object {
		return v
	}
	return []byte("{}")
}

// begin opens the block at the next index.
func (k *Block) begin() {
	if k.open {
		return
	}
	k.b.Start("", "")
	k.open, k.index = true, len(k.b.blocks)
	k.b.blocks = append(k.b.blocks, k)
	if k.last.Redacted {
		k.first = k.last
	}
	k.b.emit(message.StreamEvent{Type: events[k.typ].start, ContentIndex: k.index, Block: k.first})
}

func (k *Block) grow(delta string) {
	if delta == "" {
		return
	}
	k.begin()
	delta = sound(delta)
	k.text.add(delta)
	k.b.emit(message.StreamEvent{Type: events[k.typ].delta, ContentIndex: k.index, Delta: delta})
}

// flush sends a character that stays cut off.
func (k *Block) flush() {
	if len(k.carry) > 0 {
		rest := string(k.carry)
		k.carry = nil
		k.grow(rest)
	}
}

// content is the block for good, which is what its frames add up to.
func (k *Block) content() message.Block {
	if k.ended {
		return k.last
	}
	c := k.first
	switch k.typ {
	case message.BlockText:
		c.Text = k.text.take()
	case message.BlockThinking:
		c.Thinking = k.text.take()
	case message.BlockToolCall:
		if k.text.size() > 0 {
			c.Arguments = object([]byte(k.text.take()))
		}
	}
	k.last, k.ended = c, true
	return c
}

// kinds are the events of one type of block.
type kinds struct{ start, delta, end message.EventType }

var events = map[message.BlockType]kinds{
	message.BlockText:     {message.EventTextStart, message.EventTextDelta, message.EventTextEnd},
	message.BlockThinking: {message.EventThinkingStart, message.EventThinkingDelta, message.EventThinkingEnd},
	message.BlockToolCall: {message.EventToolCallStart, message.EventToolCallDelta, message.EventToolCallEnd},
}

// sound is s as it comes back from JSON: bytes that are no characters are
// replaced, halves of surrogate pairs are kept.
func sound(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	s, _ = rawjson.Unquote(rawjson.Quote(s)) // what was quoted is a string
	return s
}

// wholeLen returns the length of s without the beginning of a character at its
// end: the first bytes of one, or the first half of a surrogate pair.
func wholeLen(s string) int {
	if n := len(s); n >= 3 && s[n-3] == 0xED && s[n-2]&0xF0 == 0xA0 { // a high surrogate
		return n - 3
	}
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		if tail := s[len(s)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRuneInString(tail) {
				return len(s) - n
			}
			break
		}
	}
	return len(s)
}
