package openai

import (
	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
)

// chatMessages writes the messages of a request. Text goes as a string wherever
// it can: not every server takes a list of parts.
type chatMessages struct {
	provider string
	spec     model.Spec
	quirks   Quirks
	buf      []byte
	images   []message.Block // of the tool results before, yet to be shown
}

// open begins a message.
func (c *chatMessages) open(role string) {
	if c.buf[len(c.buf)-1] != '[' {
		c.buf = append(c.buf, ',')
	}
	c.buf = appendText(append(c.buf, `{"role":`...), role)
}

// say adds a message of text only.
func (c *chatMessages) say(role, text string) {
	c.open(role)
	c.buf = append(appendText(appendName(c.buf, "content"), text), '}')
}

// add adds one message of the conversation.
func (c *chatMessages) add(m message.Message) {
	blocks, err := m.Blocks()
	if err != nil {
		return // what cannot be read has no content
	}
	if m.Role() != message.RoleToolResult {
		c.showImages()
	}
	switch m.Role() {
	case message.RoleUser:
		c.user(blocks)
	case message.RoleSystem:
		c.say(c.quirks.systemRole(), m.Text())
	case message.RoleToolResult:
		c.result(m, blocks)
	case message.RoleAssistant:
		c.assistant(m, blocks)
	}
}

// texts are the texts of blocks, joined by newlines; images that the model cannot
// take are told of.
func (c *chatMessages) texts(blocks []message.Block) (text string, images []message.Block) {
	for _, b := range blocks {
		s := b.Text
		if b.Type == message.BlockImage {
			if c.spec.Images {
				images = append(images, b)
				continue
			}
			s = "(an image was left out: this model takes none)"
		}
		if s == "" {
			continue
		}
		if text != "" {
			text += "\n"
		}
		text += s
	}
	return text, images
}

func (c *chatMessages) user(blocks []message.Block) {
	text, images := c.texts(blocks)
	switch {
	case len(images) > 0:
		c.show(text, images)
	case text != "":
		c.say("user", text)
	}
}

// show adds a user message with images.
func (c *chatMessages) show(text string, images []message.Block) {
	c.open("user")
	c.buf = append(c.buf, `,"content":[`...)
	if text != "" {
		c.buf = append(appendText(append(c.buf, `{"type":"text","text":`...), text), "},"...)
	}
	for i, image := range images {
		if i > 0 {
			c.buf = append(c.buf, ',')
		}
		c.buf = append(c.buf, `{"type":"image_url","image_url":{"url":"data:`...)
		c.buf = appendInside(c.buf, image.MimeType)
		c.buf = append(c.buf, ";base64,"...)
		c.buf = append(appendInside(c.buf, image.Data), `"}}`...)
	}
	c.buf = append(c.buf, "]}"...)
}

// showImages adds the images of tool results, which the interface knows as the
// user's only.
func (c *chatMessages) showImages() {
	if len(c.images) > 0 {
		c.show("The images of the tool results above:", c.images)
		c.images = nil
	}
}

func (c *chatMessages) result(m message.Message, blocks []message.Block) {
	text, images := c.texts(blocks)
	c.images = append(c.images, images...)
	if text == "" {
		text = "(no output)"
		if len(images) > 0 {
			text = "(see the images below)"
		}
	}
	id, _ := rawjson.GetString(m, "toolCallId")
	c.open("tool")
	c.buf = appendText(appendName(c.buf, "tool_call_id"), id)
	c.buf = append(appendText(appendName(c.buf, "content"), text), '}')
}

// assistant adds what a model said. Thinking stays here, unless the server wants
// this model's back.
func (c *chatMessages) assistant(m message.Message, blocks []message.Block) {
	var thinking string
	var said, calls []message.Block
	for _, b := range blocks {
		switch b.Type {
		case message.BlockText:
			said = append(said, b)
		case message.BlockThinking:
			thinking += b.Thinking
		case message.BlockToolCall:
			calls = append(calls, b)
		}
	}
	text, _ := c.texts(said)
	if text == "" && len(calls) == 0 {
		return
	}
	c.open("assistant")
	c.buf = append(appendName(c.buf, "content"), "null"...)
	if text != "" {
		c.buf = appendText(c.buf[:len(c.buf)-len("null")], text)
	}
	fields := c.quirks.reasoningFields()
	if thinking != "" && c.quirks.ReasoningBack && len(fields) > 0 && c.own(m) {
		c.buf = appendText(appendName(c.buf, fields[0]), thinking)
	}
	c.calls(calls)
	c.buf = append(c.buf, '}')
}

func (c *chatMessages) calls(calls []message.Block) {
	if len(calls) == 0 {
		return
	}
	c.buf = append(c.buf, `,"tool_calls":[`...)
	for i, b := range calls {
		if i > 0 {
			c.buf = append(c.buf, ',')
		}
		c.buf = appendText(append(c.buf, `{"id":`...), b.ID)
		c.buf = appendText(append(c.buf, `,"type":"function","function":{"name":`...), b.Name)
		c.buf = append(appendText(appendName(c.buf, "arguments"), string(b.Arguments)), "}}"...)
	}
	c.buf = append(c.buf, ']')
}

// own tells whether the message is an answer of this very model.
func (c *chatMessages) own(m message.Message) bool {
	a, err := message.ParseAssistant(m)
	return err == nil && a.Provider == c.provider && a.API == chatAPI && a.Model == c.spec.ID
}
