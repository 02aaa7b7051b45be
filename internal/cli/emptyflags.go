package cli

import (
	"slices"

	"github.com/spf13/pflag"
)

// emptyMeans annotates a flag whose empty value says something of its own.
const emptyMeans = "drover_empty_means_something"

// mayBeEmpty marks flags whose empty value says something: no tools, no name.
func mayBeEmpty(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		_ = flags.SetAnnotation(name, emptyMeans, nil)
	}
}

// refuseEmpty refuses a flag that was given an empty value. That is what a variable
// of a shell that is not set leaves of it, and none of the commands may take it for
// a flag that was not given: a deletion would take everything, a redaction nothing.
func refuseEmpty(flags *pflag.FlagSet) error {
	var err error
	flags.Visit(func(f *pflag.Flag) {
		if _, fine := f.Annotations[emptyMeans]; err == nil && !fine && isEmpty(f.Value) {
			err = usagef("--%s needs a value", f.Name)
		}
	})
	return err
}

// isEmpty reports an empty value, or an empty one among several.
func isEmpty(v pflag.Value) bool {
	if several, ok := v.(pflag.SliceValue); ok {
		all := several.GetSlice()
		return len(all) == 0 || slices.Contains(all, "")
	}
	return v.String() == ""
}
