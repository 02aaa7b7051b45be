package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
)

// input collects the items of a request. What a model said goes back to it as
// it came; what another one said, without the ids and the reasoning that only
// its own server knows.
type input struct {
	provider string
	spec     model.Spec
	items    []byte
	calls    map[string]string // by stored id, the call id that is sent
	taken    map[string]bool   // call ids that are sent
}

func newInput(provider string, spec model.Spec) *input {
	return &input{provider: provider, spec: spec, calls: map[string]string{}, taken: map[string]bool{}}
}

// item opens an item.
func (in *input) item(start string) {
	if len(in.items) > 0 {
		in.items = append(in.items, ',')
	}
	in.items = append(in.items, start...)
}

// add adds one message of the conversation.
func (in *input) add(m message.Message) {
	blocks, err := m.Blocks()
	if err != nil {
		return // what cannot be read has no content
	}
	switch m.Role() {
	case message.RoleUser:
		if blocks = sayable(blocks); len(blocks) > 0 {
			in.item(`{"role":"user","content":`)
			in.content(blocks)
			in.items = append(in.items, '}')
		}
	case message.RoleSystem:
		in.item(`{"role":"developer","content":`)
		in.items = append(appendText(in.items, m.Text()), '}')
	case message.RoleToolResult:
		in.result(m, blocks)
	case message.RoleAssistant:
		in.assistant(m, blocks)
	}
}

// sayable returns the blocks that say something.
func sayable(blocks []message.Block) []message.Block {
	return slices.DeleteFunc(blocks, func(b message.Block) bool {
		return b.Type != message.BlockImage && (b.Type != message.BlockText || b.Text == "")
	})
}

// content appends user content as a list of parts.
func (in *input) content(blocks []message.Block) {
	in.items = append(in.items, '[')
	for i, b := range blocks {
		if i > 0 {
			in.items = append(in.items, ',')
		}
		in.part(b)
	}
	in.items = append(in.items, ']')
}

func (in *input) part(b message.Block) {
	switch {
	case b.Type == message.BlockImage && in.spec.Images:
		in.items = append(in.items, `{"type":"input_image","detail":"auto","image_url":"data:`...)
		in.items = appendInside(in.items, b.MimeType)
		in.items = append(in.items, ";base64,"...)
		in.items = append(appendInside(in.items, b.Data), `"}`...)
	case b.Type == message.BlockImage:
		in.items = append(in.items, `{"type":"input_text","text":"(an image was left out: this model takes none)"}`...)
	default:
		in.items = append(appendText(append(in.items, `{"type":"input_text","text":`...), b.Text), '}')
	}
}

// appendInside appends text inside a string literal.
func appendInside(b []byte, s string) []byte {
	at := len(b)
	b = appendText(b, s)
	return append(b[:at], b[at+1:len(b)-1]...)
}

// result adds the outcome of a call: text as text, images as a list of parts.
func (in *input) result(m message.Message, blocks []message.Block) {
	id, _ := rawjson.GetString(m, "toolCallId")
	in.item(`{"type":"function_call_output","call_id":`)
	in.items = append(appendText(in.items, in.callID(id)), `,"output":`...)
	plain := true
	for _, b := range blocks {
		plain = plain && b.Type != message.BlockImage
	}
	if plain {
		in.items = appendText(in.items, m.Text())
	} else {
		in.content(sayable(blocks))
	}
	in.items = append(in.items, '}')
}

// assistant adds what a model said.
func (in *input) assistant(m message.Message, blocks []message.Block) {
	own := in.own(m)
	// Reasoning that nothing follows is refused.
	for len(blocks) > 0 && blocks[len(blocks)-1].Type == message.BlockThinking {
		blocks = blocks[:len(blocks)-1]
	}
	for len(blocks) > 0 {
		n := 1
		switch b := blocks[0]; {
		case b.Type == message.BlockThinking && own:
			in.item(b.ThinkingSignature)
		case b.Type == message.BlockText:
			n = in.said(blocks, own)
		case b.Type == message.BlockToolCall:
			in.call(b, own)
		}
		blocks = blocks[n:]
	}
}

// own tells whether the items of an answer can go back as they came: it is this
// model's, and all its reasoning is there. The server checks that an item with
// an id comes with the reasoning that led to it.
func (in *input) own(m message.Message) bool {
	a, err := message.ParseAssistant(m)
	if err != nil || a.Provider != in.provider || a.API != responsesAPI || a.Model != in.spec.ID {
		return false
	}
	for _, b := range a.Content {
		if b.Type == message.BlockThinking && !isReasoning(b.ThinkingSignature) {
			return false
		}
	}
	return true
}

// isReasoning tells whether a signature is a reasoning item that says something:
// what it refers to is not kept on the server.
func isReasoning(signature string) bool {
	item := []byte(signature)
	if rawjson.Valid(item) != nil {
		return false
	}
	typ, _ := rawjson.GetString(item, "type")
	secret, _ := rawjson.GetString(item, "encrypted_content")
	content, _ := rawjson.Get(item, "content")
	return typ == "reasoning" && (secret != "" || rawjson.KindOf(content) == rawjson.Array && len(content) > len("[]"))
}

// said adds the message item that blocks begin with and returns how many of them
// it took: an item with several parts became as many blocks.
func (in *input) said(blocks []message.Block, own bool) int {
	sig := parseTextSignature(blocks[0].TextSignature)
	if !own || sig.ID == "" {
		if blocks[0].Text == "" {
			return 1
		}
		in.item(`{"role":"assistant","content":`)
		in.items = append(appendText(in.items, blocks[0].Text), '}')
		return 1
	}
	in.item(`{"type":"message","role":"assistant","id":`)
	in.items = appendText(in.items, sig.ID)
	in.items = append(in.items, `,"status":"completed","content":[`...)
	n := 0
	for n < len(blocks) && blocks[n].Type == message.BlockText {
		part := parseTextSignature(blocks[n].TextSignature)
		if part.ID != sig.ID {
			break
		}
		if n++; n > 1 {
			in.items = append(in.items, ',')
		}
		if part.Refusal {
			in.items = append(appendText(append(in.items, `{"type":"refusal","refusal":`...), blocks[n-1].Text), '}')
			continue
		}
		in.items = appendText(append(in.items, `{"type":"output_text","text":`...), blocks[n-1].Text)
		in.items = append(in.items, `,"annotations":[]}`...)
	}
	in.items = append(in.items, ']')
	if sig.Phase != "" {
		in.items = appendText(appendName(in.items, "phase"), sig.Phase)
	}
	in.items = append(in.items, '}')
	return n
}

// call adds a function call.
func (in *input) call(b message.Block, own bool) {
	in.item(`{"type":"function_call"`)
	if _, item := splitCallID(b.ID); own && item != "" {
		in.items = appendText(appendName(in.items, "id"), item)
	}
	in.items = appendText(appendName(in.items, "call_id"), in.callID(b.ID))
	in.items = appendText(appendName(in.items, "name"), b.Name)
	in.items = appendText(appendName(in.items, "arguments"), string(b.Arguments))
	in.items = append(in.items, '}')
}

// maxCallID is the longest call id that the API takes.
const maxCallID = 64

// callID is the id under which a call is sent, the same for its result. Another
// provider's ids may be too long, and a server's own may come twice.
func (in *input) callID(stored string) string {
	if id, ok := in.calls[stored]; ok {
		return id
	}
	id, _ := splitCallID(stored)
	if id == "" || len(id) > maxCallID || in.taken[id] {
		sum := sha256.Sum256([]byte(stored))
		id = "call_" + hex.EncodeToString(sum[:16])
	}
	in.calls[stored], in.taken[id] = id, true
	return id
}

// joinCallID is the id of a tool call: both ids of its function_call item.
func joinCallID(call, item string) string {
	if item == "" {
		return call
	}
	return call + "|" + item
}

func splitCallID(id string) (call, item string) {
	call, item, _ = strings.Cut(id, "|")
	return call, item
}

// textSignature is what is kept of the message item that a text block came in.
type textSignature struct {
	ID      string
	Phase   string
	Refusal bool
}

func (s textSignature) String() string {
	if s.ID == "" {
		return ""
	}
	b := appendText(append([]byte{}, `{"v":1,"id":`...), s.ID)
	if s.Phase != "" {
		b = appendText(appendName(b, "phase"), s.Phase)
	}
	if s.Refusal {
		b = append(appendName(b, "refusal"), "true"...)
	}
	return string(append(b, '}'))
}

// parseTextSignature reads a signature; a plain item id is one, too. Anything
// else has no id.
func parseTextSignature(s string) textSignature {
	if !strings.HasPrefix(s, "{") {
		if !strings.HasPrefix(s, "msg_") {
			s = ""
		}
		return textSignature{ID: s}
	}
	var sig textSignature
	sig.ID, _ = rawjson.GetString([]byte(s), "id")
	sig.Phase, _ = rawjson.GetString([]byte(s), "phase")
	sig.Refusal, _ = rawjson.GetBool([]byte(s), "refusal")
	return sig
}
