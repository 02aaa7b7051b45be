package tool

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
)

// sameValue are the keywords whose schemas judge the value that their own
// schema judges: a circle of them would never end.
var sameValue = struct{ one, list, named []string }{
	one:   []string{"not", "if", "then", "else"},
	list:  []string{"allOf", "anyOf", "oneOf"},
	named: []string{"dependentSchemas", "dependencies"},
}

// within are the keywords whose schemas judge a part of the value, or nothing.
var within = struct{ one, list, named []string }{
	one: []string{
		"items", "additionalItems", "unevaluatedItems", "contains", "additionalProperties",
		"unevaluatedProperties", "propertyNames", "contentSchema",
	},
	list:  []string{"items", "prefixItems"},
	named: []string{"$defs", "definitions", "properties", "patternProperties"},
}

// checkReferences refuses references that leave the schema, that depend on names
// this program does not resolve, and that go in circles.
func checkReferences(root []byte) error {
	c := references{root: root, state: map[*byte]visit{}}
	return c.walk(root, "$")
}

type visit byte

const (
	open visit = iota + 1
	done
)

type references struct {
	root  []byte
	state map[*byte]visit
}

// walk checks schema and everything below it. A schema on its own path is seen
// through same-value steps only: a step into the value starts afresh.
func (c *references) walk(schema []byte, path string) error {
	if rawjson.KindOf(schema) != rawjson.Object {
		return nil
	}
	if err := c.follow(schema, path); err != nil {
		return err
	}
	var failed error
	each := func(sub []byte, at string) {
		if failed == nil {
			failed = c.walk(sub, at)
		}
	}
	eachSchema(schema, path, sameValue.one, sameValue.list, sameValue.named, each)
	eachSchema(schema, path, within.one, within.list, within.named, each)
	return failed
}

// follow goes through all same-value steps from schema.
func (c *references) follow(schema []byte, path string) error {
	if rawjson.KindOf(schema) != rawjson.Object {
		return nil
	}
	switch c.state[&schema[0]] {
	case done:
		return nil
	case open:
		return &ArgumentError{Path: path, Msg: "is part of a circle of references that no value ends"}
	}
	c.state[&schema[0]] = open
	for _, key := range []string{"$id", "$dynamicRef", "$dynamicAnchor"} {
		if _, ok := rawjson.Get(schema, key); ok {
			return &ArgumentError{Path: path, Msg: "has " + key + ", which is not supported in the schema of a tool"}
		}
	}
	var failed error
	each := func(sub []byte, at string) {
		if failed == nil {
			failed = c.follow(sub, at)
		}
	}
	eachSchema(schema, path, sameValue.one, sameValue.list, sameValue.named, each)
	if ref, ok := rawjson.GetString(schema, "$ref"); ok && failed == nil {
		target, err := resolveReference(c.root, ref)
		if err != nil {
			return &ArgumentError{Path: path + ".$ref", Msg: err.Error()}
		}
		failed = c.follow(target, path+".$ref")
	}
	c.state[&schema[0]] = done
	return failed
}

// eachSchema calls fn with the schemas under the keywords of a schema.
func eachSchema(schema []byte, path string, one, list, named []string, fn func(sub []byte, at string)) {
	for _, key := range one {
		if sub, ok := rawjson.Get(schema, key); ok {
			fn(sub, path+"."+key)
		}
	}
	for _, key := range list {
		subs, _ := rawjson.Get(schema, key)
		i := 0
		for sub, err := range rawjson.Elements(subs) {
			if err == nil {
				fn(sub, path+"."+key+"["+strconv.Itoa(i)+"]")
			}
			i++
		}
	}
	for _, key := range named {
		subs, _ := rawjson.Get(schema, key)
		for m, err := range rawjson.Members(subs) {
			if err == nil {
				name, _ := rawjson.Unquote(m.Key)
				fn(m.Value, memberPath(path+"."+key, name))
			}
		}
	}
}

// resolveReference finds what a reference within root means: #, #/a/b or #name.
func resolveReference(root []byte, ref string) ([]byte, error) {
	frag, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, fmt.Errorf("is %s, which leaves the schema", clip(strconv.Quote(ref), 100))
	}
	frag, err := url.PathUnescape(frag)
	if err != nil {
		return nil, fmt.Errorf("is %s, which is no reference", clip(strconv.Quote(ref), 100))
	}
	at := root
	if frag != "" && frag[0] != '/' {
		at, ok = findAnchor(root, frag)
	} else if frag != "" {
		for step := range strings.SplitSeq(frag[1:], "/") {
			step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
			if at, ok = child(at, step); !ok {
				break
			}
		}
	}
	if !ok {
		return nil, fmt.Errorf("is %s, which names nothing in the schema", clip(strconv.Quote(ref), 100))
	}
	return at, nil
}

func child(value []byte, step string) ([]byte, bool) {
	if rawjson.KindOf(value) != rawjson.Array {
		return rawjson.Get(value, step)
	}
	i := 0
	for el, err := range rawjson.Elements(value) {
		if err == nil && strconv.Itoa(i) == step {
			return el, true
		}
		i++
	}
	return nil, false
}

func findAnchor(schema []byte, name string) (found []byte, ok bool) {
	if anchor, has := rawjson.GetString(schema, "$anchor"); has && anchor == name {
		return schema, true
	}
	each := func(sub []byte, _ string) {
		if !ok {
			found, ok = findAnchor(sub, name)
		}
	}
	eachSchema(schema, "", sameValue.one, sameValue.list, sameValue.named, each)
	eachSchema(schema, "", within.one, within.list, within.named, each)
	return found, ok
}
