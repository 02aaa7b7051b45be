package message

import "encoding/json"

// BlockType is a content block's `type` field.
type BlockType string

// The block types.
const (
	BlockText     BlockType = "text"
	BlockThinking BlockType = "thinking"
	BlockImage    BlockType = "image"
	BlockToolCall BlockType = "toolCall"
)

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

	ID               string // tool call
	Name             string
	Arguments        json.RawMessage // JSON object
	ThoughtSignature string
	Namespace        string

	// Raw is the text the block was decoded from, nil when it was built. It
	// wins over the fields on the way out: clear it after changing one.
	Raw json.RawMessage
}

// TextBlock returns a text block.
func TextBlock(text string) Block { return Block{Type: BlockText, Text: text} }

// ParseBlock decodes one content block. Raw aliases raw.
func ParseBlock(raw json.RawMessage) (Block, error) { return Block{}, nil }

// AppendJSON appends Raw when it is set, else the fields of the block's type,
// optional ones when they are not empty.
func (b Block) AppendJSON(dst []byte) ([]byte, error) { return dst, nil }
