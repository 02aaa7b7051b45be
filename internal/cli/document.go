package cli

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/drover-run/drover/internal/yamlpos"
)

// documentRows are the keys that are decoded from the document itself (D49).
func documentRows() []keyRow {
	const folder = "the folder that holds %s, or a list of folders, which the variable joins with colons"
	return []keyRow{
		{key: "skills", what: fmt.Sprintf(folder, "skills") + "; `drover help skills`"},
		{key: "templates", what: fmt.Sprintf(folder, "templates") + "; `drover help templates`"},
		{key: "providers", what: "where models are reached, and what is known of them, by the provider's name; `drover help providers`", fileOnly: true},
		{key: "programs", what: "programs that models may call as tools, by the tool's name; `drover help programs`", fileOnly: true},
		{key: "mcp", what: "servers of the Model Context Protocol, by name; `drover help mcp`", fileOnly: true},
		{key: "hooks", what: "programs that watch over runs, by a name of yours; `drover help hooks`", fileOnly: true},
	}
}

func documentKeys() []string {
	var keys []string
	for _, r := range documentRows() {
		keys = append(keys, r.key)
	}
	return keys
}

// decodeDocument reads a key of the configuration that is decoded from the
// document itself, case and all (D49): a map of names to descriptions. what says
// what the names stand for.
func decodeDocument[T any](from sources, key, what string) (map[string]T, error) {
	found, ok := from.file[key]
	if !ok {
		return nil, nil
	}
	all := map[string]T{}
	err := yamlpos.Decode(found.node, key, &all)
	if bad, ok := errors.AsType[*yamlpos.FieldError](err); ok {
		f := configf("%s:%d:%d: %s: %s", found.name, bad.Line, bad.Column, bad.Path, bad.Problem)
		f.cause = bad
		return nil, f
	}
	if err != nil {
		return nil, configf("%s: %s: %v", found.where, key, err)
	}
	valid := regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !valid.MatchString(name) {
			return nil, configf("%s: %s.%s: the name of %s is 1 to 32 letters, digits, underscores and hyphens", found.where, key, escapeLine(name), what)
		}
	}
	return all, nil
}

// refuse tells what is wrong with the value that a path of fields leads to from the
// key, at the place of that value or of the last one before it that is there.
func (l located) refuse(key string, path []string, problem string) error {
	node, name := l.node, key
	for _, field := range path {
		name += "." + field
		if inner := member(node, field); inner != nil {
			node = inner
		}
	}
	return configf("%s: %s: %s", at(l.name, node), escapeLine(name), escapeLine(problem))
}

// memberNames are the names in a mapping, in the order of the document.
func memberNames(node *yaml.Node) []string {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	var names []string
	for i := 0; i+1 < len(node.Content); i += 2 {
		names = append(names, node.Content[i].Value)
	}
	return names
}

// member is the value of a field, nil when the node has no such field.
func member(node *yaml.Node, field string) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	for i := 0; i+1 < len(node.Content) && node.Kind == yaml.MappingNode; i += 2 {
		if node.Content[i].Value == field {
			return node.Content[i+1]
		}
	}
	return nil
}
