package anthropic

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
)

// says reports whether a block of a user's message or a tool's result says
// something; the API refuses text of white space.
func (h *history) says(b message.Block) bool {
	return b.Type == message.BlockImage || b.Type == message.BlockText && !blank(b.Text)
}

// appendContent appends a text or an image; in the place of an image that cannot
// be sent goes a note.
func (h *history) appendContent(dst []byte, b message.Block) []byte {
	if b.Type != message.BlockImage {
		return append(appendText(dst, b.Text), '}')
	}
	switch {
	case !h.images:
		return append(appendText(dst, "(An image was left out: this model takes none.)"), '}')
	case !imageType(b.MimeType):
		return append(appendText(dst, "(An image of the type "+b.MimeType+" was left out: it cannot be sent.)"), '}')
	}
	dst = rawjson.AppendQuote(append(dst, `{"type":"image","source":{"type":"base64","media_type":`...), b.MimeType)
	dst = append(dst, `,"data":`...)
	if data, ok := rawjson.Get(b.Raw, "data"); ok {
		dst = append(dst, data...) // as it is stored: decoding would copy it
	} else {
		dst = rawjson.AppendQuote(dst, b.Data)
	}
	return append(dst, "}}"...)
}

func imageType(mime string) bool {
	switch mime {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
		return true
	}
	return false
}

// blocksOf returns the content of a message; content that is none has no blocks.
func blocksOf(m message.Message) []message.Block {
	blocks, _ := m.Blocks()
	return blocks
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// maxName is how long the API lets a tool's name, and us a call's id, be.
const maxName = 64

// callID returns the id of a call as the API accepts it: ids of other providers
// may be spelled in ways it refuses. The same id always becomes the same one.
func callID(id string) string {
	if id != "" && len(id) <= maxName && plain(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:12])
}

// toolName returns the name of a tool as the API accepts it.
func toolName(name string) string {
	if plain(name) && name != "" {
		return name
	}
	return "tool_" + strings.Map(func(r rune) rune {
		if r < 128 && plain(string(r)) {
			return r
		}
		return '_'
	}, name)
}

// plain reports whether s is made of letters, digits, hyphens and underscores.
func plain(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
