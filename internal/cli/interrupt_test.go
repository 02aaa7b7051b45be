package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-run/drover/pkg/store"
)

// cutAt is a stdout that ends the command with a signal once it has shown an item.
type cutAt struct {
	bytes.Buffer
	stop func()
}

func (c *cutAt) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(`"type":"item"`)) {
		c.stop()
	}
	return c.Buffer.Write(p)
}

// heldUp keeps all sessions but s00 waiting, until the command ends, where the command
// begins to work on one.
type heldUp struct {
	store.Driver
	at string // the method
}

func (h heldUp) wait(ctx context.Context, at, path string) {
	if at == h.at && filepath.Base(path) != "s00.jsonl" {
		<-ctx.Done()
	}
}

func (h heldUp) Open(ctx context.Context, path string, o store.OpenOptions) (store.Backend, error) {
	h.wait(ctx, "Open", path)
	return h.Driver.Open(ctx, path, o)
}

func (h heldUp) View(ctx context.Context, path string) (store.Reader, error) {
	h.wait(ctx, "View", path)
	return h.Driver.View(ctx, path)
}

// A signal ends a command over several sessions with the document of those that are
// done by then; the others are counted, and nothing has happened to them.
func TestSignalOverItems(t *testing.T) {
	const sessions = 5
	exists := func(repo, file string) bool {
		_, err := os.Stat(filepath.Join(repo, file))
		return err == nil
	}
	for _, c := range []struct {
		at   string // where all but one session are held up
		args []string
		done func(repo, id string) bool // what the command does to a session, nil for nothing
	}{
		{"Open", []string{"migrate", "--all", "--backend", "sqlite"}, func(repo, id string) bool { return exists(repo, id+".db") }},
		{"", []string{"delete", "--older-than", "0s", "--yes"}, func(repo, id string) bool { return !exists(repo, id+".jsonl") }},
		{"Open", []string{"compact-file", "--all"}, nil},
		{"View", []string{"verify", "--all"}, nil},
	} {
		t.Run(c.args[0], func(t *testing.T) {
			w := killWorld{repo: t.TempDir()}
			for i := range sessions {
				if code, out := w.here("create", "--backend", "jsonl", "--id", fmt.Sprintf("s%02d", i)); code != exitOK {
					t.Fatal(code, out)
				}
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			stdout := &cutAt{stop: func() { cancel(&interrupted{syscall.SIGTERM}) }}
			var stderr bytes.Buffer
			f := newFactory([]string{"HOME=/", "DROVER_REPO=" + w.repo}, newStreams(strings.NewReader(""), stdout, &stderr))
			f.drivers = slices.Clone(f.drivers)
			for i, d := range f.drivers {
				if d.Name() == "jsonl" {
					f.drivers[i] = heldUp{d, c.at}
				}
			}
			args := append(c.args, "-o", "ndjson")
			code := f.finish(ctx, args, execute(ctx, f, args))
			lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
			document := lines[len(lines)-1]
			if code != exitTerm || !strings.Contains(stderr.String(), `"code":"interrupted"`) {
				t.Errorf("exit code %d, stderr %s", code, stderr.String())
			}
			assertField(t, document, "exit.code", "143")
			assertField(t, document, "totals.notDone", fmt.Sprint(sessions-1))
			assertField(t, document, "items.0.session", "s00")
			for i := range sessions {
				id := fmt.Sprintf("s%02d", i)
				told := strings.Contains(document, `"session":"`+id+`"`)
				if c.done != nil && told != c.done(w.repo, id) {
					t.Errorf("%s: told as done: %v", id, told)
				}
			}
		})
	}
}

// A signal that comes when a rewrite has its plan: document, error and exit code say
// the same.
func TestSignalInRewrite(t *testing.T) {
	for _, backend := range []string{"sqlite", "jsonl"} {
		t.Run(backend, func(t *testing.T) {
			w := killWorld{repo: t.TempDir()}
			for _, args := range [][]string{{"create", "--backend", backend, "--id", "s"}, {"prompt", "s", "ERASE-me"}} {
				if code, out := w.here(args...); code != exitOK {
					t.Fatal(code, out)
				}
			}
			rules := filepath.Join(t.TempDir(), "rules")
			if err := os.WriteFile(rules, []byte("ERASE-me ==> [gone]\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			var stdout, stderr bytes.Buffer
			f := newFactory([]string{"HOME=/", "DROVER_REPO=" + w.repo, "DROVER_OUTPUT=json"}, newStreams(strings.NewReader(""), &stdout, &stderr))
			cmd := newRewriteCmd(f, func(_ context.Context, o *rewriteOptions) error {
				o.now = func() int64 { // asked once there is a plan
					cancel(&interrupted{syscall.SIGTERM})
					return 1
				}
				return runRewrite(ctx, o)
			})
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs([]string{"s", "--redact-file", rules})
			if code := f.finish(ctx, nil, cmd.ExecuteContext(ctx)); code != exitTerm {
				t.Errorf("exit code %d", code)
			}
			assertField(t, stdout.String(), "exit.code", "143")
			assertField(t, stderr.String(), "exit", "143")
			assertField(t, stderr.String(), "code", "interrupted")
			if code, out := w.here("show", "s"); code != exitOK || !strings.Contains(out, "ERASE-me") {
				t.Errorf("the session is rewritten: %d %s", code, out)
			}
		})
	}
}
