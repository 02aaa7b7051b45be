package scripted

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/internal/yamlpos"
)

// rawNode is the kind of a node that holds a whole JSON value as it stood in
// the file. The YAML parser makes none.
const rawNode yaml.Kind = 1 << 7

// maxDepth bounds the nesting of a JSON script outside of arguments.
const maxDepth = 16

// parseTree parses a script into a tree of YAML nodes with places. JSON is not
// left to the YAML parser: it refuses surrogate escapes, and its tree does not
// keep the spelling of arguments.
func parseTree(path string, text []byte) (*yaml.Node, error) {
	at := &cursor{text: text}
	if off := rawjson.ValidUTF8(text); off >= 0 {
		return nil, at.errorf(path, off, "invalid UTF-8")
	}
	err := rawjson.Valid(text)
	if err == nil {
		t := jsonTree{path: path, at: at}
		value := bytes.TrimSpace(text)
		return t.node(bytes.Index(text, value), value, 0)
	}
	if strings.EqualFold(filepath.Ext(path), ".json") {
		return nil, at.errorf(path, err.Offset, err.Msg)
	}
	return yamlTree(path, text)
}

// cursor translates rising byte offsets to places.
type cursor struct {
	text         []byte
	off          int
	line, column int // behind the offset, from 0
}

func (c *cursor) place(off int) (line, column int) {
	for c.off < off {
		_, size := utf8.DecodeRune(c.text[c.off:])
		if c.text[c.off] == '\n' {
			c.line, c.column = c.line+1, -1
		}
		c.column++
		c.off += size
	}
	return c.line + 1, c.column + 1
}

func (c *cursor) errorf(path string, off int, msg string) *ScriptError {
	line, column := c.place(off)
	return &ScriptError{Path: path, Line: line, Column: column, Msg: msg}
}

// jsonTree builds the tree of a valid JSON text.
type jsonTree struct {
	path string
	at   *cursor
}

// node returns the tree of the value raw at an offset.
func (t jsonTree) node(off int, raw []byte, depth int) (*yaml.Node, error) {
	if depth > maxDepth {
		return nil, t.at.errorf(t.path, off, "nested too deeply")
	}
	n := t.leaf(off, raw)
	var err error
	// raw is valid: the walks cannot fail.
	switch rawjson.KindOf(raw) {
	case rawjson.Object:
		n.Kind = yaml.MappingNode
		_ = rawjson.MembersFunc(raw, func(m rawjson.Member) bool {
			err = t.member(n, off+m.Start, off+m.End-len(m.Value), m, depth)
			return err == nil
		})
	case rawjson.Array:
		n.Kind = yaml.SequenceNode
		_ = rawjson.ElementsFunc(raw, func(start, end int) bool {
			var e *yaml.Node
			e, err = t.node(off+start, raw[start:end], depth+1)
			n.Content = append(n.Content, e)
			return err == nil
		})
	}
	return n, err
}

// member adds a member; arguments stay as they are.
func (t jsonTree) member(n *yaml.Node, keyOff, valueOff int, m rawjson.Member, depth int) error {
	key := t.leaf(keyOff, m.Key)
	var value *yaml.Node
	var err error
	if key.Value == "arguments" {
		value = t.leaf(valueOff, m.Value)
		value.Kind, value.Value = rawNode, string(m.Value)
	} else {
		value, err = t.node(valueOff, m.Value, depth+1)
	}
	n.Content = append(n.Content, key, value)
	return err
}

// leaf returns a node with the value's place and tag and, of a scalar, value.
func (t jsonTree) leaf(off int, raw []byte) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode}
	n.Line, n.Column = t.at.place(off)
	switch rawjson.KindOf(raw) {
	case rawjson.Object:
		n.Tag = "!!map"
	case rawjson.Array:
		n.Tag = "!!seq"
	case rawjson.String:
		n.Tag = "!!str"
		n.Value, _ = rawjson.Unquote(raw) // it is valid
	case rawjson.Number:
		n.Tag, n.Value = "!!float", string(raw)
		if !bytes.ContainsAny(raw, ".eE") {
			n.Tag = "!!int"
		}
	case rawjson.Bool:
		n.Tag, n.Value = "!!bool", string(raw)
	case rawjson.Null:
		n.Tag = "!!null"
	}
	return n
}

// yamlTree parses YAML, one document.
func yamlTree(path string, text []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var first, second yaml.Node
	err := d.Decode(&first)
	if errors.Is(err, io.EOF) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: 1, Column: 1}, nil
	}
	if err == nil {
		if err = d.Decode(&second); errors.Is(err, io.EOF) {
			return first.Content[0], nil
		}
	}
	if err == nil {
		return nil, &ScriptError{Path: path, Line: second.Line, Column: second.Column, Msg: "a second document"}
	}
	line, column := yamlpos.Locate(text, err)
	return nil, &ScriptError{Path: path, Line: line, Column: column, Msg: yamlpos.Message(err)}
}

// target follows an alias.
func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// isText tells whether a scalar is text; a date without quotes is.
func isText(n *yaml.Node) bool {
	tag := n.ShortTag()
	return n.Kind == yaml.ScalarNode && (tag == "!!str" || tag == "!!timestamp")
}
