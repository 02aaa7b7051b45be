package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// interrupted is the cause of a context that a signal cancelled.
type interrupted struct{ signal syscall.Signal }

func (e *interrupted) Error() string { return fmt.Sprintf("interrupted by %s", signalName(e.signal)) }

func signalName(s syscall.Signal) string {
	switch s {
	case syscall.SIGHUP:
		return "HUP"
	case syscall.SIGINT:
		return "INT"
	case syscall.SIGTERM:
		return "TERM"
	}
	return s.String()
}

func (e *interrupted) exit() exitCode {
	switch e.signal {
	case syscall.SIGHUP:
		return exitHup
	case syscall.SIGINT:
		return exitInt
	}
	return exitTerm
}

// errDeadline is the cause of a context that a command's deadline ended.
var errDeadline = errors.New("the deadline has passed")

// deadlineGrace is how long after its deadline a pass may still be in a request
// before it is cut off.
const deadlineGrace = time.Second

// withDeadline ends the context a little after the deadline, Unix ms; 0 is none.
// The engine stops by itself at a safe point; a request that hangs has none.
func withDeadline(ctx context.Context, deadline, now int64) (context.Context, context.CancelFunc) {
	if deadline == 0 {
		return ctx, func() {}
	}
	left := time.Duration(max(deadline-now, 0))*time.Millisecond + deadlineGrace
	return context.WithTimeoutCause(ctx, left, errDeadline)
}

// signals cancels a context at the first INT, TERM or HUP after watch, with
// *interrupted as the cause: the command closes what it opened and ends. A second
// signal ends the process on the spot, as does one before watch, when nothing is
// open yet.
type signals struct {
	cancel context.CancelCauseFunc
	caught chan os.Signal // nil before watch
	done   chan struct{}
}

func newSignals(parent context.Context) (context.Context, *signals) {
	ctx, cancel := context.WithCancelCause(parent)
	return ctx, &signals{cancel: cancel}
}

// watch begins to take signals. Those that were ignored when the process started,
// as under nohup, stay ignored. It starts threads: a command that opens nothing
// does without.
func (w *signals) watch() {
	if w.caught != nil {
		return
	}
	w.caught, w.done = make(chan os.Signal, 1), make(chan struct{})
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(w.caught, s)
		}
	}
	go func() {
		defer close(w.done)
		s, ok := <-w.caught
		if !ok {
			return
		}
		signal.Stop(w.caught)
		w.cancel(&interrupted{s.(syscall.Signal)})
	}()
}

// release gives the signals back and ends the context.
func (w *signals) release() {
	if w.caught != nil {
		signal.Stop(w.caught)
		close(w.caught)
		<-w.done
	}
	w.cancel(nil)
}
