package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

func newRootCmd(f *factory) *cobra.Command {
	root := &cobra.Command{
		Use:   "drover",
		Short: "Durable agent sessions",
		Long: `drover keeps conversations with language models in durable sessions and drives
them: a run that is killed in the middle of an answer stands where it stopped,
and is driven on from there.

"drover help TOPIC" explains more than the commands:
` + topicList(),
		SilenceUsage:  true,
		SilenceErrors: true,

		SuggestionsMinimumDistance: 2,

		Version: readBuild().version,
		Args:    unknownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("drover {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%v", err).withHint("see `%s --help`", cmd.CommandPath())
	})
	root.SetOut(f.io.out)
	root.SetErr(f.io.err)
	root.CompletionOptions.DisableDefaultCmd = true
	f.flags.bind(root)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return f.flags.collect(cmd) }

	root.AddCommand(
		newCompactFileCmd(f, nil), newCreateCmd(f, nil), newDriveCmd(f, nil), newForkCmd(f, nil), newImportCmd(f, nil), newInspectCmd(f, nil), newListCmd(f, nil),
		newNameCmd(f, nil), newPromptCmd(f, nil), newShowCmd(f, nil), newVerifyCmd(f, nil),
		newCompletionCmd(f, nil), newVersionCmd(f, nil),

		newAbortCmd(f, nil), newAppendCmd(f, nil), newCancelQueuedCmd(f, nil), newCompactCmd(f, nil),
		newLabelCmd(f, nil), newLaneCmd(f), newLogCmd(f, nil), newNavigateCmd(f, nil), newResumeCmd(f, nil),
		newQueueCmd(f, steerQueue(), nil), newQueueCmd(f, followUpQueue(), nil), newQueueCmd(f, nextRunQueue(), nil),
		newUsageCmd(f, nil), newValueCmd(f), newWaitCmd(f, nil), newWatchCmd(f, nil),
	)
	root.SetHelpCommand(newHelpCmd(f, nil))
	return root
}

// unknownCommand refuses what is no command, with the names that come near.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	f := usagef("unknown command %q", escapeLine(args[0]))
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return f.withHint("did you mean %s?", strings.Join(near, " or "))
	}
	return f.withHint("see `drover --help`")
}
