package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/term"
)

// streams are the process's standard streams and what is known of them.
type streams struct {
	in     io.Reader
	out    *sink
	err    io.Writer
	inTTY  bool
	outTTY bool
	errTTY bool
	width  int // columns of the terminal on stdout, 0 when it is none
}

func newStreams(stdin io.Reader, stdout, stderr io.Writer) *streams {
	s := &streams{in: stdin, out: &sink{w: bufio.NewWriterSize(unbroken(stdout), 16<<10)}, err: unbroken(stderr)}
	s.inTTY = isTerminal(stdin)
	s.errTTY = isTerminal(stderr)
	if f, ok := stdout.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.outTTY, s.width = true, 80
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			s.width = w
		}
	}
	return s
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// errPipe reports that the reader of stdout is gone. It ends a command quietly.
var errPipe = errors.New("stdout is closed")

// sink is buffered stdout. Its first failure sticks, so that a command that
// forgets to look is still told by the last flush.
type sink struct {
	w   *bufio.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(p)
	return n, s.keep(err)
}

// Flush hands everything to the operating system.
func (s *sink) Flush() error {
	if s.err != nil {
		return s.err
	}
	return s.keep(s.w.Flush())
}

func (s *sink) keep(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EPIPE):
		s.err = errPipe
	default:
		s.err = &failure{code: exitIO, tag: "io", message: fmt.Sprintf("write stdout: %v", err), cause: err}
	}
	return s.err
}

// unbroken returns a stream that answers with an error when its reader is gone. The
// runtime ends a process that writes to a closed pipe as descriptor 1 or 2, before
// a session is closed; any other descriptor of the same pipe gets the error.
// Ignoring the signal instead would be inherited by child processes, and to watch
// for it takes a thread.
func unbroken(stream io.Writer) io.Writer {
	f, ok := stream.(*os.File)
	if !ok {
		return stream
	}
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		return stream
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), f.Name())
}
