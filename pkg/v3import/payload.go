package v3import

import (
	"encoding/json"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
)

// The custom types of entries that have no type of their own in format 4.
const (
	// EditType is the custom type of a context edit; its data holds targetId, an
	// entry id or null, and replacement.
	EditType = "pi.context_edit"
	// UnknownPrefix begins the custom type of a record of unknown type; its data
	// is the whole record.
	UnknownPrefix = "pi.v3."
	// QuarantineType is the custom type of an unreadable line; its data holds the
	// line's number and text.
	QuarantineType = "pi.v3.quarantine"
)

// payload makes what entry i holds.
func (w *writer) payload(i int32) (store.EntryType, string, json.RawMessage, error) {
	r := &w.records[i]
	if r.kind == kindMessage && r.flags.has(flagPlain) && !r.flags.has(flagRename) {
		m, err := w.main.bytes(r.off+int64(r.body), int64(r.length))
		if err != nil {
			return "", "", nil, err
		}
		p, err := compacted(`{"message":`, m, `}`)
		return store.TypeMessage, "", p, err
	}
	if r.kind == kindRaw {
		p, err := w.quarantine(r)
		return store.TypeCustom, QuarantineType, p, err
	}
	if err := w.reread(i, &w.main, w.obj); err != nil {
		return "", "", nil, err
	}
	switch r.kind {
	case kindMessage:
		p, err := w.messagePayload(r, w.obj)
		return store.TypeMessage, "", p, err
	case kindCustomMessage:
		p := customMessage([]byte(`{"message":`), w.obj, r.ts)
		return store.TypeMessage, "", closeObject(appendRest(p, w.obj, customMessageKeys, set(keyMessage))), nil
	case kindCompaction:
		p, err := w.compactionPayload(i, w.obj)
		return store.TypeCompaction, "", p, err
	case kindSummary:
		return store.TypeBranchSummary, "", w.summaryPayload(r, w.obj), nil
	case kindEdit:
		return store.TypeCustom, EditType, w.editPayload(r, w.obj), nil
	case kindCustom:
		typ, _ := textOf(w.obj.raw(keyCustomType))
		p := appendKnown([]byte{'{'}, w.obj, keyData, `"data"`)
		return store.TypeCustom, typ, closeObject(appendRest(p, w.obj, base|set(keyCustomType, keyData), 0)), nil
	}
	typ, _ := textOf(w.obj.raw(keyType))
	if typ == "" {
		typ = untyped
	}
	p, err := compacted(`{"data":`, w.obj.bytes(), `}`)
	return store.TypeCustom, UnknownPrefix + typ, p, err
}

// structural are the names that format 4 keeps for an entry itself.
var structural = set(keyKind, keySeq, keyCustomType)

func closeObject(p []byte) json.RawMessage { return append(p, '}') }

func (w *writer) messagePayload(r *record, o *object) (json.RawMessage, error) {
	m := o.raw(keyMessage)
	if r.flags.has(flagRename) {
		renamed, err := rawjson.Set(m, "role", []byte(`"custom"`))
		if err != nil {
			return nil, errNotAsIndexed
		}
		m = renamed
	}
	p, err := compacted(`{"message":`, m, ``)
	return closeObject(appendRest(p, o, base|set(keyMessage), 0)), err
}

var customMessageKeys = base | set(keyCustomType, keyContent, keyDisplay, keyDetails)

// customMessage appends the message that a custom_message record becomes; its
// time is the record's.
func customMessage(dst []byte, o *object, ts int64) []byte {
	dst = append(dst, `{"role":"custom"`...)
	dst = appendKnown(dst, o, keyCustomType, `"customType"`)
	dst = appendKnown(dst, o, keyContent, `"content"`)
	if o.seen.has(keyDisplay) {
		dst = appendKnown(dst, o, keyDisplay, `"display"`)
	} else {
		dst = append(dst, `,"display":false`...)
	}
	dst = appendKnown(dst, o, keyDetails, `"details"`)
	dst = rawjson.AppendInt(append(dst, `,"timestamp":`...), ts)
	return append(dst, '}')
}

// summaryPayload is {fromId, summary, details?, usage?, fromHook, ...}.
func (w *writer) summaryPayload(r *record, o *object) json.RawMessage {
	dst := append([]byte(nil), `{"fromId":`...)
	dst = w.appendID(dst, r.ref)
	dst = appendSummary(dst, o)
	dst = appendKnown(dst, o, keyDetails, `"details"`)
	dst = appendKnown(dst, o, keyUsage, `"usage"`)
	dst = appendFromHook(dst, o)
	return closeObject(appendRest(dst, o, base|set(keyFromID, keySummary, keyDetails, keyUsage, keyFromHook), 0))
}

// editPayload is the edit with the id of the entry it is about.
func (w *writer) editPayload(r *record, o *object) json.RawMessage {
	dst := append([]byte(nil), `{"data":{"targetId":`...)
	dst = w.appendID(dst, r.ref)
	dst = appendRest(dst, o, base|set(keyTarget), 0)
	return append(dst, '}', '}')
}

func (w *writer) quarantine(r *record) (json.RawMessage, error) {
	b, err := w.main.bytes(r.off, int64(r.size))
	if err != nil {
		return nil, err
	}
	dst := rawjson.AppendInt([]byte(`{"data":{"line":`), r.line)
	dst = rawjson.AppendQuote(append(dst, `,"raw":`...), string(b))
	return append(dst, '}', '}'), nil
}

// appendID appends the entry id of a kept record, or null.
func (w *writer) appendID(dst []byte, i int32) []byte {
	if i == none {
		return append(dst, "null"...)
	}
	return rawjson.AppendQuote(dst, w.idOf(i))
}

// appendKnown appends a member under its plain name, when it is there.
func appendKnown(dst []byte, o *object, k key, quoted string) []byte {
	if v := o.raw(k); v != nil {
		dst = appendMember(dst, []byte(quoted), v)
	}
	return dst
}

// appendSummary appends the summary, which format 4 requires.
func appendSummary(dst []byte, o *object) []byte {
	if v := o.raw(keySummary); len(v) > 0 && v[0] == '"' {
		return appendMember(dst, []byte(`"summary"`), v)
	}
	return appendMember(dst, []byte(`"summary"`), []byte(`""`))
}

// appendFromHook appends fromHook; absent is false.
func appendFromHook(dst []byte, o *object) []byte {
	if string(o.raw(keyFromHook)) == "true" {
		return append(dst, `,"fromHook":true`...)
	}
	return append(dst, `,"fromHook":false`...)
}

// appendRest appends the members that used does not hold, in their order, so
// that fields nobody knows survive. Names that format 4 keeps for an entry's own
// structure get a prefix, and so do those that taken holds.
func appendRest(dst []byte, o *object, used, taken keySet) []byte {
	if o.seen&^used == 0 {
		return dst
	}
	taken |= structural
	_ = rawjson.MembersFunc(o.bytes(), func(m rawjson.Member) bool {
		switch k := keyOf(m.Key); {
		case used.has(k):
		case taken.has(k):
			s, _ := rawjson.Unquote(m.Key)
			dst = appendMember(dst, rawjson.Quote(UnknownPrefix+s), m.Value)
		default:
			dst = appendMember(dst, m.Key, m.Value)
		}
		return true
	})
	return dst
}
