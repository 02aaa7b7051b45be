package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// vendorInterface is an interface that models are reached through, and a model that is.
type vendorInterface struct {
	name, model string
	path        string // of its addresses, behind that of the server
}

func vendorInterfaces() []vendorInterface {
	return []vendorInterface{
		{"messages", "anthropic/claude-opus-5", ""},
		{"responses", "openai/gpt-5.4", "/v1"},
		{"completions", "local/llama", "/v1"},
	}
}

// provider is the name of the model's provider.
func (a vendorInterface) provider() string {
	name, _, _ := strings.Cut(a.model, "/")
	return name
}

// vendorWorld is one session whose model is asked at an address of the test's own.
type vendorWorld struct {
	repo, session string
	api           vendorInterface
	env           []string
}

func newVendorWorld(t *testing.T, api vendorInterface, backend, address string) *vendorWorld {
	t.Helper()
	w := &vendorWorld{repo: t.TempDir(), api: api}
	w.at(t, address)
	w.session = w.must(t, exitOK, "create", "--backend", backend, "--model", api.model, "--tools", "bash", "--cwd", w.repo)
	return w
}

// at has the model asked at another address from now on.
func (w *vendorWorld) at(t *testing.T, address string) {
	t.Helper()
	config := fmt.Sprintf(`providers:
  %s:
    base_url: %s
    headers: {X-Test-Id: %q}
    models: {llama: {context_window: 200000, max_tokens: 32000, thinking: [high]}}
`, w.api.provider(), address+w.api.path, t.Name())
	path := filepath.Join(w.repo, "config.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	w.env = []string{
		"DROVER_CONFIG=" + path, "ANTHROPIC_API_KEY=sk-test", "OPENAI_API_KEY=sk-test", "DROVER_COMPACTION_KEEP_RECENT_TOKENS=1",
	}
}

func (w *vendorWorld) drover(t *testing.T, args ...string) *process {
	t.Helper()
	p := drover(t, w.repo, args...)
	p.Env = append(p.Env, w.env...)
	return p
}

// must runs a command to its end and returns what it printed.
func (w *vendorWorld) must(t *testing.T, want exitCode, args ...string) string {
	t.Helper()
	p := w.drover(t, args...)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if got := p.code(t); exitCode(got) != want {
		t.Fatalf("drover %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, want, p.stdout.String(), p.stderr.String())
	}
	return strings.TrimSpace(p.stdout.String())
}

// speaking starts a command and returns once it has printed a text.
func (w *vendorWorld) speaking(t *testing.T, text string, args ...string) *process {
	t.Helper()
	p := w.drover(t, args...)
	terminal := p.onTerminal(t)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if err := p.given.Close(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for some := make([]byte, 1<<10); !strings.Contains(said.String(), text); {
		n, err := terminal.Read(some)
		said.Write(some[:n])
		if err != nil {
			t.Fatalf("drover %s said %q: %v\n%s", strings.Join(args, " "), said.String(), err, p.stderr.String())
		}
	}
	go func() { _, _ = io.Copy(io.Discard, terminal) }()
	return p
}

// kill ends a command with SIGKILL.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); !wasKilled(err) {
		t.Fatalf("the command ended with %v\n%s", err, p.stderr.String())
	}
}

// said is the conversation: an entry is its type or, of a message, its stop reason or
// its role, and its text.
func (w *vendorWorld) said(t *testing.T) []string {
	t.Helper()
	entries, err := lookupField(w.must(t, exitOK, "show", w.session, "--json"), "entries")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for i := 0; ; i++ {
		entry, err := lookupField(entries, fmt.Sprint(i))
		if err != nil {
			return all
		}
		what, _ := lookupField(entry, "type")
		for _, path := range []string{"message.role", "message.stopReason"} {
			if v, err := lookupField(entry, path); err == nil {
				what = v
			}
		}
		text, _ := lookupField(entry, "summary")
		for j := range 3 {
			part, _ := lookupField(entry, fmt.Sprintf("message.content.%d.text", j))
			text += part
		}
		all = append(all, strings.TrimSpace(what+" "+strings.TrimSpace(text)))
	}
}
