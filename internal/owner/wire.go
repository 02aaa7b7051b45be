package owner

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
)

// maxLine is the longest request that is read, in bytes: the largest payload with
// room for escapes and the rest of the request.
const maxLine = 300 << 20

// errTooLong is a line above the limit; the lines after it can still be read.
var errTooLong = errors.New("the line is too long")

// readLine returns the next line without its end. A line above the limit is
// passed over without being kept.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > limit {
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = r.ReadSlice('\n')
			}
			if err == nil {
				err = errTooLong
			}
			return nil, err
		}
		line = append(line, part...)
		if err == nil {
			return line[:len(line)-1], nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}

// asLine ends an object as one line, whatever white space the payloads in it
// hold.
func asLine(o []byte) ([]byte, error) {
	if bytes.IndexByte(o, '\n') >= 0 {
		var err error
		if o, err = rawjson.Compact(nil, o); err != nil {
			return nil, fmt.Errorf("write a line: %w", err)
		}
	}
	return append(o, '\n'), nil
}

// object writes one JSON object; payloads are spliced as they are (D5).
type object struct{ b []byte }

func newObject() *object { return &object{b: []byte{'{'}} }

func (o *object) end() []byte { return append(o.b, '}') }

func (o *object) key(name string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(rawjson.AppendQuote(o.b, name), ':')
}

func (o *object) str(name, s string) {
	o.key(name)
	o.b = rawjson.AppendQuote(o.b, s)
}

// optional leaves out what is empty.
func (o *object) optional(name, s string) {
	if s != "" {
		o.str(name, s)
	}
}

func (o *object) int(name string, n int64) {
	o.key(name)
	o.b = rawjson.AppendInt(o.b, n)
}

func (o *object) bool(name string, v bool) {
	if v {
		o.raw(name, []byte("true"))
	} else {
		o.raw(name, []byte("false"))
	}
}

// raw splices a JSON value; nothing is left out.
func (o *object) raw(name string, value []byte) {
	if value != nil {
		o.key(name)
		o.b = append(o.b, value...)
	}
}

func (o *object) value(name string, v store.Appender) error {
	o.key(name)
	b, err := v.AppendJSON(o.b)
	if err == nil {
		o.b = b
	}
	return err
}

func (o *object) texts(name string, all []string) {
	o.key(name)
	o.b = append(o.b, '[')
	for i, s := range all {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = rawjson.AppendQuote(o.b, s)
	}
	o.b = append(o.b, ']')
}

// fields are the members of an object; the last one of a name counts.
type fields map[string]json.RawMessage

func parseFields(b []byte) (fields, error) {
	f := fields{}
	err := rawjson.MembersFunc(b, func(m rawjson.Member) bool {
		// A key that was scanned is a valid string.
		if name, err := rawjson.Unquote(m.Key); err == nil {
			f[name] = m.Value
		}
		return true
	})
	return f, err
}

// raw is a member, nil when it is missing or null.
func (f fields) raw(name string) json.RawMessage {
	if v := f[name]; rawjson.KindOf(v) != rawjson.Null {
		return v
	}
	return nil
}

// text is a string member, "" when it is missing or null.
func (f fields) text(name string) (string, error) {
	v := f.raw(name)
	if v == nil {
		return "", nil
	}
	if rawjson.KindOf(v) != rawjson.String {
		return "", malformed("%s is no string", name)
	}
	return rawjson.Unquote(v)
}

func (f fields) int(name string) (int64, error) {
	n, ok := rawjson.ParseInt(f.raw(name))
	if !ok {
		return 0, malformed("%s is no whole number", name)
	}
	return n, nil
}

func (f fields) bool(name string) bool { return string(f[name]) == "true" }

func (f fields) texts(name string) ([]string, error) {
	all := []string{}
	for raw, err := range rawjson.Elements(f[name]) {
		if err != nil || rawjson.KindOf(raw) != rawjson.String {
			return nil, malformed("%s is no list of strings", name)
		}
		s, err := rawjson.Unquote(raw)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// identity is the first line of either side: which owner of which session.
type identity struct {
	session string
	ownerID string
	fence   int64
}

func (i identity) line() []byte {
	o := newObject()
	o.str("session", i.session)
	o.str("ownerId", i.ownerID)
	o.int("fence", i.fence)
	return append(o.end(), '\n')
}

func parseIdentity(line []byte) (i identity, err error) {
	f, err := parseFields(line)
	if err != nil {
		return i, err
	}
	if i.session, err = f.text("session"); err != nil {
		return i, err
	}
	if i.ownerID, err = f.text("ownerId"); err != nil {
		return i, err
	}
	i.fence, err = f.int("fence")
	return i, err
}
