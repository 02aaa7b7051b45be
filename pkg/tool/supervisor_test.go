package tool

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/message"
)

func makeFIFO(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// holders are the processes that hold a pipe open: its end of file tells, without
// looking at the clock, that the last of them is gone.
type holders struct{ pipe *os.File }

// openHolders makes the pipe "held" in dir.
func openHolders(t *testing.T, dir string) holders {
	t.Helper()
	// Without O_NONBLOCK this would wait for the first writer.
	f, err := os.OpenFile(makeFIFO(t, dir, "held"), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return holders{f}
}

// ready waits until a process has written a line to the pipe.
func (h holders) ready(t *testing.T, lines int) {
	t.Helper()
	h.limit(t)
	for buf := make([]byte, 1); lines > 0; {
		n, err := h.pipe.Read(buf)
		if errors.Is(err, io.EOF) {
			continue // nobody has opened it yet
		}
		if err != nil {
			t.Fatalf("wait for the processes to start: %v", err)
		}
		lines -= strings.Count(string(buf[:n]), "\n")
	}
}

// wait waits until no process holds the pipe any more.
func (h holders) wait(t *testing.T) {
	t.Helper()
	h.limit(t)
	if _, err := io.Copy(io.Discard, h.pipe); err != nil {
		t.Fatalf("processes are left: %v", err)
	}
}

// limit keeps a failing test from hanging.
func (h holders) limit(t *testing.T) {
	if err := h.pipe.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
}

// family is a command that leaves processes of all kinds: in its group, in a
// session of their own, without a parent, deaf to TERM, stopped. Each says that
// it is there.
const family = `exec 9>held
sleep 90 & echo >&9
(trap '' TERM HUP INT; echo >&9; sleep 90) &
setsid sh -c 'echo >&9; sleep 90' &
setsid sh -c 'trap "" TERM; (trap "" TERM; echo >&9; sleep 90) & exit' &
sh -c 'echo >&9; kill -STOP $$' &
sleep 90`

const familySize = 5

// TestParentDies checks that nothing a command started outlives the process that
// made the call, however that ends (B24, D45).
func TestParentDies(t *testing.T) {
	cases := []struct {
		name   string
		signal syscall.Signal
		closes bool // handles the signal
	}{
		{"kill", syscall.SIGKILL, false},
		{"int", syscall.SIGINT, false},
		{"term", syscall.SIGTERM, false},
		{"hup", syscall.SIGHUP, false},
		{"int, closing", syscall.SIGINT, true},
		{"term, closing", syscall.SIGTERM, true},
		{"hup, closing", syscall.SIGHUP, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			held := openHolders(t, dir)
			parent := exec.Command(os.Args[0])
			parent.Dir = dir
			parent.Env = append(os.Environ(), parentEnv+"="+commandArgs(family))
			if c.closes {
				parent.Env = append(parent.Env, closesEnv+"=1")
			}
			var out strings.Builder
			parent.Stdout, parent.Stderr = &out, &out
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			held.ready(t, familySize)
			if err := parent.Process.Signal(c.signal); err != nil {
				t.Error(err)
			}
			err := parent.Wait()
			held.wait(t)
			if c.closes != (err == nil) || c.closes != strings.Contains(out.String(), "Ended because the call was aborted") {
				t.Errorf("the parent ended with %v and said %q", err, out.String())
			}
		})
	}
}

// TestSupervisorSignalled checks that a supervisor obeys signals too.
func TestSupervisorSignalled(t *testing.T) {
	dir := t.TempDir()
	held := openHolders(t, dir)
	got := call(t, toolNamed("bash", Options{CWD: dir}), commandArgs("exec 9>held; setsid sleep 90 & kill -TERM $PPID; sleep 90"))
	want := outcome{
		Text:    "[Ended because the supervisor was told to stop.]",
		Details: `{"exitCode":null,"signal":15,"cancelled":false,"timedOut":false,"truncated":false}`, IsError: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	held.wait(t)
}

// TestNothingLeft checks that all that a command leaves behind ends with it.
func TestNothingLeft(t *testing.T) {
	dir := t.TempDir()
	held := openHolders(t, dir)
	fifo := makeFIFO(t, dir, "go")
	b := toolNamed("bash", Options{CWD: dir})
	result := make(chan outcome)
	go func() {
		line := strings.TrimSuffix(family, "sleep 90") + "cat go"
		result <- callWith(t.Context(), b, commandArgs(line), func(message.ToolResult, bool) {})
	}()
	held.ready(t, familySize)
	if err := os.WriteFile(fifo, []byte("done\n"), 0); err != nil {
		t.Fatal(err)
	}
	want := outcome{
		Text:    "done\n[Processes that the command left running were ended.]",
		Details: `{"exitCode":0,"cancelled":false,"timedOut":false,"truncated":false}`,
	}
	if diff := cmp.Diff(want, <-result); diff != "" {
		t.Error(diff)
	}
	held.wait(t)
}
