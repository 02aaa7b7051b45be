package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
)

type completionOptions struct {
	out   *sink
	root  *cobra.Command
	shell string
}

func shells() []string { return []string{"bash", "zsh", "fish", "powershell"} }

func newCompletionCmd(f *factory, runF func(context.Context, *completionOptions) error) *cobra.Command {
	if runF == nil {
		runF = runCompletion
	}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a shell completion script",
		Long: `Print the script that completes drover's commands, flags and sessions in a shell.

  bash        source <(drover completion bash)    (needs the package bash-completion)
  zsh         drover completion zsh > "${fpath[1]}/_drover"
  fish        drover completion fish | source
  powershell  drover completion powershell | Out-String | Invoke-Expression` + exitHelp(exitOK, exitUsage),
		ValidArgs: shells(),
		Args:      maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("for which shell? Name one of %s", strings.Join(shells(), ", "))
			}
			return runF(cmd.Context(), &completionOptions{out: f.io.out, root: cmd.Root(), shell: args[0]})
		},
	}
}

func runCompletion(_ context.Context, o *completionOptions) error {
	switch o.shell {
	case "bash":
		return o.root.GenBashCompletionV2(o.out, true)
	case "zsh":
		return o.root.GenZshCompletion(o.out)
	case "fish":
		return o.root.GenFishCompletion(o.out, true)
	case "powershell":
		return o.root.GenPowerShellCompletionWithDesc(o.out)
	}
	return usagef("no completion for %q; there is one for %s", escapeLine(o.shell), strings.Join(shells(), ", "))
}
