package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// process is the real binary, started by a test.
type process struct {
	*exec.Cmd
	stdout, stderr bytes.Buffer
	given          io.Closer // what only the process keeps open
}

// drover prepares a run of the real binary on a repository of the test's own.
func drover(t *testing.T, repo string, args ...string) *process {
	t.Helper()
	path, err := exec.LookPath("drover") // testscript puts it there
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(path, args...)}
	p.Env = append(os.Environ(), "DROVER_REPO="+repo, "HOME="+t.TempDir(), "DROVER_RETRY_BASE_DELAY=1ms")
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	return p
}

// code waits for the end and returns the exit code, -1 for a signal.
func (p *process) code(t *testing.T) int {
	t.Helper()
	err := p.Wait()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	return p.ProcessState.ExitCode()
}

// output runs the binary to a successful end.
func output(t *testing.T, repo string, args ...string) string {
	t.Helper()
	p := drover(t, repo, args...)
	if err := p.Run(); err != nil {
		t.Fatalf("drover %s: %v\n%s", strings.Join(args, " "), err, p.stderr.String())
	}
	return strings.TrimSpace(p.stdout.String())
}

// hang writes a script whose first response never starts.
func hang(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hang.yaml")
	script := "responses:\n  - {text: late, hang_ms: 600000}\n  - {text: the answer}\n"
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	return "scripted/" + path
}

// waitForRequest returns once the session's request is under way.
func waitForRequest(t *testing.T, repo, session string) {
	t.Helper()
	for range 2000 {
		p := drover(t, repo, "inspect", session, "--json")
		if p.Run() != nil {
			continue
		}
		point, err := lookupField(p.stdout.String(), "lanes.0.current.point")
		if err == nil && point == "run.assistant.effect_pending" {
			return
		}
	}
	t.Fatal("the request never started")
}

// A signal is a controlled crash: its own exit code, one document on stdout, the
// operation resumable, nothing recorded as aborted (spec §4.7).
func TestB24Signals(t *testing.T) {
	for _, backend := range []string{"sqlite", "jsonl"} {
		for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
			t.Run(backend+"/"+signalName(sig), func(t *testing.T) {
				t.Parallel()
				if signal.Ignored(sig) {
					t.Skip("whoever runs the tests ignores it, as nohup does, and drover inherits that")
				}
				repo := t.TempDir()
				session := output(t, repo, "create", "--backend", backend)
				p := drover(t, repo, "prompt", session, "go", "--model", hang(t), "--json")
				if err := p.Start(); err != nil {
					t.Fatal(err)
				}
				waitForRequest(t, repo, session)
				if err := p.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
				if got := p.code(t); got != want {
					t.Errorf("exit code %d, want %d\n%s", got, want, p.stderr.String())
				}
				assertField(t, p.stdout.String(), "exit.code", fmt.Sprint(want))
				assertField(t, p.stdout.String(), "outcome", "null")
				assertField(t, p.stderr.String(), "code", "interrupted")
				assertField(t, p.stderr.String(), "hint", "go on with `drover drive "+session+"`")

				state := output(t, repo, "inspect", session, "--json")
				assertField(t, state, "lanes.0.current.status", "suspended")
				assertField(t, state, "lease", "null")
				if text := output(t, repo, "drive", session, "--wait-retry"); text != "the answer" {
					t.Errorf("driven on, it says %q", text)
				}
				output(t, repo, "verify", session)
			})
		}
	}
}

func assertField(t *testing.T, document, path, want string) {
	t.Helper()
	got, err := lookupField(document, path)
	if err != nil {
		t.Error(err)
	} else if got != want {
		t.Errorf("%s is %q, want %q", path, got, want)
	}
}

// A signal that was ignored when the process started stays ignored, as nohup
// promises.
func TestNohup(t *testing.T) {
	repo := t.TempDir()
	session := output(t, repo, "create")
	p := drover(t, repo, "prompt", session, "go", "--model", hang(t))
	p.Args = []string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`, p.Path, "prompt", session, "go", "--model", p.Args[5]}
	p.Path = "/bin/sh"
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	waitForRequest(t, repo, session)
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM} {
		if err := p.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.code(t); got != 143 {
		t.Errorf("exit code %d, want that of TERM", got)
	}
}

// Two writers: one runs, the other is refused and told who holds the session,
// or waits its turn; readers never wait.
func TestB13SecondWriter(t *testing.T) {
	for _, backend := range []string{"sqlite", "jsonl"} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			repo := t.TempDir()
			session := output(t, repo, "create", "--backend", backend)
			owner := drover(t, repo, "prompt", session, "one", "--model", hang(t))
			if err := owner.Start(); err != nil {
				t.Fatal(err)
			}
			waitForRequest(t, repo, session)

			second := drover(t, repo, "prompt", session, "two", "--json")
			if err := second.Start(); err != nil {
				t.Fatal(err)
			}
			if got := second.code(t); got != 11 {
				t.Errorf("exit code %d, want 11", got)
			}
			if second.stdout.Len() > 0 {
				t.Errorf("a refused prompt prints %q", second.stdout.String())
			}
			assertField(t, second.stderr.String(), "code", "lease_held")
			assertField(t, second.stderr.String(), "details.pid", fmt.Sprint(owner.Process.Pid))
			assertField(t, second.stderr.String(), "details.live", "true")
			if since, err := lookupField(second.stderr.String(), "details.since"); err != nil || since == "0" {
				t.Errorf("since %s: %v", since, err)
			}
			for _, read := range [][]string{{"show", session}, {"list"}, {"verify", session}, {"inspect", session}} {
				output(t, repo, read...)
			}
			sweep := output(t, repo, "drive", "--all", "--json")
			assertField(t, sweep, "totals.skipped", "1")
			assertField(t, sweep, "exit.code", "0")

			third := drover(t, repo, "drive", session, "--wait-retry", "--lease-wait", "60s")
			if err := third.Start(); err != nil {
				t.Fatal(err)
			}
			if err := owner.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			owner.code(t)
			if got := third.code(t); got != 0 || third.stdout.String() != "the answer\n" {
				t.Errorf("the one that waited: exit code %d, %q\n%s", got, third.stdout.String(), third.stderr.String())
			}
			output(t, repo, "verify", session)
		})
	}
}

// A reader of stdout that goes away ends a command quietly; any other failed
// write is exit 6.
func TestB51ClosedAndFullStdout(t *testing.T) {
	repo := t.TempDir()
	session := output(t, repo, "create")
	other := output(t, repo, "create")
	long := strings.Repeat("0123456789abcdef", 1<<14)
	prompt := drover(t, repo, "prompt", session, "-")
	prompt.Stdin = strings.NewReader(long)
	if err := prompt.Run(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"show", session}, {"show", session, "--json"}, {"list", "--json"}, {"inspect", session, "--snapshot", "--json"},
		{"version"}, {"help", "exit-codes"}, {"completion", "bash"}, {"prompt", other, "hello"},
	} {
		t.Run(args[0]+fmt.Sprint(len(args)), func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			p := drover(t, repo, args...)
			p.Stdout = w
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			_ = w.Close()
			if got := p.code(t); got != 0 || p.stderr.Len() > 0 {
				t.Errorf("closed pipe: exit code %d, stderr %q", got, p.stderr.String())
			}

			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil {
				t.Skip("this system has no device that is always full: ", err)
			}
			defer full.Close()
			p = drover(t, repo, args...)
			p.Stdout = full
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			if got := p.code(t); got != 6 || !strings.Contains(p.stderr.String(), "no space") {
				t.Errorf("full device: exit code %d, stderr %q", got, p.stderr.String())
			}
		})
	}
	// All of it arrives where it is read slowly, as in a file.
	whole := output(t, repo, "show", session, "--json")
	p := drover(t, repo, "show", session, "--json")
	p.Stdout = nil
	pipe, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(pipe)
	if err != nil {
		t.Fatal(err)
	}
	if p.code(t) != 0 || strings.TrimSpace(string(all)) != whole {
		t.Errorf("a pipe got %d bytes, a buffer %d", len(all), len(whole))
	}
}

// A reader of stdout that goes away ends no work on several sessions, and hides no
// failure of one.
func TestClosedPipeOverItems(t *testing.T) {
	const sessions = 8
	repo := t.TempDir()
	for i := range sessions {
		output(t, repo, "create", "--backend", "sqlite", "--id", fmt.Sprint("s", i))
	}
	unread := func(args ...string) int {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		p := drover(t, repo, append(args, "-o", "ndjson")...)
		p.Stdout = w
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		return p.code(t)
	}
	if got := unread("migrate", "--all", "--backend", "jsonl"); got != 0 {
		t.Errorf("migrate: exit code %d", got)
	}
	for i := range sessions {
		path := filepath.Join(repo, fmt.Sprint("s", i, ".jsonl"))
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal("not moved: ", err)
		}
		// A value that is set twice is dead weight.
		output(t, repo, "value", "set", fmt.Sprint("s", i), "app/x", `"1"`)
		output(t, repo, "value", "set", fmt.Sprint("s", i), "app/x", `"2"`)
		if i == 0 {
			broken := append(text[:len(text)-1:len(text)-1], "x\n{}\n"...)
			if err := os.WriteFile(path, broken, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := unread("compact-file", "--all"); got != 3 {
		t.Errorf("compact-file: exit code %d", got)
	}
	for i := 1; i < sessions; i++ {
		text, err := os.ReadFile(filepath.Join(repo, fmt.Sprint("s", i, ".jsonl")))
		if err != nil || bytes.Contains(text, []byte(`"1"`)) {
			t.Errorf("s%d is not compacted: %v", i, err)
		}
	}
	for _, command := range [][]string{{"verify", "--all"}, {"list"}, {"usage", "--all"}} {
		if got := unread(command...); got != 3 {
			t.Errorf("%s: exit code %d", command[0], got)
		}
	}
}

// A reader of stderr that goes away changes nothing of how a command ends.
func TestClosedStderr(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	p := drover(t, t.TempDir(), "inspect", "nothing")
	p.Cmd.Stderr = w
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if got := p.code(t); got != 4 {
		t.Errorf("exit code %d, want 4", got)
	}
}

// A session that the disk has no room for: exit 6, and what is there is sound.
func TestB06FileSizeLimit(t *testing.T) {
	for _, backend := range []string{"sqlite", "jsonl"} {
		t.Run(backend, func(t *testing.T) {
			repo := t.TempDir()
			session := output(t, repo, "create", "--backend", backend)
			p := drover(t, repo, "prompt", session, "-", "--json")
			p.Args = []string{"sh", "-c", `ulimit -f 512; exec "$0" "$@"`, p.Path, "prompt", session, "-", "--json"}
			p.Path = "/bin/sh"
			p.Stdin = strings.NewReader(strings.Repeat("x", 2<<20))
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			if got := p.code(t); got != 6 {
				t.Errorf("exit code %d, want 6: %s", got, p.stderr.String())
			}
			assertField(t, p.stderr.String(), "code", "io")
			if p.stdout.Len() > 0 {
				t.Errorf("stdout has %q", p.stdout.String())
			}
			output(t, repo, "verify", session)
			if text := output(t, repo, "prompt", session, "there is room again"); text != "there is room again" {
				t.Errorf("afterwards it says %q", text)
			}
		})
	}
}
