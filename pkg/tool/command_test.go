package tool

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCommandDescriptors checks what a command finds open, and that each of its
// streams arrives where it shall.
func TestCommandDescriptors(t *testing.T) {
	const list = `for n in 0 1 2 3 4 5; do test -e /proc/$$/fd/$n && printf $n; done; `
	long := strings.Repeat("x", 200<<10) // more than a pipe holds
	type streams struct{ Out, Err, Progress string }
	cases := []struct {
		name, line, stdin string
		separate          bool
		want              streams
	}{
		{"plain", list + "echo err >&2", "", false, streams{Out: "012err\n"}},
		{"apart", list + "echo err >&2; echo more >&3; cat", "given", true, streams{"0123given", "err\n", "more\n"}},
		{"not read", "exec <&-; echo a", long, true, streams{Out: "a\n"}},
		{"read late", "echo a; cat >&3", long, true, streams{Out: "a\n", Progress: long}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var out, errs, progress bytes.Buffer
			cmd := Command{Argv: []string{"sh", "-c", c.line}, Dir: t.TempDir(), Env: os.Environ(), Stdout: &out}
			if c.separate {
				cmd.Stdin, cmd.Stderr, cmd.Progress = strings.NewReader(c.stdin), &errs, &progress
			}
			if e := cmd.Run(t.Context(), 0); e.Failed() || !e.Ended {
				t.Errorf("%+v", e)
			}
			if diff := cmp.Diff(c.want, streams{out.String(), errs.String(), progress.String()}); diff != "" {
				t.Error(clip(diff, 2000))
			}
		})
	}
}

// TestEndingStderr checks that what a command said apart from its output is told
// when it failed, and kept otherwise.
func TestEndingStderr(t *testing.T) {
	for code, want := range map[int]string{0: "out", 2: "out\nwhy\n[Exit code 2.]"} {
		o := &Output{}
		_, _ = o.Write([]byte("out"))
		o.Finish()
		r := Ending{Report: Report{Ended: true, Code: code}, Stderr: "why"}.Result(o)
		if got := r.Content[0].Text; got != want || strings.Contains(string(r.Details), `"stderr":"why"`) == r.IsError {
			t.Errorf("%d: %q, %s", code, got, r.Details)
		}
	}
}

// A command in the foreground is where its parent is on the terminal, and may leave
// an agent running; one that is stopped leaves nothing.
func TestForeground(t *testing.T) {
	dir := t.TempDir()
	held := openHolders(t, dir)
	var out bytes.Buffer
	line := "exec 9>held; cut -d' ' -f5 /proc/self/stat; sleep 90 >/dev/null 2>&1 & echo $!"
	cmd := Command{Argv: []string{"sh", "-c", line}, Dir: dir, Env: os.Environ(), Stdout: &out, Foreground: true}
	if e := cmd.Run(t.Context(), 0); e.Failed() || !e.Ended || e.Left {
		t.Errorf("%+v", e)
	}
	var group, agent int
	if _, err := fmt.Sscan(out.String(), &group, &agent); err != nil || group != syscall.Getpgrp() {
		t.Fatalf("%q, %v; want the group %d", out.String(), err, syscall.Getpgrp())
	}
	if err := syscall.Kill(agent, syscall.SIGKILL); err != nil {
		t.Errorf("the agent is gone: %v", err)
	}
	held.wait(t)

	ctx, cancel := context.WithCancel(t.Context())
	cmd.Argv[2] = "exec 9>held; setsid sleep 90 & echo >&9; exec sleep 90"
	ended := make(chan Ending)
	go func() { ended <- cmd.Run(ctx, 0) }()
	held.ready(t, 1)
	cancel()
	if e := <-ended; !e.Aborted || e.Stuck {
		t.Errorf("%+v", e)
	}
	held.wait(t)
}
