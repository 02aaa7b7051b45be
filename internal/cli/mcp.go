package cli

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/drover-run/drover/pkg/model/transport"
	"github.com/drover-run/drover/pkg/tool"
	"github.com/drover-run/drover/pkg/tool/mcp"
)

// mcpConfig is one of mcp.* in the configuration file.
type mcpConfig struct {
	Argv             []string          `yaml:"argv"`
	CWD              string            `yaml:"cwd"`
	Env              map[string]string `yaml:"env"`
	PassEnv          []string          `yaml:"pass_env"`
	URL              string            `yaml:"url"`
	Headers          map[string]string `yaml:"headers"`
	CAFile           string            `yaml:"ca_file"`
	StartTimeout     string            `yaml:"start_timeout"`
	Timeout          string            `yaml:"timeout"`
	Replay           map[string]string `yaml:"replay"`
	TrustAnnotations bool              `yaml:"trust_annotations"`
	Rename           map[string]string `yaml:"rename"`
}

// mcpServer is a configured server; what its environment and client are made of
// waits until it is needed.
type mcpServer struct {
	mcp.Config
	env     []string // beside the inherited ones
	passEnv []string
	headers map[string]string
	caFile  string
}

// mcpServers are those of the configuration, sorted, and where they stand in it.
type mcpServers struct {
	at  located
	all []mcpServer
}

// readServers reads the descriptions. No server is looked at.
func readServers(from sources) (mcpServers, error) {
	read, err := decodeDocument[mcpConfig](from, "mcp", "a server")
	found := mcpServers{at: from.file["mcp"]}
	for _, name := range slices.Sorted(maps.Keys(read)) {
		s, bad := read[name].complete(name, from)
		if bad != nil {
			return found, found.refuse(name, bad)
		}
		found.all = append(found.all, s)
	}
	return found, err
}

func (m mcpServers) refuse(name string, bad *badField) error {
	return m.at.refuse("mcp", append([]string{name}, bad.path...), bad.text)
}

// checkNames refuses what would leave open whose tool a name means: everything that
// begins like a server's tools is one of them (D47).
func (m mcpServers) checkNames(p programs) error {
	for _, s := range m.all {
		for _, other := range m.all {
			if other.Name != s.Name && strings.HasPrefix(other.Prefix(), s.Prefix()) {
				return m.refuse(other.Name, &badField{nil, fmt.Sprintf("its tools would have names like those of the server %s, which begin with %s: name it otherwise", s.Name, s.Prefix())})
			}
		}
		for _, program := range p.all {
			if strings.HasPrefix(program.Name, s.Prefix()) {
				return p.refuse(program.Name, &badField{nil, fmt.Sprintf("it has a name like the tools of the MCP server %s, which begin with %s: name it otherwise", s.Name, s.Prefix())})
			}
		}
	}
	return nil
}

// check refuses servers whose program cannot be started, of all those that wanted
// accepts.
func (m mcpServers) check(wanted func(mcpServer) bool) error {
	for _, s := range m.all {
		if s.URL != "" || !wanted(s) {
			continue
		}
		if err := tool.CheckProgram(s.Argv[0], s.env); err != nil {
			return m.refuse(s.Name, badAt("argv", "%v", err))
		}
		if s.Dir == "" {
			continue
		}
		if why := unusableFolder(s.Dir); why != "" {
			return m.refuse(s.Name, badAt("cwd", "%s", why))
		}
	}
	return nil
}

// checkOf refuses the server of one of the tools whose program cannot be started.
func (m mcpServers) checkOf(tools []string) error {
	return m.check(func(s mcpServer) bool {
		return slices.ContainsFunc(tools, func(name string) bool { return strings.HasPrefix(name, s.Prefix()) })
	})
}

func (m mcpServers) checkNamed(name string) error {
	return m.check(func(s mcpServer) bool { return s.Name == name })
}

// complete checks a description, and makes paths mean the same from anywhere.
func (m mcpConfig) complete(name string, from sources) (mcpServer, *badField) {
	s := mcpServer{
		Config:  mcp.Config{Name: name, Argv: m.Argv, URL: m.URL, TrustAnnotations: m.TrustAnnotations, Rename: m.Rename},
		passEnv: m.PassEnv, headers: m.Headers,
	}
	if bad := m.checkWay(); bad != nil {
		return s, bad
	}
	for field, limit := range map[string]struct {
		text string
		set  *time.Duration
	}{"start_timeout": {m.StartTimeout, &s.StartTimeout}, "timeout": {m.Timeout, &s.CallTimeout}} {
		if limit.text == "" {
			continue
		}
		d, err := parseDuration(limit.text)
		if err != nil || d == 0 {
			return s, badAt(field, "%q: want a duration above zero, such as 90s", limit.text)
		}
		*limit.set = d
	}
	for _, of := range slices.Sorted(maps.Keys(m.Replay)) {
		if !slices.Contains([]string{"never", "safe"}, m.Replay[of]) {
			return s, &badField{[]string{"replay", of}, "want never or safe"}
		}
		if s.Safe == nil {
			s.Safe = map[string]bool{}
		}
		s.Safe[of] = m.Replay[of] == "safe"
	}
	var bad *badField
	if s.env, bad = childEnv(m.Env, m.PassEnv); bad != nil {
		return s, bad
	}
	return s, m.completePaths(&s, from)
}

// checkWay wants one way to reach the server, and nothing that belongs to the other.
func (m mcpConfig) checkWay() *badField {
	switch {
	case m.URL == "" && len(m.Argv) == 0:
		return &badField{nil, "want argv, a program that speaks over stdin and stdout, or url"}
	case m.URL != "" && m.Argv != nil:
		return badAt("url", "url and argv exclude each other")
	case m.URL == "":
		return m.checkProgram()
	}
	u, err := url.Parse(m.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return badAt("url", "want an address that begins with http:// or https://")
	}
	for field, given := range map[string]bool{"cwd": m.CWD != "", "env": m.Env != nil, "pass_env": m.PassEnv != nil} {
		if given {
			return badAt(field, "is for servers that are programs")
		}
	}
	return nil
}

func (m mcpConfig) checkProgram() *badField {
	switch {
	case m.Argv[0] == "":
		return badAt("argv", "want a program and its arguments, such as [npx, some-server]")
	case strings.Contains(strings.Join(m.Argv, ""), "\x00"):
		return badAt("argv", "holds a NUL character")
	case m.Headers != nil:
		return badAt("headers", "are for servers with a url")
	case m.CAFile != "":
		return badAt("ca_file", "is for servers with a url")
	}
	return nil
}

// completePaths has relative paths start where the file lies, and never in the
// working directory. A program without a slash is looked up in PATH.
func (m mcpConfig) completePaths(s *mcpServer, from sources) *badField {
	paths := []struct {
		field, given string
		set          func(path string)
	}{
		{"cwd", m.CWD, func(path string) { s.Dir = path }},
		{"ca_file", m.CAFile, func(path string) { s.caFile = path }},
	}
	if len(m.Argv) > 0 && strings.Contains(m.Argv[0], "/") {
		paths = append(paths, struct {
			field, given string
			set          func(path string)
		}{"argv", m.Argv[0], func(path string) { s.Argv = append([]string{path}, m.Argv[1:]...) }})
	}
	for _, path := range paths {
		if path.given == "" {
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

// mcpServers are the configured servers for a session that works in cwd, none of
// them started.
func (f *factory) mcpServers(c *config, cwd string) []*mcp.Server {
	var all []*mcp.Server
	for _, s := range c.mcp.all {
		described := s.Config
		described.Headers = s.headers
		described.Client = func() (*http.Client, error) { return transport.New(transport.Options{CAFile: s.caFile}) }
		if s.URL == "" {
			if described.Dir == "" {
				described.Dir = cwd
			}
			strip := func(name string) bool { return c.secretEnv(name) && !slices.Contains(s.passEnv, name) }
			described.Env = append(tool.Environment(described.Dir, strip), s.env...)
		}
		all = append(all, mcp.New(described, readBuild().version))
	}
	return all
}

// toolSources are what finds tools that nobody lists beforehand.
func (f *factory) toolSources(c *config, cwd string) []tool.Source {
	var all []tool.Source
	for _, s := range f.mcpServers(c, cwd) {
		all = append(all, s)
	}
	return all
}

// servers says which MCP servers are configured. None is started: `drover mcp list`
// does that.
func (o *doctorOptions) servers(c *config) []finding {
	var all []finding
	for _, s := range c.mcp.all {
		if s.URL != "" {
			all = append(all, good("mcp", "%s is at %s", s.Name, s.URL))
			continue
		}
		if err := c.mcp.checkNamed(s.Name); err != nil {
			all = append(all, bad("mcp", err))
			continue
		}
		all = append(all, good("mcp", "%s runs %s", s.Name, s.Argv[0]))
	}
	return all
}
