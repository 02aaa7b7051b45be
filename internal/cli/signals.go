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
	left := time.Duration(deadline-now)*time.Millisecond + deadlineGrace
	return context.WithTimeoutCause(ctx, left, errDeadline)
}

// watchSignals returns a context that the first INT, TERM or HUP cancels, with
// *interrupted as its cause: the command closes what it opened and ends. A
// second signal ends the process on the spot. Signals that were ignored when
// the process started, as under nohup, stay ignored.
func watchSignals(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	c := make(chan os.Signal, 1)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s, ok := <-c
		if !ok {
			return
		}
		signal.Stop(c)
		cancel(&interrupted{s.(syscall.Signal)})
	}()
	return ctx, func() {
		signal.Stop(c)
		close(c)
		<-done
		cancel(nil)
	}
}
