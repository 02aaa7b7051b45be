package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type manOptions struct {
	root *cobra.Command
	dir  string
}

// newManCmd makes the hidden command behind `make man`.
func newManCmd(_ *factory, runF func(context.Context, *manOptions) error) *cobra.Command {
	if runF == nil {
		runF = runMan
	}
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the manual pages into a folder",
		Long:   "Write a manual page for every command into a folder, which is made." + exitHelp(exitOK, exitUsage, exitIO),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("name the folder, and nothing else")
			}
			return runF(cmd.Context(), &manOptions{root: cmd.Root(), dir: args[0]})
		},
	}
}

func runMan(_ context.Context, o *manOptions) error {
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return err
	}
	for _, cmd := range allCommands(o.root) {
		path := filepath.Join(o.dir, manName(cmd)+".1")
		if err := os.WriteFile(path, []byte(manPage(cmd)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// allCommands are the command and those below it that people see.
func allCommands(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			all = append(all, allCommands(c)...)
		}
	}
	return all
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage writes the page of a command in roff. The texts are those of --help,
// whose lines are kept as they are.
func manPage(cmd *cobra.Command) string {
	p := &roff{}
	p.macro(`TH "%s" "1" "" "drover" "drover manual"`, strings.ToUpper(manName(cmd)))
	p.macro("SH NAME")
	p.text(manName(cmd) + ` \- ` + roffEscape(cmd.Short))
	p.macro("SH SYNOPSIS")
	p.macro("B %s", roffEscape(cmd.UseLine()))
	p.macro("SH DESCRIPTION")
	about, status, _ := strings.Cut(cmd.Long, "\n\nEXIT STATUS\n")
	p.verbatim(about)
	p.flags("OPTIONS", cmd.NonInheritedFlags())
	p.flags("GLOBAL OPTIONS", cmd.InheritedFlags())
	if status != "" {
		p.macro("SH EXIT STATUS")
		p.verbatim(status)
	}
	p.see(cmd)
	return p.String()
}

// roff is a manual page in the making.
type roff struct{ strings.Builder }

func (p *roff) macro(format string, args ...any) { fmt.Fprintf(p, "."+format+"\n", args...) }

func (p *roff) text(line string) { p.WriteString(line + "\n") }

// verbatim keeps lines as they are; a line that begins like a macro is guarded.
func (p *roff) verbatim(text string) {
	p.macro("nf")
	for line := range strings.Lines(text) {
		p.text(roffEscape(strings.TrimSuffix(line, "\n")))
	}
	p.macro("fi")
}

func (p *roff) flags(title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	p.macro("SH %s", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if value != "" {
			name += " " + value
		}
		p.macro("TP")
		p.macro("B %s", roffEscape(name))
		p.text(roffEscape(usage))
	})
}

// see names the pages above and below.
func (p *roff) see(cmd *cobra.Command) {
	var names []string
	if cmd.HasParent() {
		names = append(names, manName(cmd.Parent()))
	}
	for _, c := range allCommands(cmd)[1:] {
		if c.Parent() == cmd {
			names = append(names, manName(c))
		}
	}
	if len(names) == 0 {
		return
	}
	p.macro("SH SEE ALSO")
	for i, name := range names {
		end := ","
		if i == len(names)-1 {
			end = ""
		}
		p.macro("BR %s (1)%s", roffEscape(name), end)
	}
}

func roffEscape(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
