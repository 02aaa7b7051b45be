package mcp

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-run/drover/pkg/tool"
)

// process is a server that speaks over its standard streams.
type process struct {
	in     *os.File       // its standard input
	out    *io.PipeReader // its standard output
	stderr tool.Tail
	cancel context.CancelFunc
	done   chan struct{}
	ending tool.Ending // once done is closed
}

// startProcess starts the server. Its input is a pipe of the system's: what only
// copied to it would wait for more to copy after the server has ended.
func startProcess(c Config) (*process, error) {
	stdin, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	out, stdout := io.Pipe()
	p := &process{in: in, out: out, cancel: cancel, done: make(chan struct{}), stderr: tool.Tail{Limit: maxSaid}}
	cmd := tool.Command{Self: c.Self, Argv: c.Argv, Dir: c.Dir, Env: c.Env, Stdin: stdin, Stdout: stdout, Stderr: &p.stderr}
	go func() {
		p.ending = cmd.Run(ctx, 0)
		close(p.done)
		_ = stdout.Close()
		_ = stdin.Close()
	}()
	return p, nil
}

func (p *process) transport() sdk.Transport {
	return &sdk.IOTransport{Reader: p.out, Writer: p.in}
}

// stop closes the server's input, as the protocol asks, and ends what is still
// there after that.
func (p *process) stop() {
	_ = p.in.Close()
	// What it still says would hold it up.
	go func() { _, _ = io.Copy(io.Discard, p.out) }()
	patience := time.NewTimer(closePatience)
	defer patience.Stop()
	select {
	case <-p.done:
	case <-patience.C:
	}
	p.cancel()
	<-p.done
}

// ended says how the process ended, "" while it runs.
func (p *process) ended() string {
	select {
	case <-p.done:
	default:
		return ""
	}
	var how string
	switch e := p.ending; {
	case e.Err != nil:
		how = e.Err.Error()
	case e.Signal != 0:
		how = fmt.Sprintf("it was ended by signal %d, %s", e.Signal, syscall.Signal(e.Signal))
	default:
		how = fmt.Sprintf("it ended with exit code %d", e.Code)
	}
	if said := p.stderr.Line(); said != "" {
		how += ": " + said
	}
	return how
}

// maxSaid is how much of a server's complaints is told, in bytes.
const maxSaid = 400
