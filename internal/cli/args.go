package cli

import (
	"github.com/spf13/cobra"
)

// noArgs refuses any argument.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no argument, got %q", cmd.CommandPath(), escapeLine(args[0]))
	}
	return nil
}

// maxArgs refuses more than n arguments.
func maxArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usagef("%s takes at most %d argument(s), got %d", cmd.CommandPath(), n, len(args)).
				withHint("see `%s --help`", cmd.CommandPath())
		}
		return nil
	}
}

// sessionArg takes the session from the first argument, or from
// $DROVER_SESSION when there is none.
func sessionArg(f *factory, args []string) (session string, rest []string, err error) {
	if len(args) > 0 {
		if args[0] == "" {
			return "", nil, usagef("the session argument is empty")
		}
		return args[0], args[1:], nil
	}
	if session = f.env("DROVER_SESSION"); session != "" {
		return session, nil, nil
	}
	return "", nil, usagef("which session? Name one, or set DROVER_SESSION").withHint("`drover list` shows them")
}
