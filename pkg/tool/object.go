package tool

import (
	"encoding/json"

	"github.com/drover-run/drover/internal/rawjson"
)

// object is JSON text of an object under construction, without its braces.
type object []byte

func (o object) key(name string) object {
	if len(o) > 0 {
		o = append(o, ',')
	}
	return append(rawjson.AppendQuote(o, name), ':')
}

func (o object) text(name, value string) object {
	return rawjson.AppendQuote(o.key(name), value)
}

func (o object) integer(name string, value int64) object {
	return rawjson.AppendInt(o.key(name), value)
}

func (o object) null(name string) object { return append(o.key(name), "null"...) }

func (o object) boolean(name string, value bool) object {
	if value {
		return append(o.key(name), "true"...)
	}
	return append(o.key(name), "false"...)
}

func (o object) raw() json.RawMessage {
	return append(append(json.RawMessage{'{'}, o...), '}')
}
