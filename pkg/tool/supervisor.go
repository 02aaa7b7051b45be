//go:build unix

package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// SupervisorArg is the first argument with which a program re-executes itself to
// become the supervisor of a command: it then calls SupervisorMain with the
// arguments behind it, before anything else, and exits with the result.
const SupervisorArg = "__supervise"

// The descriptors that a supervisor finds open.
const (
	controlFD  = 3 // reads until its parent asks it to stop, or is gone
	statusFD   = 4 // takes its reports
	progressFD = 5 // becomes the command's descriptor 3, where it has one
)

// The kinds of commands, as the supervisor is told.
const (
	kindPlain      = "plain"
	kindProgress   = "progress"   // has a descriptor 3
	kindForeground = "foreground" // as Command.Foreground
)

const (
	settleTime = 300 * time.Millisecond // for what outlives the command to end by itself
	graceTime  = 300 * time.Millisecond // between TERM and KILL
	killEvery  = 50 * time.Millisecond
	killTime   = 2 * time.Second // until processes that survive KILL are given up
)

// Report is what a supervisor tells its parent, one JSON value a line; later
// ones add to earlier ones.
type Report struct {
	PID     int    `json:"pid,omitempty"`     // of the command, and of its group unless it is in the foreground
	Error   string `json:"error,omitempty"`   // why it did not start
	Ended   bool   `json:"ended,omitempty"`   // the rest counts
	Code    int    `json:"code,omitempty"`    // exit code, when no signal ended it
	Signal  int    `json:"signal,omitempty"`  // that ended it
	Stopped bool   `json:"stopped,omitempty"` // it was asked to stop before the command ended
	Left    bool   `json:"left,omitempty"`    // the command left processes behind, which were ended
	Stuck   bool   `json:"stuck,omitempty"`   // not all of them could be
}

// SupervisorMain runs a command in a process group of its own and ends when the
// command and everything it started have (D45). As soon as its parent closes
// the pipe between them, is gone in whatever way, or sends a signal, it ends
// them all: TERM, a short grace, KILL. So it does with what the command leaves
// behind. On Linux processes that left the group are found too. A foreground
// command stays in the group of its parent, and what it leaves behind stays. args
// is the kind of the command, then the command. The result is an exit status.
func SupervisorMain(args []string) int {
	if len(args) < 2 || !isPipe(controlFD) || !isPipe(statusFD) {
		fmt.Fprintln(os.Stderr, "drover: a supervisor is started by drover itself")
		return 2
	}
	syscall.CloseOnExec(controlFD)
	syscall.CloseOnExec(statusFD)
	descriptors := []uintptr{0, 1, 2}
	if args[0] == kindProgress {
		syscall.CloseOnExec(progressFD) // the command has it as 3 only
		descriptors = append(descriptors, progressFD)
	}
	status := json.NewEncoder(os.NewFile(statusFD, "status"))

	// The command's death signal follows the thread that starts it, not the process.
	runtime.LockOSThread()
	adoptOrphans()
	stop := stopRequests()
	s, err := startSupervised(args[1:], descriptors, args[0] == kindForeground)
	if err != nil {
		_ = status.Encode(Report{Error: err.Error()}) // a parent that is gone need not know
		return 1
	}
	_ = status.Encode(Report{PID: s.pid})
	_ = status.Encode(s.watch(stop))
	return 0
}

func isPipe(fd int) bool {
	var st syscall.Stat_t
	return syscall.Fstat(fd, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFIFO
}

// stopRequests is closed, or receives, when the supervisor shall end.
func stopRequests() <-chan os.Signal {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	control := os.NewFile(controlFD, "control")
	go func() {
		_, _ = io.Copy(io.Discard, control)
		select {
		case stop <- syscall.SIGTERM:
		default: // one request is enough
		}
	}()
	return stop
}

type supervised struct {
	pid        int
	foreground bool
	ended      chan syscall.WaitStatus // of the command
	gone       chan struct{}           // closed when no child is left
}

func startSupervised(args []string, descriptors []uintptr, foreground bool) (*supervised, error) {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return nil, err
	}
	attr := &syscall.ProcAttr{Env: os.Environ(), Files: descriptors, Sys: commandAttributes(!foreground)}
	pid, err := syscall.ForkExec(path, args, attr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s := &supervised{pid: pid, foreground: foreground, ended: make(chan syscall.WaitStatus, 1), gone: make(chan struct{})}
	go s.reap()
	return s, nil
}

// reap collects children, the command and adopted ones, until there are none.
func (s *supervised) reap() {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			close(s.gone)
			return
		case pid == s.pid:
			s.ended <- ws
		}
	}
}

// watch waits for the end of the command, or ends it.
func (s *supervised) watch(stop <-chan os.Signal) Report {
	var r Report
	var ws syscall.WaitStatus
	select {
	case ws = <-s.ended:
		if !s.foreground {
			r.Left = !s.wait(settleTime, stop)
			r.Stuck = r.Left && !s.end()
		}
	case <-stop:
		r.Stopped = true
		r.Stuck = !s.end()
		select {
		case ws = <-s.ended:
		default:
			return r
		}
	}
	r.Ended = true
	if ws.Signaled() {
		r.Signal = int(ws.Signal())
	} else {
		r.Code = ws.ExitStatus()
	}
	return r
}

// end ends every process that is left. False means that some survived.
func (s *supervised) end() bool {
	s.signal(syscall.SIGTERM)
	s.signal(syscall.SIGCONT) // a stopped process sees no TERM
	if s.wait(graceTime, nil) {
		return true
	}
	for range killTime / killEvery {
		// Again and again: a process may have been starting another one.
		s.signal(syscall.SIGKILL)
		if s.wait(killEvery, nil) {
			return true
		}
	}
	return false
}

func (s *supervised) signal(sig syscall.Signal) {
	_ = syscall.Kill(s.target(), sig) // ESRCH: it is gone
	for _, pid := range descendants(os.Getpid()) {
		_ = syscall.Kill(pid, sig)
	}
}

// wait waits until nothing is left, at most d, not after a request to stop.
func (s *supervised) wait(d time.Duration, stop <-chan os.Signal) bool {
	timeout := time.NewTimer(d)
	defer timeout.Stop()
	for {
		select {
		case <-s.gone:
			if s.groupGone() {
				return true
			}
		case <-stop:
			return false
		case <-timeout.C:
			return false
		}
		time.Sleep(pollEvery) // only where members of the group are no children
	}
}

const pollEvery = 5 * time.Millisecond

// groupGone tells whether the command's group is empty: where orphans are not
// adopted, having no children does not say so.
func (s *supervised) groupGone() bool {
	return errors.Is(syscall.Kill(s.target(), 0), syscall.ESRCH)
}

// target is what signals go to: the command's group, where it has one.
func (s *supervised) target() int {
	if s.foreground {
		return s.pid
	}
	return -s.pid
}
