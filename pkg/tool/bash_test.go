package tool

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
)

func commandArgs(line string) string {
	return `{"command":` + string(rawjson.Quote(line)) + `}`
}

func TestBash(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TOOL_TEST_SECRET", "hidden")
	t.Setenv("TOOL_TEST_PLAIN", "seen")
	b := toolNamed("bash", Options{CWD: dir, TempDir: t.TempDir(), StripEnv: func(name string) bool { return name == "TOOL_TEST_SECRET" }})
	const fine = `{"exitCode":0,"cancelled":false,"timedOut":false,"truncated":false}`
	code := func(n int) string { return strings.Replace(fine, "0", fmt.Sprint(n), 1) }
	cases := []struct {
		name, args string
		want       outcome
	}{
		{"both streams", commandArgs("echo out; echo err >&2"), outcome{Text: "out\nerr\n", Details: fine}},
		{"nothing", commandArgs("true"), outcome{Text: "(no output)", Details: fine}},
		{"directory", commandArgs(`pwd; echo "$PWD"`), outcome{Text: dir + "\n" + dir + "\n", Details: fine}},
		{"exit code", commandArgs("printf a; exit 3"), outcome{Text: "a\n[Exit code 3.]", Details: code(3), IsError: true}},
		{"exit code alone", commandArgs("exit 4"), outcome{Text: "[Exit code 4.]", Details: code(4), IsError: true}},
		{"not found", commandArgs("no-such-command 2>/dev/null"), outcome{Text: "[Exit code 127.]", Details: code(127), IsError: true}},
		{"signal", commandArgs("echo a; kill -SEGV $$"), outcome{
			Text:    "a\n[Ended by signal 11 (segmentation fault).]",
			Details: `{"exitCode":null,"signal":11,"cancelled":false,"timedOut":false,"truncated":false}`, IsError: true}},
		{"no input", commandArgs("cat; echo end"), outcome{Text: "end\n", Details: fine}},
		{"no terminal", commandArgs("(exec < /dev/tty) 2>/dev/null || echo none"), outcome{Text: "none\n", Details: fine}},
		{"environment", commandArgs(`echo "$TOOL_TEST_SECRET,$TOOL_TEST_PLAIN"; env | grep -c hidden; tr '\0' '\n' < /proc/$PPID/environ | grep -c hidden`), outcome{
			Text: ",seen\n0\n0\n[Exit code 1.]", Details: code(1), IsError: true}},
		{"group of its own", commandArgs(`test $$ = "$(ps -o pgid= -p $$ | tr -d ' ')" && echo leads`), outcome{Text: "leads\n", Details: fine}},
		{"open descriptors", commandArgs("for n in 0 1 2 3 4; do test -e /proc/$$/fd/$n && echo $n; done; true"), outcome{Text: "0\n1\n2\n", Details: fine}},
		{"timeout not reached", `{"command":"echo a","timeout":1e99}`, outcome{Text: "a\n", Details: fine}},
		{"timeout", `{"command":"trap 'echo bye; exit 5' TERM; echo a; sleep 90 & wait","timeout":1.25}`, outcome{
			Text:    "a\nbye\n[Ended after 1.25 seconds, the time limit.]",
			Details: `{"exitCode":5,"cancelled":false,"timedOut":true,"truncated":false}`, IsError: true}},
		{"background", commandArgs("sleep 90 & echo started"), outcome{
			Text: "started\n[Processes that the command left running were ended.]", Details: fine}},
		{"background that ends by itself", commandArgs("exec > >(cat); echo a"), outcome{Text: "a\n", Details: fine}},
		{"not UTF-8", commandArgs(`printf '\377\376'; printf '\303'; sleep 0.15; printf '\251\033[1m\000'`), outcome{Text: "��é\x1b[1m\x00", Details: fine}},
		{"NUL in the command", `{"command":"echo \u0000"}`, outcome{Err: "$.command is a string that holds a NUL character"}},
		{"too long", commandArgs(strings.Repeat("#", 128<<10)), outcome{
			Err: "run command: it has 131072 bytes, the system takes 131071; write a script to a file and run that"}},
		{"as long as may be", commandArgs("exit 6" + strings.Repeat(" ", 128<<10-7)), outcome{Text: "[Exit code 6.]", Details: code(6), IsError: true}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, call(t, b, c.args)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBashLongOutput(t *testing.T) {
	b := toolNamed("bash", Options{CWD: t.TempDir(), TempDir: t.TempDir()})
	got := call(t, b, commandArgs("seq 1 5000; exit 1"))
	path, _ := rawjson.GetString([]byte(got.Details), "fullOutputPath")
	want := outcome{
		Text:    numbered(3001, 5000) + "[The last 2000 of 5000 lines; the full output is in " + path + ". Exit code 1.]",
		Details: `{"exitCode":1,"cancelled":false,"timedOut":false,"truncated":true,"totalLines":5000,"totalBytes":23893,"fullOutputPath":"` + path + `"}`,
		IsError: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(clip(diff, 2000))
	}
	if saved, err := os.ReadFile(path); err != nil || string(saved) != numbered(1, 5000) {
		t.Errorf("saved %d bytes: %v", len(saved), err)
	}
}

func TestBashWorkingDirectory(t *testing.T) {
	parent := t.TempDir()
	file := filepath.Join(parent, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(parent, "link")
	if err := os.Symlink(parent, link); err != nil {
		t.Fatal(err)
	}
	gone := filepath.Join(parent, "gone")
	cases := map[string]outcome{
		gone: {Err: "use the session's working directory: " + gone + " is gone"},
		file: {Err: "use the session's working directory: stat " + file + "/.: not a directory"},
		"":   {Err: "use the session's working directory: it has none"},
		link: {Text: link + "\n", Details: `{"exitCode":0,"cancelled":false,"timedOut":false,"truncated":false}`},
	}
	for dir, want := range cases {
		if diff := cmp.Diff(want, call(t, toolNamed("bash", Options{CWD: dir}), commandArgs("pwd"))); diff != "" {
			t.Errorf("%q: %s", dir, diff)
		}
	}
}

// TestBashUpdates checks what a running command reports, B11 included.
func TestBashUpdates(t *testing.T) {
	dir := t.TempDir()
	fifo := makeFIFO(t, dir, "go")
	b := toolNamed("bash", Options{CWD: dir})
	type update struct {
		Text, Details string
		Checkpoint    bool
	}
	var got []update
	o := callWith(t.Context(), b, commandArgs(`printf 'a\377\303'; cat go; printf '\251'`), func(r message.ToolResult, checkpoint bool) {
		got = append(got, update{r.Content[0].Text, string(r.Details), checkpoint})
		if len(got) > 1 {
			return // what follows may be reported or not
		}
		if err := os.WriteFile(fifo, []byte("x"), 0); err != nil {
			t.Error(err)
		}
	})
	if want := []update{{"a�", `{"truncated":false}`, true}}; len(got) == 0 || !cmp.Equal(want, got[:1]) {
		t.Error(cmp.Diff(want, got))
	}
	if want := "a��x�"; o.Text != want {
		t.Errorf("got %q, want %q", o.Text, want)
	}
}

// TestBashAbort aborts a call whose output a stranger holds open: waiting for the
// end of the output would never end.
func TestBashAbort(t *testing.T) {
	b := toolNamed("bash", Options{CWD: t.TempDir()})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var aborted time.Time
	var stranger *os.File
	got := callWith(ctx, b, commandArgs(`trap '' TERM; echo $$; setsid sh -c 'trap "" TERM; sleep 90'; sleep 90`), func(r message.ToolResult, _ bool) {
		if stranger != nil {
			return
		}
		var err error
		pid := strings.TrimSpace(r.Content[0].Text)
		if stranger, err = os.OpenFile("/proc/"+pid+"/fd/1", os.O_WRONLY, 0); err != nil {
			t.Error(err)
		}
		aborted = time.Now()
		cancel()
	})
	defer stranger.Close()
	// The promise is a second; a loaded machine gets more.
	if took := time.Since(aborted); took > 10*time.Second {
		t.Errorf("returned %v after the abort", took)
	}
	_, got.Text, _ = strings.Cut(got.Text, "\n")
	want := outcome{
		Text:    "[Ended because the call was aborted.]",
		Details: `{"exitCode":null,"signal":9,"cancelled":true,"timedOut":false,"truncated":false}`, IsError: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBashAbortedBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	got := callWith(ctx, toolNamed("bash", Options{CWD: dir}), commandArgs("touch ran"), nil)
	if want := (outcome{Err: "run command: the call was aborted before it started"}); got != want || names(t, dir) != "" {
		t.Errorf("got %+v, in the folder: %s", got, names(t, dir))
	}
}

func TestBashWithoutSupervisor(t *testing.T) {
	dir := t.TempDir()
	for self, want := range map[string]string{
		dir + "/missing": "[Start command: fork/exec " + dir + "/missing: no such file or directory.]",
		"/bin/true":      "[Start supervisor: it ended at once (<nil>).]",
	} {
		got := call(t, toolNamed("bash", Options{CWD: dir, Self: self}), commandArgs("echo a"))
		if got.Text != want || !got.IsError {
			t.Errorf("%s: %+v", self, got)
		}
	}
}

// TestBashDeafSupervisor checks that a call ends in time though its supervisor
// does not.
func TestBashDeafSupervisor(t *testing.T) {
	dir := t.TempDir()
	self := put(t, dir, "deaf", "#!/bin/sh\ntrap '' TERM HUP INT\necho here\nexec sleep 90\n")
	if err := os.Chmod(self, 0o700); err != nil {
		t.Fatal(err)
	}
	got := call(t, toolNamed("bash", Options{CWD: dir, Self: self}), `{"command":"true","timeout":1.25}`)
	want := outcome{
		Text:    "here\n[Ended after 1.25 seconds, the time limit.]",
		Details: `{"exitCode":null,"cancelled":false,"timedOut":true,"truncated":false}`, IsError: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestBashSleepingSupervisor checks that a call ends in time, with all that it has
// started, though its supervisor gets no time to see to it.
func TestBashSleepingSupervisor(t *testing.T) {
	dir := t.TempDir()
	held := openHolders(t, dir)
	line := "exec 9>held; setsid sleep 90 & (trap '' TERM; sleep 90) & kill -STOP $PPID; sleep 90"
	got := call(t, toolNamed("bash", Options{CWD: dir}), `{"command":"`+line+`","timeout":1.25}`)
	want := outcome{
		Text:    "[Ended after 1.25 seconds, the time limit.]",
		Details: `{"exitCode":null,"cancelled":false,"timedOut":true,"truncated":false}`, IsError: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	held.wait(t)
}

// TestBashSupervisorKilled checks that a supervisor which dies takes its command
// along and that the result does not guess.
func TestBashSupervisorKilled(t *testing.T) {
	dir := t.TempDir()
	holders := openHolders(t, dir)
	got := call(t, toolNamed("bash", Options{CWD: dir}), commandArgs("exec 9>held; sleep 90 & kill -9 $PPID; sleep 90"))
	want := outcome{
		Text:    "[Supervise command: the supervisor is gone (signal: killed), what became of the command is not known.]",
		Details: `{"exitCode":null,"cancelled":false,"timedOut":false,"truncated":false}`, IsError: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	holders.wait(t)
}

func TestSupervisorByHand(t *testing.T) {
	if got := SupervisorMain(nil); got != 2 {
		t.Errorf("status %d", got)
	}
}

// TestBashParallel runs several commands at once: none holds another's pipes.
func TestBashParallel(t *testing.T) {
	b := toolNamed("bash", Options{CWD: t.TempDir()})
	const n = 6
	got := make(chan string, n)
	for i := range n {
		go func() {
			o := callWith(t.Context(), b, commandArgs(fmt.Sprintf("sleep 0.0%d; echo %d", i, i)), func(message.ToolResult, bool) {})
			got <- strings.TrimSpace(o.Text)
		}()
	}
	seen := map[string]bool{}
	for range n {
		seen[<-got] = true
	}
	for i := range n {
		if !seen[fmt.Sprint(i)] {
			t.Errorf("%d is missing among %v", i, seen)
		}
	}
}

func TestBashWithoutBash(t *testing.T) {
	dir := t.TempDir()
	tools := t.TempDir()
	if err := os.Symlink("/bin/sh", filepath.Join(tools, "sh")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", tools)
	if got := call(t, toolNamed("bash", Options{CWD: dir}), commandArgs("echo $0")); got.Text != "sh\n" {
		t.Errorf("got %+v", got)
	}
	t.Setenv("PATH", dir)
	if got, want := call(t, toolNamed("bash", Options{CWD: dir}), commandArgs("true")), `[Start command: exec: "sh": executable file not found in $PATH.]`; got.Text != want || !got.IsError {
		t.Errorf("got %+v", got)
	}
}

func BenchmarkBash(b *testing.B) {
	tool := toolNamed("bash", Options{CWD: b.TempDir()})
	for b.Loop() {
		if o := callWith(b.Context(), tool, `{"command":"true"}`, func(message.ToolResult, bool) {}); o.Text != "(no output)" {
			b.Fatal(o)
		}
	}
}
