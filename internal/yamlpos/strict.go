package yamlpos

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// FieldError is a value of a document that does not fit what it is read into.
type FieldError struct {
	Line, Column int // from 1
	Path         string
	Problem      string
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("%d:%d: %s: %s", e.Line, e.Column, e.Path, e.Problem)
}

// Decode reads a node into the struct, map or slice that into points to. A field
// that the struct does not have, one that is given twice and a value of another
// kind are *FieldErrors; path names the node in them. Structs name their fields by
// yaml tags; a field without one is not read. A *yaml.Node takes any value.
func Decode(node *yaml.Node, path string, into any) error {
	return decode(node, path, reflect.ValueOf(into).Elem())
}

func decode(node *yaml.Node, path string, to reflect.Value) error {
	if raw, ok := to.Addr().Interface().(**yaml.Node); ok {
		*raw = node
		return nil
	}
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch to.Kind() {
	case reflect.Struct:
		return decodeStruct(node, path, to)
	case reflect.Map:
		return decodeMap(node, path, to)
	case reflect.Slice:
		return decodeSlice(node, path, to)
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return decode(node, path, to.Elem())
	}
	if node.Kind != yaml.ScalarNode || node.Tag == "!!null" {
		return fieldError(node, path, "must be a single value")
	}
	if to.Kind() == reflect.String {
		to.SetString(node.Value)
		return nil
	}
	if err := node.Decode(to.Addr().Interface()); err != nil {
		return fieldError(node, path, fmt.Sprintf("%q is no %s", node.Value, kindName(to)))
	}
	return nil
}

func kindName(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "whole number"
	case reflect.Float64:
		return "number"
	}
	return v.Kind().String()
}

func fieldError(node *yaml.Node, path, problem string) error {
	return &FieldError{Line: node.Line, Column: node.Column, Path: path, Problem: problem}
}

// eachMember calls use for every key of a mapping, once each.
func eachMember(node *yaml.Node, path string, use func(key, value *yaml.Node) error) error {
	if node.Kind != yaml.MappingNode {
		return fieldError(node, path, "must be a mapping of names to values")
	}
	var seen []string
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if slices.Contains(seen, key.Value) {
			return fieldError(key, path+"."+key.Value, "is given twice")
		}
		seen = append(seen, key.Value)
		if err := use(key, node.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func decodeStruct(node *yaml.Node, path string, to reflect.Value) error {
	return eachMember(node, path, func(key, value *yaml.Node) error {
		var known []string
		for i := range to.NumField() {
			name, _, _ := strings.Cut(to.Type().Field(i).Tag.Get("yaml"), ",")
			if name == "" {
				continue
			}
			if name == key.Value {
				return decode(value, path+"."+name, to.Field(i))
			}
			known = append(known, name)
		}
		return fieldError(key, path+"."+key.Value, "is unknown here; the fields are "+strings.Join(known, ", "))
	})
}

func decodeMap(node *yaml.Node, path string, to reflect.Value) error {
	to.Set(reflect.MakeMap(to.Type()))
	return eachMember(node, path, func(key, value *yaml.Node) error {
		element := reflect.New(to.Type().Elem()).Elem()
		if err := decode(value, path+"."+key.Value, element); err != nil {
			return err
		}
		to.SetMapIndex(reflect.ValueOf(key.Value).Convert(to.Type().Key()), element)
		return nil
	})
}

func decodeSlice(node *yaml.Node, path string, to reflect.Value) error {
	if node.Kind != yaml.SequenceNode {
		return fieldError(node, path, "must be a list")
	}
	to.Set(reflect.MakeSlice(to.Type(), 0, len(node.Content)))
	for i, n := range node.Content {
		element := reflect.New(to.Type().Elem()).Elem()
		if err := decode(n, fmt.Sprintf("%s[%d]", path, i), element); err != nil {
			return err
		}
		to.Set(reflect.Append(to, element))
	}
	return nil
}
