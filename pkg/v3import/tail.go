package v3import

import (
	"encoding/json"
	"slices"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
)

// messageList tells whether a value is an array of objects.
func messageList(raw []byte) bool {
	if len(raw) == 0 || raw[0] != '[' {
		return false
	}
	ok := true
	err := rawjson.ElementsFunc(raw, func(start, _ int) bool {
		ok = raw[start] == '{'
		return ok
	})
	return ok && err == nil
}

// compactionPayload is {summary, retainedTail, tokensBefore, details?, usage?,
// fromHook, ...}: what names the kept range does not stay (Appendix B).
func (w *writer) compactionPayload(i int32, o *object) (json.RawMessage, error) {
	r := &w.records[i]
	used := base | set(keySummary, keyTokens, keyDetails, keyUsage, keyFromHook, keyTail, keyFirstKept, keyFirstIndex)
	dst := append(make([]byte, 0, int64(r.size)+w.tailSize(r)+64), '{')
	dst = append(appendSummary(dst, o), `,"retainedTail":[`...)
	if sys := o.raw(keySystem); len(sys) > 0 && sys[0] == '{' {
		used |= set(keySystem)
		dst = appendElement(dst, sys)
	}
	var err error
	if r.flags.has(flagOwnTail) {
		tail := o.raw(keyTail)
		err = rawjson.ElementsFunc(tail, func(start, end int) bool {
			dst = appendElement(dst, tail[start:end])
			return true
		})
	} else if r.ref != none {
		dst, err = w.appendRange(dst, r)
	}
	if err != nil {
		return nil, err
	}
	dst = append(dst, ']')
	if n := o.raw(keyTokens); len(n) > 0 && rawjson.KindOf(n) == rawjson.Number {
		dst = appendMember(dst, []byte(`"tokensBefore"`), n)
	} else {
		dst = append(dst, `,"tokensBefore":0`...)
	}
	dst = appendKnown(dst, o, keyDetails, `"details"`)
	dst = appendKnown(dst, o, keyUsage, `"usage"`)
	dst = appendFromHook(dst, o)
	return closeObject(appendRest(dst, o, used, 0)), nil
}

// appendElement appends an element to an unfinished array.
func appendElement(dst, value []byte) []byte {
	if dst[len(dst)-1] != '[' {
		dst = append(dst, ',')
	}
	out, err := rawjson.Compact(dst, value)
	if err != nil { // not for a value that has been scanned
		return append(dst, "null"...)
	}
	return out
}

// appendRange appends the messages of a compaction's kept range, oldest first,
// as the agent would show them at that moment: context edits inside the range
// applied, system messages left out, an older compaction adding nothing.
func (w *writer) appendRange(dst []byte, r *record) ([]byte, error) {
	first := w.depth[r.ref]
	var inside []int32
	edits := make(map[int32]int32)
	for at := w.tails[r.parent]; at != none && w.depth[at] >= first; {
		rec := &w.records[at]
		if rec.kind != kindEdit {
			inside = append(inside, at)
		} else if _, newer := edits[rec.ref]; !newer && rec.ref != none {
			edits[rec.ref] = at
		}
		if rec.parent == none {
			break
		}
		at = w.tails[rec.parent]
	}
	for _, at := range slices.Backward(inside) {
		if w.records[at].flags.has(flagSystem) {
			continue
		}
		m, err := w.tailMessage(at)
		if err != nil {
			return dst, err
		}
		if edit, edited := edits[at]; edited {
			if m, err = w.applyEdit(m, edit); err != nil {
				return dst, err
			}
		}
		if m != nil {
			dst = appendElement(dst, m)
		}
	}
	return dst, nil
}

// tailMessage is the message that a record stands for in a retained tail.
func (w *writer) tailMessage(i int32) ([]byte, error) {
	r := &w.records[i]
	if r.kind == kindMessage && !r.flags.has(flagRename|flagBadUTF8) {
		return w.past.bytes(r.off+int64(r.body), int64(r.length))
	}
	if err := w.reread(i, &w.past, w.obj2); err != nil {
		return nil, err
	}
	switch r.kind {
	case kindMessage:
		m := w.obj2.raw(keyMessage)
		if !r.flags.has(flagRename) {
			return m, nil
		}
		return rawjson.Set(m, "role", []byte(`"custom"`))
	case kindCustomMessage:
		return customMessage(nil, w.obj2, r.ts), nil
	}
	dst := appendSummary([]byte(`{"role":"branchSummary"`), w.obj2)
	dst = w.appendID(append(dst, `,"fromId":`...), r.ref)
	dst = rawjson.AppendInt(append(dst, `,"timestamp":`...), r.ts)
	return append(dst, '}'), nil
}

// applyEdit changes a message as a context edit says; nil is a message left out.
func (w *writer) applyEdit(m []byte, edit int32) ([]byte, error) {
	m = slices.Clone(m)
	if err := w.reread(edit, &w.past, w.obj2); err != nil {
		return nil, err
	}
	replacement := w.obj2.raw(keyReplacement)
	if len(replacement) == 0 || replacement[0] == 'n' {
		return nil, nil
	}
	content, ok := rawjson.Get(replacement, "content")
	if !ok {
		return m, nil
	}
	switch message.Message(m).Role() {
	case message.RoleAssistant, message.RoleToolResult:
		if content[0] == '"' {
			content = append(append([]byte(`[{"type":"text","text":`), content...), "}]"...)
		}
	case message.RoleUser, message.RoleCustom:
	default:
		return m, nil
	}
	return rawjson.Set(m, "content", content)
}
