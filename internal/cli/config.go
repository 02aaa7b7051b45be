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
	systemPrompt  string
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
}

// setting is one configuration key: its default and how its text is read. The
// environment variable is DROVER_ and the key in upper case, dots as _.
type setting struct {
	key      string
	fallback string
	flag     string // the global flag that sets it, "" for none
	list     bool   // the file may give a sequence
	set      func(c *config, s string) error
}

func settings() []setting {
	return []setting{
		{key: "repo", flag: "repo", set: func(c *config, s string) error { c.repo = s; return nil }},
		{key: "backend", fallback: "sqlite", set: oneOf(func(c *config, s string) { c.backend = s }, "sqlite", "jsonl")},
		{key: "durability", fallback: "process", set: oneOf(func(c *config, s string) { c.powerSafe = s == "power" }, "process", "power")},
		{key: "model", fallback: "scripted/echo", set: func(c *config, s string) (err error) { c.model, err = message.ParseModelRef(s); return err }},
		{key: "thinking", fallback: "off", set: func(c *config, s string) (err error) {
			c.thinking, err = message.ParseThinkingLevel(s)
			return err
		}},
		{key: "tools", list: true, set: func(c *config, s string) error { c.tools = splitList(s); return nil }},
		{key: "system_prompt", set: func(c *config, s string) error { c.systemPrompt = s; return nil }},
		{key: "retry.max_retries", fallback: "3", set: count(func(c *config, n int64) { c.maxRetries = n })},
		{key: "retry.base_delay", fallback: "2s", set: duration(func(c *config, d time.Duration) { c.baseDelay = d })},
		{key: "retry.max_delay", fallback: "1h", set: duration(func(c *config, d time.Duration) { c.maxDelay = d })},
		{key: "compaction.enabled", fallback: "true", set: oneOf(func(c *config, s string) { c.compaction.Enabled = s == "true" }, "true", "false")},
		{key: "compaction.reserve_tokens", fallback: "16384", set: count(func(c *config, n int64) { c.compaction.ReserveTokens = n })},
		{key: "compaction.keep_recent_tokens", fallback: "20000", set: count(func(c *config, n int64) { c.compaction.KeepRecentTokens = n })},
		{key: "steering_mode", fallback: "one-at-a-time", set: oneOf(func(c *config, s string) { c.steering = op.QueueMode(s) }, "all", "one-at-a-time")},
		{key: "follow_up_mode", fallback: "one-at-a-time", set: oneOf(func(c *config, s string) { c.followUp = op.QueueMode(s) }, "all", "one-at-a-time")},
		{key: "tool_execution", fallback: "parallel", set: oneOf(func(c *config, s string) { c.toolExecution = op.ToolExecution(s) }, "parallel", "sequential")},
		{key: "lease.ttl", fallback: "30s", set: positive(func(c *config, d time.Duration) { c.leaseTTL = d })},
		{key: "lease_wait", fallback: "0", flag: "lease-wait", set: duration(func(c *config, d time.Duration) { c.leaseWait = d })},
		{key: "output", fallback: "text", flag: "output", set: func(c *config, s string) (err error) { c.output, err = parseFormat(s); return err }},
	}
}

// laterKeys are the first words of keys that other versions of drover know.
func laterKeys() []string {
	return []string{"context_files", "providers", "programs", "mcp", "hooks", "delegation", "workspaces"}
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
			if err := v.MergeConfigMap(nest(s.key, text.value)); err != nil {
				return nil, configf("%s: %v", text.where, err)
			}
			where = text.where + ": " + s.key
		}
		if text := from.env(envName(s.key)); text != "" {
			v.Set(s.key, text)
			where = envName(s.key)
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
	return c, c.locateRepo(from.env)
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
	data := env("XDG_DATA_HOME")
	if !filepath.IsAbs(data) {
		home := env("HOME")
		if home == "" {
			return configf("no place for sessions: neither HOME nor XDG_DATA_HOME is set").withHint("give one with --repo DIR")
		}
		data = filepath.Join(home, ".local", "share")
	}
	c.repo = filepath.Join(data, "drover")
	return nil
}
