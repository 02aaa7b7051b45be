package redact

import (
	"slices"

	"github.com/drover-run/drover/internal/rawjson"
)

// Result is what became of a payload.
type Result struct {
	JSON  []byte // the payload itself when nothing was replaced
	Count int    // replacements
	// Structural names the members that match but are never changed.
	Structural []string
	// EmptyKeys counts the object keys of which nothing would be left.
	EmptyKeys int
}

// Entry replaces in the payload of a tree entry.
func (r *Rules) Entry(payload []byte) Result { return r.walk(payload, inEntry) }

// Message replaces in a message.
func (r *Rules) Message(m []byte) Result { return r.walk(m, inMessage) }

// Content replaces in JSON that is content as a whole, keys included.
func (r *Rules) Content(raw []byte) Result { return r.walk(raw, inContent) }

func (r *Rules) walk(raw []byte, at place) Result {
	if r == nil || len(raw) == 0 {
		return Result{JSON: raw}
	}
	w := &walker{rules: r}
	out := w.value(make([]byte, 0, len(raw)), raw, at, "")
	if w.Count > 0 {
		w.JSON = out
	} else {
		w.JSON = raw
	}
	return w.Result
}

// place says what a value is, and so which of its strings are content.
type place int

const (
	inContent place = iota
	inEntry
	inMessage
	inMessages
	inBlocks
	inBlock
	inStructure  // looked at, never changed
	inAttachment // not looked at
)

// inside says what the member of an object is.
func (p place) inside(key string) place {
	switch p {
	case inStructure:
		return inStructure
	case inEntry:
		switch key {
		case "message":
			return inMessage
		case "retainedTail":
			return inMessages
		case "fromId", "customType":
			return inStructure
		}
	case inMessage:
		if key == "content" {
			return inBlocks
		}
		if slices.Contains(messageNames, key) {
			return inStructure
		}
	case inBlock:
		if key == "data" {
			return inAttachment
		}
		if slices.Contains(blockNames, key) || slices.Contains(signatures, key) {
			return inStructure
		}
	}
	return inContent
}

// element says what the elements of an array are.
func (p place) element() place {
	switch p {
	case inMessages:
		return inMessage
	case inBlocks:
		return inBlock
	case inStructure:
		return inStructure
	}
	return inContent
}

// ownKeys tells whether the keys of an object are the format's and stay.
func (p place) ownKeys() bool {
	return p == inEntry || p == inMessage || p == inBlock || p == inStructure
}

var (
	messageNames = []string{
		"role", "toolCallId", "toolName", "model", "provider", "api", "stopReason", "customType",
		"id", "responseId", "responseModel", "fromId", "addedToolNames", "deferred",
	}
	blockNames = []string{"type", "id", "name", "mimeType", "namespace"}
	signatures = []string{"textSignature", "thinkingSignature", "thoughtSignature"}
	// vocabulary are the words of the format: that one of them matches says
	// nothing about anybody.
	vocabulary = []string{
		"user", "assistant", "toolResult", "system", "custom", "bashExecution", "branchSummary", "compactionSummary",
		"text", "thinking", "image", "toolCall",
		"pending", "stop", "length", "toolUse", "error", "aborted", "deferred",
	}
)

type walker struct {
	rules *Rules
	Result
}

// value appends a valid JSON value to dst, with what matches replaced.
func (w *walker) value(dst, raw []byte, at place, name string) []byte {
	switch kind := rawjson.KindOf(raw); {
	case at == inAttachment && kind == rawjson.String:
	case kind == rawjson.String:
		return w.text(dst, raw, at, name)
	case kind == rawjson.Array:
		return w.array(dst, raw, at, name)
	case kind == rawjson.Object:
		return w.object(dst, raw, at)
	}
	return append(dst, raw...)
}

func (w *walker) text(dst, raw []byte, at place, name string) []byte {
	s, err := rawjson.Unquote(raw)
	if err != nil {
		return append(dst, raw...)
	}
	if at == inStructure {
		if !slices.Contains(vocabulary, s) && w.rules.Matches(s) {
			w.Structural = append(w.Structural, name)
		}
		return append(dst, raw...)
	}
	out, n := w.rules.Text(s)
	if n == 0 {
		return append(dst, raw...)
	}
	w.Count += n
	return rawjson.AppendQuote(dst, out)
}

func (w *walker) array(dst, raw []byte, at place, name string) []byte {
	dst = append(dst, '[')
	first := true
	// The value was valid when it was stored.
	_ = rawjson.ElementsFunc(raw, func(start, end int) bool {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = w.value(dst, raw[start:end], at.element(), name)
		return true
	})
	return append(dst, ']')
}

func (w *walker) object(dst, raw []byte, at place) []byte {
	start, before := len(dst), w.Count
	dst = append(dst, '{')
	_ = rawjson.MembersFunc(raw, func(m rawjson.Member) bool {
		if len(dst) > start+1 {
			dst = append(dst, ',')
		}
		key, err := rawjson.Unquote(m.Key)
		if err != nil {
			key = string(m.Key)
		}
		if at.ownKeys() {
			dst = append(dst, m.Key...)
		} else {
			dst = w.key(dst, m.Key, key)
		}
		dst = w.value(append(dst, ':'), m.Value, at.inside(key), key)
		return true
	})
	dst = append(dst, '}')
	if at == inBlock && w.Count > before {
		return w.unsigned(dst, start)
	}
	return dst
}

func (w *walker) key(dst, raw []byte, key string) []byte {
	out, n := w.rules.Text(key)
	if n == 0 {
		return append(dst, raw...)
	}
	if w.Count += n; out == "" {
		w.EmptyKeys++
	}
	return rawjson.AppendQuote(dst, out)
}

// unsigned takes the signatures from a block that is no longer what was signed.
func (w *walker) unsigned(dst []byte, start int) []byte {
	block := slices.Clone(dst[start:])
	for _, name := range signatures {
		if without, err := rawjson.Delete(block, name); err == nil {
			block = without
		}
	}
	return append(dst[:start], block...)
}
