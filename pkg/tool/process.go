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

// command is one command to run under a supervisor.
type command struct {
	self string // the program whose main calls SupervisorMain
	argv []string
	dir  string
	env  []string
	out  io.Writer // takes both streams, from one goroutine
}

// wire is a pipe to a process about to start: one end for each side.
type wire struct{ ours, theirs *os.File }

// run runs the command until it and all it started have ended. Once ctx is done
// it asks for that, and returns within a second, whoever still holds the output.
// An error means that the command did not run, or that its end is not known:
// then the report has not Ended.
func (c *command) run(ctx context.Context) (report, error) {
	out, err := pipeFrom()
	if err != nil {
		return report{}, fmt.Errorf("start command: %w", err)
	}
	defer out.close()
	status, err := pipeFrom()
	if err != nil {
		return report{}, fmt.Errorf("start command: %w", err)
	}
	defer status.close()
	control, err := pipeTo()
	if err != nil {
		return report{}, fmt.Errorf("start command: %w", err)
	}
	defer control.close()

	cmd := exec.Command(c.self, append([]string{SupervisorArg}, c.argv...)...)
	cmd.Args[0] = os.Args[0] // what people shall see in a list of processes
	cmd.Dir, cmd.Env = c.dir, c.env
	cmd.Stdout, cmd.Stderr = out.theirs, out.theirs
	cmd.ExtraFiles = []*os.File{control.theirs, status.theirs}
	// A session of its own: a terminal's signals reach the parent alone, which
	// closes the pipe, and no command can ask the user at the terminal.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return report{}, fmt.Errorf("start command: %w", err)
	}
	for _, w := range []wire{out, status, control} {
		w.theirs.Close()
	}

	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(c.out, out.ours) // ends at the last writer's end or at the deadline
	}()
	r := superviseUntil(ctx, cmd.Process, control.ours, readReports(status.ours))
	waitErr := cmd.Wait()
	_ = out.ours.SetReadDeadline(time.Now().Add(drainTime))
	<-copied
	return r, r.failure(waitErr)
}

// superviseUntil returns the supervisor's last report, which comes when it has
// ended, in good time after ctx is done.
func superviseUntil(ctx context.Context, supervisor *os.Process, control *os.File, reports <-chan report) report {
	var r report
	select {
	case r = <-reports:
	case <-ctx.Done():
		control.Close()
		patience := time.NewTimer(stopPatience)
		defer patience.Stop()
		select {
		case r = <-reports:
		case <-patience.C:
			_ = supervisor.Kill()
			r = <-reports
			r.Stopped = true
		}
	}
	if !r.Ended && r.PID > 0 {
		// It was killed, by us or by somebody else, and could not do this itself.
		_ = syscall.Kill(-r.PID, syscall.SIGKILL)
	}
	return r
}

// readReports adds up the reports until the pipe's other end is closed.
func readReports(status io.Reader) <-chan report {
	reports := make(chan report, 1)
	go func() {
		var r report
		dec := json.NewDecoder(status)
		for dec.Decode(&r) == nil {
			continue
		}
		reports <- r
	}()
	return reports
}

func (r report) failure(supervisor error) error {
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

func pipeFrom() (wire, error) {
	r, w, err := os.Pipe()
	return wire{ours: r, theirs: w}, err
}

func pipeTo() (wire, error) {
	r, w, err := os.Pipe()
	return wire{ours: w, theirs: r}, err
}

// close closes what is still open.
func (w wire) close() {
	w.ours.Close()
	w.theirs.Close()
}
