package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/internal/visible"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

type createOptions struct {
	base
	session newSession
	lane    laneFlags
}

// newSession are the flags that describe a session to be made.
type newSession struct {
	name    string
	backend string
	cwd     string
	id      string
	changed func(flag string) bool
}

func (n *newSession) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&n.name, "name", "", "the session's name, one line of `TEXT`")
	flags.StringVar(&n.backend, "backend", "", "how it is stored, `BACKEND` sqlite or jsonl")
	flags.StringVar(&n.cwd, "cwd", "", "the `DIR` it works in (default: the current one)")
	flags.StringVar(&n.id, "id", "", "its `ID` (default: a new UUIDv7)")
	mayBeEmpty(flags, "name")
	n.changed = flags.Changed
}

// given reports the first of these flags that was used.
func (n *newSession) given() string {
	for _, name := range []string{"name", "backend", "id", "cwd"} {
		if n.changed(name) {
			return name
		}
	}
	return ""
}

// options checks the flags before anything is written.
func (n *newSession) options(c *config) (store.CreateOptions, error) {
	o := store.CreateOptions{ID: n.id, Name: n.name, Backend: n.backend, CWD: n.cwd}
	if !n.changed("backend") {
		o.Backend = c.backend
	}
	if o.Backend != "sqlite" && o.Backend != "jsonl" {
		return o, usagef("--backend %q: want sqlite or jsonl", escapeLine(o.Backend))
	}
	if err := checkOneLine("--name", n.name); err != nil {
		return o, err
	}
	if n.changed("id") {
		if err := store.CheckID(n.id); err != nil {
			return o, err
		}
	}
	if o.CWD == "" {
		// A folder that is gone is no reason to refuse a session.
		o.CWD, _ = os.Getwd()
		return o, nil
	}
	cwd, err := filepath.Abs(o.CWD)
	if err != nil {
		return o, fmt.Errorf("locate --cwd: %w", err)
	}
	o.CWD = cwd
	return o, nil
}

// laneFlags are the flags that configure a lane.
type laneFlags struct {
	model    string
	thinking string
	tools    string
	changed  func(string) bool
}

func (l *laneFlags) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&l.model, "model", "", "the model that answers, as `PROVIDER/ID`")
	flags.StringVar(&l.thinking, "thinking", "", "how much it reasons: a `LEVEL` from off to max")
	flags.StringVar(&l.tools, "tools", "", "the active tools, as `NAMES` joined by commas")
	mayBeEmpty(flags, "tools")
	l.changed = flags.Changed
}

// bindLasting is for a command that does something else, too.
func (l *laneFlags) bindLasting(cmd *cobra.Command) {
	l.bind(cmd)
	for _, name := range []string{"model", "thinking", "tools"} {
		cmd.Flag(name).Usage += ", from now on: the lane keeps it"
	}
}

// configure turns the given flags into setters.
func (l *laneFlags) configure() (engine.Configure, error) {
	var c engine.Configure
	if l.changed("model") {
		ref, err := parseModel("--model", l.model)
		if err != nil {
			return c, err
		}
		if ref, err = absoluteModel(ref); err != nil {
			return c, usagef("--model: %v", err)
		}
		c.Model = &ref
	}
	if l.changed("thinking") {
		level, err := message.ParseThinkingLevel(l.thinking)
		if err != nil {
			return c, usagef("--thinking: %v", err)
		}
		c.ThinkingLevel = &level
	}
	if l.changed("tools") {
		tools := splitList(l.tools)
		c.ActiveToolNames = &tools
	}
	return c, nil
}

// configured is a lane configuration after setters.
func configured(cfg store.LaneConfiguration, c engine.Configure) store.LaneConfiguration {
	if c.Model != nil {
		cfg.Model = *c.Model
	}
	if c.ThinkingLevel != nil {
		cfg.ThinkingLevel = *c.ThinkingLevel
	}
	if c.ActiveToolNames != nil {
		cfg.ActiveToolNames = *c.ActiveToolNames
	}
	return cfg
}

// checkOneLine refuses names that would not stay on one line.
func checkOneLine(what, s string) error {
	for _, r := range s {
		if visible.Unsafe(r) {
			return usagef("%s must be one line without control characters, it holds %U", what, r)
		}
	}
	if len(s) > 0 && len(plainText(s)) != len(s) {
		return usagef("%s is not UTF-8", what)
	}
	return nil
}

func newCreateCmd(f *factory, runF func(context.Context, *createOptions) error) *cobra.Command {
	if runF == nil {
		runF = runCreate
	}
	o := &createOptions{}
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a new session and print its id",
		Long: `Make a new session and print its id.

Without --model, --thinking or --tools the session stays unconfigured until its
first prompt, which takes them from the configuration.` +
			exitHelp(exitOK, exitUsage, exitIO, exitRefused),
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.base, err = f.base("create"); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	o.session.bind(cmd)
	o.lane.bind(cmd)
	return cmd
}

func runCreate(ctx context.Context, o *createOptions) error {
	options, err := o.session.options(o.config)
	if err != nil {
		return err
	}
	setters, err := o.lane.configure()
	if err != nil {
		return err
	}
	if setters != (engine.Configure{}) {
		seed, err := o.config.seed()
		if err != nil {
			return err
		}
		cfg := configured(seed, setters)
		if err := o.catalog().check(store.MainLane, cfg); err != nil {
			return err
		}
		options.Config = &cfg
	}
	s, ref, err := o.repo.Create(ctx, options)
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	return o.out.result(nil, func(d *object) {
		d.str("id", ref.ID)
		d.str("path", ref.Path)
		d.str("backend", ref.Backend)
	}, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, ref.ID)
		return err
	})
}
