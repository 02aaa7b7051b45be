package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/internal/resource"
)

// vocabulary finds what a word may be that the configuration knows. A tab and a
// description may follow each.
type vocabulary func(f *factory, c *config) []string

// completeConfigured completes words with what the configuration knows; those that
// are there already are not on offer.
func completeConfigured(f *factory, of vocabulary) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if f.flags.collect(cmd) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := f.config()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return fitting(of(f, c), "", typed, args), cobra.ShellCompDirectiveNoFileComp
	}
}

// fitting are the words that go on from what was typed, behind what stands before,
// but for those that were given already.
func fitting(all []string, before, typed string, given []string) []string {
	var fits []string
	for _, word := range all {
		name, _, _ := strings.Cut(word, "\t")
		if strings.HasPrefix(word, typed) && !slices.Contains(given, name) {
			fits = append(fits, before+word)
		}
	}
	return fits
}

// completeTools completes the last of several names. A server is not started to
// ask it for its tools: the beginning of their names is on offer.
func completeTools(f *factory) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		if f.flags.collect(cmd) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := f.config()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		known, err := f.tools("")
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := known.Names()
		for _, s := range c.mcp.all {
			names = append(names, s.Prefix())
		}
		last := strings.LastIndexByte(typed, ',') + 1
		fits := fitting(names, typed[:last], typed[last:], splitList(typed[:last]))
		directive := cobra.ShellCompDirectiveNoFileComp
		if slices.ContainsFunc(fits, func(name string) bool { return strings.HasSuffix(name, "__") }) {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return fits, directive
	}
}

func skillWords(_ *factory, c *config) []string {
	skills, _ := resource.Skills(c.skills)
	var words []string
	for _, s := range skills {
		words = append(words, s.Name+"\t"+escapeLine(firstLine(s.Description)))
	}
	return words
}

func templateWords(_ *factory, c *config) []string {
	templates, _ := resource.Templates(c.templates)
	var words []string
	for _, t := range templates {
		words = append(words, t.Name+"\t"+escapeLine(firstLine(t.Description)))
	}
	return words
}

func serverWords(_ *factory, c *config) []string {
	var words []string
	for _, s := range c.mcp.all {
		words = append(words, s.Name)
	}
	return words
}

func breakpointWords(*factory, *config) []string {
	var words []string
	for _, b := range breakpoints() {
		words = append(words, b.kind+"\tbefore: "+b.before)
	}
	return words
}
