package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/tool"
)

// Main runs one command and returns the exit code. args are without the
// program's name, env is as os.Environ gives it.
func Main(args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == tool.SupervisorArg {
		return tool.SupervisorMain(args[1:]) // before anything else takes signals or descriptors
	}
	if os.Getenv("GOGC") == "" {
		tuneCollector()
	}
	return int(run(newFactory(env, newStreams(stdin, stdout, stderr)), args))
}

func run(f *factory, args []string) exitCode {
	ctx, signals := newSignals(context.Background())
	defer signals.release()
	f.opening = signals.watch

	err := guarded(func() error { return execute(ctx, f, args) })
	f.closeTrace()
	f.flushSpans()
	if flushErr := f.io.out.Flush(); err == nil {
		err = flushErr
	}
	return f.finish(ctx, args, err)
}

// execute parses the arguments and runs the command they name.
func execute(ctx context.Context, f *factory, args []string) error {
	return newRootCmd(f, args).ExecuteContext(ctx)
}

// guarded turns a panic into an error: a defect must not look like a usage
// error, which is what the runtime's own exit code would say. Every goroutine of
// a command needs its own.
func guarded(run func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &failure{code: exitInternal, tag: "fault", message: fmt.Sprintf("internal error: %v\n%s", r, debug.Stack())}
		}
	}()
	return run()
}

// finish reports an error and says what to exit with.
func (f *factory) finish(ctx context.Context, args []string, err error) exitCode {
	fail := explain(bySignal(ctx, err))
	switch {
	case fail == nil, errors.Is(err, errPipe):
		return exitOK
	case fail.code == exitOK:
		return exitInternal // a failure never ends with 0
	}
	f.pointToFile(fail, err)
	f.pointToImport(fail, err)
	f.fallbackPrinter(args).failure(fail)
	return fail.code
}

// pointToImport takes the hint at --in-place back from somebody who gave it.
func (f *factory) pointToImport(fail *failure, err error) {
	if legacy, ok := errors.AsType[*store.Legacy](err); ok && f.flags.inPlace {
		fail.hint = fmt.Sprintf("--in-place converts a file only where it is written: no dry run does, nor what only reads; import it with `drover import-v3 %s`", legacy.Path)
	}
}

// bySignal tells an error that only says that work was cut short from one that
// has its own reason: the first is the signal's doing.
func bySignal(ctx context.Context, err error) error {
	caught, ok := errors.AsType[*interrupted](context.Cause(ctx))
	if !ok || err == nil || cutShort(err) {
		return err // what was told to be cut short already knows more, such as a hint
	}
	cut := errors.Is(err, context.Canceled) || errors.Is(err, store.ErrClosed)
	if _, direct := errors.AsType[*interrupted](err); !cut && !direct {
		return err
	}
	return &failure{code: caught.exit(), tag: "interrupted", message: caught.Error(), cause: err}
}
