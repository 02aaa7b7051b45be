package yamlpos

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/drover-run/drover/internal/rawjson"
)

// maxValues bounds what a node may hold once its aliases are followed: aliases of
// aliases multiply.
const maxValues = 100_000

// JSON writes a node as JSON. What is JSON already keeps its spelling, and the
// members of objects their order. What JSON has no word for is a *FieldError; path
// names the node in it.
func JSON(node *yaml.Node, path string) (json.RawMessage, error) {
	c := converter{root: node, path: path}
	return c.append(nil, node)
}

type converter struct {
	root   *yaml.Node
	path   string
	values int
	inside []*yaml.Node // what the aliases being followed stand for
}

func (c *converter) errorf(n *yaml.Node, format string, args ...any) error {
	return fieldError(n, c.path, fmt.Sprintf(format, args...))
}

func (c *converter) append(dst []byte, n *yaml.Node) ([]byte, error) {
	if n.Kind == yaml.AliasNode {
		if slices.Contains(c.inside, n.Alias) {
			return nil, c.errorf(n, "the alias %s stands for something that holds it", n.Value)
		}
		c.inside = append(c.inside, n.Alias)
		dst, err := c.append(dst, n.Alias)
		c.inside = c.inside[:len(c.inside)-1]
		return dst, err
	}
	if c.values++; c.values > maxValues {
		return nil, c.errorf(c.root, "more than %d values", maxValues)
	}
	switch n.Kind {
	case yaml.MappingNode:
		return c.appendObject(dst, n)
	case yaml.SequenceNode:
		dst = append(dst, '[')
		for i, e := range n.Content {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = c.append(dst, e); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	}
	return c.appendScalar(dst, n)
}

func (c *converter) appendObject(dst []byte, n *yaml.Node) ([]byte, error) {
	dst = append(dst, '{')
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		switch {
		case key.Kind != yaml.ScalarNode:
			return nil, c.errorf(key, "a name must be text, not %s", Describe(key))
		case key.ShortTag() == "!!merge":
			return nil, c.errorf(key, "merge keys are not supported")
		case seen[key.Value]:
			return nil, c.errorf(key, "%s is there twice", key.Value)
		}
		seen[key.Value] = true
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(rawjson.AppendQuote(dst, key.Value), ':')
		var err error
		if dst, err = c.append(dst, n.Content[i+1]); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func (c *converter) appendScalar(dst []byte, n *yaml.Node) ([]byte, error) {
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		return rawjson.AppendQuote(dst, n.Value), nil
	case "!!null":
		return append(dst, "null"...), nil
	case "!!bool":
		var v bool
		if n.Decode(&v) == nil {
			return strconv.AppendBool(dst, v), nil
		}
	case "!!int", "!!float":
		if out, ok := appendNumber(dst, n); ok {
			return out, nil
		}
	}
	return nil, c.errorf(n, "JSON has no word for %s", Describe(n))
}

// appendNumber keeps the spelling of a number where JSON knows it, as it does
// not know 0x1f, 1_000, .5 and .inf.
func appendNumber(dst []byte, n *yaml.Node) ([]byte, bool) {
	if rawjson.Valid([]byte(n.Value)) == nil {
		return append(dst, n.Value...), true
	}
	if n.ShortTag() == "!!int" {
		var i int64
		if n.Decode(&i) == nil {
			return rawjson.AppendInt(dst, i), true
		}
		var u uint64
		err := n.Decode(&u)
		return strconv.AppendUint(dst, u, 10), err == nil
	}
	var f float64
	if n.Decode(&f) != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, false
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64), true
}

// Describe names what a node is, for people.
func Describe(n *yaml.Node) string {
	switch tag := n.ShortTag(); tag {
	case "!!map":
		return "an object"
	case "!!seq":
		return "a list"
	case "!!str", "!!timestamp":
		return "text"
	case "!!int", "!!float":
		return "the number " + n.Value
	case "!!bool":
		return n.Value
	case "!!null":
		return "nothing"
	default:
		return "a value with the tag " + tag
	}
}
