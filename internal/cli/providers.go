package cli

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/drover-run/drover/internal/yamlpos"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model/catalogue"
	"github.com/drover-run/drover/pkg/model/openai"
	"github.com/drover-run/drover/pkg/model/scripted"
)

// The interfaces that an endpoint may speak.
const (
	apiMessages    = "anthropic-messages"
	apiResponses   = "openai-responses"
	apiCompletions = "openai-completions"
)

// providerConfig is one of providers.* in the configuration file.
type providerConfig struct {
	API           string                 `yaml:"api"`
	BaseURL       string                 `yaml:"base_url"`
	APIKeyEnv     string                 `yaml:"api_key_env"`
	APIKeyCommand []string               `yaml:"api_key_command"`
	Headers       map[string]string      `yaml:"headers"`
	Timeout       string                 `yaml:"timeout"`
	CAFile        string                 `yaml:"ca_file"`
	Models        map[string]modelConfig `yaml:"models"`
	Quirks        quirksConfig           `yaml:"quirks"`

	timeout time.Duration // 0 when not given
}

// quirksConfig says how an endpoint differs from the Chat Completions of OpenAI.
type quirksConfig struct {
	TokenField     string `yaml:"token_field"`
	SystemRole     string `yaml:"system_role"`
	StreamUsage    *bool  `yaml:"stream_usage"`
	ReasoningField string `yaml:"reasoning_field"`
	ReasoningBack  bool   `yaml:"reasoning_back"`
	Effort         string `yaml:"effort"`
	NoEnd          bool   `yaml:"no_end"`
}

// modelConfig is what a provider's configuration says of one model; what it leaves
// out stays as it is known.
type modelConfig struct {
	Name          string                  `yaml:"name"`
	ContextWindow *int64                  `yaml:"context_window"`
	MaxTokens     *int64                  `yaml:"max_tokens"`
	Thinking      []message.ThinkingLevel `yaml:"thinking"`
	Images        *bool                   `yaml:"images"`
	Prices        pricesConfig            `yaml:"prices"`
}

// pricesConfig are US dollars for a million tokens.
type pricesConfig struct {
	Input        *float64 `yaml:"input"`
	Output       *float64 `yaml:"output"`
	CacheRead    *float64 `yaml:"cache_read"`
	CacheWrite   *float64 `yaml:"cache_write"`
	CacheWrite1h *float64 `yaml:"cache_write_1h"`
}

// vendorAPI is what the providers that need no configuration speak; "" for any
// other name.
func vendorAPI(name string) string {
	switch name {
	case catalogue.Anthropic:
		return apiMessages
	case catalogue.OpenAI:
		return apiResponses
	}
	return ""
}

// readProviders reads providers.* and refuses what no request could be made with.
func readProviders(from sources) (map[string]providerConfig, error) {
	all, err := decodeDocument[providerConfig](from, "providers", "a provider")
	if bad, ok := errors.AsType[*yamlpos.FieldError](err); ok && strings.HasSuffix(bad.Path, ".api_key") {
		return nil, explain(err).withHint("a key does not belong into a file: api_key_env names the variable that holds it, api_key_command a program that prints it")
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		p := all[name]
		if bad := p.complete(name, from); bad != nil {
			return nil, from.file["providers"].refuse("providers", append([]string{name}, bad.path...), bad.text)
		}
		all[name] = p
	}
	return all, err
}

// badField is a value that cannot be, and the fields that lead to it.
type badField struct {
	path []string
	text string
}

func badAt(path string, format string, args ...any) *badField {
	return &badField{strings.Split(path, "/"), fmt.Sprintf(format, args...)}
}

// complete fills in what is not given, and checks the rest.
func (p *providerConfig) complete(name string, from sources) *badField {
	if name == scripted.Name {
		return &badField{nil, "is built in, and has no configuration"}
	}
	if bad := p.completeAPI(name); bad != nil {
		return bad
	}
	if bad := p.completeKey(from); bad != nil {
		return bad
	}
	if p.API != apiCompletions && p.Quirks != (quirksConfig{}) {
		return badAt("quirks", "are those of %s, not of %s", apiCompletions, p.API)
	}
	if bad := p.Quirks.check(); bad != nil {
		return bad
	}
	for _, header := range slices.Sorted(maps.Keys(p.Headers)) {
		if !regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$").MatchString(header) {
			return &badField{[]string{"headers", header}, "is no name of a header"}
		}
		if strings.ContainsFunc(p.Headers[header], unicode.IsControl) {
			return &badField{[]string{"headers", header}, "must be one line without control characters"}
		}
	}
	if p.Timeout != "" {
		d, err := parseDuration(p.Timeout)
		if err != nil || d == 0 {
			return badAt("timeout", "%q: want a duration above zero, such as 90s", p.Timeout)
		}
		p.timeout = d
	}
	if p.CAFile != "" {
		path, err := locateFolder(p.CAFile, from.dir, from.env)
		if err != nil {
			return badAt("ca_file", "%v", err)
		}
		p.CAFile = path
	}
	for _, id := range slices.Sorted(maps.Keys(p.Models)) {
		if bad := p.Models[id].check(); bad != nil {
			return &badField{append([]string{"models", id}, bad.path...), bad.text}
		}
	}
	return nil
}

func (p *providerConfig) completeAPI(name string) *badField {
	switch own := vendorAPI(name); {
	case own != "" && p.API != "" && p.API != own:
		return badAt("api", "%s speaks %s; give an endpoint that speaks something else another name", name, own)
	case own != "":
		p.API = own
	case p.API == "":
		p.API = apiCompletions
	case p.API != apiCompletions && p.API != apiResponses && p.API != apiMessages:
		return badAt("api", "%q: want one of %s, %s, %s", p.API, apiCompletions, apiResponses, apiMessages)
	}
	if p.BaseURL == "" {
		if vendorAPI(name) != "" {
			return nil
		}
		return &badField{nil, "has no base_url, such as http://localhost:11434/v1"}
	}
	u, err := url.Parse(p.BaseURL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return badAt("base_url", "want an address such as https://example.com/v1")
	case u.User != nil:
		return badAt("base_url", "must not hold a password: the key comes from api_key_env or api_key_command")
	case u.RawQuery != "" || u.Fragment != "":
		return badAt("base_url", "must end with its path: no query and no fragment")
	}
	return nil
}

// misaddressed says why requests would not reach a server: people take the address
// of the requests themselves for the base of it.
func (p providerConfig) misaddressed(name string) string {
	base := strings.TrimRight(p.BaseURL, "/")
	for _, own := range []string{"/chat/completions", "/completions", "/responses", "/messages"} {
		short, ok := strings.CutSuffix(base, own)
		whole := strings.HasSuffix(short, "/v1") || own == "/chat/completions" || own == "/responses" && p.API == apiResponses
		if ok && whole {
			return fmt.Sprintf("providers.%s.base_url ends in %s, which requests add themselves; make it %s", name, own, short)
		}
	}
	return ""
}

func (q quirksConfig) check() *badField {
	for _, f := range []struct {
		name, value string
		allowed     []string
	}{
		{"token_field", q.TokenField, []string{openai.TokensClassic, openai.TokensModern}},
		{"system_role", q.SystemRole, []string{openai.RoleSystem, openai.RoleDeveloper}},
		{"reasoning_field", q.ReasoningField, []string{openai.ReasoningContent, openai.Reasoning, openai.ReasoningNone}},
		{"effort", q.Effort, []string{openai.EffortFlat, openai.EffortNested, openai.EffortNone}},
	} {
		if f.value != "" && !slices.Contains(f.allowed, f.value) {
			return badAt("quirks/"+f.name, "%q: want one of %s", f.value, strings.Join(f.allowed, ", "))
		}
	}
	return nil
}

// quirks are the same for the provider.
func (q quirksConfig) quirks() openai.Quirks {
	return openai.Quirks{
		TokenField: q.TokenField, SystemRole: q.SystemRole, NoStreamOptions: q.StreamUsage != nil && !*q.StreamUsage,
		ReasoningField: q.ReasoningField, ReasoningBack: q.ReasoningBack, Effort: q.Effort, NoEnd: q.NoEnd,
	}
}

// completeKey looks at where the key comes from. What stands in the place of a
// variable's name may be the key itself, and is not repeated.
func (p *providerConfig) completeKey(from sources) *badField {
	if p.APIKeyEnv != "" && !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(p.APIKeyEnv) {
		return badAt("api_key_env", "want the name of a variable, such as MY_API_KEY; the key itself does not belong into a file")
	}
	if p.APIKeyCommand == nil {
		return nil
	}
	if len(p.APIKeyCommand) == 0 || p.APIKeyCommand[0] == "" {
		return badAt("api_key_command", "want a program and its arguments, such as [pass, show, anthropic]")
	}
	if p.APIKeyEnv != "" {
		return badAt("api_key_command", "and api_key_env exclude each other")
	}
	// A name is looked up in PATH; a path starts where the file lies, and never in
	// the working directory.
	if strings.Contains(p.APIKeyCommand[0], "/") {
		path, err := locateFolder(p.APIKeyCommand[0], from.dir, from.env)
		if err != nil {
			return badAt("api_key_command", "%v", err)
		}
		p.APIKeyCommand[0] = path
	}
	return nil
}

func (m modelConfig) check() *badField {
	for name, n := range map[string]*int64{"context_window": m.ContextWindow, "max_tokens": m.MaxTokens} {
		if n != nil && *n <= 0 {
			return badAt(name, "%d: want a number of tokens above zero", *n)
		}
	}
	if m.ContextWindow != nil && m.MaxTokens != nil && *m.MaxTokens > *m.ContextWindow {
		return badAt("max_tokens", "%d is more than the context_window, %d", *m.MaxTokens, *m.ContextWindow)
	}
	for _, l := range m.Thinking {
		if _, err := message.ParseThinkingLevel(string(l)); err != nil || l == message.ThinkingOff {
			return badAt("thinking", "%q: want some of minimal, low, medium, high, xhigh, max", l)
		}
	}
	prices := map[string]*float64{
		"input": m.Prices.Input, "output": m.Prices.Output, "cache_read": m.Prices.CacheRead,
		"cache_write": m.Prices.CacheWrite, "cache_write_1h": m.Prices.CacheWrite1h,
	}
	for _, name := range slices.Sorted(maps.Keys(prices)) {
		if f := prices[name]; f != nil && (!(*f >= 0) || math.IsInf(*f, 1)) {
			return badAt("prices/"+name, "%v: want dollars for a million tokens", *f)
		}
	}
	return nil
}

// override is what the catalogue is told of the model.
func (m modelConfig) override() catalogue.Override {
	o := catalogue.Override{
		Name: m.Name, ContextWindow: m.ContextWindow, MaxTokens: m.MaxTokens, Images: m.Images,
		Prices: catalogue.PriceOverride(m.Prices),
	}
	if m.Thinking != nil {
		levels := slices.Clone(m.Thinking)
		slices.SortFunc(levels, func(a, b message.ThinkingLevel) int {
			return slices.Index(message.ThinkingLevels(), a) - slices.Index(message.ThinkingLevels(), b)
		})
		levels = slices.Compact(levels)
		o.Thinking = &levels
	}
	return o
}
