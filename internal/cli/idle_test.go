package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// idleWorld is a repository whose configuration names one of everything that can be
// started, each of which leaves a file behind when it is.
type idleWorld struct {
	vendor      *vendorTalk
	dir         string
	bare, whole []string // environments without and with the configuration
}

func newIdleWorld(t *testing.T) *idleWorld {
	t.Helper()
	local := vendorInterface{name: "completions"}
	w := &idleWorld{vendor: newVendorTalk(t, tells(local.call("call_1", "true")), tells(local.text("Done."))), dir: t.TempDir()}
	leaves := func(name, then string) string {
		return fmt.Sprintf("[sh, -c, %q]", "echo >"+filepath.Join(w.dir, "left."+name)+"; "+then)
	}
	config := fmt.Sprintf(`providers:
  acme: {base_url: %q, api_key_command: %s}
mcp:
  server: {argv: %s, cwd: /}
  remote: {url: %q}
hooks:
  begins: {on: before_run, argv: %s}
  asks: {on: before_request, argv: %s}
programs:
  probe: {argv: %s, description: Probes., schema: {type: object}}
telemetry: {file: %q}
`,
		w.vendor.URL+"/v1", leaves("key", "echo sk-1"), leaves("mcp", "exec mcpserver"), w.vendor.URL+"/mcp",
		leaves("run", ""), leaves("request", ""), leaves("program", ""), filepath.Join(w.dir, "left.spans"))
	path := filepath.Join(w.dir, "config.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	w.bare = []string{"HOME=" + w.dir, "DROVER_REPO=" + filepath.Join(w.dir, "repo"), "PATH=" + os.Getenv("PATH")}
	w.whole = append(w.bare[:len(w.bare):len(w.bare)], "DROVER_CONFIG="+path)
	return w
}

// runs a command in this process; it must not end as a wrong one does.
func (w *idleWorld) runs(t *testing.T, env []string, args ...string) string {
	t.Helper()
	var stdout, stderr strings.Builder
	code := Main(args, env, strings.NewReader(""), &stdout, &stderr)
	if want := []exitCode{exitOK, exitRefused, exitLater}; !slices.Contains(want, exitCode(code)) {
		t.Fatalf("%s: exit code %d\n%s%s", strings.Join(args, " "), code, stdout.String(), stderr.String())
	}
	return strings.TrimSpace(stdout.String())
}

// left are the files that what was started has left, which are removed, and the
// requests that were made.
func (w *idleWorld) left(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(w.dir, "left.*"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, path := range paths {
		all = append(all, strings.TrimPrefix(filepath.Ext(path), "."))
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.vendor.asked()) > 0 {
		all = append(all, "asked")
	}
	return all
}

// A command that runs nothing starts nothing that only runs need: no MCP server, no
// hook, no program, no request, nobody asks for a key. What writes tells telemetry of
// it, and only then is there an exporter; what takes a model looks whether it could be
// asked, which is all that opens the trace.
func TestNothingStartsBeforeARunNeedsIt(t *testing.T) {
	w := newIdleWorld(t)
	s := w.runs(t, w.bare, "create", "--name", "one")
	w.runs(t, w.bare, "value", "set", s, "app/k", "1")
	w.runs(t, w.bare, "prompt", s, "hello")
	open := w.runs(t, w.bare, "create", "--name", "two")
	w.runs(t, w.bare, "prompt", open, "hello", "--detach")
	configured := []string{"--model", "acme/m", "--tools", "bash,probe,server__echo,remote__x"}
	trace := filepath.Join(w.dir, "left.trace")

	type commands [][]string
	for leaves, all := range map[string]commands{
		"": {
			{"version"}, {"help"}, {"help", "config"}, {"help", "environment"}, {"completion", "bash"}, {"doctor"},
			{"model", "list"}, {"model", "show", "acme/m"}, {"lane", "list", s},
			{"list"}, {"list", "--json"}, {"show", s}, {"show", s, "--json", "--context"}, {"log", s},
			{"usage", s}, {"usage", "--all", "--by", "model"}, {"inspect", s}, {"inspect", open, "--snapshot", "--json"},
			{"verify", "--all"}, {"search", "hello"}, {"export", s, "--format", "markdown"},
			{"value", "get", s, "app/k"}, {"drive", s}, {"drive", open, "--explain"}, {"wait", s}, {"steer", s, "no"},
			{"abort", s}, {"resume", s}, {"fork", s}, {"compact-file", s}, {"migrate", "--all", "--status"},
			{"repair", s, "--only", "index"}, {"tombstones", "list"}, {"delete", s, "--dry-run"},
		},
		"spans": {
			{"lane", "create", s, "side"}, {"append", s, "--custom-type", "app.note", "--data", "{}"}, {"next-run", s, "later"},
		},
		"trace":       {append([]string{"create"}, configured...)},
		"spans trace": {append([]string{"lane", "set", s}, configured...), append([]string{"lane", "set", open}, configured...)},
	} {
		for _, args := range all {
			w.runs(t, w.whole, append(args, "--trace-http", trace)...)
			if left := w.left(t); !slices.Equal(left, strings.Fields(leaves)) {
				t.Errorf("%s starts %v, want [%s]", strings.Join(args, " "), left, leaves)
			}
		}
	}

	// A run needs them, and they are there.
	w.runs(t, w.whole, "prompt", "--new", "hello", "--model", "acme/m", "--tools", "bash,probe,server__echo", "--trace-http", trace)
	if left, want := w.left(t), []string{"key", "mcp", "request", "run", "spans", "trace", "asked"}; !slices.Equal(left, want) {
		t.Errorf("a run starts %v, want %v", left, want)
	}
}
