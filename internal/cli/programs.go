package cli

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/drover-run/drover/internal/owner"
	"github.com/drover-run/drover/internal/yamlpos"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/tool"
	"github.com/drover-run/drover/pkg/tool/program"
)

// programConfig is one of programs.* in the configuration file.
type programConfig struct {
	Description string            `yaml:"description"`
	Argv        []string          `yaml:"argv"`
	Schema      *yaml.Node        `yaml:"schema"`
	SchemaFile  string            `yaml:"schema_file"`
	Output      string            `yaml:"output"`
	Replay      string            `yaml:"replay"`
	Timeout     string            `yaml:"timeout"`
	CWD         string            `yaml:"cwd"`
	Env         map[string]string `yaml:"env"`
	PassEnv     []string          `yaml:"pass_env"`
}

// programs are those of the configuration, sorted, and where they stand in it.
type programs struct {
	at  located
	all []program.Config
}

// readPrograms reads the descriptions. Whether they can be run is not looked at.
func readPrograms(from sources) (programs, error) {
	read, err := decodeDocument[programConfig](from, "programs", "a program")
	found := programs{at: from.file["programs"]}
	for _, name := range slices.Sorted(maps.Keys(read)) {
		p := read[name]
		c, bad := p.complete(name, from)
		if bad != nil {
			return found, found.refuse(name, bad)
		}
		if p.Schema != nil {
			c.Schema, err = yamlpos.JSON(p.Schema, "programs."+name+".schema")
			if wrong, ok := errors.AsType[*yamlpos.FieldError](err); ok {
				return found, configf("%s:%d:%d: %s: %s", found.at.name, wrong.Line, wrong.Column, wrong.Path, wrong.Problem)
			}
		}
		found.all = append(found.all, c)
	}
	return found, err
}

func (p programs) refuse(name string, bad *badField) error {
	return p.at.refuse("programs", append([]string{name}, bad.path...), bad.text)
}

// complete checks a description, and makes paths mean the same from anywhere.
func (p programConfig) complete(name string, from sources) (program.Config, *badField) {
	c := program.Config{
		Name: name, Description: p.Description, Argv: p.Argv, PassEnv: p.PassEnv,
		ReplaySafe: p.Replay == "safe", JSON: p.Output == "json",
	}
	isBuiltin := func(t effect.Tool) bool { return t.Spec().Name == name }
	switch {
	case slices.ContainsFunc(tool.Builtins(tool.Options{}), isBuiltin):
		return c, &badField{nil, "the name is that of a built-in tool"}
	case strings.TrimSpace(p.Description) == "":
		return c, badAt("description", "the model must be told what the tool does")
	case len(p.Argv) == 0 || p.Argv[0] == "":
		return c, badAt("argv", "want a program and its arguments, such as [./deploy, --quiet]")
	case strings.Contains(strings.Join(p.Argv, ""), "\x00"):
		return c, badAt("argv", "holds a NUL character")
	case p.Schema != nil && p.SchemaFile != "":
		return c, badAt("schema_file", "schema_file and schema exclude each other")
	case !slices.Contains([]string{"", "never", "safe"}, p.Replay):
		return c, badAt("replay", "%q: want never or safe", p.Replay)
	case !slices.Contains([]string{"", "text", "json"}, p.Output):
		return c, badAt("output", "%q: want text or json", p.Output)
	}
	if p.Timeout != "" {
		d, err := parseDuration(p.Timeout)
		if err != nil || d == 0 {
			return c, badAt("timeout", "%q: want a duration above zero, such as 90s", p.Timeout)
		}
		c.Timeout = d
	}
	var bad *badField
	if c.Env, bad = childEnv(p.Env, p.PassEnv); bad != nil {
		return c, bad
	}
	return c, p.completePaths(&c, from)
}

// childEnv reads the variables that a configured program gets, as NAME=value, and
// checks those that are passed on.
func childEnv(set map[string]string, pass []string) (env []string, bad *badField) {
	valid := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	for _, name := range slices.Sorted(maps.Keys(set)) {
		switch {
		case !valid.MatchString(name):
			return nil, &badField{[]string{"env", name}, "is no name of a variable"}
		case strings.Contains(set[name], "\x00"):
			return nil, &badField{[]string{"env", name}, "holds a NUL character"}
		}
		env = append(env, name+"="+set[name])
	}
	for _, name := range pass {
		if !valid.MatchString(name) {
			return nil, badAt("pass_env", "%q is no name of a variable", name)
		}
	}
	return env, nil
}

// completePaths has relative paths start where the file lies, and never in the
// working directory. A program without a slash is looked up in PATH.
func (p programConfig) completePaths(c *program.Config, from sources) *badField {
	paths := []struct {
		field, given string
		set          func(path string)
	}{
		{"schema_file", p.SchemaFile, func(path string) { c.SchemaFile = path }},
		{"cwd", p.CWD, func(path string) { c.Dir = path }},
		{"argv", p.Argv[0], func(path string) { c.Argv = append([]string{path}, p.Argv[1:]...) }},
	}
	for _, path := range paths {
		if path.given == "" || path.field == "argv" && !strings.Contains(path.given, "/") {
			continue
		}
		located, err := locateFolder(path.given, from.dir, from.env)
		if err != nil {
			return badAt(path.field, "%v", err)
		}
		path.set(located)
	}
	return nil
}

// programTool is a configured program that knows where it is described.
type programTool struct {
	*program.Tool
	refuse func(*program.Problem) error
}

// check says why the program cannot be a tool.
func (p programTool) check() error {
	problem, ok := errors.AsType[*program.Problem](p.Check())
	if !ok {
		return nil
	}
	return p.refuse(problem)
}

// programTools are the configured programs as tools of a session that works in cwd.
func (f *factory) programTools(c *config, cwd string) []effect.Tool {
	options := program.Options{
		CWD: cwd, StripEnv: c.secretEnv, Sockets: func() (string, error) { return owner.Folder(f.env) },
	}
	var tools []effect.Tool
	for _, p := range c.programs.all {
		tools = append(tools, programTool{program.New(p, options), func(problem *program.Problem) error {
			return c.programs.refuse(p.Name, badAt(problem.Field, "%v", problem.Err))
		}})
	}
	return tools
}

// checkTools refuses tools that would fail whenever they are called; names that no
// tool has are for others to refuse.
func checkTools(tools *tool.Registry, names []string) error {
	for _, name := range names {
		if t, ok := tools.Lookup(name); ok {
			if p, ok := t.(interface{ check() error }); ok {
				if err := p.check(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkConfigured is for commands that may call any tool.
func (b *base) checkConfigured() error {
	tools, err := b.tools("")
	if err != nil {
		return err
	}
	if err := checkTools(tools, tools.Names()); err != nil {
		return err
	}
	return b.config.mcp.check(func(mcpServer) bool { return true })
}

// programs says which of the configured programs can be called.
func (o *doctorOptions) programs(c *config) []finding {
	var all []finding
	for i, t := range o.f.programTools(c, "") {
		if err := t.(programTool).check(); err != nil {
			all = append(all, bad("program", err))
			continue
		}
		p := c.programs.all[i]
		replay := "an interrupted call is not repeated"
		if p.ReplaySafe {
			replay = "an interrupted call is repeated"
		}
		all = append(all, good("program", "%s runs %s; %s", p.Name, p.Argv[0], replay))
	}
	return all
}
