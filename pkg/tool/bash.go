package tool

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

const bashDescription = `
Run a command with bash in the session's working directory and return what it prints, standard output and errors together.
Only the last 2,000 lines or 50 KiB are returned; the full output is then in a file that the result names.
There is no terminal and no input. Processes left in the background end with the command.`

const bashSchema = `{
	"type": "object",
	"properties": {
		"command": {"type": "string", "minLength": 1, "description": "The command line."},
		"timeout": {"type": "number", "exclusiveMinimum": 0, "description": "Seconds after which the command is ended. There is no limit without it."}
	},
	"required": ["command"],
	"additionalProperties": false
}`

const (
	// maxCommand is what Linux takes as one argument.
	maxCommand = 128<<10 - 1
	maxTimeout = 1e9 // seconds
)

type bash struct {
	base
	options Options
}

func newBash(o Options) *bash {
	return &bash{base: newBase("bash", bashDescription, bashSchema, false), options: o}
}

// Execute implements effect.Tool.
func (b *bash) Execute(ctx context.Context, call effect.Invocation) (message.ToolResult, error) {
	line, err := textArg(call.Args, "command")
	if err != nil {
		return message.ToolResult{}, err
	}
	if err := noNUL(line, "command"); err != nil {
		return message.ToolResult{}, err
	}
	if len(line) > maxCommand {
		return message.ToolResult{}, fmt.Errorf("run command: it has %d bytes, the system takes %d; write a script to a file and run that", len(line), maxCommand)
	}
	dir := b.options.CWD
	if err := CheckWorkingDir(dir); err != nil {
		return message.ToolResult{}, err
	}
	if ctx.Err() != nil {
		return message.ToolResult{}, errors.New("run command: the call was aborted before it started")
	}
	limit := time.Duration(numberArg(call.Args, "timeout", 0, maxTimeout) * float64(time.Second))

	out := &Output{Tool: "bash", TempDir: b.options.TempDir}
	c := Command{
		Self: b.options.Self, Argv: []string{shell(), "-c", line}, Dir: dir,
		Env: Environment(dir, b.options.StripEnv), Stdout: out,
	}
	stop := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() { reportProgress(stop, out, call.Update) })
	e := c.Run(ctx, limit)
	close(stop)
	reporting.Wait()
	out.Finish()
	return e.Result(out), nil
}

// shell is bash, or where there is none the system's own.
func shell() string {
	if _, err := exec.LookPath("bash"); err != nil {
		return "sh"
	}
	return "bash"
}
