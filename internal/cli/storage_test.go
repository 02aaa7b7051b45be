package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/drover-run/drover/pkg/store"
)

// Lines of any length go through every command (B04).
func TestB04LongLines(t *testing.T) {
	const size = 3 << 20
	text := strings.Repeat("0123456789abcdef", size/16)
	for _, backend := range []string{"sqlite", "jsonl"} {
		t.Run(backend, func(t *testing.T) {
			repo := t.TempDir()
			output(t, repo, "create", "--backend", backend, "--id", "long")
			script := filepath.Join(t.TempDir(), "wide.yaml")
			wide := "model: {context_window: 10000000}\nresponses:\n  - {text: short}\n"
			if err := os.WriteFile(script, []byte(wide), 0o600); err != nil {
				t.Fatal(err)
			}
			p := drover(t, repo, "prompt", "long", "-", "--json", "--model", "scripted/"+script)
			p.Stdin = strings.NewReader(text)
			if err := p.Run(); err != nil {
				t.Fatalf("%v: %s", err, p.stderr.String())
			}
			for _, args := range [][]string{
				{"verify", "long"}, {"inspect", "long"}, {"list"}, {"compact-file", "long"},
				{"fork", "long", "--id", "fork"}, {"verify", "--all"},
			} {
				output(t, repo, args...)
			}
			for _, session := range []string{"long", "fork"} {
				shown := output(t, repo, "show", session, "--json")
				if got, err := lookupField(shown, "entries.0.message.content.0.text"); err != nil || got != text {
					t.Errorf("%s has a text of %d bytes, %v", session, len(got), err)
				}
			}
		})
	}
}

// The disk fills up while an answer is stored: the run stops there, the model is
// not asked again, and once there is room the run goes on (B06, spec §1.4).
func TestB06FullWhileAnswering(t *testing.T) {
	for _, backend := range []string{"sqlite", "jsonl"} {
		t.Run(backend, func(t *testing.T) {
			repo := t.TempDir()
			session := output(t, repo, "create", "--backend", backend)
			script := filepath.Join(t.TempDir(), "big.yaml")
			responses := fmt.Sprintf("responses:\n  - {text: %s, chunk: 100000}\n  - {text: the answer}\n", strings.Repeat("x", 2<<20))
			if err := os.WriteFile(script, []byte(responses), 0o600); err != nil {
				t.Fatal(err)
			}
			p := drover(t, repo, "prompt", session, "go", "--model", "scripted/"+script, "--json")
			p.Args = append([]string{"sh", "-c", `ulimit -f 512; exec "$0" "$@"`, p.Path}, p.Args[1:]...)
			p.Path = "/bin/sh"
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			if got := p.code(t); got != 6 {
				t.Errorf("exit code %d, want 6: %s", got, p.stderr.String())
			}
			assertField(t, p.stderr.String(), "code", "io")
			if !strings.Contains(p.stderr.String(), session) {
				t.Errorf("the file is not named: %s", p.stderr.String())
			}
			state, err := os.ReadFile(script + ".state")
			if err != nil {
				t.Fatal(err)
			}
			assertField(t, string(state), "next", "1")
			output(t, repo, "verify", session)
			if text := output(t, repo, "drive", session, "--wait-retry"); text != "the answer" {
				t.Errorf("driven on, it says %q", text)
			}
			output(t, repo, "verify", session)
		})
	}
}

// Runs on different sessions do not disturb each other, nor do readers of all of
// them: nobody is told that a database is locked (B18).
func TestB18ParallelSessions(t *testing.T) {
	const sessions = 8
	repo := t.TempDir()
	var all []*process
	for i := range sessions {
		id := fmt.Sprint("s", i)
		output(t, repo, "create", "--backend", "sqlite", "--id", id)
		p := drover(t, repo, "prompt", id, "hello "+id)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	for range 3 {
		listed := output(t, repo, "list", "--json")
		assertField(t, listed, "totals.damaged", "0")
		output(t, repo, "verify", "--all")
	}
	for i, p := range all {
		want := fmt.Sprintf("hello s%d\n", i)
		if got := p.code(t); got != 0 || p.stdout.String() != want {
			t.Errorf("session %d: exit code %d, %q: %s", i, got, p.stdout.String(), p.stderr.String())
		}
	}
}

// durabilities notes with which durability sessions are opened.
type durabilities struct {
	store.Driver
	mu     *sync.Mutex
	opened *[]bool
}

func (d durabilities) Open(ctx context.Context, path string, o store.OpenOptions) (store.Backend, error) {
	d.mu.Lock()
	*d.opened = append(*d.opened, o.PowerSafe)
	d.mu.Unlock()
	return d.Driver.Open(ctx, path, o)
}

// Every commit survives power loss where the configuration or the environment of
// one command asks for that (D13).
func TestDurability(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("durability: power\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, backend := range []string{"sqlite", "jsonl"} {
		for env, want := range map[string]bool{
			"NONE=1": false, "DROVER_DURABILITY=process": false, "DROVER_DURABILITY=power": true, "DROVER_CONFIG=" + config: true,
		} {
			var opened []bool
			var stdout, stderr strings.Builder
			f := newFactory([]string{"HOME=/", "DROVER_REPO=" + t.TempDir(), env}, newStreams(strings.NewReader(""), &stdout, &stderr))
			for i, d := range f.drivers {
				f.drivers[i] = durabilities{d, new(sync.Mutex), &opened}
			}
			if code := run(f, []string{"prompt", "--new", "--backend", backend, "hello"}); code != exitOK {
				t.Fatalf("%s: exit code %d: %s", env, code, stderr.String())
			}
			if len(opened) == 0 || opened[0] != want {
				t.Errorf("%s, %s: opened %v, want %v", backend, env, opened, want)
			}
		}
	}
}
