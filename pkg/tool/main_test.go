package tool

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

// parentEnv makes this test binary run one bash command, given as arguments to
// the tool, and print its result: a parent that a test can kill. With closes it
// ends its call on a signal, as a controlled close does.
const (
	parentEnv = "TOOL_TEST_PARENT"
	closesEnv = "TOOL_TEST_CLOSES"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == SupervisorArg {
		os.Exit(SupervisorMain(os.Args[2:]))
	}
	if args := os.Getenv(parentEnv); args != "" {
		runParent(json.RawMessage(args))
	}
	os.Exit(m.Run())
}

func runParent(args json.RawMessage) {
	ctx := context.Background()
	if os.Getenv(closesEnv) != "" {
		ctx, _ = signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	}
	dir, _ := os.Getwd()
	out := bufio.NewWriter(os.Stdout)
	r, err := toolNamed("bash", Options{CWD: dir}).Execute(ctx, effect.Invocation{Args: args, Update: func(message.ToolResult, bool) {}})
	fmt.Fprintln(out, r.Content, err)
	out.Flush()
	os.Exit(0)
}

func toolNamed(name string, o Options) effect.Tool {
	for _, t := range Builtins(o) {
		if t.Spec().Name == name {
			return t
		}
	}
	panic("unreachable: " + name)
}

// outcome is what a call gave, as a test compares it.
type outcome struct {
	Text    string
	Image   string // its media type
	Details string
	IsError bool
	Err     string // refused, or failed without a result
}

func call(t *testing.T, tool effect.Tool, args string) outcome {
	t.Helper()
	return callWith(t.Context(), tool, args, func(message.ToolResult, bool) {})
}

func callWith(ctx context.Context, tool effect.Tool, args string, update func(message.ToolResult, bool)) outcome {
	prepared, err := tool.Prepare(json.RawMessage(args))
	if err != nil {
		return outcome{Err: err.Error()}
	}
	r, err := tool.Execute(ctx, effect.Invocation{Args: prepared, Update: update})
	if err != nil {
		return outcome{Err: err.Error()}
	}
	o := outcome{Details: string(r.Details), IsError: r.IsError}
	for _, b := range r.Content {
		o.Text += b.Text
		o.Image += b.MimeType
	}
	return o
}
