package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/hook"
	"github.com/drover-run/drover/pkg/tool"
)

// hookConfig is one of hooks.* in the configuration file.
type hookConfig struct {
	On       string            `yaml:"on"`
	Argv     []string          `yaml:"argv"`
	Required bool              `yaml:"required"`
	Timeout  string            `yaml:"timeout"`
	Tools    []string          `yaml:"tools"`
	CWD      string            `yaml:"cwd"`
	Env      map[string]string `yaml:"env"`
	PassEnv  []string          `yaml:"pass_env"`
}

// hookTimeout is how long a hook may take that does not say so.
const hookTimeout = 30 * time.Second

// hookPrograms are those of the configuration, in the order of the file, and where
// they stand in it.
type hookPrograms struct {
	at  located
	all []hook.Program
}

// readHooks reads hooks.* and refuses what no program could be run with. Whether
// the programs are there is not looked at.
func readHooks(from sources) (hookPrograms, error) {
	found := hookPrograms{at: from.file["hooks"]}
	read, err := decodeDocument[hookConfig](from, "hooks", "a hook")
	if read == nil || err != nil {
		return found, err
	}
	for _, name := range memberNames(found.at.node) {
		p, bad := read[name].program(name, from)
		if bad != nil {
			return found, found.refuse(name, bad)
		}
		found.all = append(found.all, p)
	}
	return found, nil
}

func (h hookPrograms) refuse(name string, bad *badField) error {
	return h.at.refuse("hooks", append([]string{name}, bad.path...), bad.text)
}

// program checks a description, and makes paths mean the same from anywhere.
func (h hookConfig) program(name string, from sources) (hook.Program, *badField) {
	p := hook.Program{
		Name: name, Point: hook.Point(h.On), Argv: h.Argv, Required: h.Required, Timeout: hookTimeout, Tools: h.Tools, Pass: h.PassEnv,
	}
	points := strings.Join(hook.Points(), ", ")
	switch {
	case h.On == "":
		return p, badAt("on", "want one of %s", points)
	case !slices.Contains(hook.Points(), h.On):
		return p, badAt("on", "there is no hook %q: want one of %s", h.On, points)
	case len(h.Argv) == 0 || h.Argv[0] == "":
		return p, badAt("argv", "want a program and its arguments, such as [./guard.sh]")
	case strings.Contains(strings.Join(h.Argv, ""), "\x00"):
		return p, badAt("argv", "holds a NUL character")
	case h.Tools != nil && !p.Point.OfTools():
		return p, badAt("tools", "goes with before_tool and after_tool only")
	case h.Tools != nil && len(h.Tools) == 0:
		return p, badAt("tools", "names none; leave it out for all of them")
	}
	if h.Timeout != "" {
		d, err := parseDuration(h.Timeout)
		if err != nil || d == 0 {
			return p, badAt("timeout", "%q: want a duration above zero, such as 90s", h.Timeout)
		}
		p.Timeout = d
	}
	var bad *badField
	if p.Env, bad = childEnv(h.Env, h.PassEnv); bad != nil {
		return p, bad
	}
	return p, h.paths(&p, from)
}

// paths has relative ones start where the file lies, and never in the working
// directory. A program without a slash is looked up in PATH.
func (h hookConfig) paths(p *hook.Program, from sources) *badField {
	if h.CWD != "" {
		dir, err := locateFolder(h.CWD, from.dir, from.env)
		if err != nil {
			return badAt("cwd", "%v", err)
		}
		p.Dir = dir
	}
	if strings.Contains(h.Argv[0], "/") {
		path, err := locateFolder(h.Argv[0], from.dir, from.env)
		if err != nil {
			return badAt("argv", "%v", err)
		}
		p.Argv = append([]string{path}, h.Argv[1:]...)
	}
	return nil
}

// check refuses programs that cannot be run, for commands that run operations.
func (h hookPrograms) check(tools func(cwd string) (*tool.Registry, error)) error {
	if len(h.all) == 0 {
		return nil
	}
	known, err := tools("")
	if err != nil {
		return err
	}
	for _, p := range h.all {
		if err := h.usable(p, known); err != nil {
			return err
		}
	}
	return nil
}

// usable refuses a program that cannot be run, or would never be asked: a guard with
// a mistyped tool guards nothing. Which tools a server has is known later.
func (h hookPrograms) usable(p hook.Program, known *tool.Registry) error {
	for _, name := range p.Tools {
		if _, ok := known.Lookup(name); !ok && !strings.Contains(name, "__") {
			return h.refuse(p.Name, badAt("tools", "there is no tool %q; the nearest is %s", name, nearest(name, known.Names())))
		}
	}
	if err := tool.CheckProgram(p.Argv[0], p.Env); err != nil {
		return h.refuse(p.Name, badAt("argv", "%v", err))
	}
	if p.Dir != "" {
		if why := unusableFolder(p.Dir); why != "" {
			return h.refuse(p.Name, badAt("cwd", "%s", why))
		}
	}
	return nil
}

// hooks makes the handlers of a session that works in cwd.
func (b *base) hooks(cwd, sessionID string) engine.Hooks {
	if len(b.config.hooks.all) == 0 {
		return engine.Hooks{}
	}
	return hook.Hooks(b.config.hooks.all, hook.Options{
		SessionID: sessionID, CWD: cwd, StripEnv: b.config.secretEnv, Now: b.now,
	})
}

// hooks says which programs run when, and whether they can.
func (o *doctorOptions) hooks(c *config) []finding {
	known, err := o.f.tools("")
	if err != nil {
		return nil // said of the tools
	}
	var all []finding
	for _, p := range c.hooks.all {
		if err := c.hooks.usable(p, known); err != nil {
			all = append(all, bad("hook", err))
			continue
		}
		with := ""
		if p.Tools != nil {
			with = fmt.Sprintf(" of %s", strings.Join(p.Tools, ", "))
		}
		if p.Required {
			with += ", required"
		}
		all = append(all, good("hook", "%s runs %s %s%s", p.Name, p.Argv[0], p.Point, with))
	}
	return all
}

// toldHook is a hook that failed, for people.
func toldHook(e engine.Event) string {
	return fmt.Sprintf("the %s hook failed: %s", e.Hook, escapeLine(e.ErrorText))
}

// hookFailed is a pass that a hook rejected, of a session where it is known.
func hookFailed(session string, e *engine.HookFailed) func(*object) {
	return func(o *object) {
		o.optStr("session", session)
		o.str("lane", e.Lane)
		o.str("operationId", e.OperationID)
		o.str("hook", e.Hook)
	}
}
