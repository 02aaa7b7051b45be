package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

type helpOptions struct {
	out  *printer
	root *cobra.Command
	args []string
}

func newHelpCmd(f *factory, runF func(context.Context, *helpOptions) error) *cobra.Command {
	if runF == nil {
		runF = runHelp
	}
	return &cobra.Command{
		Use:   "help [COMMAND|TOPIC]",
		Short: "Explain a command or a topic",
		Long:  "Explain a command, or a topic:\n\n" + topicList() + exitHelp(exitOK, exitUsage),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return helpTopics(cmd.Root(), args), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			out, err := f.plainOut()
			if err != nil {
				return err
			}
			return runF(cmd.Context(), &helpOptions{out: out, root: cmd.Root(), args: args})
		},
	}
}

// topic is something that `drover help` explains beside the commands.
type topic struct {
	name, short string
	print       func(*printer) error
}

func topics() []topic {
	return []topic{
		{"breakpoints", "where a manual drive stops", helpBreakpoints},
		{"configuration", "files, keys, variables, precedence", helpConfig},
		{"environment", "the variables that drover reads", helpEnvironment},
		{"exit-codes", "what the process ends with", helpExitCodes},
		{"formats", "how results, errors and session files look", helpFormats},
		{"hooks", "programs that watch over runs: events, answers, failures", helpHooks},
		{"mcp", "MCP servers: how they are reached, started and trusted", helpMCP},
		{"programs", "programs as tools: arguments, results, progress, memos", helpPrograms},
		{"providers", "where models are reached: keys, endpoints, limits, prices", helpProviders},
		{"scripts", "the files that scripted models answer from", helpScripts},
		{"sessions", "how a session is named", helpSessions},
		{"skills", "instructions that models and prompts take from folders", helpSkills},
		{"system-prompt", "what every request begins with", helpSystemPrompt},
		{"telemetry", "spans of what operations do, in a file or over OTLP", helpTelemetry},
		{"templates", "prompts with places for arguments", helpTemplates},
	}
}

// shortConfig is the name of the configuration's topic before there were others like it.
const shortConfig = "config"

func topicList() string {
	var b strings.Builder
	for _, t := range topics() {
		fmt.Fprintf(&b, "  %-13s  %s\n", t.name, t.short)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func helpTopics(root *cobra.Command, args []string) []string {
	if len(args) > 0 {
		return nil
	}
	var names []string
	for _, t := range topics() {
		names = append(names, t.name)
	}
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

func runHelp(_ context.Context, o *helpOptions) error {
	if len(o.args) == 1 {
		name := o.args[0]
		if name == shortConfig {
			name = "configuration"
		}
		for _, t := range topics() {
			if t.name == name {
				return t.print(o.out)
			}
		}
	}
	cmd, rest, err := o.root.Find(o.args)
	if err != nil || len(rest) > 0 {
		return o.unknown(strings.Join(o.args, " "))
	}
	return cmd.Help()
}

// unknown refuses what there is no help on. Topics come before commands: those have
// a --help that tells of their own name, too.
func (o *helpOptions) unknown(asked string) error {
	f := usagef("no help on %q", escapeLine(asked))
	all := topics()
	names := make([]string, len(all), len(all)+1)
	for i, t := range all {
		names[i] = t.name
	}
	near := meant(asked, append(names, shortConfig))
	switch near {
	case "":
		near = meant(asked, helpTopics(o.root, nil))
	case shortConfig:
		near = "configuration"
	}
	if near == "" {
		return f.withHint("`drover help` lists the commands and the topics")
	}
	return f.withHint("the nearest is `drover help %s`", near)
}

func helpExitCodes(out *printer) error {
	rows := exitTable()
	return out.result(nil, func(o *object) {
		o.array("exitCodes", len(rows), func(i int, o *object) {
			o.int("code", int64(rows[i].code))
			o.str("name", rows[i].name)
			o.str("meaning", rows[i].meaning)
		})
	}, func(w io.Writer) error {
		for _, row := range rows {
			if _, err := fmt.Fprintf(w, "%3d  %-9s  %s\n", row.code, row.name, row.meaning); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintln(w, "\nAn unknown code is a failure.")
		return err
	})
}
