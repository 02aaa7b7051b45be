package rewrite

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
)

// ErrEmptyKey is a redaction that would leave an object key without a text.
var ErrEmptyKey = errors.New("a redaction would leave an object key empty: its rule needs a replacement")

// errDeep is a value whose nesting is beyond what anybody writes.
var errDeep = errors.New("the value is nested too deep to be looked through")

// maxDepth is how deep a value that is edited may be nested.
const maxDepth = 1000

// Match is a place that holds a text which may not change there, or should have
// gone.
type Match struct {
	Where string // the entry, row, value or list, as verify names it
	Field string // "" where the whole is meant
}

// editor applies rules and new references to JSON values. Bytes that it need not
// touch stay as they are.
type editor struct {
	rules *Rules
	cut   *cut // nil where every entry stays as it is

	redactions  int
	structural  []Match
	attachments int // pictures and the like, whose content nobody reads
	err         error

	where string // what is edited now
	depth int
	buf   []byte // a decoded text
}

// maxMatches is how many matches are kept: enough to tell what is wrong.
const maxMatches = 100

func (e *editor) refuse(field string) {
	m := Match{e.where, field}
	if len(e.structural) < maxMatches && !slices.Contains(e.structural, m) {
		e.structural = append(e.structural, m)
	}
}

func (e *editor) fail(err error) {
	if e.err == nil {
		e.err = fmt.Errorf("%s: %w", e.where, err)
	}
}

// edit returns raw with every match replaced, raw itself when there is none.
func (e *editor) edit(raw []byte, s shape) []byte {
	if len(raw) == 0 || !e.concerns(raw, s) {
		return raw
	}
	out := e.value(make([]byte, 0, len(raw)+len(raw)/8), raw, s, "")
	if bytes.Equal(out, raw) {
		return raw
	}
	return out
}

// concerns reports whether there may be anything to do in a value.
func (e *editor) concerns(raw []byte, s shape) bool {
	if e.rules.may(raw) {
		return true
	}
	if !e.rules.Empty() && bytes.Contains(raw, []byte("mimeType")) {
		return true // it has an attachment, which is counted
	}
	if e.cut == nil {
		return false
	}
	return s == leaf || s == lastResult || bytes.Contains(raw, []byte("fromId")) || bytes.Contains(raw, []byte("firstKeptEntryId"))
}

// value edits one value and appends it.
func (e *editor) value(dst, raw []byte, s shape, field string) []byte {
	switch s {
	case fixed:
		e.fixed(raw, field)
		return append(dst, raw...)
	case signature:
		return append(dst, raw...)
	case attachment:
		e.attachments++
		e.fixed(raw, field)
		return append(dst, raw...)
	case reference, leaf:
		return e.reference(dst, raw, s, field)
	}
	if e.depth++; e.depth > maxDepth {
		e.fail(errDeep)
		e.depth--
		return append(dst, raw...)
	}
	defer func() { e.depth-- }()
	switch rawjson.KindOf(raw) {
	case rawjson.String:
		return e.text(dst, raw)
	case rawjson.Array:
		return e.array(dst, raw, s, field)
	case rawjson.Object:
		return e.object(dst, raw, s)
	}
	return append(dst, raw...)
}

func (e *editor) array(dst, raw []byte, s shape, field string) []byte {
	last := 0
	err := rawjson.ElementsFunc(raw, func(start, end int) bool {
		dst = e.value(append(dst, raw[last:start]...), raw[start:end], s.element(), field)
		last = end
		return true
	})
	if err != nil {
		e.fail(err)
	}
	return append(dst, raw[last:]...)
}

func (e *editor) object(dst, raw []byte, s shape) []byte {
	switch s {
	case block:
		return e.block(dst, raw)
	case lastResult:
		raw = e.withoutDropped(raw)
	}
	return e.members(dst, raw, s)
}

func (e *editor) members(dst, raw []byte, s shape) []byte {
	last := 0
	var given []string
	err := rawjson.MembersFunc(raw, func(m rawjson.Member) bool {
		dst = append(dst, raw[last:m.Start]...)
		key, _ := rawjson.Unquote(m.Key) // the scan has checked it
		next, known := s.field(key)
		if s == pendingEntry && key == "payload" {
			next, known = pendingPayload(raw), true
		}
		if known {
			e.fixedText(key, key)
			dst = append(dst, m.Key...)
		} else {
			next = free
			dst, given = e.key(dst, raw, m.Key, given)
		}
		dst = append(dst, raw[m.Start+len(m.Key):m.End-len(m.Value)]...)
		dst = e.value(dst, m.Value, next, key)
		last = m.End
		return true
	})
	if err != nil {
		e.fail(err)
	}
	return append(dst, raw[last:]...)
}

// pendingPayload is the shape of content that waits for its placement.
func pendingPayload(raw []byte) shape {
	if t, _ := rawjson.GetString(raw, "type"); store.EntryType(t) == store.TypeMessage {
		return aMessage
	}
	return free
}

// block edits a content block. One whose text changed loses what vouched for the
// text (D54).
func (e *editor) block(dst, raw []byte) []byte {
	before, mark := e.redactions, len(dst)
	dst = e.members(dst, raw, block)
	if e.redactions == before {
		for _, name := range signatures() {
			if v, ok := rawjson.Get(raw, name); ok {
				e.fixed(v, name)
			}
		}
		return dst
	}
	edited := bytes.Clone(dst[mark:])
	for _, name := range signatures() {
		if _, ok := rawjson.Get(edited, name); !ok {
			continue
		}
		var err error
		if edited, err = rawjson.Delete(edited, name); err != nil {
			e.fail(err)
			return dst
		}
	}
	return append(dst[:mark], edited...)
}

// withoutDropped leaves out of an outcome what it names and is gone. Another
// entry is no stand-in for an answer.
func (e *editor) withoutDropped(raw []byte) []byte {
	if e.cut == nil {
		return raw
	}
	for _, name := range []string{"finalAssistantEntryId", "summaryEntryId"} {
		id, ok := rawjson.GetString(raw, name)
		if !ok || !e.cut.dropped(id) {
			continue
		}
		less, err := rawjson.Delete(raw, name)
		if err != nil {
			e.fail(err)
			return raw
		}
		raw = less
	}
	return raw
}

// reference leads to the entry that stands in for one that is gone.
func (e *editor) reference(dst, raw []byte, s shape, field string) []byte {
	e.fixed(raw, field)
	if e.cut == nil || rawjson.KindOf(raw) != rawjson.String {
		return append(dst, raw...)
	}
	id, err := rawjson.Unquote(raw)
	if err != nil {
		e.fail(err)
		return append(dst, raw...)
	}
	next := e.cut.standIn(id)
	switch {
	case next == id:
		return append(dst, raw...)
	case next == "" && s == leaf:
		return append(dst, "null"...)
	}
	return rawjson.AppendQuote(dst, next)
}

// text edits a string literal.
func (e *editor) text(dst, raw []byte) []byte {
	next, changed := e.replaced(raw)
	if !changed {
		return append(dst, raw...)
	}
	return rawjson.AppendQuote(dst, string(next))
}

func (e *editor) replaced(raw []byte) (text []byte, changed bool) {
	if e.rules.Empty() {
		return nil, false
	}
	var err error
	if e.buf, err = rawjson.AppendUnquote(e.buf[:0], raw); err != nil {
		e.fail(err)
		return nil, false
	}
	next, n, err := e.rules.apply(e.buf)
	if err != nil {
		e.fail(err)
		return nil, false
	}
	e.redactions += n
	return next, n > 0
}

// key edits the name of a member of obj. Two names that become one are told
// apart, since a reader would see the last of them only.
func (e *editor) key(dst, obj, raw []byte, given []string) ([]byte, []string) {
	next, changed := e.replaced(raw)
	if !changed {
		return append(dst, raw...), given
	}
	if len(next) == 0 {
		e.fail(ErrEmptyKey)
		return append(dst, raw...), given
	}
	name := string(next)
	for n := 2; slices.Contains(given, name) || hasMember(obj, name); n++ {
		name = fmt.Sprintf("%s (%d)", next, n)
	}
	return rawjson.AppendQuote(dst, name), append(given, name)
}

func hasMember(obj []byte, name string) bool {
	_, ok := rawjson.Get(obj, name)
	return ok
}

// fixedText checks a text that is never changed.
func (e *editor) fixedText(field, text string) {
	if !e.rules.Empty() && e.rules.inText([]byte(text)) {
		e.refuse(field)
	}
}

// fixed checks a value that is never changed.
func (e *editor) fixed(raw []byte, field string) {
	if e.rules.Empty() || !e.rules.may(raw) {
		return
	}
	if !e.rules.needText(raw) {
		e.refuse(field)
		return
	}
	eachText(raw, func(text []byte) bool {
		found := e.rules.inText(text)
		if found {
			e.refuse(field)
		}
		return !found
	})
}

// eachText calls fn with every decoded string and key of a JSON value, until it
// returns false.
func eachText(raw []byte, fn func(text []byte) bool) {
	var buf []byte
	for i := 0; i < len(raw); {
		at := bytes.IndexByte(raw[i:], '"')
		if at < 0 {
			return
		}
		i += at
		end, bad := rawjson.Skip(raw, i)
		if bad != nil {
			return
		}
		var err error
		if buf, err = rawjson.AppendUnquote(buf[:0], raw[i:end]); err != nil || !fn(buf) {
			return
		}
		i = end
	}
}
