package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
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

var errTimeout = errors.New("time limit")

type bash struct {
	base
	options Options
	files   *files
}

func newBash(o Options, f *files) *bash {
	return &bash{base: newBase("bash", bashDescription, bashSchema, false), options: o, files: f}
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
	dir, err := b.files.workingDir()
	if err != nil {
		return message.ToolResult{}, err
	}
	if ctx.Err() != nil {
		return message.ToolResult{}, errors.New("run command: the call was aborted before it started")
	}
	seconds := numberArg(call.Args, "timeout", 0, maxTimeout)
	if seconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Duration(seconds*float64(time.Second)), errTimeout)
		defer cancel()
	}

	out := &output{tempDir: b.options.TempDir}
	c := command{self: b.options.Self, argv: []string{shell(), "-c", line}, dir: dir, env: b.environment(dir), out: out}
	stop := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() { reportProgress(stop, out, call.Update) })
	r, err := c.run(ctx)
	close(stop)
	reporting.Wait()
	out.finish()

	e := ending{report: r, err: err, seconds: seconds}
	if r.Stopped && ctx.Err() != nil {
		e.timedOut = errors.Is(context.Cause(ctx), errTimeout)
		e.aborted = !e.timedOut
	}
	return e.result(out), nil
}

// shell is bash, or where there is none the system's own.
func shell() string {
	if _, err := exec.LookPath("bash"); err != nil {
		return "sh"
	}
	return "bash"
}

// environment is this process's own without what a command must not see (D44).
func (b *bash) environment(dir string) []string {
	env := []string{"PWD=" + dir}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if name == "PWD" || name == "OLDPWD" || b.options.StripEnv != nil && b.options.StripEnv(name) {
			continue
		}
		env = append(env, v)
	}
	return env
}

// ending is how a command ended.
type ending struct {
	report
	err      error // it did not run, or its end is not known
	timedOut bool
	aborted  bool
	seconds  float64 // the limit
}

func (e ending) failed() bool {
	return e.err != nil || e.timedOut || e.aborted || e.Stopped || e.Signal != 0 || e.Code != 0
}

// result puts the end of the output and what there is to say about it together.
func (e ending) result(o *output) message.ToolResult {
	v := o.last()
	notes := e.notes()
	if v.cut {
		notes = append([]string{cutNote(v, o)}, notes...)
	}
	text := v.text
	if text == "" && !e.failed() {
		text = "(no output)"
	}
	if len(notes) > 0 {
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		text += "[" + strings.Join(notes, " ") + "]"
	}
	r := textResult(text)
	r.IsError = e.failed()
	r.Details = e.details(v, o).raw()
	return r
}

func (e ending) notes() []string {
	var notes []string
	switch {
	case e.err != nil:
		notes = append(notes, sentence(e.err.Error()))
	case e.timedOut:
		notes = append(notes, fmt.Sprintf("Ended after %s seconds, the time limit.", strconv.FormatFloat(e.seconds, 'g', 6, 64)))
	case e.aborted:
		notes = append(notes, "Ended because the call was aborted.")
	case e.Stopped:
		notes = append(notes, "Ended because the supervisor was told to stop.")
	case e.Signal != 0:
		notes = append(notes, fmt.Sprintf("Ended by signal %d (%s).", e.Signal, syscall.Signal(e.Signal)))
	case e.Code != 0:
		notes = append(notes, fmt.Sprintf("Exit code %d.", e.Code))
	}
	if e.Left {
		notes = append(notes, "Processes that the command left running were ended.")
	}
	if e.Stuck {
		notes = append(notes, "Some of its processes could not be ended.")
	}
	return notes
}

func cutNote(v view, o *output) string {
	what := fmt.Sprintf("The last %d of %d lines", v.lines, v.total)
	if v.partLine {
		what = fmt.Sprintf("The last %d bytes, the first line incomplete", len(v.text))
	}
	switch {
	case o.file == nil:
		return fmt.Sprintf("%s; the full output could not be kept: %v.", what, o.saveErr)
	case o.saved < o.raw && o.saveErr != nil:
		return fmt.Sprintf("%s; the first %d bytes are in %s, the rest could not be kept: %v.", what, o.saved, o.file.Name(), o.saveErr)
	case o.saved < o.raw:
		return fmt.Sprintf("%s; the first %d of %d bytes are in %s.", what, o.saved, o.raw, o.file.Name())
	}
	return fmt.Sprintf("%s; the full output is in %s.", what, o.file.Name())
}

func (e ending) details(v view, o *output) object {
	var d object
	if e.Ended && e.Signal == 0 {
		d = d.integer("exitCode", int64(e.Code))
	} else {
		d = d.null("exitCode")
	}
	if e.Signal != 0 {
		d = d.integer("signal", int64(e.Signal))
	}
	d = d.boolean("cancelled", e.aborted).boolean("timedOut", e.timedOut).boolean("truncated", v.cut)
	if v.cut {
		d = d.integer("totalLines", v.total).integer("totalBytes", o.raw)
	}
	if o.file != nil {
		d = d.text("fullOutputPath", o.file.Name())
	}
	return d
}

// sentence makes an error's text one.
func sentence(s string) string {
	if s != "" && s[0] >= 'a' && s[0] <= 'z' {
		s = string(s[0]-'a'+'A') + s[1:]
	}
	return strings.TrimSuffix(s, ".") + "."
}
