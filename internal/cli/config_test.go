package cli

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
)

// Without any source every key has the default of the contract.
func TestConfigDefaults(t *testing.T) {
	got, err := resolveConfig(sources{env: lookup([]string{"HOME=/home/x"})})
	if err != nil {
		t.Fatal(err)
	}
	want := &config{
		repo: "/home/x/.local/share/drover", backend: "sqlite",
		model: message.ModelRef{Provider: "scripted", ModelID: "echo"}, thinking: message.ThinkingOff, tools: []string{},
		maxRetries: 3, baseDelay: 2 * time.Second, maxDelay: time.Hour,
		compaction: op.CompactionSettings{Enabled: true, ReserveTokens: 16384, KeepRecentTokens: 20000},
		steering:   op.QueueOne, followUp: op.QueueOne, toolExecution: op.Parallel,
		leaseTTL: 30 * time.Second, output: formatText,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(config{}, promptConfig{}, hookPrograms{}, programs{}, mcpServers{}, located{})); diff != "" {
		t.Error(diff)
	}
}

// A flag wins over the environment, that over the file, that over the default.
func TestConfigPrecedence(t *testing.T) {
	file, err := parseConfig("f.yaml", []byte("repo: from-file\nlease: {ttl: 1s}\nlease_wait: 1s\noutput: json\ntools: [a, b]\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := resolveConfig(sources{
		file:  file,
		env:   lookup([]string{"DROVER_LEASE_WAIT=2s", "DROVER_OUTPUT=ndjson", "DROVER_RETRY_BASE_DELAY=5ms", "DROVER_LEASE_TTL="}),
		flags: map[string]string{"output": "text"},
	})
	if err != nil {
		t.Fatal(err)
	}
	type picked struct {
		repo, output                   string
		leaseTTL, leaseWait, baseDelay time.Duration
		tools                          []string
	}
	want := picked{"from-file", "text", time.Second, 2 * time.Second, 5 * time.Millisecond, []string{"a", "b"}}
	have := picked{got.repo, string(got.output), got.leaseTTL, got.leaseWait, got.baseDelay, got.tools}
	if diff := cmp.Diff(want, have, cmp.AllowUnexported(picked{})); diff != "" {
		t.Error(diff)
	}
}

func TestConfigRefusals(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"unknown key", "bakend: sqlite\n", "f.yaml:1:1: unknown key bakend; the nearest valid one is backend"},
		{"unknown nested key", "lease:\n  tl: 1s\n", "f.yaml:2:3: unknown key lease.tl; the nearest valid one is lease.ttl"},
		{"a key of later versions", "delegation:\n  x: {}\n", "f.yaml:1:1: delegation is not supported by this version of drover"},
		{"case counts", "Repo: x\n", "f.yaml:1:1: unknown key Repo; the nearest valid one is repo"},
		{"given twice", "repo: a\n\"repo\": b\n", "f.yaml:2:1: repo is given twice"},
		{"no value", "repo:\n", "f.yaml:1:1: repo has no value"},
		{"a list for one", "repo: [a]\n", "f.yaml:1:1: repo must be a single value"},
		{"a section for one", "repo: {a: b}\n", "f.yaml:1:1: repo must be a single value"},
		{"one for a section", "lease: 30s\n", "f.yaml:1:1: lease must be a mapping of keys to values"},
		{"no mapping", "- a\n", "f.yaml:1:1: the configuration must be a mapping of keys to values"},
		{"two documents", "repo: a\n---\nrepo: b\n", "f.yaml:2:1: a configuration is one document"},
		{"broken", "repo: a\n  backend: b\n", "f.yaml:2:10: mapping values are not allowed in this context"},
		{"bad duration", "lease_wait: 30\n", `f.yaml:1:1: lease_wait: "30": want a duration such as 30s`},
		{"zero lease", "lease: {ttl: 0s}\n", `f.yaml:1:9: lease.ttl: "0s": want a duration above zero, such as 30s`},
		{"bad choice", "steering_mode: some\n", `f.yaml:1:1: steering_mode: "some": want one of all, one-at-a-time`},
		{"bad number", "retry: {max_retries: -1}\n", `f.yaml:1:9: retry.max_retries: "-1": want a whole number that is not negative`},
		{"bad model", "model: echo\n", `f.yaml:1:1: model: "echo": parse model "echo": want PROVIDER/ID`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			file, err := parseConfig("f.yaml", []byte(c.text))
			if err == nil {
				_, err = resolveConfig(sources{file: file, env: lookup([]string{"HOME=/"})})
			}
			f, ok := errors.AsType[*failure](err)
			if !ok || f.code != exitUsage || f.tag != "config" {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(c.want, f.message); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, empty := range []string{"", "# nothing\n", "---\n", "null\n", "{}\n"} {
		if _, err := parseConfig("f.yaml", []byte(empty)); err != nil {
			t.Errorf("%q: %v", empty, err)
		}
	}
}
