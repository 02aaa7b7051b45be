//go:build unix

package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	// stopPatience is how long a supervisor that was asked to stop may take: more
	// than its own grace, less than the second in which a call must return.
	stopPatience = 700 * time.Millisecond
	// drainTime is how long output is still read once the supervisor has ended:
	// a process that is not its own may hold the other end for ever.
	drainTime = 100 * time.Millisecond
)

// Command is a program to run under a supervisor (D45). Each writer is called
// from one goroutine, and not any more once the run has ended.
type Command struct {
	Self  string // re-executed as the supervisor: its main honours SupervisorArg; "" is the running program
	Argv  []string
	Dir   string
	Env   []string
	Stdin io.Reader // nil is none

	Stdout io.Writer
	Stderr io.Writer // nil: Stdout takes both, in the order of writing
	// Progress takes what the command writes to its descriptor 3, which is not
	// open when this is nil.
	Progress io.Writer
	// Foreground keeps the command in this process's group, where it may ask a
	// person on the terminal, and spares what it leaves running once it has ended: a
	// keeper of passwords starts an agent. It excludes Progress.
	Foreground bool
}

// run runs the command until it and all it started have ended. Once ctx is done
// it asks for that, and returns within a second, whoever still holds the output.
// An error means that the command did not run, or that its end is not known:
// then the report has not Ended.
func (c *Command) run(ctx context.Context) (Report, error) {
	p := &pipes{}
	defer p.close()
	cmd := c.supervisor()
	control, controlled := p.add(pipeTo)
	status, reporting := p.add(pipeFrom)
	cmd.ExtraFiles = []*os.File{controlled, reporting}
	c.connect(cmd, p)
	if p.err != nil {
		return Report{}, fmt.Errorf("start command: %w", p.err)
	}
	if err := cmd.Start(); err != nil {
		return Report{}, fmt.Errorf("start command: %w", err)
	}
	p.started()
	r := superviseUntil(ctx, cmd.Process, control, readReports(status))
	waitErr := cmd.Wait()
	p.drain()
	return r, r.failure(waitErr)
}

// supervisor is the process that runs the command, without its descriptors.
func (c *Command) supervisor() *exec.Cmd {
	self, kind := c.Self, kindPlain
	if self == "" {
		self = runningProgram()
	}
	switch {
	case c.Foreground:
		kind = kindForeground
	case c.Progress != nil:
		kind = kindProgress
	}
	cmd := exec.Command(self, append([]string{SupervisorArg, kind}, c.Argv...)...)
	cmd.Args[0] = os.Args[0] // what people shall see in a list of processes
	cmd.Dir, cmd.Env = c.Dir, c.Env
	// A session of its own: a terminal's signals reach the parent alone, which
	// closes the pipe, and no command can ask the user at the terminal.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: !c.Foreground}
	return cmd
}

// connect gives the command its descriptors.
func (c *Command) connect(cmd *exec.Cmd, p *pipes) {
	if c.Stdin != nil {
		cmd.Stdin = p.feed(c.Stdin)
	}
	out := p.take(c.Stdout)
	cmd.Stdout, cmd.Stderr = out, out
	if c.Stderr != nil {
		cmd.Stderr = p.take(c.Stderr)
	}
	if c.Progress != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, p.take(c.Progress))
	}
}

// superviseUntil returns the supervisor's last report, which comes when it has
// ended, in good time after ctx is done.
func superviseUntil(ctx context.Context, supervisor *os.Process, control *os.File, reports <-chan Report) Report {
	var r Report
	select {
	case r = <-reports:
	case <-ctx.Done():
		control.Close()
		patience := time.NewTimer(stopPatience)
		defer patience.Stop()
		select {
		case r = <-reports:
		case <-patience.C:
			killTree(supervisor)
			r = <-reports
			r.Stopped = true
		}
	}
	if !r.Ended && r.PID > 0 {
		// It was killed, by us or by somebody else, and could not do this itself.
		_ = syscall.Kill(-r.PID, syscall.SIGKILL) // ESRCH where it has no group
	}
	return r
}

// killTree ends a supervisor that does not come to it, such as on a machine with
// too much to do, and first all below it: nobody else would find those that left
// the command's group.
func killTree(supervisor *os.Process) {
	for range 2 { // one may have been starting another
		for _, pid := range descendants(supervisor.Pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	_ = supervisor.Kill()
}

// readReports adds up the reports until the pipe's other end is closed.
func readReports(status io.Reader) <-chan Report {
	reports := make(chan Report, 1)
	go func() {
		var r Report
		dec := json.NewDecoder(status)
		for dec.Decode(&r) == nil {
			continue
		}
		reports <- r
	}()
	return reports
}

func (r Report) failure(supervisor error) error {
	switch {
	case r.Error != "":
		return fmt.Errorf("start command: %s", r.Error)
	case r.Ended || r.Stopped:
		return nil
	case r.PID == 0:
		return fmt.Errorf("start supervisor: it ended at once (%v)", supervisor)
	}
	return fmt.Errorf("supervise command: the supervisor is gone (%v), what became of the command is not known", supervisor)
}
