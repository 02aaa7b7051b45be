package message

import (
	"encoding/json"

	"github.com/drover-run/drover/internal/rawjson"
)

// NoteThinking adds to an answer's diagnostics that its request asked for another
// thinking level than the lane is set to, because the model lacks that one.
func NoteThinking(m Message, wanted, used ThinkingLevel) (Message, error) {
	diagnostics, _ := rawjson.Get(m, "diagnostics")
	out := appendOptional(notes(diagnostics), `{"type":"thinking_clamped","requested":`, string(wanted))
	out = appendOptional(out, `,"used":`, string(used))
	return m.With("diagnostics", append(out, "}]"...))
}

// ClampedThinking reads what NoteThinking added; false when the request asked for
// the level that is set.
func ClampedThinking(m Message) (wanted, used ThinkingLevel, ok bool) {
	note := newestNote(m, "thinking_clamped")
	if note == nil {
		return "", "", false
	}
	requested, _ := rawjson.GetString(note, "requested")
	asked, _ := rawjson.GetString(note, "used")
	return ThinkingLevel(requested), ThinkingLevel(asked), true
}

// NoteImages adds to an answer's diagnostics how many images its request had to
// leave out, because the model takes none.
func NoteImages(m Message, count int64) (Message, error) {
	diagnostics, _ := rawjson.Get(m, "diagnostics")
	out := appendInt(notes(diagnostics), `{"type":"images_omitted","count":`, count)
	return m.With("diagnostics", append(out, "}]"...))
}

// OmittedImages is how many images the request of an answer had to leave out.
func OmittedImages(m Message) int64 {
	n, _ := rawjson.GetInt(newestNote(m, "images_omitted"), "count")
	return n
}

// CountImages counts the images of messages that are for a provider.
func CountImages(msgs []Message) (n int64) {
	for _, m := range msgs {
		content, _ := rawjson.Get(m, "content")
		// Content that is no array holds no image.
		_ = rawjson.ElementsFunc(content, func(start, end int) bool {
			if isBlock(content[start:end], BlockImage) {
				n++
			}
			return true
		})
	}
	return n
}

// notes opens a copy of diagnostics for one note more.
func notes(diagnostics json.RawMessage) json.RawMessage {
	out := make(json.RawMessage, 0, len(diagnostics)+96)
	out = append(out, '[')
	err := rawjson.ElementsFunc(diagnostics, func(start, end int) bool {
		out = append(append(out, diagnostics[start:end]...), ',')
		return true
	})
	if err != nil {
		return out[:1]
	}
	return out
}

// newestNote is the last diagnostics note of a type, nil without one. Diagnostics
// that are no array hold none.
func newestNote(m Message, kind string) (note []byte) {
	diagnostics, _ := rawjson.Get(m, "diagnostics")
	_ = rawjson.ElementsFunc(diagnostics, func(start, end int) bool {
		if typ, _ := rawjson.Get(diagnostics[start:end], "type"); isName(typ, kind) {
			note = diagnostics[start:end]
		}
		return true
	})
	return note
}
