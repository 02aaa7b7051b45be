package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/tool"
)

// Program is one hook program.
type Program struct {
	Name     string // that people gave it
	Point    Point
	Argv     []string
	Required bool          // its failure is fatal for what it guards (D48)
	Timeout  time.Duration // after which it is ended, and has failed
	Tools    []string      // of a point of tools, those it is asked about; nil is all
	Dir      string        // "" is the session's folder
	Env      []string      // NAME=VALUE, added to the environment
	Pass     []string      // variables that it sees although they hold keys
}

// Options are what all hook programs of a session have in common.
type Options struct {
	SessionID string
	CWD       string // the session's folder
	// Self is the program that programs re-execute as their supervisor: its main
	// honours tool.SupervisorArg. The default is the running program.
	Self string
	// StripEnv tells which variables a program must not see (D44).
	StripEnv func(name string) bool
	Now      func() int64 // Unix ms
}

// maxAnswer is the longest answer that is read, in bytes.
const maxAnswer = 64 << 20

// place is where an operation is.
type place struct{ lane, runID string }

// runner runs one program.
type runner struct {
	Program
	Options
}

// wants reports a tool that the program is asked about.
func (p Program) wants(tool string) bool { return p.Tools == nil || slices.Contains(p.Tools, tool) }

// failed makes the failure of a program one of its hook.
func (r runner) failed(err error) error {
	err = fmt.Errorf("%s: %w", r.Name, err)
	if r.Required {
		return &engine.Required{Err: err}
	}
	return err
}

// run gives the program an event and returns its answer, nil for none.
func (r runner) run(ctx context.Context, at place, event []byte) ([]byte, error) {
	dir := r.Dir
	if dir == "" {
		dir = r.CWD
		if err := tool.CheckWorkingDir(dir); err != nil {
			return nil, err
		}
	}
	ctx, cancel := lifetime(ctx)
	defer cancel(nil)
	out := &limited{full: func() { cancel(errTooLong) }}
	said := &tool.Tail{Limit: maxSaid}
	cmd := tool.Command{
		Self: r.Self, Argv: r.Argv, Dir: dir, Env: r.environment(dir, at),
		Stdin: bytes.NewReader(event), Stdout: out, Stderr: said,
	}
	end := cmd.Run(ctx, r.Timeout)
	if err := r.ended(ctx, end, said); err != nil {
		return nil, err
	}
	return out.text, nil
}

// abortPatience is how long a program may go on after an abort.
const abortPatience = 3 * time.Second

// lifetime is how long a program may run: until the harness closes. An abort lets a
// hook come to its end (spec §4.6), but does not wait for one that hangs.
func lifetime(parent context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() {
		cause := context.Cause(parent)
		if _, abort := errors.AsType[*effect.AbortRequested](cause); abort {
			patience := time.NewTimer(abortPatience)
			defer patience.Stop()
			select {
			case <-patience.C:
			case <-ctx.Done():
			}
			cause = errAborted
		}
		cancel(cause)
	})
	return ctx, func(cause error) {
		stop()
		cancel(cause)
	}
}

var errAborted = fmt.Errorf("it had not ended %s after the abort", abortPatience)

// environment is the process's own without keys, and what tells the program where
// it is.
func (r runner) environment(dir string, at place) []string {
	env := tool.Environment(dir, func(name string) bool {
		return r.StripEnv != nil && r.StripEnv(name) && !slices.Contains(r.Pass, name)
	})
	env = append(env, r.Env...)
	return append(env, "DROVER_HOOK="+string(r.Point), "DROVER_SESSION_ID="+r.SessionID, "DROVER_LANE="+at.lane, "DROVER_OPERATION_ID="+at.runID)
}

// ended says how a program failed, nil when it did not.
func (r runner) ended(ctx context.Context, end tool.Ending, said *tool.Tail) error {
	var why string
	switch {
	case end.Err != nil:
		return end.Err
	case end.TimedOut:
		why = fmt.Sprintf("it took longer than %s", r.Timeout)
	case end.Aborted:
		return context.Cause(ctx)
	case end.Stopped:
		why = "its supervisor was told to stop"
	case end.Signal != 0:
		why = fmt.Sprintf("ended by signal %d (%s)", end.Signal, syscall.Signal(end.Signal))
	case end.Code != 0:
		why = fmt.Sprintf("exit code %d", end.Code)
	default:
		return nil
	}
	if text := said.Line(); text != "" {
		why += ": " + text
	}
	return errors.New(why)
}

var errTooLong = fmt.Errorf("its answer is longer than %d MiB", maxAnswer>>20)

// limited keeps an answer of bounded length. It takes everything: a program that
// cannot write would not end.
type limited struct {
	text []byte
	full func() // called with what is too much
}

func (l *limited) Write(p []byte) (int, error) {
	if len(l.text)+len(p) > maxAnswer {
		l.full()
		return len(p), nil
	}
	l.text = append(l.text, p...)
	return len(p), nil
}

// maxSaid is how much of what a program says on stderr is told, in bytes.
const maxSaid = 1 << 10
