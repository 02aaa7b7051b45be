package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// killPoint is a breakpoint kind and a session that comes to it.
type killPoint struct {
	kind   string
	script string
	// prepare makes the open operation of the session.
	prepare func(*testing.T, *pointWorld)
	// dies are the breakpoints at which earlier processes were killed.
	dies []string
	// ends are what the conversation may be in the end, one entry a word; errors are
	// left out. The command of a call appends its name to a file.
	ends []string
	// exit is how the drive to the end exits.
	exit exitCode
}

const (
	twoCalls = `responses:
  - {text: "calls", tool_calls: [{name: bash, arguments: {command: "echo a >> ran"}}, {name: bash, arguments: {command: "echo b >> ran"}}]}
  - {text: "done"}
  - {text: "done"}
  - {text: "done"}
  - {text: "done"}
`
	failsOnce = "responses:\n  - {error: {message: \"503 busy\", retryable: true, retry_after_ms: 300}}\n" + threeTimes
	later     = "responses:\n  - deferred: {id: job-1, poll_after_ms: 1}\n" + threeTimes
	full      = "model: {context_window: 1000, max_tokens: 100}\nresponses:\n  - {text: \"one\"}\n  - {text: \"two\", usage: {input: 990, output: 5}}\n" + threeTimes
	// threeTimes is enough for a process that dies of each.
	threeTimes = "  - {text: \"done\"}\n  - {text: \"done\"}\n  - {text: \"done\"}\n"
)

func prompted(t *testing.T, w *pointWorld) { w.must(t, exitOK, "prompt", w.session, "go", "--detach") }

// queued is a run in whose queues something waits.
func queued(t *testing.T, w *pointWorld) {
	prompted(t, w)
	w.must(t, exitOK, "append", w.session, "--custom-type", "app.note", "--data", `{"k":1}`)
	w.must(t, exitOK, "steer", w.session, "steered")
	w.must(t, exitOK, "follow-up", w.session, "followed")
}

func talked(t *testing.T, w *pointWorld) {
	w.must(t, exitOK, "prompt", w.session, "hello")
	w.must(t, exitOK, "prompt", w.session, "again")
}

func compacting(t *testing.T, w *pointWorld) {
	talked(t, w)
	w.must(t, exitOK, "compact", w.session, "--detach")
}

func suspended(t *testing.T, w *pointWorld) {
	w.must(t, exitLater, "prompt", w.session, "go", "--deferred", "1h")
}

func cancelled(t *testing.T, w *pointWorld) {
	suspended(t, w)
	w.must(t, exitOK, "abort", w.session, "--request-only")
}

// killPoints are all breakpoints that a session without hooks comes to.
func killPoints() []killPoint {
	plain := []string{"go calls result:a result:b done", "go done"}
	unknown := []string{"go calls interrupted result:b done", "go calls result:a interrupted done", "go calls interrupted interrupted done"}
	calls := func(kind string, ends ...string) killPoint {
		return killPoint{kind: kind, script: twoCalls, prepare: prompted, ends: append(ends, plain[0])}
	}
	waiting := func(kind string) killPoint {
		return killPoint{kind: kind, script: "responses:\n" + threeTimes + threeTimes, prepare: queued, ends: []string{"go steered done followed done"}}
	}
	polling := func(kind string) killPoint {
		return killPoint{kind: kind, script: later, prepare: suspended, ends: []string{"go deferred done"}}
	}
	summing := func(kind string) killPoint {
		return killPoint{kind: kind, script: "responses:\n" + threeTimes + threeTimes, prepare: compacting, ends: []string{"hello done again done compaction"}}
	}
	return []killPoint{
		calls("run.begin"), calls("assistant.intent"),
		calls("assistant.request"), calls("assistant.settlement", plain[1]),
		calls("tool.intent"), calls("tool.execute", unknown...), calls("tool.settlement", unknown...),
		calls("tool.materialize", unknown...), calls("checkpoint.finish"),
		{kind: "tool.recover_interruption", script: twoCalls, prepare: prompted, dies: []string{"tool.execute"}, ends: unknown},
		{kind: "recovery.settlement", script: twoCalls, prepare: prompted, dies: []string{"assistant.request"}, ends: plain},
		waiting("checkpoint.write"), waiting("checkpoint.steer"), waiting("checkpoint.follow_up"),
		{kind: "retry.sleep", script: failsOnce, prepare: prompted, ends: []string{"go done"}},
		polling("deferred.intent"), polling("deferred.fetch"), polling("deferred.settlement"),
		{kind: "deferred.cancel", script: later, prepare: cancelled, ends: []string{"go deferred"}, exit: exitAborted},
		{kind: "cancel.reconcile", script: later, prepare: cancelled, ends: []string{"go deferred"}, exit: exitAborted},
		{
			kind: "checkpoint.threshold", script: full, ends: []string{"hello one go two compaction"},
			prepare: func(t *testing.T, w *pointWorld) {
				w.must(t, exitOK, "prompt", w.session, "hello")
				prompted(t, w)
			},
		},
		summing("structural.intent"), summing("structural.request"), summing("structural.settlement"), summing("structural.publish"),
		{
			kind: "navigation.commit", script: "responses:\n" + threeTimes, ends: []string{""},
			prepare: func(t *testing.T, w *pointWorld) {
				talked(t, w)
				w.must(t, exitOK, "navigate", w.session, "root", "--detach")
			},
		},
	}
}

// pointWorld is one session and the folder that its tools work in.
type pointWorld struct {
	killWorld
	folder string
	env    []string
}

func newPointWorld(t *testing.T, backend string, p killPoint) *pointWorld {
	t.Helper()
	w := &pointWorld{killWorld: killWorld{repo: t.TempDir()}, folder: t.TempDir()}
	script := filepath.Join(w.repo, "script.yaml")
	if err := os.WriteFile(script, []byte(p.script), 0o600); err != nil {
		t.Fatal(err)
	}
	w.env = []string{
		"HOME=/", "DROVER_REPO=" + w.repo, "DROVER_RETRY_BASE_DELAY=1ms", "DROVER_COMPACTION_KEEP_RECENT_TOKENS=1",
		"DROVER_COMPACTION_RESERVE_TOKENS=50", "PATH=" + os.Getenv("PATH"),
	}
	out := w.must(t, exitOK, "create", "--backend", backend, "--tools", "bash", "--cwd", w.folder, "--model", "scripted/"+script)
	w.session = strings.TrimSpace(out)
	p.prepare(t, w)
	for _, kind := range p.dies {
		w.killAt(t, kind)
	}
	return w
}

// must runs a command in this process.
func (w *pointWorld) must(t *testing.T, want exitCode, args ...string) string {
	t.Helper()
	var stdout, stderr strings.Builder
	if code := Main(args, w.env, strings.NewReader(""), &stdout, &stderr); exitCode(code) != want {
		t.Fatalf("%s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, stdout.String(), stderr.String())
	}
	return stdout.String()
}

func (w *pointWorld) driving(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("drover")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, append([]string{"drive", w.session, "--wait-retry", "--poll-deferred"}, args...)...)
	cmd.Env = w.env
	return cmd
}

// killAt drives the session in a process of its own, step by step, and kills it
// with SIGKILL where it is parked before a breakpoint of the kind.
func (w *pointWorld) killAt(t *testing.T, kind string) {
	t.Helper()
	killBefore(t, w.driving(t, "--manual"), kind)
}

// killBefore starts a drive that takes steps from its stdin, and kills it where it is
// parked before a breakpoint of the kind.
func killBefore(t *testing.T, cmd *exec.Cmd, kind string) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tell := func(command string) { _, _ = io.WriteString(in, command+"\n") }
	lines := bufio.NewScanner(out)
	tell("peek")
	for peeked := true; lines.Scan(); peeked = !peeked {
		at, _, _ := strings.Cut(lines.Text(), " ")
		if peeked && at == kind {
			_ = cmd.Process.Kill()
			break
		}
		tell(map[bool]string{true: "step", false: "peek"}[peeked])
	}
	if err := cmd.Wait(); !wasKilled(err) {
		t.Fatalf("the drive came to no %s: %v\n%s", kind, err, stderr.String())
	}
}

// stopAt drives the session in a process of its own that stops before the kind.
func (w *pointWorld) stopAt(t *testing.T, kind string) {
	t.Helper()
	w.stopped(t, kind)
}

// stopped is the action before which a drive stopped.
func (w *pointWorld) stopped(t *testing.T, point string) string {
	t.Helper()
	kind, _, _ := strings.Cut(point, "#")
	cmd := w.driving(t, "--stop-before", point, "--json")
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); exitCode(code) != exitLater {
		t.Fatalf("--stop-before %s: exit code %d\n%s%s", point, code, stdout.String(), stderr.String())
	}
	assertField(t, stdout.String(), "stoppedBefore.kind", kind)
	action, err := lookupField(stdout.String(), "stoppedBefore")
	if err != nil {
		t.Fatal(err)
	}
	return action
}

// The N-th breakpoint of a kind is that of the N-th call of a parallel batch, every
// time.
func TestStopPointIsExact(t *testing.T) {
	p := killPoint{script: twoCalls, prepare: prompted, ends: []string{"go calls result:a result:b done", "go calls interrupted result:b done"}}
	for range 4 {
		w := newPointWorld(t, "jsonl", p)
		assertField(t, w.stopped(t, "tool.intent#2"), "details.sourceIndex", "1")
		w.finish(t, p)
	}
}

// finish drives the session to its end and compares what was said and done.
func (w *pointWorld) finish(t *testing.T, p killPoint) {
	t.Helper()
	w.must(t, p.exit, "drive", w.session, "--wait-retry", "--poll-deferred", "--passes", "until-settled", "--json")
	w.must(t, exitOK, "verify", w.session)
	said := w.words(t)
	if !slices.Contains(p.ends, said) {
		t.Errorf("in the end was said %q, want one of %q", said, p.ends)
	}
	raw, _ := os.ReadFile(filepath.Join(w.folder, "ran"))
	ran := map[string]int{}
	for name := range strings.Lines(string(raw)) {
		ran[strings.TrimSpace(name)]++
	}
	for _, name := range []string{"a", "b"} {
		if ran[name] > 1 || ran[name] == 0 && strings.Contains(said, "result:"+name) {
			t.Errorf("call %s ran %d times; %s", name, ran[name], said)
		}
	}
}

// words is the conversation, one word an entry, errors left out.
func (w *pointWorld) words(t *testing.T) string {
	t.Helper()
	entries, err := lookupField(w.must(t, exitOK, "show", w.session, "--json"), "entries")
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	results := []string{"a", "b"}
	for i := 0; ; i++ {
		entry, err := lookupField(entries, fmt.Sprint(i))
		if err != nil {
			return strings.Join(words, " ")
		}
		typ, _ := lookupField(entry, "type")
		role, _ := lookupField(entry, "message.role")
		stop, _ := lookupField(entry, "message.stopReason")
		text, _ := lookupField(entry, "message.content.0.text")
		synthetic, _ := lookupField(entry, "message.details.synthetic")
		switch {
		case typ == "custom" || stop == "error":
		case typ != "message":
			words = append(words, typ)
		case stop == "deferred":
			words = append(words, stop)
		case role == "toolResult":
			name := results[0]
			results = results[1:]
			if synthetic == "" {
				synthetic = "result:" + name
			}
			words = append(words, synthetic)
		default:
			words = append(words, text)
		}
	}
}

// Stopped before any breakpoint, or killed there, a session is driven on to the
// same end, and is clean; no call runs twice.
func TestKillPoints(t *testing.T) {
	long := os.Getenv("DROVER_TEST_LONG") != ""
	ways := map[string]func(*pointWorld, *testing.T, string){"stop": (*pointWorld).stopAt, "kill": (*pointWorld).killAt}
	for i, p := range killPoints() {
		for j, backend := range []string{"jsonl", "sqlite"} {
			for name, way := range ways {
				if !long && (j != i%2 || (name == "stop") != (i/2%2 == 0)) {
					continue // one way on one backend
				}
				t.Run(p.kind+"/"+backend+"/"+name, func(t *testing.T) {
					t.Parallel()
					w := newPointWorld(t, backend, p)
					way(w, t, p.kind)
					w.finish(t, p)
				})
			}
		}
	}
}

// Every breakpoint is killed at; those of hooks are in TestHookDeaths.
func TestKillPointsAreComplete(t *testing.T) {
	var covered, want []string
	for _, p := range killPoints() {
		covered = append(covered, p.kind)
	}
	for _, kind := range breakpointKinds() {
		if !strings.HasPrefix(kind, "hook.") {
			want = append(want, kind)
		}
	}
	slices.Sort(covered)
	slices.Sort(want)
	if !slices.Equal(covered, want) {
		t.Errorf("killed at %q, want %q", covered, want)
	}
}
