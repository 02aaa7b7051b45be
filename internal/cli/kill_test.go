package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/subsession"
)

// killMain is drover that kills itself with SIGKILL right after the commit that
// $KILL_AFTER numbers, counted over the whole process (D64).
func killMain() {
	after, err := strconv.ParseInt(os.Getenv("KILL_AFTER"), 10, 64)
	if err != nil {
		panic(err)
	}
	f := strictFactory()
	var commits atomic.Int64
	for i, d := range f.drivers {
		f.drivers[i] = killDriver{d, &commits, after}
	}
	f.passed = func(subsession.Stage, string) { killAt(&commits, after) }
	os.Exit(int(run(f, os.Args[1:])))
}

// killAt kills the process when it is called for the given time.
func killAt(calls *atomic.Int64, after int64) {
	if calls.Add(1) == after {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	}
}

type killDriver struct {
	store.Driver
	commits *atomic.Int64
	after   int64
}

func (d killDriver) Open(ctx context.Context, path string, o store.OpenOptions) (store.Backend, error) {
	b, err := d.Driver.Open(ctx, path, o)
	return killBackend{b, d}, err
}

type killBackend struct {
	store.Backend
	d killDriver
}

func (b killBackend) Commit(ctx context.Context, tx store.Tx) (store.CommitResult, error) {
	r, err := b.Backend.Commit(ctx, tx)
	killAt(b.d.commits, b.d.after)
	return r, err
}

const sameAnswer = "the same answer every time, long enough for a few frames"

// killWorld is one session whose model always says the same.
type killWorld struct {
	repo, session, model string
}

func newKillWorld(t *testing.T, backend string, delay time.Duration) killWorld {
	t.Helper()
	w := killWorld{repo: t.TempDir()}
	response := fmt.Sprintf("  - {text: %q, chunk: 8, delay_ms: %d}\n", sameAnswer, delay.Milliseconds())
	script := filepath.Join(w.repo, "script.yaml")
	if err := os.WriteFile(script, []byte("responses:\n"+strings.Repeat(response, 20)), 0o600); err != nil {
		t.Fatal(err)
	}
	w.model = "scripted/" + script
	code, out := w.here("create", "--backend", backend)
	if code != exitOK {
		t.Fatalf("create: %d", code)
	}
	w.session = strings.TrimSpace(out)
	return w
}

// here runs a command in this process.
func (w killWorld) here(args ...string) (exitCode, string) {
	var stdout, stderr strings.Builder
	env := []string{"HOME=/", "DROVER_REPO=" + w.repo, "DROVER_RETRY_BASE_DELAY=1ms"}
	code := Main(args, env, strings.NewReader(""), &stdout, &stderr)
	if code != 0 {
		return exitCode(code), stdout.String() + stderr.String()
	}
	return exitOK, stdout.String()
}

// prompt starts a process that sends the message; killAfter 0 never kills.
func (w killWorld) prompt(t *testing.T, killAfter int) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("drover-kill")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "prompt", w.session, "go", "--model", w.model)
	cmd.Env = append(os.Environ(), "DROVER_REPO="+w.repo, "HOME=/", "DROVER_RETRY_BASE_DELAY=1ms", fmt.Sprint("KILL_AFTER=", killAfter))
	return cmd
}

// finish drives the session to the end of the conversation that an undisturbed
// prompt would have had, and compares.
func (w killWorld) finish(t *testing.T) {
	t.Helper()
	code, out := w.here("drive", w.session, "--wait-retry", "--json")
	if code == exitRefused {
		// It had settled, or the message never became durable.
		if n := len(w.conversation(t)); n == 0 {
			code, out = w.here("prompt", w.session, "go", "--model", w.model, "--json")
		} else {
			code = exitOK
		}
	}
	if code != exitOK {
		t.Fatalf("driving on: exit code %d: %s", code, out)
	}
	said := w.conversation(t)
	if len(said) == 3 && strings.HasPrefix(said[1], "error ") {
		said = append(said[:1], said[2]) // one synthetic error for the kill
	}
	if diff := cmp.Diff([]string{"user go", "stop " + sameAnswer}, said); diff != "" {
		t.Errorf("the conversation differs:\n%s", diff)
	}
	if code, out := w.here("verify", w.session, "--json"); code != exitOK {
		t.Errorf("verify: exit code %d: %s", code, out)
	}
}

// conversation is what was said, without ids and times.
func (w killWorld) conversation(t *testing.T) []string {
	t.Helper()
	code, out := w.here("show", w.session, "--json")
	if code != exitOK {
		t.Fatalf("show: exit code %d: %s", code, out)
	}
	entries, ok := rawjson.Get([]byte(out), "entries")
	if !ok {
		t.Fatalf("no entries in %s", out)
	}
	var said []string
	for entry, err := range rawjson.Elements(entries) {
		if err != nil {
			t.Fatal(err)
		}
		who, _ := lookupField(string(entry), "message.stopReason")
		if who == "" {
			who, _ = lookupField(string(entry), "message.role")
		}
		text, _ := lookupField(string(entry), "message.content.0.text")
		said = append(said, who+" "+text)
	}
	return said
}

func wasKilled(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

// instants kills processes at random moments, of which as many are to be in time. They
// lie in the time that a process takes, whatever the machine: that is what one took that
// was not killed in time, and a little more with every one that was (D64).
type instants struct {
	wanted, killed, tries int
	seed                  uint64
	random                *rand.Rand
	longest               time.Duration
}

func newInstants(wanted int) *instants {
	seed := rand.Uint64()
	return &instants{wanted: wanted, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), longest: 150 * time.Millisecond}
}

// more tells whether another process is to be killed; it ends the test when too few can.
func (k *instants) more(t *testing.T) bool {
	t.Helper()
	if t.Failed() {
		t.Fatalf("seed %d, try %d", k.seed, k.tries)
	}
	if k.killed < k.wanted && k.tries == 10*k.wanted {
		t.Fatalf("only %d processes were killed in time", k.killed)
	}
	return k.killed < k.wanted
}

// kill runs a command to its end or its death, and tells which. Any other failure is
// the test's.
func (k *instants) kill(t *testing.T, cmd *exec.Cmd) bool {
	t.Helper()
	k.tries++
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(time.Duration(k.random.Int64N(int64(k.longest))), func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	timer.Stop()
	switch {
	case wasKilled(err):
		k.killed++
		k.longest += k.longest / 16
	case err != nil:
		t.Fatalf("seed %d, try %d: %v\n%s", k.seed, k.tries, err, cmd.Stderr)
	default:
		k.longest = min(k.longest, time.Since(begun))
	}
	return err != nil
}

// Killed after every one of its commits, a prompt ends in the same conversation,
// but for one synthetic error at most.
func TestB23KillAfterEveryCommit(t *testing.T) {
	for _, backend := range []string{"sqlite", "jsonl"} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			for k := 1; ; k++ {
				w := newKillWorld(t, backend, 0)
				err := w.prompt(t, k).Run()
				if err != nil && !wasKilled(err) {
					t.Fatalf("commit %d: %v", k, err)
				}
				w.finish(t)
				if t.Failed() {
					t.Fatalf("after a kill at commit %d", k)
				}
				if err == nil {
					if k < 8 {
						t.Errorf("the run had only %d commits", k-1)
					}
					return
				}
			}
		})
	}
}

// The same at random instants. This is the one test that lets time pass: a timer
// kills the child (D64).
func TestKillAtRandom(t *testing.T) {
	const kills = 50
	for _, backend := range []string{"sqlite", "jsonl"} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			for k := newInstants(kills); k.more(t); {
				w := newKillWorld(t, backend, 5*time.Millisecond)
				k.kill(t, w.prompt(t, 0))
				w.finish(t)
			}
		})
	}
}
