package tool

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/drover-run/drover/internal/rawjson"
)

// maxDepth bounds how deep an explanation looks; the verdict is not its own.
const maxDepth = 200

// explainer finds the place in a value that does not fit, for values that the
// validator has refused: its errors name places in the schema only. It knows
// the keywords that tools use; nil means that it found nothing.
type explainer struct{ root []byte }

func (e *explainer) problem(schema, value []byte, path string, depth int) *ArgumentError {
	if string(schema) == "false" {
		return &ArgumentError{path, fmt.Sprintf("is %s that must not be there", describe(value))}
	}
	if rawjson.KindOf(schema) != rawjson.Object || depth > maxDepth {
		return nil
	}
	if ref, ok := rawjson.GetString(schema, "$ref"); ok {
		if target, err := resolveReference(e.root, ref); err == nil {
			if why := e.problem(target, value, path, depth+1); why != nil {
				return why
			}
		}
	}
	if msg := e.ownProblem(schema, value); msg != "" {
		return &ArgumentError{path, fmt.Sprintf("is %s %s", describe(value), msg)}
	}
	if why := e.combined(schema, value, path, depth+1); why != nil {
		return why
	}
	switch rawjson.KindOf(value) {
	case rawjson.Object:
		return e.members(schema, value, path, depth+1)
	case rawjson.Array:
		return e.elements(schema, value, path, depth+1)
	}
	return nil
}

// ownProblem judges the value itself, not its parts.
func (e *explainer) ownProblem(schema, value []byte) string {
	if want := types(schema); len(want) > 0 && !slices.ContainsFunc(want, func(t string) bool { return hasType(value, t) }) {
		return "that must be " + article(strings.Join(want, " or "))
	}
	if enum, ok := rawjson.Get(schema, "enum"); ok && !containsScalar(enum, value) {
		return "that is none of " + clip(strings.Trim(string(enum), "[]"), 200)
	}
	if want, ok := rawjson.Get(schema, "const"); ok && !sameScalar(want, value) {
		return "that must be " + clip(string(want), 100)
	}
	switch rawjson.KindOf(value) {
	case rawjson.Number:
		return numberProblem(schema, value)
	case rawjson.String:
		return stringProblem(schema, value)
	}
	return ""
}

func numberProblem(schema, value []byte) string {
	n, _ := strconv.ParseFloat(string(value), 64)
	for _, rule := range []struct {
		key, msg string
		broken   func(limit float64) bool
	}{
		{"minimum", "that must be at least ", func(l float64) bool { return n < l }},
		{"maximum", "that must be at most ", func(l float64) bool { return n > l }},
		{"exclusiveMinimum", "that must be greater than ", func(l float64) bool { return n <= l }},
		{"exclusiveMaximum", "that must be less than ", func(l float64) bool { return n >= l }},
		{"multipleOf", "that must be a multiple of ", func(l float64) bool { return n/l != math.Trunc(n/l) }},
	} {
		if limit, ok := rawjson.Get(schema, rule.key); ok {
			if l, err := strconv.ParseFloat(string(limit), 64); err == nil && rule.broken(l) {
				return rule.msg + string(limit)
			}
		}
	}
	return ""
}

func stringProblem(schema, value []byte) string {
	s, _ := rawjson.Unquote(value)
	n := int64(utf8.RuneCountInString(s))
	if least, ok := rawjson.GetInt(schema, "minLength"); ok && n < least {
		return fmt.Sprintf("of %d characters that must have at least %d", n, least)
	}
	if most, ok := rawjson.GetInt(schema, "maxLength"); ok && n > most {
		return fmt.Sprintf("of %d characters that must have at most %d", n, most)
	}
	if p, ok := rawjson.GetString(schema, "pattern"); ok {
		if re, err := regexp.Compile(p); err == nil && !re.MatchString(s) {
			return "that does not match " + clip(strconv.Quote(p), 100)
		}
	}
	return ""
}

// combined looks into the schemas that judge the same value.
func (e *explainer) combined(schema, value []byte, path string, depth int) *ArgumentError {
	all, _ := rawjson.Get(schema, "allOf")
	for sub, err := range rawjson.Elements(all) {
		if err == nil {
			if why := e.problem(sub, value, path, depth); why != nil {
				return why
			}
		}
	}
	if cond, ok := rawjson.Get(schema, "if"); ok {
		branch := "then"
		if e.problem(cond, value, path, depth) != nil {
			branch = "else"
		}
		sub, _ := rawjson.Get(schema, branch)
		if why := e.problem(sub, value, path, depth); why != nil {
			return why
		}
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if alternatives, ok := rawjson.Get(schema, key); ok {
			if why := e.alternatives(alternatives, value, path, depth, key == "oneOf"); why != nil {
				return why
			}
		}
	}
	return nil
}

// alternatives looks for the one that the value was probably meant for.
func (e *explainer) alternatives(subs, value []byte, path string, depth int, one bool) *ArgumentError {
	var meant []*ArgumentError
	fits := 0
	for sub, err := range rawjson.Elements(subs) {
		if err != nil {
			return nil
		}
		why := e.problem(sub, value, path, depth)
		if why == nil {
			fits++
		} else if t := types(sub); len(t) == 0 || slices.ContainsFunc(t, func(t string) bool { return hasType(value, t) }) {
			meant = append(meant, why)
		}
	}
	switch {
	case fits == 1 || fits > 1 && !one:
		return nil
	case fits > 1:
		return &ArgumentError{path, fmt.Sprintf("is %s that fits %d of the forms the schema allows and must fit one", describe(value), fits)}
	case len(meant) == 1:
		return meant[0]
	}
	return &ArgumentError{path, fmt.Sprintf("is %s that fits none of the forms the schema allows", describe(value))}
}

func (e *explainer) members(schema, value []byte, path string, depth int) *ArgumentError {
	required, _ := rawjson.Get(schema, "required")
	for el, err := range rawjson.Elements(required) {
		name, bad := rawjson.Unquote(el)
		if err != nil || bad != nil {
			continue
		}
		if _, ok := rawjson.Get(value, name); !ok {
			return &ArgumentError{path, fmt.Sprintf("is an object without the required member %s", rawjson.Quote(name))}
		}
	}
	properties, _ := rawjson.Get(schema, "properties")
	patterns, _ := rawjson.Get(schema, "patternProperties")
	others, closed := rawjson.Get(schema, "additionalProperties")
	names, _ := rawjson.Get(schema, "propertyNames")
	for m, err := range rawjson.Members(value) {
		if err != nil {
			return nil
		}
		name, _ := rawjson.Unquote(m.Key)
		at := memberPath(path, name)
		if why := e.problem(names, m.Key, at, depth); why != nil {
			why.Msg += ", as a name"
			return why
		}
		known := false
		if sub, ok := rawjson.Get(properties, name); ok {
			known = true
			if why := e.problem(sub, m.Value, at, depth); why != nil {
				return why
			}
		}
		for p, err := range rawjson.Members(patterns) {
			pattern, _ := rawjson.Unquote(p.Key)
			if re, bad := regexp.Compile(pattern); err == nil && bad == nil && re.MatchString(name) {
				known = true
				if why := e.problem(p.Value, m.Value, at, depth); why != nil {
					return why
				}
			}
		}
		if known || !closed {
			continue
		}
		if why := e.problem(others, m.Value, at, depth); why != nil {
			if string(others) == "false" {
				why.Msg = fmt.Sprintf("is %s under an unknown name, known are %s", describe(m.Value), memberNames(properties))
			}
			return why
		}
	}
	return countProblem(schema, value, path, "Properties", "members", rawjson.Members)
}

func (e *explainer) elements(schema, value []byte, path string, depth int) *ArgumentError {
	items, _ := rawjson.Get(schema, "items")
	prefix, _ := rawjson.Get(schema, "prefixItems")
	if rawjson.KindOf(items) == rawjson.Array { // draft 7
		prefix = items
		items, _ = rawjson.Get(schema, "additionalItems")
	}
	i := 0
	for el, err := range rawjson.Elements(value) {
		if err != nil {
			return nil
		}
		sub, ok := child(prefix, strconv.Itoa(i))
		if !ok {
			sub = items
		}
		if why := e.problem(sub, el, path+"["+strconv.Itoa(i)+"]", depth); why != nil {
			return why
		}
		i++
	}
	return countProblem(schema, value, path, "Items", "elements", rawjson.Elements)
}
