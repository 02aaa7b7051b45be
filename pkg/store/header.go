package store

import (
	"encoding/json"
	"fmt"

	"github.com/drover-run/drover/internal/rawjson"
)

// Format is the number in the header of every session this package writes.
const Format = 4

// Header is a session's metadata (spec §2.8, D14). Fields that this binary does
// not know are kept in Extra and written back.
type Header struct {
	ID                      string
	StorageVersion          int64
	CreatedAt               int64 // Unix ms
	CWD                     string
	ParentSessionID         string // the session this one was forked from (D1)
	LegacyParentSessionPath string
	LegacySessionID         string          // the legacy header's id when it was not kept (D2)
	Spawn                   json.RawMessage // who spawned it, nil for a root
	Generation              int64           // raised by every replacement of the whole store
	Source                  json.RawMessage // what it was imported from, nil otherwise
	NextSeq                 int64           // high-water mark of whole-file replacement, 0 when absent
	Extra                   []HeaderField   // unknown fields, in order
}

// HeaderField is a header member that this binary does not know.
type HeaderField struct {
	Key   json.RawMessage // quoted
	Value json.RawMessage
}

// AppendJSON writes the header object as the first line of a JSONL store holds
// it.
func (h Header) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"v":`...)
	dst = rawjson.AppendInt(dst, Format)
	dst = append(dst, `,"kind":"header","id":`...)
	dst = rawjson.AppendQuote(dst, h.ID)
	dst = appendIntField(dst, "storageVersion", h.StorageVersion)
	dst = appendIntField(dst, "createdAt", h.CreatedAt)
	dst = h.appendOptional(dst)
	if h.NextSeq != 0 {
		dst = appendIntField(dst, "nextSeq", h.NextSeq)
	}
	return append(dst, '}'), nil
}

// Metadata writes the header as commands show it: SessionMetadata, without the
// framing fields.
func (h Header) Metadata() json.RawMessage {
	dst := append([]byte(nil), `{"id":`...)
	dst = rawjson.AppendQuote(dst, h.ID)
	dst = appendIntField(dst, "createdAt", h.CreatedAt)
	dst = appendIntField(dst, "storageVersion", h.StorageVersion)
	return append(h.appendOptional(dst), '}')
}

func (h Header) appendOptional(dst []byte) []byte {
	dst = appendTextField(dst, "cwd", h.CWD)
	dst = appendTextField(dst, "parentSessionId", h.ParentSessionID)
	dst = appendTextField(dst, "legacyParentSessionPath", h.LegacyParentSessionPath)
	dst = appendTextField(dst, "legacySessionId", h.LegacySessionID)
	if h.Spawn != nil {
		dst = append(append(dst, `,"spawn":`...), h.Spawn...)
	}
	dst = appendIntField(dst, "generation", h.Generation)
	if h.Source != nil {
		dst = append(append(dst, `,"source":`...), h.Source...)
	}
	for _, f := range h.Extra {
		dst = append(append(append(append(dst, ','), f.Key...), ':'), f.Value...)
	}
	return dst
}

func appendIntField(dst []byte, key string, n int64) []byte {
	dst = append(append(append(dst, `,"`...), key...), `":`...)
	return rawjson.AppendInt(dst, n)
}

func appendTextField(dst []byte, key, s string) []byte {
	if s == "" {
		return dst
	}
	dst = append(append(append(dst, `,"`...), key...), `":`...)
	return rawjson.AppendQuote(dst, s)
}

// ParseHeader reads a header object. It refuses what is no format-4 header; the
// storage version is for the caller to judge.
func ParseHeader(raw []byte) (Header, error) {
	var h Header
	if rawjson.KindOf(raw) != rawjson.Object {
		return h, fmt.Errorf("header is no JSON object")
	}
	var kind string
	var format int64
	for m, err := range rawjson.Members(raw) {
		if err != nil {
			return h, fmt.Errorf("header is not valid JSON: %w", err)
		}
		if err := h.field(m, &kind, &format); err != nil {
			return h, err
		}
	}
	switch {
	case kind != "header":
		return h, fmt.Errorf(`header has no "kind":"header"`)
	case format != Format:
		return h, fmt.Errorf("header has format %d, not %d", format, Format)
	case h.ID == "":
		return h, fmt.Errorf("header has no id")
	case h.StorageVersion < 1:
		return h, fmt.Errorf("header has no storageVersion")
	}
	return h, nil
}

func (h *Header) field(m rawjson.Member, kind *string, format *int64) error {
	key, err := rawjson.Unquote(m.Key)
	if err != nil {
		return fmt.Errorf("header key: %w", err)
	}
	texts := map[string]*string{
		"kind": kind, "id": &h.ID, "cwd": &h.CWD, "parentSessionId": &h.ParentSessionID,
		"legacyParentSessionPath": &h.LegacyParentSessionPath, "legacySessionId": &h.LegacySessionID,
	}
	ints := map[string]*int64{
		"v": format, "storageVersion": &h.StorageVersion, "createdAt": &h.CreatedAt,
		"generation": &h.Generation, "nextSeq": &h.NextSeq,
	}
	value := append(json.RawMessage(nil), m.Value...)
	if p, ok := texts[key]; ok {
		s, err := rawjson.Unquote(value)
		if err != nil {
			return fmt.Errorf("header field %s is no string", key)
		}
		*p = s
		return nil
	}
	if p, ok := ints[key]; ok {
		n, ok := rawjson.ParseInt(value)
		if !ok {
			return fmt.Errorf("header field %s is no integer", key)
		}
		*p = n
		return nil
	}
	switch key {
	case "spawn":
		h.Spawn = value
	case "source":
		h.Source = value
	default:
		h.Extra = append(h.Extra, HeaderField{Key: append(json.RawMessage(nil), m.Key...), Value: value})
	}
	return nil
}
