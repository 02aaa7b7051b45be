package cli

import (
	"github.com/spf13/cobra"
)

// completeSession completes the first argument with the ids of the repository's
// sessions, whose headers alone it reads.
func completeSession(f *factory) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 || f.flags.collect(cmd) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		repo, err := f.repo("complete")
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		listed, err := repo.List(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		ids := []string{"@last"}
		for _, l := range listed {
			if l.Err == nil {
				ids = append(ids, l.Ref.ID)
			}
		}
		// A path names a session too, so files stay on offer.
		return ids, cobra.ShellCompDirectiveDefault
	}
}
