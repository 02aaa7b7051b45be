package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/tool"
)

// Config describes one program tool.
type Config struct {
	Name        string
	Description string // for the model
	// Schema is the JSON schema of the arguments, SchemaFile the file that holds it;
	// without both the tool takes none.
	Schema     json.RawMessage
	SchemaFile string
	// Argv is the program and its arguments; a program without a slash is looked up
	// in the PATH that it gets.
	Argv       []string
	ReplaySafe bool          // an interrupted call may run again
	Timeout    time.Duration // of a call; 0 is none
	Dir        string        // where it runs; "" is the session's working directory
	Env        []string      // NAME=value, beside the inherited ones
	PassEnv    []string      // inherited variables that StripEnv would withhold
	JSON       bool          // it prints a result as JSON, not the text of one
}

// Options are what program tools need to know about where they run.
type Options struct {
	CWD     string // the session's working directory
	Self    string // as in tool.Command
	TempDir string // takes the full output of calls; "" is the system's
	// Sockets names the folder of this user's sockets, which is private.
	Sockets func() (string, error)
	// StripEnv tells which environment variables a program must not see (D44).
	StripEnv func(name string) bool
}

// Tool is a program as a tool.
type Tool struct {
	config  Config
	options Options
	schema  func() (loaded, error)
}

// New makes a tool and looks at nothing yet: Check does.
func New(c Config, o Options) *Tool {
	t := &Tool{config: c, options: o}
	t.schema = sync.OnceValues(t.loadSchema)
	return t
}

// Spec implements effect.Tool.
func (t *Tool) Spec() message.ToolSpec {
	s, err := t.schema()
	if err != nil {
		s.raw = json.RawMessage(noArguments) // Prepare tells what is wrong
	}
	return message.ToolSpec{Name: t.config.Name, Description: t.config.Description, Parameters: s.raw}
}

// ReplaySafe implements effect.Tool.
func (t *Tool) ReplaySafe() bool { return t.config.ReplaySafe }

// Prepare implements effect.Tool: it checks the arguments and returns them as
// they are.
func (t *Tool) Prepare(args json.RawMessage) (json.RawMessage, error) {
	s, err := t.schema()
	if err != nil {
		return nil, err
	}
	return args, s.compiled.Validate(args)
}

// maxSaid is how much of what a program says on stderr is told, in bytes.
const maxSaid = 8 << 10

// Execute implements effect.Tool. However the program ends is told in the result;
// an error means that it was not even tried.
func (t *Tool) Execute(ctx context.Context, call effect.Invocation) (message.ToolResult, error) {
	dir, err := t.workingDir()
	if err != nil {
		return message.ToolResult{}, err
	}
	if ctx.Err() != nil {
		return message.ToolResult{}, errors.New("run program: the call was aborted before it started")
	}
	folder, err := t.options.Sockets()
	if err != nil {
		return message.ToolResult{}, fmt.Errorf("serve memos: %w", err)
	}
	memos, err := serveMemos(ctx, folder, call.Memos)
	if err != nil {
		return message.ToolResult{}, fmt.Errorf("serve memos: %w", err)
	}
	defer memos.close()

	out, stderr, progress := t.newPrinted(), &tool.Tail{Limit: maxSaid}, startProgress(call.Update)
	c := tool.Command{
		Self: t.options.Self, Argv: t.config.Argv, Dir: dir, Env: t.environment(dir, call, memos),
		Stdin:  bytes.NewReader(append(bytes.Clone(call.Args), '\n')),
		Stdout: out, Stderr: stderr, Progress: progress,
	}
	e := c.Run(ctx, t.config.Timeout)
	progress.finish()
	e.Stderr = stderr.Text()
	return progress.annotate(out.result(e)), nil
}

// workingDir is where the program runs: nowhere else when that is gone.
func (t *Tool) workingDir() (string, error) {
	if dir := t.config.Dir; dir != "" {
		if err := checkDir(dir); err != nil {
			return "", fmt.Errorf("use the program's working directory: %w", err)
		}
		return dir, nil
	}
	return t.options.CWD, tool.CheckWorkingDir(t.options.CWD)
}
