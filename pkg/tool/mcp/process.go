package mcp

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-run/drover/pkg/tool"
)

// process is a server that speaks over its standard streams.
type process struct {
	in     *os.File       // its standard input
	out    *io.PipeReader // its standard output
	head   head           // how that begins
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
	p := &process{in: in, out: out, head: head{ReadCloser: out}, cancel: cancel, done: make(chan struct{}), stderr: tool.Tail{Limit: maxComplaint}}
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
	return &sdk.IOTransport{Reader: &p.head, Writer: p.in}
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
		how = fmt.Sprintf("signal %d, %s", e.Signal, syscall.Signal(e.Signal))
	default:
		how = fmt.Sprintf("exit code %d", e.Code)
	}
	if said := p.stderr.Line(); said != "" {
		how += ": " + said
	}
	return how
}

// maxComplaint is how much of a server's complaints is told, in bytes.
const maxComplaint = 400

// unstarted says why the process never ran, "" when it has, or still may.
func (p *process) unstarted() string {
	select {
	case <-p.done:
	default:
		return ""
	}
	if p.ending.Err == nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimPrefix(p.ending.Err.Error(), "start command: "), "exec: ")
}

// head keeps the beginning of what is read through it.
type head struct {
	io.ReadCloser

	mu   sync.Mutex
	kept []byte
}

// maxHead is how much of that is kept.
const maxHead = 100

// Read implements io.Reader.
func (h *head) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept = append(h.kept, p[:min(n, maxHead-len(h.kept))]...)
	return n, err
}

// stray is the first line when that is no message of the protocol, "" otherwise.
func (h *head) stray() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	line, _, _ := strings.Cut(strings.TrimSpace(string(h.kept)), "\n")
	if strings.HasPrefix(line, "{") || strings.HasPrefix(line, "[") {
		return ""
	}
	return strings.TrimSpace(strings.ToValidUTF8(line, "�"))
}
