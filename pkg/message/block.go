package message

import (
	"encoding/json"
	"fmt"

	"github.com/drover-run/drover/internal/rawjson"
)

// BlockType is a content block's `type` field.
type BlockType string

// The block types.
const (
	BlockText     BlockType = "text"
	BlockThinking BlockType = "thinking"
	BlockImage    BlockType = "image"
	BlockToolCall BlockType = "toolCall"
)

var blockTypes = [...]BlockType{BlockText, BlockThinking, BlockImage, BlockToolCall}

// Block is one content block. Which fields count depends on Type.
type Block struct {
	Type BlockType

	Text          string // text
	TextSignature string

	Thinking          string // thinking
	ThinkingSignature string
	Redacted          bool

	Data     string // image, base64
	MimeType string

	ID        string // tool call
	Name      string
	Arguments json.RawMessage // JSON object
	// ArgumentsError says why the arguments that the model wrote are none: then
	// Arguments are a reading of them for people, and the call must not run.
	ArgumentsError   string
	ThoughtSignature string
	Namespace        string

	// Raw is the text the block was decoded from, nil when it was built. It
	// wins over the fields on the way out: clear it after changing one.
	Raw json.RawMessage
}

// TextBlock returns a text block.
func TextBlock(text string) Block { return Block{Type: BlockText, Text: text} }

// ParseBlock decodes one content block; of unknown types only Type and Raw are
// set. Raw and Arguments alias raw.
func ParseBlock(raw json.RawMessage) (Block, error) {
	b := Block{Raw: raw}
	err := rawjson.MembersFunc(raw, func(m rawjson.Member) bool {
		switch string(keyText(m.Key)) {
		case "type":
			b.Type = blockType(m.Value)
		case "text":
			b.Text = text(m.Value)
		case "textSignature":
			b.TextSignature = text(m.Value)
		case "thinking":
			b.Thinking = text(m.Value)
		case "thinkingSignature":
			b.ThinkingSignature = text(m.Value)
		case "redacted":
			b.Redacted = m.Value[0] == 't'
		case "data":
			b.Data = text(m.Value)
		case "mimeType":
			b.MimeType = text(m.Value)
		case "id":
			b.ID = text(m.Value)
		case "name":
			b.Name = text(m.Value)
		case "arguments":
			b.Arguments = m.Value
		case "argumentsError":
			b.ArgumentsError = text(m.Value)
		case "thoughtSignature":
			b.ThoughtSignature = text(m.Value)
		case "namespace":
			b.Namespace = text(m.Value)
		}
		return true
	})
	if err != nil {
		return Block{}, fmt.Errorf("decode content block: %w", err)
	}
	return b, nil
}

func blockType(raw []byte) BlockType {
	for _, t := range blockTypes {
		if isName(raw, string(t)) {
			return t
		}
	}
	return BlockType(text(raw))
}

// isBlock tells whether raw is a block of the type.
func isBlock(raw []byte, typ BlockType) bool {
	v, _ := rawjson.Get(raw, "type")
	return isName(v, string(typ))
}

// parseContent decodes a valid content value: a string, an array of blocks, or
// null.
func parseContent(content []byte) ([]Block, error) {
	switch rawjson.KindOf(content) {
	case rawjson.Null:
		return nil, nil
	case rawjson.String:
		return []Block{TextBlock(text(content))}, nil
	case rawjson.Array:
	default:
		return nil, &FieldError{Field: "content", Msg: "is neither text nor blocks"}
	}
	var blocks []Block
	var bad error
	err := rawjson.ElementsFunc(content, func(start, end int) bool {
		var b Block
		if b, bad = ParseBlock(json.RawMessage(content[start:end:end])); bad != nil {
			bad = &FieldError{Field: fmt.Sprintf("content[%d]", len(blocks)), Msg: "is not an object"}
			return false
		}
		blocks = append(blocks, b)
		return true
	})
	if err == nil {
		err = bad
	}
	if err != nil {
		return nil, err
	}
	return blocks, nil
}

// AppendJSON appends Raw when it is set, else the fields of the block's type,
// optional ones when they are not empty. Arguments that are no JSON are closed
// or cut down to what can be read of them.
func (b Block) AppendJSON(dst []byte) ([]byte, error) {
	if b.Raw != nil {
		return append(dst, b.Raw...), nil
	}
	return b.appendFields(dst), nil
}

func (b Block) appendFields(dst []byte) []byte {
	dst = appendString(dst, `{"type":`, string(b.Type))
	switch b.Type {
	case BlockText:
		dst = appendString(dst, `,"text":`, b.Text)
		dst = appendOptional(dst, `,"textSignature":`, b.TextSignature)
	case BlockThinking:
		dst = appendString(dst, `,"thinking":`, b.Thinking)
		dst = appendOptional(dst, `,"thinkingSignature":`, b.ThinkingSignature)
		if b.Redacted {
			dst = append(dst, `,"redacted":true`...)
		}
	case BlockImage:
		dst = appendString(dst, `,"data":`, b.Data)
		dst = appendString(dst, `,"mimeType":`, b.MimeType)
	case BlockToolCall:
		dst = b.appendCall(dst)
	}
	return append(dst, '}')
}

// appendCall appends the members of a tool call but its type.
func (b Block) appendCall(dst []byte) []byte {
	dst = appendString(dst, `,"id":`, b.ID)
	dst = appendString(dst, `,"name":`, b.Name)
	dst = append(dst, `,"arguments":`...)
	if rawjson.Valid(b.Arguments) == nil {
		dst = append(dst, b.Arguments...)
	} else {
		dst = append(dst, rawjson.Complete(b.Arguments)...)
	}
	dst = appendOptional(dst, `,"argumentsError":`, b.ArgumentsError)
	dst = appendOptional(dst, `,"thoughtSignature":`, b.ThoughtSignature)
	return appendOptional(dst, `,"namespace":`, b.Namespace)
}

func appendBlocks(dst []byte, blocks []Block) []byte {
	dst = append(dst, '[')
	for i, b := range blocks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst, _ = b.AppendJSON(dst)
	}
	return append(dst, ']')
}
