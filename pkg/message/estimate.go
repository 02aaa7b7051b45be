package message

import (
	"unicode/utf8"

	"github.com/drover-run/drover/internal/rawjson"
)

// imageChars is what an image counts in characters, whatever its size.
const imageChars = 4800

// EstimateTokens estimates the size of one message: a quarter of its characters
// (UTF-16 code units), rounded up. Text and thinking count as they are, a tool
// call by name and arguments, a bash execution by command and output.
func EstimateTokens(m Message) int64 {
	var chars int64
	switch m.Role() {
	case RoleBashExecution:
		chars = fieldChars(m, "command") + fieldChars(m, "output")
	case RoleBranchSummary, RoleCompactionSummary:
		chars = fieldChars(m, "summary")
	default:
		content, _ := rawjson.Get(m, "content")
		sections, _ := rawjson.Get(m, "sections")
		chars = contentChars(content) + sectionChars(sections)
	}
	return (chars + 3) / 4
}

func contentChars(content []byte) (chars int64) {
	if rawjson.KindOf(content) != rawjson.Array {
		return stringChars(content)
	}
	// The content is part of a valid message: the walk cannot fail.
	_ = rawjson.ElementsFunc(content, func(start, end int) bool {
		chars += blockChars(content[start:end])
		return true
	})
	return chars
}

func blockChars(raw []byte) int64 {
	switch name(raw, "type", blockTypes[:]) {
	case BlockText:
		return fieldChars(raw, "text")
	case BlockThinking:
		return fieldChars(raw, "thinking")
	case BlockImage:
		return imageChars
	case BlockToolCall:
		arguments, _ := rawjson.Get(raw, "arguments")
		return fieldChars(raw, "name") + units(arguments)
	}
	return 0
}

// sectionChars counts the texts of a system message's sections.
func sectionChars(sections []byte) (chars int64) {
	if rawjson.KindOf(sections) != rawjson.Object {
		return 0
	}
	_ = rawjson.MembersFunc(sections, func(m rawjson.Member) bool {
		chars += stringChars(m.Value)
		return true
	})
	return chars
}

func fieldChars(obj []byte, field string) int64 {
	raw, _ := rawjson.Get(obj, field)
	return stringChars(raw)
}

// stringChars counts the UTF-16 units of a valid raw string without decoding
// it; anything else counts nothing.
func stringChars(raw []byte) (n int64) {
	if rawjson.KindOf(raw) != rawjson.String {
		return 0
	}
	n = units(raw) - 2
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		n-- // the backslash
		if raw[i] == 'u' {
			i += 4
			n -= 4
		}
	}
	return n
}

// units counts the UTF-16 units of UTF-8 text.
func units(b []byte) (n int64) {
	for _, c := range b {
		switch {
		case c >= 0xF0:
			n += 2
		case utf8.RuneStart(c):
			n++
		}
	}
	return n
}

// ContextTokens returns the size of a context: the newest usable figure of a
// provider plus estimates of the messages after it, or estimates alone. A
// figure is usable when the answer neither failed nor was aborted, counts
// something, and is not older than a compaction in front of it, which the
// request it counted still had in full.
func ContextTokens(msgs []Message) int64 {
	from := compactedAt(msgs)
	var tokens int64
	for i := len(msgs) - 1; i >= 0; i-- {
		if figure, ok := providerFigure(msgs[i], from); ok {
			return tokens + figure
		}
		tokens += EstimateTokens(msgs[i])
	}
	return tokens
}

func providerFigure(m Message, from int64) (int64, bool) {
	if m.Role() != RoleAssistant || m.Timestamp() < from {
		return 0, false
	}
	if reason := m.StopReason(); reason == StopError || reason == StopAborted {
		return 0, false
	}
	u, ok := m.Usage()
	return u.context(), ok && u.context() > 0
}

// compactedAt returns the time of the newest compaction summary, 0 without one.
func compactedAt(msgs []Message) int64 {
	for i := len(msgs) - 1; i >= 0; i-- {
		if msgs[i].Role() == RoleCompactionSummary {
			return msgs[i].Timestamp()
		}
	}
	return 0
}
