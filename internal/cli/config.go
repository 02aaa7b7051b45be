package cli

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
)

// config is the resolved configuration: flag, then environment, then file, then
// default.
type config struct {
	repo          string
	backend       string
	powerSafe     bool
	model         message.ModelRef
	thinking      message.ThinkingLevel
	tools         []string
	prompt        promptConfig
	maxRetries    int64
	baseDelay     time.Duration
	maxDelay      time.Duration
	compaction    op.CompactionSettings
	steering      op.QueueMode
	followUp      op.QueueMode
	toolExecution op.ToolExecution
	leaseTTL      time.Duration
	leaseWait     time.Duration
	output        format
	skills        []string // folders
	templates     []string // folders
	telemetryFile string
	providers     map[string]providerConfig
	programs      programs
	mcp           mcpServers
	hooks         hookPrograms
}

// setting is one configuration key: its default and how its text is read. The
// environment variable is DROVER_ and the key in upper case, dots as _.
type setting struct {
	key      string
	what     string // for people
	fallback string
	flag     string // the global flag that sets it, "" for none
	list     bool   // the file may give a sequence
	folder   bool   // ~ is the home; relative to the file in the file
	set      func(c *config, s string) error
}

func settings() []setting {
	return []setting{
		{key: "repo", what: "the folder of the sessions", flag: "repo", folder: true, set: func(c *config, s string) error { c.repo = s; return nil }},
		{key: "backend", what: "how new sessions are stored: sqlite or jsonl", fallback: "sqlite", set: oneOf(func(c *config, s string) { c.backend = s }, "sqlite", "jsonl")},
		{key: "durability", what: "what a commit survives: the death of the process, or of the power", fallback: "process", set: oneOf(func(c *config, s string) { c.powerSafe = s == "power" }, "process", "power")},
		{key: "model", what: "what a session starts with, PROVIDER/ID, such as scripted/echo; `drover model list` lists them", fallback: "scripted/echo", set: func(c *config, s string) (err error) { c.model, err = message.ParseModelRef(s); return err }},
		{key: "thinking", what: "what a session starts with: off, minimal, low, medium, high, xhigh or max", fallback: "off", set: func(c *config, s string) (err error) {
			c.thinking, err = message.ParseThinkingLevel(s)
			return err
		}},
		{key: "tools", what: "what a session starts with: some of bash, read, write, edit, the configured programs and SERVER__TOOL of MCP servers", list: true, set: func(c *config, s string) error { c.tools = splitList(s); return nil }},
		{key: "system_prompt", what: "a text that is sent with every request; `drover help system-prompt`", set: func(c *config, s string) error { c.prompt.text = s; return nil }},
		{key: "system_prompt_file", what: "a file with that text, instead", folder: true, set: func(c *config, s string) error { c.prompt.file = s; return nil }},
		{key: "context_files", what: "true: AGENTS.md of the session's folder and those above goes with the system prompt; or one name of a file instead, or several in a list or with commas between them", fallback: "false", list: true, set: setContextFiles},
		{key: "retry.max_retries", what: "how often a failed request is repeated", fallback: "3", set: count(func(c *config, n int64) { c.maxRetries = n })},
		{key: "retry.base_delay", what: "the wait before the first repetition; it doubles", fallback: "2s", set: duration(func(c *config, d time.Duration) { c.baseDelay = d })},
		{key: "retry.max_delay", what: "a provider that asks for a longer wait fails the run", fallback: "1h", set: duration(func(c *config, d time.Duration) { c.maxDelay = d })},
		{key: "compaction.enabled", what: "whether a run that grows too long is compacted by itself", fallback: "true", set: oneOf(func(c *config, s string) { c.compaction.Enabled = s == "true" }, "true", "false")},
		{key: "compaction.reserve_tokens", what: "what of the model's window is kept free", fallback: "16384", set: count(func(c *config, n int64) { c.compaction.ReserveTokens = n })},
		{key: "compaction.keep_recent_tokens", what: "how much of the newest conversation no compaction touches", fallback: "20000", set: count(func(c *config, n int64) { c.compaction.KeepRecentTokens = n })},
		{key: "steering_mode", what: "how queued steering messages are taken: one-at-a-time or all", fallback: "one-at-a-time", set: oneOf(func(c *config, s string) { c.steering = op.QueueMode(s) }, "all", "one-at-a-time")},
		{key: "follow_up_mode", what: "the same of follow-up messages", fallback: "one-at-a-time", set: oneOf(func(c *config, s string) { c.followUp = op.QueueMode(s) }, "all", "one-at-a-time")},
		{key: "tool_execution", what: "how the calls of one answer run: parallel or sequential", fallback: "parallel", set: oneOf(func(c *config, s string) { c.toolExecution = op.ToolExecution(s) }, "parallel", "sequential")},
		{key: "lease.ttl", what: "how long an owner on SQLite may be silent before it counts as gone", fallback: "30s", set: positive(func(c *config, d time.Duration) { c.leaseTTL = d })},
		{key: "lease_wait", what: "how long to wait for a session that another process owns", fallback: "0", flag: "lease-wait", set: duration(func(c *config, d time.Duration) { c.leaseWait = d })},
		{key: "telemetry.file", what: "a file that gets the spans of every operation, beside what OTEL_* variables ask for; `drover help telemetry`", folder: true, set: func(c *config, s string) error { c.telemetryFile = s; return nil }},
		{key: "output", what: "the form of results: text, json or ndjson", fallback: "text", flag: "output", set: func(c *config, s string) (err error) { c.output, err = parseFormat(s); return err }},
	}
}

// laterKeys are the first words of keys that other versions of drover know.
func laterKeys() []string {
	return []string{"delegation", "workspaces"}
}

func oneOf(set func(*config, string), allowed ...string) func(*config, string) error {
	return func(c *config, s string) error {
		for _, a := range allowed {
			if s == a {
				set(c, s)
				return nil
			}
		}
		return wantError("one of " + strings.Join(allowed, ", "))
	}
}

func count(set func(*config, int64)) func(*config, string) error {
	return func(c *config, s string) error {
		const largest = 1<<53 - 2 // a count plus one stays exact everywhere
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 0 || n > largest {
			return wantError("a whole number that is not negative")
		}
		set(c, n)
		return nil
	}
}

func duration(set func(*config, time.Duration)) func(*config, string) error {
	return func(c *config, s string) error {
		d, err := parseDuration(s)
		if err == nil {
			set(c, d)
		}
		return err
	}
}

func positive(set func(*config, time.Duration)) func(*config, string) error {
	return func(c *config, s string) error {
		d, err := parseDuration(s)
		if err == nil && d == 0 {
			err = wantError("a duration above zero, such as 30s")
		}
		set(c, d)
		return err
	}
}

// wantError says what a value should have been.
type wantError string

func (e wantError) Error() string { return "want " + string(e) }

func splitList(s string) []string {
	list := []string{}
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

func envName(key string) string {
	return "DROVER_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// sources are what a configuration is resolved from.
type sources struct {
	file  map[string]located       // by key
	dir   string                   // of the file, where its relative folders start
	env   func(name string) string // "" when unset
	flags map[string]string        // the global flags that were given, by name
}

// located is a value of the configuration file and where it stands.
type located struct {
	value string
	where string // FILE:LINE:COLUMN
	// node is the value of a key that is read from the document itself (D49).
	node *yaml.Node
	name string // the file, of such a key
}

// resolveConfig gives every key the value that ranks first.
func resolveConfig(from sources) (*config, error) {
	v := viper.New()
	c := &config{}
	var err error
	for _, s := range settings() {
		where := ""
		v.SetDefault(s.key, s.fallback)
		if text, ok := from.file[s.key]; ok {
			where = text.where + ": " + s.key
			value, err := s.place(text.value, from.dir, from.env)
			if err == nil {
				err = v.MergeConfigMap(nest(s.key, value))
			}
			if err != nil {
				return nil, configf("%s: %v", where, err)
			}
		}
		if text := from.env(envName(s.key)); text != "" {
			where = envName(s.key)
			if text, err = s.place(text, "", from.env); err != nil {
				return nil, configf("%s: %v", where, err)
			}
			v.Set(s.key, text)
		}
		if text, ok := from.flags[s.flag]; ok && s.flag != "" {
			v.Set(s.key, text)
			where = "--" + s.flag
		}
		text := v.GetString(s.key)
		if err := s.set(c, text); err != nil {
			f := configf("%s: %q: %v", where, escapeLine(text), err)
			if strings.HasPrefix(where, "--") {
				f.tag = "usage"
			}
			return nil, f
		}
	}
	if c.skills, err = folders(from, "skills"); err != nil {
		return nil, err
	}
	if c.templates, err = folders(from, "templates"); err != nil {
		return nil, err
	}
	if c.providers, err = readProviders(from); err != nil {
		return nil, err
	}
	if c.programs, err = readPrograms(from); err != nil {
		return nil, err
	}
	if c.mcp, err = readServers(from); err != nil {
		return nil, err
	}
	if err := c.mcp.checkNames(c.programs); err != nil {
		return nil, err
	}
	if c.hooks, err = readHooks(from); err != nil {
		return nil, err
	}
	c.prompt.rank(from)
	return c, c.locateRepo(from.env)
}

// place resolves a folder that did not pass through a shell: ~ is the home, and a
// relative one starts at base. Other values, and no folder, stay as they are.
func (s setting) place(text, base string, env func(string) string) (string, error) {
	if !s.folder || text == "" {
		return text, nil
	}
	return expandFolder(text, base, env)
}

// nest is the map that a dotted key stands for.
func nest(key string, value any) map[string]any {
	first, rest, ok := strings.Cut(key, ".")
	if !ok {
		return map[string]any{key: value}
	}
	return map[string]any{first: nest(rest, value)}
}

func (c *config) locateRepo(env func(string) string) error {
	if c.repo != "" {
		return nil
	}
	data, ok := homeFolder(env, "XDG_DATA_HOME", ".local", "share")
	if !ok {
		return configf("no place for sessions: neither HOME nor XDG_DATA_HOME is set").withHint("give one with --repo DIR")
	}
	c.repo = filepath.Join(data, "drover")
	return nil
}

// homeFolder is the folder that a variable of the XDG base directories names, or
// what stands in for it below the home; false without either.
func homeFolder(env func(string) string, variable string, fallback ...string) (string, bool) {
	if dir := env(variable); filepath.IsAbs(dir) {
		return dir, true
	}
	home := env("HOME")
	return filepath.Join(append([]string{home}, fallback...)...), home != ""
}
