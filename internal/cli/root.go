package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commandRow is a command right below the root: the name that its constructor gives
// it, and the constructor.
type commandRow struct {
	name string
	make func(*factory) *cobra.Command
}

func commandRows() []commandRow {
	return []commandRow{
		{"abort", running(newAbortCmd)},
		{"append", running(newAppendCmd)},
		{"cancel-queued", running(newCancelQueuedCmd)},
		{"compact", running(newCompactCmd)},
		{"compact-file", running(newCompactFileCmd)},
		{"completion", running(newCompletionCmd)},
		{"create", running(newCreateCmd)},
		{"delete", running(newDeleteCmd)},
		{"doctor", running(newDoctorCmd)},
		{"drive", running(newDriveCmd)},
		{"export", running(newExportCmd)},
		{"follow-up", queueing(followUpQueue)},
		{"fork", running(newForkCmd)},
		{"import-v3", running(newImportCmd)},
		{"inspect", running(newInspectCmd)},
		{"label", running(newLabelCmd)},
		{"lane", newLaneCmd},
		{"list", running(newListCmd)},
		{"log", running(newLogCmd)},
		{"migrate", running(newMigrateCmd)},
		{"mcp", newMCPCmd},
		{"model", newModelCmd},
		{"name", running(newNameCmd)},
		{"navigate", running(newNavigateCmd)},
		{"next-run", queueing(nextRunQueue)},
		{"prompt", running(newPromptCmd)},
		{"repair", running(newRepairCmd)},
		{"resume", running(newResumeCmd)},
		{"rewrite", running(newRewriteCmd)},
		{"search", running(newSearchCmd)},
		{"show", running(newShowCmd)},
		{"steer", queueing(steerQueue)},
		{"tool", newToolCmd},
		{"tombstones", newTombstonesCmd},
		{"usage", running(newUsageCmd)},
		{"value", newValueCmd},
		{"verify", running(newVerifyCmd)},
		{"version", running(newVersionCmd)},
		{"wait", running(newWaitCmd)},
		{"watch", running(newWatchCmd)},
	}
}

// running makes a command with the run function that it has by itself.
func running[O any](construct func(*factory, func(context.Context, *O) error) *cobra.Command) func(*factory) *cobra.Command {
	return func(f *factory) *cobra.Command { return construct(f, nil) }
}

func queueing(q func() queue) func(*factory) *cobra.Command {
	return func(f *factory) *cobra.Command { return newQueueCmd(f, q(), nil) }
}

// named finds the command that the first argument names, unless that is the one
// that tells about all the others.
func named(args []string) (commandRow, bool) {
	if len(args) == 0 || args[0] == "completion" {
		return commandRow{}, false
	}
	all := commandRows()
	i := slices.IndexFunc(all, func(c commandRow) bool { return c.name == args[0] })
	if i < 0 {
		return commandRow{}, false
	}
	return all[i], true
}

// newRootCmd makes the command that runs args. It has only the subcommand that the
// first argument names, and all of them when that is none: thirty commands with
// their flags take longer to make than `version` takes to run.
func newRootCmd(f *factory, args []string) *cobra.Command {
	root := &cobra.Command{
		Use:           "drover",
		Short:         "Durable agent sessions",
		SilenceUsage:  true,
		SilenceErrors: true,

		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("drover {{.Version}}\n")
	root.SetFlagErrorFunc(wrongFlag)
	root.SetOut(f.io.out)
	root.SetErr(f.io.err)
	root.CompletionOptions.DisableDefaultCmd = true
	f.flags.bind(root)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return f.flags.collect(cmd) }

	root.SetArgs(args)
	if c, ok := named(args); ok {
		root.AddCommand(c.make(f))
		return root
	}
	root.Long = `drover keeps conversations with language models in durable sessions and drives
them: a run that is killed in the middle of an answer stands where it stopped,
and is driven on from there.

"drover help TOPIC" explains more than the commands:
` + topicList()
	root.Version = readBuild().version
	for _, c := range commandRows() {
		root.AddCommand(c.make(f))
	}
	root.AddCommand(newManCmd(f, nil))
	root.SetHelpCommand(newHelpCmd(f, nil))
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		completeFlags(f, root)
	}
	return root
}

// unknownCommand refuses what is no command, with the names that come near.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	f := usagef("unknown command %q", escapeLine(args[0]))
	// Every command is near to no name at all.
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 && args[0] != "" {
		return f.withHint("did you mean %s?", strings.Join(near, " or "))
	}
	return f.withHint("see `%s --help`", cmd.CommandPath())
}

// wrongFlag refuses a flag that is none, or has a value that it cannot have. Behind the
// name of a command that is none, the flags are those of the command that was meant.
func wrongFlag(cmd *cobra.Command, err error) error {
	if cmd.HasSubCommands() {
		if wrong := cmd.ValidateArgs(cmd.Flags().Args()); wrong != nil {
			return wrong
		}
	}
	f := usagef("%v", err)
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && len(unknown.GetSpecifiedName()) > 1 {
		if near := meant(unknown.GetSpecifiedName(), flagNames(cmd)); near != "" {
			return f.withHint("did you mean --%s? See `%s --help`", near, cmd.CommandPath())
		}
	}
	return f.withHint("see `%s --help`", cmd.CommandPath())
}

// flagNames are the long names of the flags that the help of a command shows.
func flagNames(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}
