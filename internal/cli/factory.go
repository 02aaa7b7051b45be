package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/model/transport"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/subsession"
	"github.com/drover-run/drover/pkg/telemetry"
	"github.com/drover-run/drover/pkg/tool"
)

// factory is what a command's constructor takes its dependencies from: cheap
// values, and functions for what costs something or can fail.
type factory struct {
	env     func(name string) string // "" when unset
	strange []string                 // variables that look like drover's and are not
	io      *streams
	now     func() int64
	drivers []store.Driver // the first one is the default
	flags   *globals
	config  func() (*config, error)
	out     func() (*printer, error)
	repo    func(command string) (*store.Repo, error)
	opening func() // called before a command opens anything that it must close
	models  func() effect.Models
	tools   func(cwd string) (*tool.Registry, error)
	spans   func() (telemetry.Context, error)
	// flushSpans delivers the spans that wait when a command ends.
	flushSpans func()
	// endpoints are the providers that are reached over the network, trace what
	// records what is said to them, nil for nothing.
	endpoints func() ([]*endpoint, error)
	trace     func() (*transport.Trace, error)
	traced    *transport.Trace // once it is open
	// purgeIndex stands in for that of the search index, in tests.
	purgeIndex func(ctx context.Context, sessionID string, texts []string) error
	passed     func(subsession.Stage, string) // told what a deletion has done, for tests
}

// globals are the flags of every command.
type globals struct {
	repo       string
	config     string
	output     string
	json       bool
	leaseWait  string
	inPlace    bool
	traceHTTP  string
	quiet      bool
	verbose    bool
	noColor    bool
	noProgress bool
	given      map[string]string // the ones that configure, when given
}

func newFactory(env []string, io *streams) *factory {
	f := &factory{env: lookup(env), strange: unknownVariables(env), io: io, now: store.SystemNow, drivers: drivers(), flags: &globals{}}
	f.opening = func() {}
	f.config = sync.OnceValues(f.loadConfig)
	f.out = sync.OnceValues(f.newPrinter)
	f.repo = func(command string) (*store.Repo, error) { return f.repoFor(command, nil) }
	f.endpoints = sync.OnceValues(f.newEndpoints)
	f.trace = sync.OnceValues(f.openTrace)
	f.models = sync.OnceValue(f.newModels)
	f.tools = f.newTools
	f.spans, f.flushSpans = sync.OnceValues(f.newSpans), func() {}
	return f
}

// lookup reads an environment; of a name given twice the last counts.
func lookup(env []string) func(string) string {
	values := make(map[string]string, len(env))
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	return func(name string) string { return values[name] }
}

func (g *globals) bind(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&g.repo, "repo", "", "the `DIR` that holds the sessions")
	flags.StringVar(&g.config, "config", "", "the configuration `FILE`")
	flags.StringVarP(&g.output, "output", "o", "", "the `FORM` of results: text, json or ndjson")
	flags.BoolVar(&g.json, "json", false, "the same as --output json")
	flags.StringVar(&g.leaseWait, "lease-wait", "", "how long (`DUR`) to wait for a session that another process owns")
	flags.BoolVar(&g.inPlace, "in-place", false, "convert a legacy file given by path when it is written, and keep FILE.v3.bak")
	flags.StringVar(&g.traceHTTP, "trace-http", "", "append what is said to models and back to `FILE`, without keys; nobody else may read it")
	flags.BoolVarP(&g.quiet, "quiet", "q", false, "say nothing on stderr but errors")
	flags.BoolVarP(&g.verbose, "verbose", "v", false, "say more on stderr")
	flags.BoolVar(&g.noColor, "no-color", false, "no colours")
	flags.BoolVar(&g.noProgress, "no-progress", false, "no progress bars")
}

// collect remembers which flags were given. The form of results is known before a
// flag is refused: the refusal has it, too.
func (g *globals) collect(cmd *cobra.Command) error {
	g.given = map[string]string{}
	for name, value := range map[string]string{"repo": g.repo, "output": g.output, "lease-wait": g.leaseWait, "config": g.config, "trace-http": g.traceHTTP} {
		if value != "" && cmd.Flags().Changed(name) {
			g.given[name] = value
		}
	}
	if g.json {
		if g.output != "" && g.output != string(formatJSON) {
			return usagef("--json and --output %s exclude each other", escapeLine(g.output))
		}
		g.given["output"] = string(formatJSON)
	}
	return refuseEmpty(cmd.Flags())
}

func (f *factory) loadConfig() (*config, error) {
	path := configPath(f.flags.config, f.env)
	file, err := readConfigFile(path, f.io.in)
	if err != nil {
		return nil, err
	}
	return resolveConfig(sources{file: file, dir: filepath.Dir(path), env: f.env, flags: f.flags.given})
}

func (f *factory) newPrinter() (*printer, error) {
	c, err := f.config()
	if err != nil {
		return nil, err
	}
	p := f.printerFor(c.output)
	p.chosenBy = f.chosenBy(c.output)
	p.warnOf(f.strange)
	return p, nil
}

// chosenBy is what the user gave for the form of results.
func (f *factory) chosenBy(form format) string {
	_, typed := f.flags.given["output"]
	switch {
	case typed && f.flags.json:
		return "--json"
	case typed:
		return fmt.Sprintf("--output %s", form)
	case f.env("DROVER_OUTPUT") != "":
		return fmt.Sprintf("DROVER_OUTPUT=%s", form)
	}
	return fmt.Sprintf("the configuration's output: %s", form)
}

// plainOut is the printer of a command that needs no configuration: a broken one,
// which the command may be there to explain, does not stop it. A wrong flag does.
func (f *factory) plainOut() (*printer, error) {
	p, err := f.out()
	if err == nil {
		return p, nil
	}
	if typed, given := f.flags.given["output"]; given {
		form, bad := parseFormat(typed)
		if bad != nil {
			return nil, usagef("--output: %q: %v", escapeLine(typed), bad)
		}
		return f.printerFor(form), nil
	}
	return f.printerFor(guessFormat(nil, f.env("DROVER_OUTPUT"))), nil
}

func (f *factory) printerFor(form format) *printer {
	return &printer{
		streams: f.io, format: form, now: f.now,
		quiet: f.flags.quiet, verbose: f.flags.verbose && !f.flags.quiet,
		color:    !f.flags.noColor && f.env("NO_COLOR") == "" && f.env("TERM") != "dumb",
		progress: !f.flags.noProgress && !f.flags.quiet && f.io.errTTY,
	}
}

// fallbackPrinter reports errors that come before, or from, the configuration:
// it looks for the output format in what was typed.
func (f *factory) fallbackPrinter(args []string) *printer {
	if f.flags.given != nil {
		if p, err := f.out(); err == nil {
			return p
		}
	}
	chosen := f.env("DROVER_OUTPUT")
	if c, err := f.loadConfig(); err == nil {
		chosen = string(c.output)
	}
	return f.printerFor(guessFormat(args, chosen))
}

// guessFormat is the form that the arguments ask for, or that was chosen elsewhere.
func guessFormat(args []string, chosen string) format {
	form := formatText
	take := func(s string) {
		if parsed, err := parseFormat(s); err == nil {
			form = parsed
		}
	}
	take(chosen)
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case arg == "--":
			return form
		case arg == "--json":
			form = formatJSON
		case (name == "--output" || name == "-o") && joined:
			take(value)
		case (arg == "--output" || arg == "-o") && i+1 < len(args):
			take(args[i+1])
		case strings.HasPrefix(arg, "-o") && !strings.HasPrefix(arg, "--"):
			take(arg[2:])
		}
	}
	return form
}
