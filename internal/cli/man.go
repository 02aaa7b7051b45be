package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
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
		Long:   "Write a manual page for every command and every topic into a folder, which is made." + exitHelp(exitOK, exitUsage, exitIO),
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
	for _, t := range topics() {
		page, err := topicPage(t)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(o.dir, topicName(t)+".7"), []byte(page), 0o644); err != nil {
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

func topicName(t topic) string { return "drover-" + t.name }

// topicPage writes the page of a topic, which says what `drover help` says.
func topicPage(t topic) (string, error) {
	var text bytes.Buffer
	out := &printer{streams: newStreams(bytes.NewReader(nil), &text, io.Discard), format: formatText}
	if err := t.print(out); err != nil {
		return "", err
	}
	p := &roff{}
	p.macro(`TH "%s" "7" "" "drover" "drover manual"`, strings.ToUpper(topicName(t)))
	p.macro("SH NAME")
	p.text(topicName(t) + ` \- ` + roffEscape(t.short))
	p.macro("SH DESCRIPTION")
	p.verbatim(text.String())
	p.references([]string{"drover (1)"})
	return p.String(), nil
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

// see names the pages above and below, and at the top those of the topics.
func (p *roff) see(cmd *cobra.Command) {
	var pages []string
	if cmd.HasParent() {
		pages = append(pages, manName(cmd.Parent())+" (1)")
	}
	for _, c := range allCommands(cmd)[1:] {
		if c.Parent() == cmd {
			pages = append(pages, manName(c)+" (1)")
		}
	}
	if !cmd.HasParent() {
		for _, t := range topics() {
			pages = append(pages, topicName(t)+" (7)")
		}
	}
	p.references(pages)
}

// references is the list of other pages, each with its section in brackets.
func (p *roff) references(pages []string) {
	if len(pages) == 0 {
		return
	}
	p.macro("SH SEE ALSO")
	for i, page := range pages {
		end := ","
		if i == len(pages)-1 {
			end = ""
		}
		p.macro("BR %s%s", roffEscape(page), end)
	}
}

func roffEscape(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
