package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/internal/yamlpos"
	"github.com/drover-run/drover/pkg/message"
)

// decoder decodes the tree of a script, strictly: unknown fields, wrong types
// and values out of range are *ScriptErrors.
type decoder struct {
	path  string
	lines int // of the text
}

// field is one field that an object may have.
type field struct {
	name string
	set  setter
}

// setter decodes the value of the named field; it is not called for null.
type setter func(name string, n *yaml.Node) error

func (d decoder) errorf(n *yaml.Node, format string, args ...any) *ScriptError {
	// An empty document has no place, or one behind the end of the text.
	return &ScriptError{Path: d.path, Line: max(1, min(n.Line, d.lines)), Column: max(1, n.Column), Msg: fmt.Sprintf(format, args...)}
}

// object decodes a mapping that has these fields only, each at most once.
func (d decoder) object(n *yaml.Node, what string, fields ...field) error {
	if n = target(n); n.Kind != yaml.MappingNode {
		return d.errorf(n, "%s must be an object, not %s", what, yamlpos.Describe(n))
	}
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := target(n.Content[i]), target(n.Content[i+1])
		at := slices.IndexFunc(fields, func(f field) bool { return f.name == key.Value })
		if at < 0 {
			return d.errorf(key, "unknown field %q; %s has %s", key.Value, what, names(fields))
		}
		if seen[key.Value] {
			return d.errorf(key, "%s is there twice", key.Value)
		}
		seen[key.Value] = true
		if value.ShortTag() == "!!null" {
			continue
		}
		if err := fields[at].set(key.Value, value); err != nil {
			return err
		}
	}
	return nil
}

func names(fields []field) string {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = f.name
	}
	return strings.Join(all, ", ")
}

// list calls item for each element of a sequence.
func (d decoder) list(name string, n *yaml.Node, item func(*yaml.Node) error) error {
	if n.Kind != yaml.SequenceNode {
		return d.errorf(n, "%s must be a list, not %s", name, yamlpos.Describe(n))
	}
	for _, e := range n.Content {
		if err := item(e); err != nil {
			return err
		}
	}
	return nil
}

func (d decoder) text(to *string) setter {
	return func(name string, n *yaml.Node) error {
		if !isText(n) {
			return d.errorf(n, "%s must be text, not %s", name, yamlpos.Describe(n))
		}
		*to = n.Value
		return nil
	}
}

func (d decoder) oneOf(to *string, allowed ...message.StopReason) setter {
	return func(name string, n *yaml.Node) error {
		all := make([]string, len(allowed))
		for i, a := range allowed {
			if all[i] = string(a); isText(n) && n.Value == all[i] {
				*to = n.Value
				return nil
			}
		}
		return d.errorf(n, "%s must be one of %s", name, strings.Join(all, ", "))
	}
}

func (d decoder) flag(to *bool) setter {
	return func(name string, n *yaml.Node) error {
		if n.ShortTag() != "!!bool" || n.Decode(to) != nil {
			return d.errorf(n, "%s must be true or false, not %s", name, yamlpos.Describe(n))
		}
		return nil
	}
}

// whole decodes an integer that is at least least.
func (d decoder) whole(to *int64, least int64) setter {
	return func(name string, n *yaml.Node) error {
		var v int64
		switch {
		case n.ShortTag() != "!!int":
			return d.errorf(n, "%s must be a whole number, not %s", name, yamlpos.Describe(n))
		case n.Decode(&v) != nil:
			return d.errorf(n, "%s is too large", name)
		case v < least:
			return d.errorf(n, "%s must be at least %d", name, least)
		}
		*to = v
		return nil
	}
}

func (d decoder) count(to *int, least int64) setter {
	return func(name string, n *yaml.Node) error {
		var v int64
		if err := d.whole(&v, least)(name, n); err != nil {
			return err
		}
		*to = int(min(v, math.MaxInt32))
		return nil
	}
}

func (d decoder) optional(to **int64) setter {
	return func(name string, n *yaml.Node) error {
		*to = new(int64)
		return d.whole(*to, 0)(name, n)
	}
}

func (d decoder) millis(to *time.Duration) setter {
	return func(name string, n *yaml.Node) error {
		var v int64
		if err := d.whole(&v, 0)(name, n); err != nil {
			return err
		}
		if v > math.MaxInt64/int64(time.Millisecond) {
			return d.errorf(n, "%s is too large", name)
		}
		*to = time.Duration(v) * time.Millisecond
		return nil
	}
}

// price decodes a finite number that is not negative.
func (d decoder) price(to *float64) setter {
	return func(name string, n *yaml.Node) error {
		tag := n.ShortTag()
		if tag != "!!int" && tag != "!!float" || n.Decode(to) != nil {
			return d.errorf(n, "%s must be a number, not %s", name, yamlpos.Describe(n))
		}
		if !(*to >= 0) || math.IsInf(*to, 0) {
			return d.errorf(n, "%s must be at least 0 and finite", name)
		}
		return nil
	}
}

func (d decoder) arguments(to *json.RawMessage) setter {
	return func(name string, n *yaml.Node) error {
		raw, err := d.value(name, n)
		if err != nil {
			return err
		}
		if raw[0] != '{' {
			return d.errorf(n, "%s must be an object, not %s", name, yamlpos.Describe(n))
		}
		*to = raw
		return nil
	}
}

// value is a value of any kind, as it stood in a JSON script.
func (d decoder) value(name string, n *yaml.Node) (json.RawMessage, error) {
	if n.Kind == rawNode {
		return rawjson.Compact(nil, []byte(n.Value))
	}
	raw, err := yamlpos.JSON(n, name)
	if bad, ok := errors.AsType[*yamlpos.FieldError](err); ok {
		return nil, d.errorf(&yaml.Node{Line: bad.Line, Column: bad.Column}, "%s", bad.Problem)
	}
	return raw, err
}
