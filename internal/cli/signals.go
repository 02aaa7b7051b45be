package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
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
