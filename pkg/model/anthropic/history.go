package anthropic

import (
	"slices"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
)

// The roles of the Messages API.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

// history writes stored messages as the API's turns: roles take turns, so
// neighbours of one role become one turn. Healed messages have their results
// right behind the calls, which is where a user's turn must have them.
type history struct {
	model    message.ModelRef
	images   bool // the model takes images
	thinking bool // its own thinking goes along

	system []string // texts that stand before the conversation
	called []string // names of the tools that were called

	turns []byte // all turns so far, the last one open
	role  string // of the last turn, "" before the first
}

func (h *history) add(messages []message.Message) {
	for _, m := range messages {
		switch m.Role() {
		case message.RoleSystem:
			h.addSystem(m.Text())
		case message.RoleUser:
			h.addUser(m)
		case message.RoleToolResult:
			h.addResult(m)
		case message.RoleAssistant:
			h.addAssistant(m)
		}
	}
}

// addSystem takes instructions: those before the conversation join the system
// prompt, later ones stay where they are, so that what precedes them is still the
// same for the provider's cache.
func (h *history) addSystem(text string) {
	switch {
	case blank(text):
	case h.role == "":
		h.system = append(h.system, text)
	default:
		h.open(roleUser)
		h.turns = append(appendText(h.turns, "<system>\n"+text+"\n</system>"), '}')
	}
}

func (h *history) addUser(m message.Message) {
	for _, b := range blocksOf(m) {
		if h.says(b) {
			h.open(roleUser)
			h.turns = h.appendContent(h.turns, b)
		}
	}
}

func (h *history) addResult(m message.Message) {
	h.open(roleUser)
	id, _ := rawjson.GetString(m, "toolCallId")
	h.turns = rawjson.AppendQuote(append(h.turns, `{"type":"tool_result","tool_use_id":`...), callID(id))
	h.turns = append(h.turns, `,"content":[`...)
	empty := true
	for _, b := range blocksOf(m) {
		if !h.says(b) {
			continue
		}
		if !empty {
			h.turns = append(h.turns, ',')
		}
		empty = false
		h.turns = h.appendContent(h.turns, b)
	}
	if empty { // an error without content is refused
		h.turns = append(appendText(h.turns, "(no output)"), '}')
	}
	h.turns = append(h.turns, ']')
	if failed, _ := rawjson.GetBool(m, "isError"); failed {
		h.turns = append(h.turns, `,"is_error":true`...)
	}
	h.turns = append(h.turns, '}')
}

func (h *history) addAssistant(m message.Message) {
	own := isOwn(h.model, m)
	for _, b := range blocksOf(m) {
		switch {
		case b.Type == message.BlockText && !blank(b.Text):
			h.open(roleAssistant)
			h.turns = h.appendContent(h.turns, b)
		case b.Type == message.BlockThinking:
			h.addThinking(b, own)
		case b.Type == message.BlockToolCall:
			h.addCall(b)
		}
	}
}

// isOwn reports whether an answer is the model's own: what others have signed is
// for them.
func isOwn(ref message.ModelRef, m message.Message) bool {
	provider, _ := rawjson.GetString(m, "provider")
	id, _ := rawjson.GetString(m, "model")
	api, _ := rawjson.GetString(m, "api")
	return ref == message.ModelRef{Provider: provider, ModelID: id} && api == API
}

// addThinking sends thinking back to where it came from. Without the provider's
// signature it is no thinking to the API; what can be read of it goes as text.
func (h *history) addThinking(b message.Block, own bool) {
	signed := own && b.ThinkingSignature != ""
	switch {
	case signed && !h.thinking, !signed && (b.Redacted || blank(b.Thinking)):
		return
	case !signed:
		h.open(roleAssistant)
		h.turns = append(appendText(h.turns, b.Thinking), '}')
	case b.Redacted:
		h.open(roleAssistant)
		h.turns = rawjson.AppendQuote(append(h.turns, `{"type":"redacted_thinking","data":`...), b.ThinkingSignature)
		h.turns = append(h.turns, '}')
	default:
		h.open(roleAssistant)
		h.turns = rawjson.AppendQuote(append(h.turns, `{"type":"thinking","thinking":`...), b.Thinking)
		h.turns = rawjson.AppendQuote(append(h.turns, `,"signature":`...), b.ThinkingSignature)
		h.turns = append(h.turns, '}')
	}
}

func (h *history) addCall(b message.Block) {
	h.open(roleAssistant)
	name := toolName(b.Name)
	if !slices.Contains(h.called, name) {
		h.called = append(h.called, name)
	}
	h.turns = rawjson.AppendQuote(append(h.turns, `{"type":"tool_use","id":`...), callID(b.ID))
	h.turns = rawjson.AppendQuote(append(h.turns, `,"name":`...), name)
	h.turns = append(h.turns, `,"input":`...)
	if rawjson.KindOf(b.Arguments) == rawjson.Object {
		h.turns = append(h.turns, b.Arguments...)
	} else {
		h.turns = append(h.turns, '{', '}')
	}
	h.turns = append(h.turns, '}')
}

// open makes the next block part of a turn of the role. The first turn must be
// the user's.
func (h *history) open(role string) {
	if h.role == role {
		h.turns = append(h.turns, ',')
		return
	}
	if h.role == "" && role == roleAssistant {
		h.open(roleUser)
		h.turns = append(appendText(h.turns, "(The beginning of the conversation is not shown.)"), '}')
	}
	if h.role == "" {
		h.turns = append(h.turns, `[{"role":"`...)
	} else {
		h.turns = append(h.turns, `]},{"role":"`...)
	}
	h.role = role
	h.turns = append(append(h.turns, role...), `","content":[`...)
}

// close appends the turns to b. The last block of the user's turn is where the
// provider's cache should reach to.
func (h *history) close(b []byte) []byte {
	if h.role == "" {
		return append(b, '[', ']')
	}
	b = append(b, h.turns...)
	if h.role == roleUser {
		b = markLast(b)
	}
	return append(b, `]}]`...)
}
