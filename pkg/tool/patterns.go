package tool

import (
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// dropPatterns removes every pattern below s that does not compile.
func dropPatterns(s *jsonschema.Schema) []*PatternError {
	var dropped []*PatternError
	var walk func(*jsonschema.Schema)
	walk = func(s *jsonschema.Schema) {
		if s == nil {
			return
		}
		if s.Pattern != "" {
			if _, err := regexp.Compile(s.Pattern); err != nil {
				dropped = append(dropped, &PatternError{Pattern: s.Pattern, Err: err})
				s.Pattern = ""
			}
		}
		for p := range s.PatternProperties {
			if _, err := regexp.Compile(p); err != nil {
				dropped = append(dropped, &PatternError{Pattern: p, Err: err})
				delete(s.PatternProperties, p)
				// Members that the pattern would have claimed are nobody's now.
				s.AdditionalProperties, s.UnevaluatedProperties = nil, nil
			}
		}
		for _, sub := range subschemas(s) {
			walk(sub)
		}
	}
	walk(s)
	slices.SortFunc(dropped, func(a, b *PatternError) int { return strings.Compare(a.Pattern, b.Pattern) })
	return dropped
}

// subschemas lists the schemas directly below s, nil ones among them.
func subschemas(s *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{
		s.Items, s.AdditionalItems, s.Contains, s.UnevaluatedItems,
		s.AdditionalProperties, s.PropertyNames, s.UnevaluatedProperties,
		s.Not, s.If, s.Then, s.Else, s.ContentSchema,
	}
	for _, list := range [][]*jsonschema.Schema{s.PrefixItems, s.ItemsArray, s.AllOf, s.AnyOf, s.OneOf} {
		all = append(all, list...)
	}
	for _, byName := range []map[string]*jsonschema.Schema{
		s.Defs, s.Definitions, s.Properties, s.PatternProperties, s.DependentSchemas, s.DependencySchemas,
	} {
		for _, sub := range byName {
			all = append(all, sub)
		}
	}
	return all
}
