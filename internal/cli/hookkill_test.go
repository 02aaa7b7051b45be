package cli

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-run/drover/pkg/hook"
)

// hookDeath is an interception point and a session that comes to it.
type hookDeath struct {
	point   hook.Point
	script  string
	prepare func(*testing.T, *pointWorld)
	ends    []string // of the conversation, one entry a word
	exit    exitCode
	// runs is how often the hook runs in all, when the first of them is killed; 0 where
	// that depends on how far the other call of the batch has come.
	runs int
}

func hookDeaths() []hookDeath {
	plain := "go calls result:a result:b done"
	unknown := []string{"go calls interrupted interrupted done", "go calls interrupted result:b done", "go calls result:a interrupted done", plain}
	run := func(p hook.Point, runs int, ends ...string) hookDeath {
		return hookDeath{point: p, script: twoCalls, prepare: prompted, ends: append(ends, plain), runs: runs}
	}
	navigating := func(t *testing.T, w *pointWorld) {
		talked(t, w)
		// The summary is of what comes after the first prompt.
		first, err := lookupField(w.must(t, exitOK, "show", w.session, "--json"), "entries.0.id")
		if err != nil {
			t.Fatal(err)
		}
		w.must(t, exitOK, "navigate", w.session, first, "--summarize", "--detach")
	}
	return []hookDeath{
		run(hook.BeforeDrive, 2), run(hook.BeforeRun, 2),
		run(hook.BeforeRequest, 3), run(hook.TransformContext, 3),
		// Of this request nothing had been sent. That of the next was answered: what is
		// repeated gets the next response.
		run(hook.BeforePayload, 3), run(hook.AfterResponse, 2, "go done"),
		run(hook.BeforeTool, 3), run(hook.AfterTool, 0, unknown...),
		run(hook.BeforeRunEnd, 2),
		{
			point: hook.BeforeCompaction, script: "responses:\n" + threeTimes + threeTimes, prepare: compacting,
			ends: []string{"hello done again done compaction"}, runs: 2,
		},
		{
			point: hook.BeforeNavigation, script: "responses:\n" + threeTimes + threeTimes, prepare: navigating,
			ends: []string{"hello branch_summary"}, runs: 2,
		},
	}
}

// hooked gives the world a hook at the point, which counts its runs in a file and then
// does what the shell text says.
func (w *pointWorld) hooked(t *testing.T, point hook.Point, then string) {
	t.Helper()
	program := fmt.Sprintf("cat >/dev/null; echo $DROVER_OPERATION_ID >>%s; %s", filepath.Join(w.repo, "runs"), then)
	text := fmt.Sprintf("hooks:\n  mine: {on: %s, cwd: /, timeout: 10m, argv: [sh, -c, %q]}\n", point, program)
	path := filepath.Join(w.repo, "hooks.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w.env = slices.DeleteFunc(w.env, func(v string) bool { return strings.HasPrefix(v, "DROVER_CONFIG=") })
	w.env = append(w.env, "DROVER_CONFIG="+path)
}

// runs are the operations that the hook ran for, one each time.
func (w *pointWorld) runs(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.repo, "runs"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(raw))
}

// killInHook drives the session in a process of its own and kills that while its hook
// program runs.
func (w *pointWorld) killInHook(t *testing.T, point hook.Point) {
	t.Helper()
	pipe := filepath.Join(w.repo, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	// Open for both, so that neither side ever waits for the other to open it.
	begun, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer begun.Close()
	w.hooked(t, point, "echo begun >"+pipe+"; exec sleep 600")
	cmd := w.driving(t)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	inside := make(chan bool, 1)
	go func() { ended <- cmd.Wait() }()
	go func() { inside <- bufio.NewScanner(begun).Scan() }()
	select {
	case <-inside:
	case err := <-ended:
		t.Fatalf("the drive came to no %s: %v\n%s", point, err, stderr.String())
	}
	_ = cmd.Process.Kill()
	if err := <-ended; !wasKilled(err) {
		t.Fatalf("the drive ended with %v\n%s", err, stderr.String())
	}
}

// Killed in the middle of a hook program, or stopped before it, a session is driven on
// to the same end, and is clean; the hook runs again for the same operation where its
// contract says so (spec §5.6).
func TestHookDeaths(t *testing.T) {
	for i, d := range hookDeaths() {
		p := killPoint{kind: "hook." + string(d.point), script: d.script, prepare: d.prepare, ends: d.ends, exit: d.exit}
		backend := []string{"jsonl", "sqlite"}[i%2]
		t.Run(string(d.point)+"/kill", func(t *testing.T) {
			t.Parallel()
			w := newPointWorld(t, backend, p)
			w.killInHook(t, d.point)
			w.hooked(t, d.point, "true")
			w.finish(t, p)
			runs := w.runs(t)
			if d.runs != 0 && len(runs) != d.runs || len(slices.Compact(slices.Clone(runs))) != 1 {
				t.Errorf("the hook ran for %q, want %d times the same operation", runs, d.runs)
			}
		})
		t.Run(string(d.point)+"/stop", func(t *testing.T) {
			t.Parallel()
			w := newPointWorld(t, backend, p)
			w.hooked(t, d.point, "true")
			w.stopAt(t, p.kind)
			w.finish(t, p)
		})
	}
}

// Every interception point is killed at.
func TestHookDeathsAreComplete(t *testing.T) {
	var covered []string
	for _, d := range hookDeaths() {
		covered = append(covered, string(d.point))
	}
	want := hook.Points()
	slices.Sort(covered)
	slices.Sort(want)
	if !slices.Equal(covered, want) {
		t.Errorf("covered are %q, want %q", covered, want)
	}
}
