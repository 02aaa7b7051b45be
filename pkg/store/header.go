package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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

// RewritesKey is the quoted key of the member in Extra that records what rewrites
// took out of the session.
const RewritesKey = `"rewrites"`

// Rewritten reports a session out of which a rewrite took something.
func (h Header) Rewritten() bool {
	return slices.ContainsFunc(h.Extra, func(f HeaderField) bool { return string(f.Key) == RewritesKey })
}

// AppendJSON writes the header object as the first line of a JSONL store holds
// it. It fails when a raw field is not JSON.
func (h Header) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"v":`...)
	dst = rawjson.AppendInt(dst, Format)
	dst = append(dst, `,"kind":"header","id":`...)
	dst = rawjson.AppendQuote(dst, h.ID)
	dst = appendIntField(dst, "storageVersion", h.StorageVersion)
	dst = appendIntField(dst, "createdAt", h.CreatedAt)
	dst, err := h.appendOptional(dst)
	if err != nil {
		return nil, err
	}
	if h.NextSeq != 0 {
		dst = appendIntField(dst, "nextSeq", h.NextSeq)
	}
	return append(dst, '}'), nil
}

// Metadata writes the header as commands show it: SessionMetadata, without the
// framing fields. A raw field that is not JSON is left out.
func (h Header) Metadata() json.RawMessage {
	dst := append([]byte(nil), `{"id":`...)
	dst = rawjson.AppendQuote(dst, h.ID)
	dst = appendIntField(dst, "createdAt", h.CreatedAt)
	dst = appendIntField(dst, "storageVersion", h.StorageVersion)
	full, err := h.appendOptional(dst)
	if err != nil {
		h.Spawn, h.Source, h.Extra = nil, nil, nil
		full, _ = h.appendOptional(dst)
	}
	return append(full, '}')
}

func (h Header) appendOptional(dst []byte) ([]byte, error) {
	dst = appendTextField(dst, "cwd", h.CWD)
	dst = appendTextField(dst, "parentSessionId", h.ParentSessionID)
	dst = appendTextField(dst, "legacyParentSessionPath", h.LegacyParentSessionPath)
	dst = appendTextField(dst, "legacySessionId", h.LegacySessionID)
	dst, err := appendRawField(dst, []byte(`"spawn"`), h.Spawn)
	if err != nil {
		return nil, err
	}
	dst = appendIntField(dst, "generation", h.Generation)
	if dst, err = appendRawField(dst, []byte(`"source"`), h.Source); err != nil {
		return nil, err
	}
	for _, f := range h.Extra {
		if dst, err = appendRawField(dst, f.Key, f.Value); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// appendRawField writes a raw field in one line, whatever its white space.
func appendRawField(dst, key []byte, value json.RawMessage) ([]byte, error) {
	if value == nil {
		return dst, nil
	}
	dst = append(append(append(dst, ','), key...), ':')
	dst, err := rawjson.Compact(dst, value)
	if err != nil {
		return nil, fmt.Errorf("header field %s: %w", key, err)
	}
	return dst, nil
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
	if rawjson.KindOf(raw) != rawjson.Object {
		return Header{}, errors.New("header is no JSON object")
	}
	var p headerParser
	for m, err := range rawjson.Members(raw) {
		if err != nil {
			return Header{}, fmt.Errorf("header is not valid JSON: %w", err)
		}
		if err := p.field(m); err != nil {
			return Header{}, err
		}
	}
	switch {
	case p.kind != "header":
		return Header{}, errors.New(`header has no "kind":"header"`)
	case p.format != Format:
		return Header{}, fmt.Errorf("header has format %d, not %d", p.format, Format)
	case p.ID == "":
		return Header{}, errors.New("header has no id")
	case p.StorageVersion < 1:
		return Header{}, errors.New("header has no storageVersion")
	case p.Generation < 0 || p.NextSeq < 0:
		return Header{}, errors.New("header has a negative generation or nextSeq")
	}
	return p.Header, nil
}

type headerParser struct {
	Header
	kind   string
	format int64
}

// field takes over one member. Every value is copied: headers outlive the line
// they were read from.
func (p *headerParser) field(m rawjson.Member) error {
	key := m.Key
	if bytes.IndexByte(key, '\\') >= 0 {
		plain, err := rawjson.AppendUnquote([]byte{'"'}, key)
		if err != nil {
			return fmt.Errorf("header key: %w", err)
		}
		key = append(plain, '"')
	}
	switch key := string(key[1 : len(key)-1]); key {
	case "kind":
		return p.text(key, m.Value, &p.kind)
	case "id":
		return p.text(key, m.Value, &p.ID)
	case "cwd":
		return p.text(key, m.Value, &p.CWD)
	case "parentSessionId":
		return p.text(key, m.Value, &p.ParentSessionID)
	case "legacyParentSessionPath":
		return p.text(key, m.Value, &p.LegacyParentSessionPath)
	case "legacySessionId":
		return p.text(key, m.Value, &p.LegacySessionID)
	case "v":
		return p.number(key, m.Value, &p.format)
	case "storageVersion":
		return p.number(key, m.Value, &p.StorageVersion)
	case "createdAt":
		return p.number(key, m.Value, &p.CreatedAt)
	case "generation":
		return p.number(key, m.Value, &p.Generation)
	case "nextSeq":
		return p.number(key, m.Value, &p.NextSeq)
	case "spawn":
		p.Spawn = bytes.Clone(m.Value)
	case "source":
		p.Source = bytes.Clone(m.Value)
	default:
		p.Extra = append(p.Extra, HeaderField{Key: bytes.Clone(m.Key), Value: bytes.Clone(m.Value)})
	}
	return nil
}

func (p *headerParser) text(key string, raw []byte, into *string) error {
	s, err := rawjson.Unquote(raw)
	if err != nil {
		return fmt.Errorf("header field %s is no string", key)
	}
	if rawjson.ValidUTF8(raw) >= 0 { // written again, it would be another text
		return fmt.Errorf("header field %s is not UTF-8", key)
	}
	*into = s
	return nil
}

func (p *headerParser) number(key string, raw []byte, into *int64) error {
	n, ok := rawjson.ParseInt(raw)
	if !ok {
		return fmt.Errorf("header field %s is no integer", key)
	}
	*into = n
	return nil
}
