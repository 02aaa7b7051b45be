package store

import (
	"bytes"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
)

// glance is what one pass over a message payload shows. It only ever vouches:
// what it does not recognise as sound at once is judged in full.
type glance struct {
	b  []byte
	i  int
	ok bool

	role, stopReason, callID []byte // raw
	content                  rawjson.Kind
	calls                    []string
	toolName, isError, said  bool
}

// glanceAt passes once over a payload. sound means that message.Validate has
// nothing against its message.
func glanceAt(payload []byte) (g glance, sound bool) {
	g, sound = glanceInto(payload)
	return g, sound && g.i == len(payload)
}

// glanceInto is glanceAt for a payload that other text may follow; g.i is its end.
func glanceInto(text []byte) (g glance, sound bool) {
	g = glance{b: text, ok: true}
	messages := 0
	g.object(func(key []byte) {
		if string(key) == `"message"` {
			messages++
			g.object(g.messageField)
		} else {
			g.skip()
		}
	})
	g.ok = g.ok && messages == 1
	return g, g.ok && g.sound()
}

func (g *glance) sound() bool {
	switch string(g.role) {
	case `"user"`:
		return g.said
	case `"assistant"`:
		switch string(g.stopReason) {
		case `"stop"`, `"length"`, `"toolUse"`, `"error"`, `"aborted"`, `"deferred"`:
			return g.content == rawjson.Array
		}
	case `"toolResult"`:
		return g.content == rawjson.Array && len(g.callID) > 0 && g.toolName && g.isError
	}
	return false
}

// messageField looks at one field. The role has to come first: it says what the
// others must be.
func (g *glance) messageField(key []byte) {
	if g.role == nil && string(key) != `"role"` {
		g.ok = false
		return
	}
	switch string(key) {
	case `"role"`:
		g.ok = g.role == nil
		g.role = g.text()
	case `"content"`:
		g.ok = g.content == rawjson.Invalid
		g.contents()
	case `"stopReason"`:
		g.stopReason = g.text()
	case `"toolCallId"`:
		g.callID = g.text()
	case `"toolName"`:
		g.text()
		g.toolName = true
	case `"isError"`:
		g.of(rawjson.Bool)
		g.isError = true
	case `"api"`, `"provider"`, `"model"`, `"responseModel"`, `"responseId"`, `"errorMessage"`, `"rawStopReason"`:
		g.text()
	case `"timestamp"`:
		n := g.of(rawjson.Number)
		if _, integer := rawjson.ParseInt(n); !integer {
			g.ok = false
		}
	case `"usage"`:
		g.usage()
	case `"deferred"`:
		g.of(rawjson.Object)
	case `"diagnostics"`, `"addedToolNames"`:
		g.of(rawjson.Array)
	default:
		g.skip()
	}
}

func (g *glance) usage() {
	if _, end, ok := message.ReadUsage(g.b, g.i); ok {
		g.i = end
		return
	}
	if _, err := message.ParseUsage(g.of(rawjson.Object)); err != nil {
		g.ok = false
	}
}

func (g *glance) contents() {
	if g.content = rawjson.KindOf(g.b[g.i:]); g.content == rawjson.String {
		g.said = speaks(g.text())
		g.ok = g.ok && string(g.role) == `"user"`
		return
	}
	g.each('[', ']', g.block)
}

// speaks tells at the first character that a string is more than white space.
func speaks(raw []byte) bool {
	return len(raw) > 2 && raw[1] > ' ' && raw[1] < 0x7f && raw[1] != '\\'
}

// The fields that make a block.
const (
	hasText = 1 << iota
	hasThinking
	hasData
	hasMIMEType
	hasID
	hasName
	hasArguments
)

// block looks at one block.
func (g *glance) block() {
	var kind, id []byte
	has, said := 0, false
	g.object(func(key []byte) {
		switch string(key) {
		case `"type"`:
			g.ok = kind == nil
			kind = g.text()
		case `"text"`:
			said = speaks(g.text())
			has |= hasText
		case `"thinking"`:
			g.text()
			has |= hasThinking
		case `"data"`:
			g.text()
			has |= hasData
		case `"mimeType"`:
			g.text()
			has |= hasMIMEType
		case `"id"`:
			id = g.text()
			has |= hasID
		case `"name"`:
			g.text()
			has |= hasName
		case `"arguments"`:
			g.of(rawjson.Object)
			has |= hasArguments
		case `"textSignature"`, `"thinkingSignature"`, `"thoughtSignature"`, `"namespace"`:
			g.text()
		case `"redacted"`:
			g.of(rawjson.Bool)
		default:
			g.skip()
		}
	})
	if g.ok {
		g.judge(string(kind), has, said, id)
	}
}

// judge says whether a block of this type and with these fields may stand here.
func (g *glance) judge(kind string, has int, said bool, id []byte) {
	want, answer := 0, string(g.role) == `"assistant"`
	switch kind {
	case `"text"`:
		want = hasText
		g.said = g.said || said
	case `"thinking"`:
		want = hasThinking
		g.ok = answer
	case `"image"`:
		want = hasData | hasMIMEType
		g.ok = !answer
		g.said = true
	case `"toolCall"`:
		want = hasID | hasName | hasArguments
		g.ok = answer
		call, err := rawjson.Unquote(id)
		g.ok = g.ok && err == nil
		g.calls = append(g.calls, call)
	}
	g.ok = g.ok && want != 0 && has&want == want
}

// object walks the members of the object that starts here; field consumes each
// value. A name with an escape in it is left to the full judgement.
func (g *glance) object(field func(key []byte)) {
	g.each('{', '}', func() {
		key := g.text()
		if !g.ok || bytes.IndexByte(key, '\\') >= 0 || g.i >= len(g.b) || g.b[g.i] != ':' {
			g.ok = false
			return
		}
		if g.i++; g.i < len(g.b) && g.b[g.i] <= ' ' {
			g.ok = false // nothing stored has white space (D5)
			return
		}
		field(key)
	})
}

// each walks the items of a container that is written without white space, as
// everything stored is (D5).
func (g *glance) each(left, right byte, item func()) {
	if !g.ok || g.i+1 >= len(g.b) || g.b[g.i] != left {
		g.ok = false
		return
	}
	if g.i++; g.b[g.i] == right {
		g.i++
		return
	}
	for g.ok {
		item()
		if !g.ok || g.i >= len(g.b) {
			g.ok = false
			return
		}
		c := g.b[g.i]
		g.i++
		if c == right {
			return
		}
		g.ok = c == ','
	}
}

// skip passes over one value and returns it.
func (g *glance) skip() []byte {
	if !g.ok {
		return nil
	}
	end, err := rawjson.Skip(g.b, g.i)
	if err != nil {
		g.ok = false
		return nil
	}
	value := g.b[g.i:end:end]
	g.i = end
	return value
}

// of passes over a value of a kind.
func (g *glance) of(k rawjson.Kind) []byte {
	value := g.skip()
	g.ok = g.ok && len(value) > 0 && rawjson.KindOf(value) == k
	return value
}

// text passes over a string.
func (g *glance) text() []byte {
	if !g.ok {
		return nil
	}
	end, ok := rawjson.SkipString(g.b, g.i)
	if !ok {
		g.ok = false
		return nil
	}
	value := g.b[g.i:end:end]
	g.i = end
	return value
}
