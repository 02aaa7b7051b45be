package cli

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model/catalogue"
	"github.com/drover-run/drover/pkg/model/openai"
)

// configFrom resolves the text of a configuration file in /etc/d.
func configFrom(t *testing.T, text string) (*config, error) {
	t.Helper()
	file, err := parseConfig("f.yaml", []byte(text))
	if err != nil {
		return nil, err
	}
	return resolveConfig(sources{file: file, dir: "/etc/d", env: lookup([]string{"HOME=/home/x"})})
}

func TestProviders(t *testing.T) {
	c, err := configFrom(t, `providers:
  anthropic: {api_key_env: CLAUDE_KEY, timeout: 90s}
  proxy:
    api: anthropic-messages
    base_url: https://proxy.example/llm
    api_key_command: [./key, a]
    ca_file: ~/ca.pem
    headers: {X-Team: blue}
  Local_1:
    base_url: http://[::1]:8080/v1
    quirks: {token_field: max_completion_tokens, stream_usage: false, effort: none}
    models:
      "org/model:8b": {context_window: 1000, thinking: [high, low, low], prices: {input: 0}}
`)
	if err != nil {
		t.Fatal(err)
	}
	window, zero, no := int64(1000), 0.0, false
	want := map[string]providerConfig{
		"anthropic": {API: apiMessages, APIKeyEnv: "CLAUDE_KEY", Timeout: "90s", timeout: 90 * time.Second},
		"proxy": {
			API: apiMessages, BaseURL: "https://proxy.example/llm", APIKeyCommand: []string{"/etc/d/key", "a"},
			CAFile: "/home/x/ca.pem", Headers: map[string]string{"X-Team": "blue"},
		},
		"Local_1": {
			API: apiCompletions, BaseURL: "http://[::1]:8080/v1",
			Quirks: quirksConfig{TokenField: "max_completion_tokens", StreamUsage: &no, Effort: "none"},
			Models: map[string]modelConfig{"org/model:8b": {
				ContextWindow: &window, Thinking: []message.ThinkingLevel{"high", "low", "low"}, Prices: pricesConfig{Input: &zero},
			}},
		},
	}
	if diff := cmp.Diff(want, c.providers, cmp.AllowUnexported(providerConfig{})); diff != "" {
		t.Error(diff)
	}
	levels := []message.ThinkingLevel{"low", "high"}
	override := catalogue.Override{ContextWindow: &window, Thinking: &levels, Prices: catalogue.PriceOverride{Input: &zero}}
	if diff := cmp.Diff(override, c.providers["Local_1"].Models["org/model:8b"].override()); diff != "" {
		t.Error(diff)
	}
	quirks := openai.Quirks{TokenField: "max_completion_tokens", NoStreamOptions: true, Effort: "none"}
	if diff := cmp.Diff(quirks, c.providers["Local_1"].Quirks.quirks()); diff != "" {
		t.Error(diff)
	}
	for name, secret := range map[string]bool{
		"CLAUDE_KEY": true, "ANTHROPIC_API_KEY": true, "OPENAI_API_KEY": true, "OTEL_EXPORTER_OTLP_HEADERS": true,
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS": true,
		"claude_key":                        false, "PATH": false, "": false,
	} {
		if c.secretEnv(name) != secret {
			t.Errorf("secretEnv(%q) = %v", name, !secret)
		}
	}
}

func TestProviderRefusals(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"no mapping", "providers: [a]\n", "f.yaml:1:12: providers: must be a mapping of names to values"},
		{"unknown field", "providers:\n  a:\n    url: x\n", "f.yaml:3:5: providers.a.url: is unknown here; the fields are api, base_url, api_key_env, api_key_command, headers, timeout, ca_file, models, quirks"},
		{"bad name", "providers: {a b: {base_url: http://x}}\n", "f.yaml:1:1: providers.a b: the name of a provider is 1 to 32 letters, digits, underscores and hyphens"},
		{"built in", "providers:\n  scripted: {base_url: http://x}\n", "f.yaml:2:13: providers.scripted: is built in, and has no configuration"},
		{"no address", "providers:\n  a: {api: openai-responses}\n", "f.yaml:2:6: providers.a: has no base_url, such as http://localhost:11434/v1"},
		{"another scheme", "providers:\n  a:\n    base_url: ftp://x\n", "f.yaml:3:15: providers.a.base_url: want an address such as https://example.com/v1"},
		{"no scheme", "providers: {a: {base_url: localhost:8080}}\n", "f.yaml:1:27: providers.a.base_url: want an address such as https://example.com/v1"},
		{"no host", "providers: {a: {base_url: \"http:///v1\"}}\n", "f.yaml:1:27: providers.a.base_url: want an address such as https://example.com/v1"},
		{"a password", "providers: {a: {base_url: \"http://u:secret@x\"}}\n", "f.yaml:1:27: providers.a.base_url: must not hold a password: the key comes from api_key_env or api_key_command"},
		{"a query", "providers: {a: {base_url: \"http://x/v1?key=secret\"}}\n", "f.yaml:1:27: providers.a.base_url: must end with its path: no query and no fragment"},
		{"unknown interface", "providers: {a: {base_url: http://x, api: gemini}}\n", `f.yaml:1:42: providers.a.api: "gemini": want one of openai-completions, openai-responses, anthropic-messages`},
		{"not the vendor's", "providers: {openai: {api: openai-completions}}\n", "f.yaml:1:27: providers.openai.api: openai speaks openai-responses; give an endpoint that speaks something else another name"},
		{"a key for a variable", "providers: {openai: {api_key_env: sk-secret}}\n", "f.yaml:1:35: providers.openai.api_key_env: want the name of a variable, such as MY_API_KEY; the key itself does not belong into a file"},
		{"no command", "providers: {openai: {api_key_command: []}}\n", "f.yaml:1:39: providers.openai.api_key_command: want a program and its arguments, such as [pass, show, anthropic]"},
		{"command as a text", "providers: {openai: {api_key_command: pass show}}\n", "f.yaml:1:39: providers.openai.api_key_command: must be a list"},
		{"two keys", "providers: {openai: {api_key_env: K, api_key_command: [k]}}\n", "f.yaml:1:55: providers.openai.api_key_command: and api_key_env exclude each other"},
		{"bad header", "providers:\n  openai:\n    headers: {\"a b\": c}\n", "f.yaml:3:22: providers.openai.headers.a b: is no name of a header"},
		{"bad value of a header", "providers: {openai: {headers: {a: \"b\\nc\"}}}\n", "f.yaml:1:35: providers.openai.headers.a: must be one line without control characters"},
		{"bad timeout", "providers: {openai: {timeout: 30}}\n", `f.yaml:1:31: providers.openai.timeout: "30": want a duration above zero, such as 90s`},
		{"no timeout", "providers: {openai: {timeout: 0s}}\n", `f.yaml:1:31: providers.openai.timeout: "0s": want a duration above zero, such as 90s`},
		{"quirks elsewhere", "providers: {openai: {quirks: {effort: none}}}\n", "f.yaml:1:30: providers.openai.quirks: are those of openai-completions, not of openai-responses"},
		{"bad quirk", "providers: {a: {base_url: http://x, quirks: {system_role: boss}}}\n", `f.yaml:1:59: providers.a.quirks.system_role: "boss": want one of system, developer`},
		{"bad window", "providers: {openai: {models: {m: {context_window: 0}}}}\n", "f.yaml:1:51: providers.openai.models.m.context_window: 0: want a number of tokens above zero"},
		{"window as a text", "providers: {openai: {models: {m: {context_window: big}}}}\n", `f.yaml:1:51: providers.openai.models.m.context_window: "big" is no whole number`},
		{"more than the window", "providers: {openai: {models: {m: {context_window: 5, max_tokens: 6}}}}\n", "f.yaml:1:66: providers.openai.models.m.max_tokens: 6 is more than the context_window, 5"},
		{"bad level", "providers: {openai: {models: {m: {thinking: [deep]}}}}\n", `f.yaml:1:45: providers.openai.models.m.thinking: "deep": want some of minimal, low, medium, high, xhigh, max`},
		{"bad price", "providers: {openai: {models: {m: {prices: {input: -1}}}}}\n", "f.yaml:1:51: providers.openai.models.m.prices.input: -1: want dollars for a million tokens"},
		{"no price", "providers: {openai: {models: {m: {prices: {output: .nan}}}}}\n", "f.yaml:1:52: providers.openai.models.m.prices.output: NaN: want dollars for a million tokens"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := configFrom(t, tt.text)
			if f := explain(err); f == nil || f.message != tt.want || f.code != exitUsage {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("%v repeats a secret", err)
			}
		})
	}
}

// The topic names every field, and its examples are right.
func TestSectionsHelp(t *testing.T) {
	var have []string
	for _, f := range providersSection().fields {
		have = append(have, f.name)
	}
	var want []string
	fields := func(prefix string, of any) {
		for i := range reflect.TypeOf(of).NumField() {
			f := reflect.TypeOf(of).Field(i)
			if name := f.Tag.Get("yaml"); name != "" && name != "quirks" && name != "models" {
				want = append(want, prefix+name)
			}
		}
	}
	fields("", providerConfig{})
	fields("quirks.", quirksConfig{})
	fields("models.ID.", modelConfig{})
	slices.Sort(have)
	slices.Sort(want)
	if diff := cmp.Diff(want, have); diff != "" {
		t.Error(diff)
	}
	for i := range reflect.TypeFor[pricesConfig]().NumField() {
		if name := reflect.TypeFor[pricesConfig]().Field(i).Tag.Get("yaml"); !strings.Contains(providersSection().fields[len(have)-1].what, name) {
			t.Errorf("the price %s is not explained", name)
		}
	}
	for _, s := range sections() {
		c, err := configFrom(t, s.example)
		if err != nil {
			t.Errorf("%s: %v", s.key, err)
		} else if s.key == "providers" && len(slices.Collect(maps.Keys(c.providers))) != 3 {
			t.Errorf("the example has %d providers", len(c.providers))
		}
	}
}

// keyFrom runs a shell script as an api_key_command.
func keyFrom(script string) *keyCommand {
	return &keyCommand{
		provider: "p", argv: []string{"sh", "-c", script}, patience: time.Minute,
		strip: func(string) bool { return false }, turn: make(chan struct{}, 1),
	}
}

func TestKeyCommand(t *testing.T) {
	const the = "the api_key_command of the provider p "
	tests := []struct{ name, script, want, err string }{
		{"a line", "echo '  sk-1  '", "sk-1", ""},
		{"words", "echo sk 1", "", the + "printed something that is no key: it has blanks, several lines or control characters"},
		{"lines", "printf 'sk-1\\nsk-2'", "", the + "printed something that is no key: it has blanks, several lines or control characters"},
		{"control characters", "printf 'sk\\033[0m'", "", the + "printed something that is no key: it has blanks, several lines or control characters"},
		{"much", "yes | tr -d '\\n' | head -c 100000", "", the + "printed something that is no key: it has blanks, several lines or control characters"},
		{"nothing", "echo", "", the + "printed nothing"},
		{"failure", "echo sk-1; echo sk-1 >&2; exit 4", "", the + "failed with exit status 4; run it by hand to see why"},
		{"killed", "kill -9 $$", "", the + "was ended by signal 9 (killed); run it by hand to see why"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := keyFrom(tt.script).get(t.Context())
			text := ""
			if err != nil {
				text = err.Error()
			}
			if got != tt.want || text != tt.err {
				t.Errorf("got %q, %q; want %q, %q", got, text, tt.want, tt.err)
			}
		})
	}
	gone := keyFrom("")
	gone.argv = []string{"/no/such/program"}
	if _, err := gone.get(t.Context()); err == nil || err.Error() != the+"could not be run: start command: exec: \"/no/such/program\": stat /no/such/program: no such file or directory" {
		t.Errorf("a program that is not there: %v", err)
	}
}

// A command that hangs is given up, also when the one who asked gives up; the next
// one who asks has it run again.
func TestKeyCommandPatience(t *testing.T) {
	k := keyFrom("exec sleep 1000")
	k.patience = time.Millisecond
	if _, err := k.get(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "did not end within 1ms") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := keyFrom("exec sleep 1000").get(ctx); err == nil || !strings.HasSuffix(err.Error(), context.Canceled.Error()) {
		t.Errorf("got %v", err)
	}
	k.argv, k.patience = []string{"echo", "sk-1"}, time.Minute
	if got, err := k.get(t.Context()); got != "sk-1" || err != nil {
		t.Errorf("after a failure: %q, %v", got, err)
	}
	k.argv = []string{"false"}
	if got, err := k.get(t.Context()); got != "sk-1" || err != nil {
		t.Errorf("it ran again: %q, %v", got, err)
	}
}

// Whoever asks while the command runs waits for it, as long as they want to.
func TestKeyCommandTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keyCommand{turn: make(chan struct{}, 1), known: "sk-1"}
		k.turn <- struct{}{}
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan string)
		go func() {
			secret, _ := k.get(t.Context())
			got <- secret
		}()
		gave := make(chan error)
		go func() {
			_, err := k.get(ctx)
			gave <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-gave; err != context.Canceled {
			t.Errorf("the one who gave up got %v", err)
		}
		<-k.turn
		if secret := <-got; secret != "sk-1" {
			t.Errorf("the one who waited got %q", secret)
		}
	})
}
