package jsonl

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/memory"
)

// appendLine appends the records of one transaction as a physical line and sets
// places, which is parallel to them, to where their payloads lie in dst, and
// sizes to how long a line of its own each record would be.
func appendLine(dst []byte, records []store.Record, places []memory.Place, sizes []int64) []byte {
	if len(records) == 1 {
		start := len(dst)
		dst, places[0] = appendRecord(dst, &records[0])
		dst = append(dst, '\n')
		sizes[0] = int64(len(dst) - start)
		return dst
	}
	for i := range records {
		sep := byte(',')
		if i == 0 {
			sep = '['
		}
		start := len(dst) // the separator stands for the newline
		dst, places[i] = appendRecord(append(dst, sep), &records[i])
		sizes[i] = int64(len(dst) - start)
	}
	return append(dst, ']', '\n')
}

// lineRoom is how many bytes the line of records that are not very strangely named
// fits into.
func lineRoom(records []store.Record) int {
	n := 0
	for i := range records {
		n += recordRoom(&records[i])
	}
	return n
}

func recordRoom(r *store.Record) int {
	n := 512 + len(r.Value)
	if r.Entry != nil {
		n += len(r.Entry.Payload)
	}
	if r.Usage != nil {
		n += len(r.Usage.Usage) + len(r.Usage.Details)
	}
	return n
}

// encodable refuses, as *store.Corrupt, a record of a damaged session of another
// encoding that would break the line: what is no text of one line, or cannot be what
// its place in the object wants. It does not judge the rest (D8).
func encodable(r *store.Record) error {
	what, damage := "", ""
	switch {
	case r.Entry != nil:
		what, damage = "its payload", unfit(r.Entry.Payload, true)
	case r.Usage != nil:
		what, damage = "its usage", unfit(r.Usage.Usage, true)
		if damage == "" && r.Usage.Details != nil {
			what, damage = "its text of details", unfit(r.Usage.Details, false)
		}
	case r.Op == store.OpSet || r.Op == store.OpAppend:
		what, damage = "its value", unfit(r.Value, false)
	}
	if damage == "" {
		return nil
	}
	return &store.Corrupt{Offset: -1, Msg: fmt.Sprintf("%s: %s %s", r.Name(), what, damage)}
}

// unfit says what keeps a text from its place, "" when nothing does.
func unfit(raw []byte, object bool) string {
	switch {
	case len(raw) == 0:
		return "is empty"
	case object && (len(raw) < 2 || raw[0] != '{' || raw[len(raw)-1] != '}'):
		return "is no JSON object"
	case bytes.IndexByte(raw, '\n') >= 0:
		return "is not on one line"
	}
	return ""
}

// appendRecord appends one record as a JSON object and tells where in dst its
// payloads lie (see source for an entry's).
func appendRecord(dst []byte, r *store.Record) ([]byte, memory.Place) {
	switch r.Kind {
	case store.KindEntry:
		return appendEntry(dst, r)
	case store.KindUsage:
		return appendUsage(dst, r)
	case store.KindValue:
		return appendAddressed(append(dst, `{"kind":"value","op":"`...), r)
	}
	return appendAddressed(append(dst, `{"kind":"list","op":"`...), r)
}

func appendEntry(dst []byte, r *store.Record) ([]byte, memory.Place) {
	e := r.Entry
	dst = rawjson.AppendInt(append(dst, `{"kind":"entry","seq":`...), r.Seq)
	dst = rawjson.AppendInt(append(dst, `,"timestamp":`...), e.Timestamp)
	dst = rawjson.AppendQuote(append(dst, `,"id":`...), e.ID)
	dst = append(dst, `,"parentId":`...)
	if e.ParentID == "" {
		dst = append(dst, "null"...)
	} else {
		dst = rawjson.AppendQuote(dst, e.ParentID)
	}
	dst = rawjson.AppendQuote(append(dst, `,"type":`...), string(e.Type))
	if e.Type == store.TypeCustom {
		dst = rawjson.AppendQuote(append(dst, `,"customType":`...), e.CustomType)
	}
	members := e.Payload[1 : len(e.Payload)-1]
	if len(members) == 0 {
		return append(dst, '}'), memory.Place{}
	}
	start := len(dst)
	dst = append(append(append(dst, ','), members...), '}')
	return dst, memory.Place{Payload: spanOf(start, len(dst))}
}

func appendUsage(dst []byte, r *store.Record) ([]byte, memory.Place) {
	u := r.Usage
	dst = rawjson.AppendInt(append(dst, `{"kind":"usage","seq":`...), r.Seq)
	dst = rawjson.AppendQuote(append(dst, `,"id":`...), u.ID)
	if u.EntryID != "" {
		dst = rawjson.AppendQuote(append(dst, `,"entryId":`...), u.EntryID)
	}
	if u.Adjustment {
		dst = append(dst, `,"adjustment":true`...)
	} else {
		dst = append(dst, `,"adjustment":false`...)
	}
	var at memory.Place
	dst, at.Payload = appendRaw(append(dst, `,"usage":`...), u.Usage)
	if u.Details != nil {
		dst, at.Details = appendRaw(append(dst, `,"details":`...), u.Details)
	}
	return append(dst, '}'), at
}

// appendAddressed goes on after the opening quote of the operation.
func appendAddressed(dst []byte, r *store.Record) ([]byte, memory.Place) {
	op := `set","seq":`
	switch r.Op {
	case store.OpDelete:
		op = `delete","seq":`
	case store.OpAppend:
		op = `append","seq":`
	}
	dst = rawjson.AppendInt(append(dst, op...), r.Seq)
	dst = rawjson.AppendQuote(append(dst, `,"namespace":`...), r.Address.Namespace)
	dst = rawjson.AppendQuote(append(dst, `,"key":`...), r.Address.Key)
	var at memory.Place
	if r.Op != store.OpDelete {
		dst, at.Payload = appendRaw(append(dst, `,"value":`...), r.Value)
	}
	return append(dst, '}'), at
}

func appendRaw(dst []byte, raw json.RawMessage) ([]byte, memory.Span) {
	start := len(dst)
	dst = append(dst, raw...)
	return dst, spanOf(start, len(dst))
}

func spanOf(start, end int) memory.Span {
	return memory.Span{Off: int64(start), Len: int64(end - start)}
}

// moved is a place whose offsets were counted from base.
func moved(p memory.Place, base int64) memory.Place {
	p.Payload.Off += base
	p.Details.Off += base
	return p
}

// held is where a State that lives on keeps the payload of a record that lies at
// p in the file: the engine reads small values again and again.
func held(r *store.Record, p memory.Place) memory.Place {
	if r.Kind == store.KindValue && p.Payload.Len <= inlineValue {
		return memory.Place{}
	}
	return p
}
