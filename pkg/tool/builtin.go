package tool

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

// Options are what the built-in tools need to know about where they run.
type Options struct {
	// CWD is the session's working directory: relative paths start there and
	// commands run there. When it is empty or gone every call is an error; no
	// other directory stands in.
	CWD string
	// Self is the program that commands re-execute as their supervisor: its main
	// must honour SupervisorArg. The default is the running program.
	Self string
	// TempDir takes the full output of commands; the default is the system's.
	TempDir string
	// StripEnv tells which environment variables a command must not see (D44).
	StripEnv func(name string) bool
}

// Builtins returns the tools bash, read, write and edit (behaviours §7). Calls of
// one set that change the same file wait for each other.
func Builtins(o Options) []effect.Tool {
	files := &files{cwd: o.CWD, locks: newLocks()}
	return []effect.Tool{newBash(o), newRead(files), newWrite(files), newEdit(files)}
}

// runningProgram names the program as it was started, even when its file has
// been replaced since: a supervisor must speak the same language.
func runningProgram() string {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe"
	}
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// base is what the built-in tools have in common.
type base struct {
	spec   message.ToolSpec
	schema func() (*Schema, error)
	safe   bool
}

func newBase(name, description, schema string, safe bool) base {
	raw := json.RawMessage(schema)
	return base{
		spec:   message.ToolSpec{Name: name, Description: strings.TrimSpace(description), Parameters: raw},
		schema: sync.OnceValues(func() (*Schema, error) { return Compile(raw) }),
		safe:   safe,
	}
}

// Spec implements effect.Tool.
func (b base) Spec() message.ToolSpec { return b.spec }

// ReplaySafe implements effect.Tool.
func (b base) ReplaySafe() bool { return b.safe }

// Prepare implements effect.Tool: it checks the arguments and returns them as
// they are.
func (b base) Prepare(args json.RawMessage) (json.RawMessage, error) {
	s, err := b.schema()
	if err != nil {
		return nil, fmt.Errorf("compile schema of %s: %w", b.spec.Name, err)
	}
	if err := s.Validate(args); err != nil {
		return nil, err
	}
	return args, checkText(args, "$")
}

// textResult is the result of a tool that has said everything in one text.
func textResult(text string) message.ToolResult {
	return message.ToolResult{Content: []message.Block{message.TextBlock(text)}}
}
