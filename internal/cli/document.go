package cli

import (
	"errors"
	"maps"
	"regexp"
	"slices"

	"github.com/drover-run/drover/internal/yamlpos"
)

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
		return nil, configf("%s:%d:%d: %s: %s", found.name, bad.Line, bad.Column, bad.Path, bad.Problem)
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
