package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/internal/secret"
	"github.com/drover-run/drover/pkg/message"
)

// maxText is how many bytes of text a result may have; the rest is cut, and said to
// be.
const maxText = 256 << 10

// result is what a server answered as a tool result: texts and images as they are,
// of everything else what a model can read, without keys that the server repeats.
func result(r *sdk.CallToolResult, keys *secret.Set) (message.ToolResult, error) {
	out := message.ToolResult{IsError: r.IsError}
	room := maxText
	for _, c := range r.Content {
		b := block(c)
		if b.Type == message.BlockText {
			if b.Text, room = cut(keys.Out(b.Text), room); b.Text == "" {
				continue
			}
		}
		out.Content = append(out.Content, b)
	}
	if r.StructuredContent != nil {
		raw, err := json.Marshal(r.StructuredContent)
		if err != nil {
			return out, fmt.Errorf("read the structured result: %w", err)
		}
		structured := keys.Out(string(raw))
		out.Details = append(append(json.RawMessage(`{"structuredContent":`), structured...), '}')
		if len(out.Content) == 0 {
			text, _ := cut(structured, maxText)
			out.Content = []message.Block{message.TextBlock(text)}
		}
	}
	if len(out.Content) == 0 {
		out.Content = []message.Block{message.TextBlock("(no output)")}
	}
	return out, nil
}

// cut shortens a text to the room there is, and returns what is left of it.
func cut(text string, room int) (string, int) {
	if len(text) <= room {
		return text, room - len(text)
	}
	if room == 0 {
		return "", 0
	}
	end := room
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s\n[%d bytes of the result are left out here.]", text[:end], len(text)-end), 0
}

func block(c sdk.Content) message.Block {
	switch c := c.(type) {
	case *sdk.TextContent:
		return message.TextBlock(c.Text)
	case *sdk.ImageContent:
		return image(c.Data, c.MIMEType)
	case *sdk.AudioContent:
		return message.TextBlock(fmt.Sprintf("[audio, %s, %d bytes: not shown]", c.MIMEType, len(c.Data)))
	case *sdk.ResourceLink:
		return message.TextBlock(strings.TrimSpace(fmt.Sprintf("[resource %s] %s %s", c.URI, c.Name, c.Description)))
	case *sdk.EmbeddedResource:
		return embedded(c.Resource)
	}
	raw, err := json.Marshal(c)
	if err != nil || rawjson.Valid(raw) != nil {
		return message.TextBlock("[content of an unknown kind: not shown]")
	}
	return message.TextBlock(string(raw))
}

func image(data []byte, mimeType string) message.Block {
	return message.Block{Type: message.BlockImage, Data: base64.StdEncoding.EncodeToString(data), MimeType: mimeType}
}

func embedded(r *sdk.ResourceContents) message.Block {
	switch {
	case r == nil:
		return message.TextBlock("")
	case strings.HasPrefix(r.MIMEType, "image/") && len(r.Blob) > 0:
		return image(r.Blob, r.MIMEType)
	case len(r.Blob) > 0:
		return message.TextBlock(fmt.Sprintf("[resource %s, %s, %d bytes: not shown]", r.URI, r.MIMEType, len(r.Blob)))
	}
	return message.TextBlock(fmt.Sprintf("[resource %s]\n%s", r.URI, r.Text))
}
