package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

// Tool is a tool whose work is code. Each execution appends a line to the world's
// file before anything else.
type Tool struct {
	Name string
	Safe bool // to run again
	// Run does the work; nil answers "NAME did ARGUMENTS".
	Run func(ctx context.Context, w *World, call effect.Invocation) (message.ToolResult, error)
}

// Result is a tool result of one text.
func Result(text string) message.ToolResult {
	return message.ToolResult{Content: []message.Block{message.TextBlock(text)}}
}

// Toolbox holds the tools of a world; they may be taken away.
type Toolbox struct {
	w    *World
	path string // of the file that executions are appended to, "" without one

	mu    sync.Mutex
	tools map[string]*Tool
}

// Tools gives the world tools that count their executions in a file, with path ""
// in none.
func (w *World) Tools(path string, tools ...*Tool) *Toolbox {
	b := &Toolbox{w: w, path: path, tools: make(map[string]*Tool)}
	for _, t := range tools {
		b.tools[t.Name] = t
	}
	w.Options.Tools = b
	return b
}

// Lookup finds a tool.
func (b *Toolbox) Lookup(name string) (effect.Tool, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, ok := b.tools[name]
	return boundTool{t, b}, ok
}

// Remove takes a tool away; Put brings one.
func (b *Toolbox) Remove(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.tools, name)
}

// Put adds a tool.
func (b *Toolbox) Put(t *Tool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tools[t.Name] = t
}

// Ran counts the executions by call id.
func (b *Toolbox) Ran() (map[string]int, error) {
	raw, err := os.ReadFile(b.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	ran := map[string]int{}
	for line := range strings.Lines(string(raw)) {
		ran[strings.TrimSpace(line)]++
	}
	return ran, nil
}

func (b *Toolbox) append(line string) error {
	if b.path == "" {
		return nil
	}
	f, err := os.OpenFile(b.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

type boundTool struct {
	*Tool
	box *Toolbox
}

func (t boundTool) Spec() message.ToolSpec { return message.ToolSpec{Name: t.Name} }
func (t boundTool) ReplaySafe() bool       { return t.Safe }

// Prepare refuses {"bad":…} and gives every other call its full arguments.
func (t boundTool) Prepare(args json.RawMessage) (json.RawMessage, error) {
	if strings.Contains(string(args), `"bad"`) {
		return nil, errors.New("/bad is not allowed")
	}
	return args, nil
}

func (t boundTool) Execute(ctx context.Context, call effect.Invocation) (r message.ToolResult, err error) {
	w := t.box.w
	w.Effect("tool "+call.CallID, func() {
		if err = t.box.append(call.CallID); err != nil {
			return
		}
		if r = Result(t.Name + " did " + string(call.Args)); t.Run != nil {
			r, err = t.Run(ctx, w, call)
		}
	})
	return r, err
}
