package cli

import (
	"io"
	"strconv"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
)

// object writes one JSON object, members in the order of the calls. Payloads
// are spliced as they are, so that their bytes survive (D5).
type object struct {
	b   []byte
	w   io.Writer // takes long arrays while they are written; nil keeps all in b
	err error     // the first value that could not write itself
}

func newObject() *object { return &object{b: []byte{'{'}} }

// bytes ends the object and returns its text.
func (o *object) bytes() ([]byte, error) { return append(o.b, '}'), o.err }

func (o *object) key(name string) {
	if last := o.b[len(o.b)-1]; last != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(rawjson.AppendQuote(o.b, name), ':')
}

func (o *object) str(name, s string) {
	o.key(name)
	o.b = rawjson.AppendQuote(o.b, s)
}

// optStr writes null for an empty string.
func (o *object) optStr(name, s string) {
	if s == "" {
		o.null(name)
		return
	}
	o.str(name, s)
}

func (o *object) int(name string, n int64) {
	o.key(name)
	o.b = rawjson.AppendInt(o.b, n)
}

// optInt writes null for a nil number.
func (o *object) optInt(name string, n *int64) {
	if n == nil {
		o.null(name)
		return
	}
	o.int(name, *n)
}

func (o *object) float(name string, f float64) {
	o.key(name)
	o.b = strconv.AppendFloat(o.b, f, 'g', -1, 64)
}

func (o *object) bool(name string, v bool) {
	o.key(name)
	o.b = strconv.AppendBool(o.b, v)
}

func (o *object) null(name string) { o.raw(name, []byte("null")) }

// raw splices a JSON value.
func (o *object) raw(name string, value []byte) {
	o.key(name)
	o.b = append(o.b, value...)
}

// value writes what writes itself.
func (o *object) value(name string, v store.Appender) {
	o.key(name)
	b, err := v.AppendJSON(o.b)
	if err != nil {
		o.fail(err)
		b = append(o.b, "null"...)
	}
	o.b = b
}

// object writes a nested object.
func (o *object) object(name string, fill func(*object)) {
	o.key(name)
	o.nested(fill)
}

func (o *object) nested(fill func(*object)) {
	inner := &object{b: append(o.b, '{')}
	fill(inner)
	o.b = append(inner.b, '}')
	o.fail(inner.err)
}

// array writes an array of n objects.
func (o *object) array(name string, n int, fill func(i int, o *object)) {
	o.key(name)
	o.b = append(o.b, '[')
	for i := range n {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.nested(func(inner *object) { fill(i, inner) })
		o.drain()
	}
	o.b = append(o.b, ']')
}

// drain hands on what was written so far, all but the byte that key looks at.
func (o *object) drain() {
	const enough = 32 << 10
	if o.w == nil || len(o.b) < enough {
		return
	}
	last := len(o.b) - 1
	_, err := o.w.Write(o.b[:last])
	o.fail(err)
	o.b = append(o.b[:0], o.b[last])
}

// values writes an array of what writes itself.
func (o *object) values(name string, n int, at func(int) store.Appender) {
	o.key(name)
	o.b = append(o.b, '[')
	for i := range n {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		b, err := at(i).AppendJSON(o.b)
		if err != nil {
			o.fail(err)
			b = append(o.b, "null"...)
		}
		o.b = b
		o.drain()
	}
	o.b = append(o.b, ']')
}

// each writes an array of what walk hands on. add answers false once nothing more
// can be written.
func (o *object) each(name string, walk func(add func(store.Appender) bool) error) {
	o.key(name)
	o.b = append(o.b, '[')
	first := true
	o.fail(walk(func(v store.Appender) bool {
		if !first {
			o.b = append(o.b, ',')
		}
		first = false
		b, err := v.AppendJSON(o.b)
		if err != nil {
			o.fail(err)
			b = append(o.b, "null"...)
		}
		o.b = b
		o.drain()
		return o.err == nil
	}))
	o.b = append(o.b, ']')
}

// strs writes an array of strings.
func (o *object) strs(name string, all []string) {
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

// members splices the members of another JSON object.
func (o *object) members(raw []byte) {
	err := rawjson.MembersFunc(raw, func(m rawjson.Member) bool {
		if o.b[len(o.b)-1] != '{' {
			o.b = append(o.b, ',')
		}
		o.b = append(append(append(o.b, m.Key...), ':'), m.Value...)
		return true
	})
	o.fail(err)
}

// lease writes an owner as commands and refusals show it (D23).
func (o *object) lease(l *store.Lease) {
	o.optStr("ownerId", l.OwnerID)
	o.int("fence", l.Fence)
	o.optInt("expiresAt", l.ExpiresAt)
	o.str("host", l.Host)
	o.int("pid", int64(l.PID))
	o.int("since", l.Since)
	o.bool("live", l.Live)
}

// exit writes how the process ends.
func (o *object) exit(code exitCode) {
	o.object("exit", func(o *object) {
		o.int("code", int64(code))
		o.str("name", code.String())
	})
}

func (o *object) fail(err error) {
	if o.err == nil {
		o.err = err
	}
}
