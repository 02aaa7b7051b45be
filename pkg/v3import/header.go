package v3import

import (
	"math"
	"strconv"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
)

// header is the legacy header line.
type header struct {
	found     bool
	id        string
	stated    int64 // its time, Unix ms, noTime when it states none
	created   int64 // its time, or that of the first record
	cwd       string
	parent    string // the path of the session it was forked from, "" for none
	rest      []byte // its other members, as an object; nil for none
	line, off int64

	garbage             int64 // unreadable pieces in front of it
	firstLine, firstOff int64 // of the first of them
}

// skip counts an unreadable piece in front of the header.
func (h *header) skip(line, off int64) {
	if h.garbage == 0 {
		h.firstLine, h.firstOff = line, off
	}
	h.garbage++
}

// object takes the next object of the file: the header first, then records.
func (x *index) object(o *object, p place) error {
	typ, _ := textOf(o.raw(keyType))
	if !x.head.found {
		return x.header(o, p, typ)
	}
	if typ == "session" {
		x.count(typ)
		x.slots++
		x.warn(p.line, p.off, "second_header", "a second session header ignored")
		return nil
	}
	return x.record(o, p, typ)
}

func (x *index) header(o *object, p place, typ string) error {
	if typ != "session" {
		if kind, _ := textOf(o.raw(keyKind)); kind == "header" {
			return x.fail(p.line, p.off, "no legacy session: the file is a format-4 session")
		}
		return x.fail(p.line, p.off, "no session header: the first record has another type")
	}
	id, ok := textOf(o.raw(keyID))
	if !ok || id == "" {
		return x.fail(p.line, p.off, "session header has no id")
	}
	h := &x.head
	if h.garbage > 0 {
		x.warn(h.firstLine, h.firstOff, "garbage_before_header", "%d unreadable lines in front of the header skipped", h.garbage)
	}
	h.found, h.id, h.line, h.off = true, id, p.line, p.off
	x.slots = 1
	if err := x.headerVersion(o.raw(keyVersion), p); err != nil {
		return err
	}
	x.headerTime(o.raw(keyTime), p)
	if h.cwd, ok = textOf(o.raw(keyCWD)); !ok {
		x.warn(p.line, p.off, "header_cwd", "session header has no working directory")
	}
	if h.parent, ok = textOf(o.raw(keyParentSession)); !ok || h.parent == "" {
		h.parent, _ = textOf(o.raw(keyBranchedFrom))
	}
	h.rest = headerRest(o)
	return nil
}

// headerVersion judges the version: absent, null and anything below 2 is 1.
func (x *index) headerVersion(raw []byte, p place) error {
	x.version, x.stated = 1, false
	if len(raw) == 0 || raw[0] == 'n' {
		return nil
	}
	text, quoted := textOf(raw)
	if !quoted {
		text = string(raw)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f > NewestVersion || f != math.Trunc(f) {
		failure := x.fail(p.line, p.off, "version %s of the session format is newer than %d", text, NewestVersion)
		failure.Code, failure.Err = CodeNewer, &store.NewerVersion{Path: x.o.Path, Found: int64(f), Supported: NewestVersion}
		return failure
	}
	if quoted {
		x.warn(p.line, p.off, "version_text", "version %q read as a number", text)
	}
	x.version, x.stated = max(1, int64(f)), true
	return nil
}

func (x *index) headerTime(raw []byte, p place) {
	x.head.created = noTime
	if s, ok := textOf(raw); ok {
		if ms, ok := parseTime(s); ok {
			x.head.created = ms
		}
	} else if ms, ok := parseMillis(raw); ok {
		x.head.created = ms
	}
	if x.head.created == noTime {
		x.warn(p.line, p.off, "header_time", "session header has no usable timestamp")
	}
	x.head.stated, x.lastTS = x.head.created, x.head.created
}

// headerRest collects the members that have no place in a session's metadata.
func headerRest(o *object) []byte {
	used := set(keyType, keyID, keyVersion, keyTime, keyCWD, keyParentSession, keyBranchedFrom)
	if o.seen&^used == 0 {
		return nil
	}
	rest := []byte{'{'}
	_ = rawjson.MembersFunc(o.bytes(), func(m rawjson.Member) bool {
		if !used.has(keyOf(m.Key)) {
			rest = appendMember(rest, m.Key, m.Value)
		}
		return true
	})
	return append(rest, '}')
}

// appendMember appends a member to an unfinished object, without the white
// space inside its value.
func appendMember(dst, quoted, value []byte) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(append(dst, quoted...), ':')
	out, err := rawjson.Compact(dst, value)
	if err != nil { // not for a value that has been scanned
		return append(dst, "null"...)
	}
	return out
}
